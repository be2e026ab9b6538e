import CatalogueRows
package import FileRequests
package import FileTree
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue

/// A file that is no longer a photo, because its bytes changed: its row and name as a photo.
struct FormerPhoto {
    var row: PhotoRow
    /// Its name in moments.
    var place: RemovedPlace
    var isNameGiven: Bool
}

/// Programs that save in two steps: they empty a file and close it, then open it again and write, as ImageMagick does.
/// Between the steps the file is no photo. With the second it is the photo that it was, with its day, name and albums.
extension PhotoTree {
    /// Notes that a photo is about to become a plain file.
    func noteFormer(_ inode: Inode) throws(FileError) {
        formerPhotos.remove(inode.ino)
        guard let own = try moment(of: inode) else { return }
        let place = RemovedPlace(directory: own.directory.ino, name: own.row.name)
        let isGiven = inode.row.flags.contains(.namedInMoments)
        formerPhotos.insert(
            FormerPhoto(row: try photo(inode), place: place, isNameGiven: isGiven), for: inode.ino)
        if inode.row.size == 0 { emptiedPhotos.insert(inode.ino, for: place) }
    }

    /// The photo that a file was before its present bytes, unless it was moved to another day since.
    func takeFormer(of inode: Inode) throws(FileError) -> FormerPhoto? {
        guard let former = formerPhotos.remove(inode.ino) else { return nil }
        guard let own = try moment(of: inode) else { return former }
        return own.row.isOf(former.place.directory, former.place.name) ? former : nil
    }

    /// Gives an emptied photo, which has names in albums only, its former name in moments back, for a program that
    /// creates a file there. Returns nil if there is none, or it is being written or another user's.
    package func rejoin(
        _ parent: UInt64, _ name: [UInt8], _ caller: Caller
    ) throws(FileError) -> (directory: Inode, inode: Inode)? {
        let place = RemovedPlace(directory: parent, name: name)
        guard !emptiedPhotos.isEmpty, let ino = emptiedPhotos[place] else { return nil }
        let directory = try self.directory(parent)
        guard directory.isDay, directory.row.nlink > 0, try !has(directory, name),
            let inode = try existing(ino), inode.isRegular, !inode.isPhoto, !inode.isCopy,
            // Not its handles: the kernel may announce the end of the one that emptied it after this request.
            inode.row.nlink > 0, inode.row.size == 0, !inode.hasWriters, try moment(of: inode) == nil,
            caller.uid == 0 || caller.uid == inode.row.uid
        else { return nil }
        let now = Timestamp.now()
        try addEntry(directory, name, inode, now: now)
        addLink(to: inode, now: now)
        kernelNames.noteChange(of: inode.ino)
        return (directory, inode)
    }
}
