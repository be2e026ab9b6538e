import CatalogueRows
package import FileRequests
import LinuxIO
import VaultCatalogue

extension Tree {
    /// Makes the three directories that every space has.
    package func makeRootDirectories() throws(FileError) {
        let now = Timestamp.now()
        func directory(_ ino: UInt64, parent: UInt64) -> InodeRow {
            var row = InodeRow(
                ino: ino, mode: directoryType | 0o755, uid: options.owner.uid, gid: options.owner.gid,
                now: now)
            row.nlink = 2
            row.parent = parent
            return row
        }
        for row in [
            directory(WellKnownInode.root, parent: WellKnownInode.root),
            directory(WellKnownInode.moments, parent: WellKnownInode.root),
            directory(WellKnownInode.albums, parent: WellKnownInode.root),
        ] { try sql(tables.store(row)) }
        let root = try inode(WellKnownInode.root)
        try addEntry(root, Array("moments".utf8), try inode(WellKnownInode.moments), now: now)
        try addEntry(root, Array("albums".utf8), try inode(WellKnownInode.albums), now: now)
        hasMadeRootDirectories = true
    }

    /// The parent of the directories of versions, made if it is missing.
    package func versionsRoot() throws(FileError) -> Inode {
        if let found = try existing(WellKnownInode.versions) { return found }
        var row = InodeRow(
            ino: WellKnownInode.versions, mode: directoryType | 0o700, uid: options.owner.uid,
            gid: options.owner.gid, now: .now())
        row.nlink = 2
        row.parent = WellKnownInode.root
        // So that nothing below it is classified.
        row.flags.insert(.working)
        try sql(tables.store(row))
        return try inode(WellKnownInode.versions)
    }

    /// Ends all uses of orphans, at the end of the session.
    package func releaseAll() {
        for ino in orphans {
            guard let inode = cached(ino) else { continue }
            (inode.openCount, inode.ownUseCount) = (0, 0)
            inode.isForgotten = true
            if let state = inode.state { state.discard() }
            inode.state = nil
        }
    }
}
