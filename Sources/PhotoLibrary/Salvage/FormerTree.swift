import VaultCatalogue
import VaultFormat
import VaultStore

/// What is left of the catalogue that is to be replaced, inode by inode.
///
/// A row that can be read says more than a record: it is of the newest commit. A record stands in for rows that are
/// lost, and only for these: what is nowhere, though nothing is lost where it would stand, is no more.
struct FormerTree {
    private let remains: CatalogueRemains
    private let orphans: Set<UInt64>
    /// Numbers whose records are older than their rows.
    private let unrecorded: Set<UInt64>

    /// What an inode's rows and its record together say.
    enum Known {
        case nothing
        /// It is there no longer, whatever older records say.
        case gone
        /// - generation: what was written before it, and is not among the record's runs, is older than its bytes.
        /// - recorded: runs of the same bytes as the identity record has them.
        case record(IdentityRecord, generation: UInt64, recorded: [ExtentRun]?)
    }

    /// Reads the catalogue; nil where no row of a file can be read any more.
    init?(_ pages: PublishedPages?) {
        guard let pages, let remains = CatalogueRemains(pages) else { return nil }
        self.remains = remains
        // What rows say that nothing can be would cost all else that they say.
        try? remains.catalogue.locked { tables throws(CatalogueError) in
            try CatalogueMender(tables, chooseName: chooseName).makeReadable()
        }
        let listed = try? remains.catalogue.locked { tables throws(CatalogueError) in
            (try tables.orphans(after: 0, limit: .max), try tables.unrecorded(after: 0, limit: .max))
        }
        orphans = Set(listed?.0 ?? [])
        unrecorded = Set(listed?.1 ?? [])
    }

    var pageCount: Int { remains.pageCount }
    var lostPages: Int { remains.lostPages }

    /// Whether all files are known, so that bytes which none of them has belong to none.
    var knowsAllFiles: Bool { remains.isWhole(.inode) }

    /// The numbers of all inodes whose rows were found, ascending.
    func numbers() throws(FileError) -> [UInt64] {
        try read { tree throws(FileError) in try sql(tree.tables.inodeNumbers()) }
    }

    /// The ids to be given next, as they were.
    func counters() -> Counters? { try? read { tree throws(FileError) in tree.counters } }

    /// Directories whose files were still to be looked at.
    func pendingClassification() -> [UInt64] {
        (try? read { tree throws(FileError) in try sql(tree.tables.pendingClassification()) }) ?? []
    }

    /// Bits of numbers that came to their end, by block.
    func deadBlocks() -> [(block: UInt64, bits: [UInt8])] {
        (try? read { tree throws(FileError) in try sql(tree.tables.deadBlocks()) }) ?? []
    }

    private func read<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R {
        try remains.catalogue.locked { tables throws(FileError) in
            try body(Tree(tables, LibraryOptions(owner: (0, 0), mountedByRoot: true)))
        }
    }

    // MARK: One inode

    /// Puts together what rows say, and, where some may be missing, what a record says.
    ///
    /// - Parameter told: the newest record of that number, and where it lies; nil where there is none.
    func known(_ ino: UInt64, told: (record: IdentityRecord, found: FoundRecord)?) -> Known {
        do throws(FileError) {
            return try read { tree throws(FileError) in try known(ino, told, tree) }
        } catch {
            // Rows that make no sense are as good as lost.
            return told.map { .record($0.record, generation: $0.found.run.generation, recorded: nil) }
                ?? .nothing
        }
    }

