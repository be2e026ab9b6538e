import CatalogueRows
import FileRequests
import FileTree
import LinuxIO
import PhotoRules
import PhotoTree
import Thumbnails
import VaultCatalogue
import VaultFormat
import VaultStore

/// The end of an inode: it lives while it has a name, is open, or is known to the kernel. Without a name it is an
/// orphan, and the table `orphan` lists it for the next mount.
extension Library {
    /// Destroys an inode that has neither names nor users, in batches so that the lock is never held for long.
    func destroy(_ ino: UInt64) throws(FileError) {
        var isDone = false
        while !isDone {
            isDone = try changing { tree throws(FileError) in
                guard tree.orphans.contains(ino) else { return true }
                let inode = try tree.inode(ino)
                guard inode.openCount == 0 else { return true }
                return try destroySome(inode, tree)
            }
        }
    }

    private func destroySome(_ inode: Inode, _ tree: PhotoTree) throws(FileError) -> Bool {
        let content = inode.row.content
        if content != 0 && (inode.row.allocated > 0 || inode.row.flags.contains(.shared)),
            try !tree.leaveContent(of: inode)
        {
            let runs = try sql(tree.tables.firstExtents(of: content, limit: space.limits.reapedRows))
            if let first = runs.first, let last = runs.last {
                try sql(tree.tables.deleteExtents(of: content, from: first.offset, through: last.offset))
                space.free(runs, overwriting: inode.isPhoto || inode.isCopy)
            }
            if runs.count == space.limits.reapedRows { return false }
            tree.newlyRetired.add(content: content)
        }
        try tree.retire(inode, space, overwriting: inode.isPhoto || inode.isCopy)
        if inode.isPhoto { try tree.deletePhoto(inode, space) }
        if inode.isCopy { try tree.forgetCopy(inode) }
        if inode.row.flags.contains(.hasAttributes) {
            try sql(tree.tables.deleteExtendedAttributes(inode.ino))
        }
        if inode.row.mode & fileTypeMask == linkType { try sql(tree.tables.deleteLinkTarget(inode.ino)) }
        try sql(tree.tables.deleteInode(inode.ino))
        try tree.forgetDestroyed(inode)
        return true
    }

    /// Destroys the nameless inodes that an earlier session left and, at the end, also those of this one.
    func reapOrphans(ofThisSession: Bool) throws(FileError) {
        var last: UInt64 = 0
        while ofThisSession || !deferredWork.isCancelled {
            let found = try locked { tree throws(FileError) in
                let rows = try sql(tree.tables.orphans(after: last, limit: 100))
                let left = rows.filter { !tree.orphans.contains($0) }
                for ino in left { tree.adoptOrphan(ino) }
                return (end: rows.last, left: left)
            }
            guard let end = found.end else { break }
            last = end
            for ino in found.left where ofThisSession || !deferredWork.isCancelled { try destroy(ino) }
        }
        guard ofThisSession else { return }
        for ino in try locked({ tree throws(FileError) in tree.orphans }) { try destroy(ino) }
    }

    /// FORGET: the kernel no longer holds the inode. This only matters if the inode has no name left.
    public func forget(_ ino: UInt64, count: UInt64 = 1) {
        if VirtualInode.isVirtual(ino) {
            thumbnails?.nodes.forget(ino, count: count)
            return
        }
        let orphan = try? locked { tree throws(FileError) -> Inode? in
            guard tree.orphans.contains(ino) else { return nil }
            let inode = try tree.inode(ino)
            inode.isForgotten = true
            return inode.openCount == 0 ? inode : nil
        }
        guard let orphan else { return }
        // Changes that could not be saved at close must not be saved any more: nothing would free them again.
        if let file = orphan.state {
            file.writer.lock()
            file.discard()
            file.writer.unlock()
        }
        // If this fails, the next session finds the inode in the table of orphans.
        try? destroy(ino)
    }
}
