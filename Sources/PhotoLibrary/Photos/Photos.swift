package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
package import VaultStore

/// The rows of photos.
package final class Photos {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    // MARK: Rows of photos

    package func photo(_ inode: Inode) throws(FileError) -> PhotoRow {
        guard let row = try tree.tables.photos.row(inode.ino) else { throw .damaged }
        return row
    }

    func storePhoto(_ inode: Inode, _ row: PhotoRow, _ change: Change) throws(FileError) {
        var row = row
        if let rating = try tree.views.ratingByAttribute(of: inode) { row.rating = rating }
        try tree.tables.photos.store(row)
        if let position = row.position { try tree.positions.store(position, of: inode) }
        change.hasNewPhoto = true
        tree.views.noteChange()
        tree.marks.add(inode.ino)
        guard !inode.isPhoto else { return }
        inode.row.flags.insert(.photo)
        tree.touch(inode)
        try tree.pendingPictures.noteThumbnailPending(inode.ino)
    }

    /// Makes a photo a plain file, also before it is destroyed.
    package func deletePhoto(_ inode: Inode, _ space: Space, _ change: Change) throws(FileError) {
        try tree.trash.leaveTrash(inode, change)
        try tree.likenesses.forget(inode.ino, named: tree.tables.views.name(of: inode.ino))
        try tree.positions.forget(inode.ino)
        try tree.tables.photos.delete(inode.ino)
        inode.row.flags.subtract([.photo, .namedInMoments])
        tree.touch(inode)
        try deleteThumbnails(inode, space)
    }

    /// Deletes the kept thumbnails of a photo, if there are any.
    package func deleteThumbnails(_ inode: Inode, _ space: Space) throws(FileError) {
        let kept = try tree.tables.thumbnails.rows(of: inode.ino)
        guard !kept.isEmpty else { return }
        for thumbnail in kept where thumbnail.content != 0 {
            try tree.contents.free(thumbnail.content, space, overwriting: true)
        }
        try tree.tables.thumbnails.delete(of: inode.ino)
        // A wrong total does no harm, and a check corrects it.
        tree.counters.pictureBytes -= min(tree.counters.pictureBytes, kept.reduce(0) { $0 + $1.cost })
    }

    /// Removes a photo from the space: from moments and from every album, with its copies.
    package func removePhoto(_ photo: Inode, now: Timestamp) throws(FileError) {
        for inode in [photo] + (try tree.copies.copies(of: photo)) {
            inode.dentries.mayBeStale = true
            for name in try tree.names(of: inode) {
                let directory = try tree.inode(name.parent)
                try tree.removeEntry(directory, name.id, inode, now: now)
                try tree.removeLink(to: inode, now: now)
                // The kernel itself removes the dentry of the name in a day.
                if !directory.isDay { tree.noteLost(name, in: directory) }
            }
            tree.kernelNames.noteChange(of: inode.ino)
        }
    }
}
