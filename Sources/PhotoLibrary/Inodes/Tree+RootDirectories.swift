import CatalogueRows
package import FileRequests
import LinuxIO
import VaultCatalogue

extension Tree {
    /// Makes the three directories that every space has. Only their owner may enter `moments`: it shows photos of
    /// albums that others perhaps may not enter.
    package func makeRootDirectories() throws(FileError) {
        let now = Timestamp.now()
        func directory(_ ino: UInt64, mode: UInt32) -> InodeRow {
            var row = InodeRow(
                ino: ino, mode: directoryType | mode, uid: options.owner.uid, gid: options.owner.gid,
                now: now)
            row.nlink = 2
            row.parent = WellKnownInode.root
            return row
        }
        for row in [
            directory(WellKnownInode.root, mode: 0o555), directory(WellKnownInode.moments, mode: 0o700),
            directory(WellKnownInode.albums, mode: 0o755),
        ] { try tables.inodes.store(row) }
        let root = try inode(WellKnownInode.root)
        try addEntry(root, Array("moments".utf8), try inode(WellKnownInode.moments), now: now)
        try addEntry(root, Array("albums".utf8), try inode(WellKnownInode.albums), now: now)
        hasMadeRootDirectories = true
    }

    /// Ends all uses of orphans, at the end of the session.
    package func releaseAll() {
        for ino in orphans.all {
            guard let inode = cached(ino) else { continue }
            (inode.openCount, inode.ownUseCount) = (0, 0)
            inode.isForgotten = true
            if let state = inode.state { state.discard() }
            inode.state = nil
        }
    }
}
