import CatalogueRows
public import FileRequests
import FileTree
import LinuxIO
import PhotoRules
import PhotoSession
import PhotoTree
import VaultCatalogue

extension Importer {
    /// The name in an export of the directory with the versions of a day's photos.
    public static var versionsDirectory: Name { Name(versionsName) }

    /// Adds a version to a photo, as an export has it, unless the photo has one of that name.
    ///
    /// - Returns: false if the file could not be read, or changed meanwhile.
    public func add(
        version file: ImportFile<some ImportSource>, of ino: UInt64, proceed: (UInt64) -> Bool = { _ in true }
    ) throws(FileError) -> Bool {
        let stored = storedVersion(file.name.bytes, modified: file.details.modified)
        let isKnown = try session.locked { tree throws(FileError) in
            guard let directory = try tree.versionsDirectory(of: ino) else { return false }
            return try tree.has(directory, stored.name)
        }
        if isKnown { return true }
        guard let sealed = try seal(file.source, proceed) else { return false }
        defer { sealed.abandon(session.space) }
        let arrival = Arrival(name: stored.name, details: file.details, sealed: sealed)
        try session.changing { tree throws(FileError) in
            let photo = try tree.inode(ino)
            guard photo.isRegular, photo.row.nlink > 0 else { throw .noEntry }
            let now = Timestamp.now()
            let made = try tree.adopt(
                arrival, in: try tree.directory(WellKnownInode.albums), session.space, now: now)
            do throws(FileError) {
                try tree.adoptVersion(made, named: stored.name, of: ino, replaced: stored.replaced, now: now)
            } catch {
                tree.orphanIfNameless(made, now: now)
                throw error
            }
        }
        return true
    }
}
