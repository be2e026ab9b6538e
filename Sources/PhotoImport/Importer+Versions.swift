import CatalogueRows
public import FileRequests
import LinuxIO
import PhotoImaging
import PhotoLibrary
import PhotoRules
import VaultCatalogue

extension Importer {
    /// Makes a file the present bytes of a photo, as if a program had saved an edit: the photo keeps its day, names and
    /// sidecars, and what it was is kept as a version. Its names get the extension of the file.
    ///
    /// - Returns: the photo's new inode; nil if the file could not be read, or changed meanwhile.
    public func add(
        edit candidate: Candidate, _ file: ImportFile<some ImportSource>, of ino: UInt64,
        proceed: (UInt64) -> Bool = { _ in true }
    ) throws(FileError) -> UInt64? {
        try library.check(file.name)
        guard let sealed = try seal(file.source, proceed) else { return nil }
        defer { sealed.abandon(session.space) }
        let arrival = Arrival(name: file.name.bytes, details: file.details, sealed: sealed)
        let made = try session.change { change throws(FileError) in
            try change.tree.imports.enter(edit: arrival, candidate.row, of: ino, session.space, change)
        }
        // Moves companions with their photo to the photo's new day.
        try session.applyCompanionMoves()
        return made
    }

    /// The name in an export of the directory with the versions of the files beside it.
    public static var versionsDirectory: Name { Name(versionsName) }

    /// Adds a version to a file, as an export has it, unless the file has it. The original of an export does not
    /// replace another one that the file has: it becomes a version of its time.
    ///
    /// - Returns: the inode of the version; nil if the file could not be read, or changed meanwhile.
    public func add(
        version file: ImportFile<some ImportSource>, of ino: UInt64, proceed: (UInt64) -> Bool = { _ in true }
    ) throws(FileError) -> UInt64? {
        var stored = storedVersion(file.name.bytes, modified: file.details.modified)
        let known = try session.locked { tree throws(FileError) -> [DentryRow] in
            guard let directory = try tree.versions.versionsDirectory(of: ino) else { return [] }
            return try tree.rows(of: directory)
        }
        if let same = known.first(where: { $0.name == stored.name }) {
            for row in [same] + known where try library.search.holds(row.ino, file.source) { return row.ino }
            stored.name = versionName(replaced: stored.replaced)
        }
        guard let sealed = try seal(file.source, proceed) else { return nil }
        defer { sealed.abandon(session.space) }
        let arrival = Arrival(name: stored.name, details: file.details, sealed: sealed)
        return try session.change { change throws(FileError) in
            let photo = try change.tree.inode(ino)
            guard photo.isRegular, photo.row.nlink > 0 else { throw .noEntry }
            let now = Timestamp.now()
            let made = try change.tree.imports.adopt(
                arrival, in: try change.tree.directory(WellKnownInode.albums), session.space, now: now)
            do throws(FileError) {
                try change.tree.versions.adoptVersion(
                    made, named: stored.name, of: ino, replaced: stored.replaced, now: now)
            } catch {
                change.tree.imports.orphanIfNameless(made, now: now)
                throw error
            }
            return made.ino
        }
    }
}