    private func known(
        _ ino: UInt64, _ told: (record: IdentityRecord, found: FoundRecord)?, _ tree: Tree
    ) throws(FileError) -> Known {
        let row = try sql(tree.tables.inode(ino))
        if row == nil, !remains.mayLack(.inode, ino) { return .gone }
        if orphans.contains(ino) { return .gone }
        guard let base = row ?? told?.record.row else { return .nothing }
        // Of a file whose content has no number nobody knows the bytes.
        if base.mode & fileTypeMask == regularType, !(1...Geometry.idMax).contains(base.content) {
            throw .damaged
        }
        var record = try tree.record(base, sql(tree.tables.dentries(of: ino)), .none)
        if let told {
            try complete(&record, by: told.record, isNewest: isNewest(told.found, tree))
        }
        if record.runs?.isEmpty ?? true, base.allocated == 0, base.mode & fileTypeMask == regularType {
            // A count that is wrong hides none.
            record.runs = try sql(tree.tables.firstExtents(of: base.content, limit: RecordLimits.none.runs))
        }
        completeRuns(&record, told?.record)
        if record.row.mode & fileTypeMask != regularType {
            // Nothing else is a photo, whatever rows say.
            record.row.flags.subtract([.photo, .copy, .shared, .trashed])
            (record.photo, record.trashed, record.keptNames) = (nil, nil, [])
            (record.row.content, record.row.allocated) = (0, 0)
        }
        if record.names.isEmpty, ino >= WellKnownInode.firstOfUsers, record.photo == nil,
            !record.row.flags.contains(.copy)
        {
            // What has lost its name is given one in `albums/Recovered`.
            record.names = [
                RecordedName(parent: WellKnownInode.root, name: Array("\(ino)".utf8), isMember: false)
            ]
        }
        // Rows are of the newest commit: what they do not name is of none.
        return .record(
            record, generation: row == nil ? told?.found.run.generation ?? .max : .max,
            recorded: told.flatMap { Self.hasSameBytes($0.record, base) ? $0.record.runs : nil })
    }

    /// Whether a record is the one that the catalogue names, and nothing has changed since; also where nobody knows.
    private func isNewest(_ found: FoundRecord, _ tree: Tree) throws(FileError) -> Bool {
        if unrecorded.contains(found.id) { return false }
        guard let run = try sql(tree.tables.identity(found.id)) else {
            return remains.mayLack(.identity, found.id)
        }
        return run == found.run
    }

    /// Takes from a record what rows may lack.
    private func complete(_ record: inout IdentityRecord, by told: IdentityRecord, isNewest: Bool) {
        let ino = record.row.ino
        // An older record may have names that were given up since: better one too many than none.
        if isNewest || record.names.isEmpty {
            for name in told.names where remains.mayLack(.dentry, name.parent) {
                let isThere = record.names.contains { $0.parent == name.parent && $0.name == name.name }
                if !isThere { record.names.append(name) }
            }
        }
        if remains.mayLack(.trash, ino) {
            for index in record.names.indices where record.names[index].since == nil {
                let name = record.names[index]
                let known = told.names.first { $0.parent == name.parent && $0.name == name.name }
                record.names[index].since = known?.since
            }
            if record.row.flags.contains(.trashed) { record.trashed = record.trashed ?? told.trashed }
        }
        if remains.mayLack(.trashName, ino), record.trashed != nil {
            for name in told.keptNames where !record.keptNames.contains(name) {
                record.keptNames.append(name)
            }
        }
        if remains.mayLack(.photo, ino), record.row.flags.contains(.photo) {
            record.photo = record.photo ?? told.photo
        }
        if remains.mayLack(.symlink, ino), record.target.isEmpty { record.target = told.target }
        if remains.mayLack(.xattr, ino) {
            for attribute in told.attributes
            where !record.attributes.contains(where: { $0.name == attribute.name }) {
                record.attributes.append(attribute)
            }
        }
    }

    private static func hasSameBytes(_ told: IdentityRecord, _ row: InodeRow) -> Bool {
        told.row.content == row.content && told.row.version == row.version
    }

    /// A run that is missing would read as zeros: where all of them are not known, what was found of the content tells.
    private func completeRuns(_ record: inout IdentityRecord, _ told: IdentityRecord?) {
        let row = record.row
        // Rows may say of lengths what overflows.
        if record.runs?.reduce(0, { $0 + min($1.length, Geometry.lostBytesMax) }) == row.allocated { return }
        if let told, Self.hasSameBytes(told, row) {
            record.runs = told.runs
        } else if row.allocated > 0 {
            record.runs = nil
        }
    }
}
