import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import PhotoRules

/// A file that is no longer a photo, because its bytes changed: its row and name as a photo.
struct FormerPhoto {
    var row: PhotoRow
    /// Its name in moments.
    var place: RemovedPlace
    var isNameGiven: Bool
}

/// Programs that write something else into a photo and then a picture again. With that it is the photo that it was,
/// with its day, name and albums. A photo that was only emptied has remained one: see `classificationEffect`.
extension PhotoTree {
    /// Notes that a photo is about to become a plain file.
    func noteFormer(_ inode: Inode) throws(FileError) {
        formerPhotos.remove(inode.ino)
        guard let own = try moment(of: inode) else { return }
        let place = RemovedPlace(directory: own.directory.ino, name: own.row.name)
        let isGiven = inode.row.flags.contains(.namedInMoments)
        formerPhotos.insert(
            FormerPhoto(row: try photo(inode), place: place, isNameGiven: isGiven), for: inode.ino)
    }

    /// The photo that a file was before its present bytes, unless it was moved to another day since.
    func takeFormer(of inode: Inode) throws(FileError) -> FormerPhoto? {
        guard let former = formerPhotos.remove(inode.ino) else { return nil }
        guard let own = try moment(of: inode) else { return former }
        return own.row.isOf(former.place.directory, former.place.name) ? former : nil
    }
}
