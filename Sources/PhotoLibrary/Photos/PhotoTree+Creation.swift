import CatalogueRows
package import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue

/// New files, and days made by hand.
extension PhotoTree {
    /// Creates a file and its name, if the rules of the directory allow it.
    package func make(
        _ parent: UInt64, _ name: [UInt8], mode: UInt32, _ caller: Caller,
        _ complete: (PhotoTree, Inode) throws(FileError) -> Void
    ) throws(FileError) -> (directory: Inode, inode: Inode) {
        let directory = try self.directory(parent)
        let type = mode & fileTypeMask
        if try has(directory, name) { throw .exists }
        let kind: NewFile =
            switch type {
            case directoryType: .directory
            case regularType: .regularFile
            default: .special
            }
        guard mayMake(kind, named: name, in: directory.area) else { throw .notPermitted }
        // The directory was removed while a process was using it.
        guard directory.row.nlink > 0 else { throw .noEntry }
        let now = Timestamp.now()
        let inode = makeInode(mode: mode, in: directory, caller, now: now)
        if type != directoryType { inode.row.nlink = 1 }
        try complete(self, inode)
        try addEntry(directory, name, inode, now: now)
        return (directory, inode)
    }

    /// mkdir of a day that exists but is not listed: lists it from now on.
    package func reviveDay(_ name: [UInt8]) throws(FileError) -> Entry? {
        let moments = try inode(WellKnownInode.moments)
        guard let found = try find(moments, name), found.inode.isUnlistedDay else { return nil }
        let now = Timestamp.now()
        found.inode.row.flags.insert(.madeByHand)
        found.inode.row.modified = now
        found.inode.row.changed = now
        touch(found.inode)
        moments.row.countLinks(by: 1)
        moments.row.modified = now
        moments.row.changed = now
        touch(moments)
        return try entry(found.inode, in: moments)
    }
}
