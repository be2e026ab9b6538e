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
    /// Whether a program that writes there got the emptied file back: see `rejoin`.
    var isRejoined = false
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
        if var former = formerPhotos[ino] {
            former.isRejoined = true
            formerPhotos.insert(former, for: ino)
        }
        return (directory, inode)
    }

    /// Whether a file has its former name in moments again for the program that writes it.
    package func isRejoined(_ inode: Inode) -> Bool {
        !formerPhotos.isEmpty && formerPhotos[inode.ino]?.isRejoined == true
    }

    /// Takes the name in moments from a file that `rejoin` gave it and that became no picture. It is where it would be
    /// if its first step had been noticed only with the second: in albums.
    func leaveMoments(_ inode: Inode, now: Timestamp) throws(FileError) {
        guard isRejoined(inode), var former = formerPhotos[inode.ino] else { return }
        former.isRejoined = false
        formerPhotos.insert(former, for: inode.ino)
        guard inode.row.nlink > 1, let own = try moment(of: inode),
            own.row.isOf(former.place.directory, former.place.name)
        else { return }
        try removeMoment(inode, now: now)
        if inode.row.size == 0 { emptiedPhotos.insert(inode.ino, for: former.place) }
    }
}
