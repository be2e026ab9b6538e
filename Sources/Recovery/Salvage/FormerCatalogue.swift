import CatalogueRows
import FileRequests
import PhotoLibrary
import VaultCatalogue
import VaultFormat
import VaultStore

/// The catalogue that a salvage replaces, as far as its pages can be read. It has the names of files and directories
/// whose identity records are damaged as well.
final class FormerCatalogue {
    private let catalogue: Catalogue
    private let generation: UInt64
    /// Whether no newer state is known that cannot be read.
    private let isNewest: Bool
    /// Names by inode, as directories list them, once they are needed.
    private var listed: [UInt64: [DentryRow]]?

    /// Nil if it cannot be opened at all.
    convenience init?(_ unlocked: UnlockedSpace) { self.init(try? unlocked.openSpace(readOnly: true)) }

    /// Nil if the space is, or if its catalogue cannot be opened at all.
    init?(_ space: Space?) {
        guard let space, space.pageCount > 0, let catalogue = try? Catalogue(storage: space, readOnly: true)
        else { return nil }
        (self.catalogue, generation, isNewest) = (catalogue, space.generation, !space.opening.isOlderState)
    }

    /// The inode with that number; nil if there is none with a name, or if these cannot be read.
    func inode(_ ino: UInt64) -> Salvage.RecoveredInode? {
        catalogue.locked { tables -> Salvage.RecoveredInode? in
            guard let row = try? tables.inodes.row(ino), let names = names(of: ino, tables),
                // Copies of photos in the trash have no names.
                !names.isEmpty || row.flags.contains(.copy) || ino < WellKnownInode.firstOfUsers
            else { return nil }
            let record =
                (try? tables.record(row, names, .none))
                ?? Self.record(row, names, try? tables.extents.runs(of: row.content))
            return Salvage.RecoveredInode(record: record, found: nil, generation: generation)
        }
    }

    /// The names of an inode; nil if the index by inode cannot be read and no directory lists it.
    private func names(of ino: UInt64, _ tables: Tables) -> [DentryRow]? {
        if let names = try? tables.dentries.names(of: ino) { return names }
        let listed = listed ?? list(tables)
        self.listed = listed
        return listed[ino]
    }

    private func list(_ tables: Tables) -> [UInt64: [DentryRow]] {
        var names: [UInt64: [DentryRow]] = [:]
        for ino in tables.readable.inodes() {
            guard let row = try? tables.inodes.row(ino), row.mode & fileTypeMask == directoryType else {
                continue
            }
            var rows: [DentryRow] = []
            // Rows before an unreadable page are better than none.
            try? tables.dentries.each(in: ino, after: 0) {
                rows.append($0)
                return true
            }
            for var row in rows {
                // The list does not tell.
                row.isMember = ((try? tables.dentries.entry(ino, row.name)) ?? nil)?.isMember ?? false
                names[row.ino, default: []].append(row)
            }
        }
        return names
    }

    /// Whether every change has reached its identity record.
    var isRecorded: Bool {
        catalogue.locked { (try? $0.identities.unrecorded(after: 0, limit: 1))?.isEmpty ?? false }
    }

    /// Whether there is an inode with that number.
    func knows(_ ino: UInt64) -> Bool { catalogue.locked { (try? $0.inodes.row(ino)) ?? nil != nil } }

    /// Where the record of an inode lies.
    func record(of ino: UInt64) -> ExtentRun? {
        catalogue.locked { (try? $0.identities.location(ino)) ?? nil }
    }

    /// Whether an inode is known to be removed.
    func isRetired(_ ino: UInt64) -> Bool {
        catalogue.locked { tables in
            let bits = (try? tables.identities.retired(block: RetiredIDs.block(ofInode: ino))) ?? nil
            return bits.map { RetiredIDs.isSet(ino, in: $0) } ?? false
        }
    }

    /// Whether a file was made from what an earlier repair found, without its newest record.
    func isGuess(_ ino: UInt64) -> Bool {
        catalogue.locked { ((try? $0.inodes.row(ino)) ?? nil)?.flags.isGuess ?? false }
    }

    /// Whether records were away when a repair made this catalogue.
    var isIncomplete: Bool { isGuess(WellKnownInode.root) }

    /// Whether a directory has a name for that inode.
    func shows(_ parent: UInt64, _ name: [UInt8], _ ino: UInt64) -> Bool {
        catalogue.locked { (try? $0.dentries.entry(parent, name))??.ino == ino }
    }

    /// Whether an inode's row can be read, and of a file the rows of its bytes.
    func reads(_ row: InodeRow) -> Bool {
        catalogue.locked { tables in
            guard let known = (try? tables.inodes.row(row.ino)) ?? nil else { return false }
            if row.mode & fileTypeMask == linkType {
                return ((try? tables.links.target(row.ino)) ?? nil) != nil
            }
            guard row.mode & fileTypeMask == regularType, known.allocated > 0 else { return true }
            return (try? tables.extents.runs(of: known.content)) != nil
        }
    }

    /// The bytes of a content that can be read, and where they lie, and those that cannot, as far as its rows tell.
    func knownBytes(of content: UInt64) -> (stored: UInt64, lost: UInt64, sectors: RangeSet<UInt64>) {
        let runs = catalogue.locked { (try? $0.extents.runs(of: content)) ?? [] }
        let stored = runs.filter { !$0.isLost }
        func bytes(_ runs: [ExtentRun]) -> UInt64 { runs.reduce(0) { $0 + $1.length } }
        return (
            bytes(stored), bytes(runs) - bytes(stored),
            RangeSet(sectorsOf: stored)
        )
    }

    /// A record without details, some of which cannot be read.
    private static func record(
        _ row: InodeRow, _ names: [DentryRow], _ runs: [ExtentRun]?
    ) -> IdentityRecord {
        var record = IdentityRecord(row: row)
        (record.row.nlink, record.row.parent, record.runs) = (0, 0, runs)
        if row.mode & fileTypeMask == directoryType { record.row.size = 0 }
        record.names = names.map {
            RecordedName(parent: $0.parent, name: $0.name, isMember: $0.isMember, isLink: $0.isLink)
        }
        return record
    }

    /// All inodes of the newest state. An older one may have files that were removed since: of it the files with one
    /// of these contents, which were found.
    func inodes(orOf contents: Set<UInt64>) -> [UInt64] {
        catalogue.locked { $0.readable.inodes(of: isNewest ? nil : contents) }
    }
}
