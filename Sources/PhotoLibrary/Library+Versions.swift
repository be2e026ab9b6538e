public import FileRequests
import FileTree
import PhotoRules
import PhotoSession
import PhotoTree

/// Versions of photos outside of a mount.
extension Library {
    /// `.versions` of a day, as an entry to export with all below it; nil if the day has none, and for any other
    /// directory.
    public func versionsToExport(of ino: UInt64) throws(FileError) -> DirectoryEntry? {
        let isDay = try session.locked { tree throws(FileError) in try tree.existing(ino)?.isDay ?? false }
        let caller = Caller(uid: options.owner.uid, gid: options.owner.gid)
        guard isDay, let entry = try session.lookupVersions(ino, versionsName, caller) else { return nil }
        let shown = entry.attributes
        return DirectoryEntry(
            name: Name(versionsName), cookie: .max, ino: shown.ino, mode: shown.mode, entry: entry)
    }

    /// Whether an inode is a virtual directory of versions.
    public static func isOfVersions(_ ino: UInt64) -> Bool { VersionNode(ino) != nil }
}
