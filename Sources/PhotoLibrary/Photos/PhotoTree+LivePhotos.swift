import CatalogueRows
import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue

/// The halves of a Live Photo are of one day, that of the still. A video's own time is in UTC where the camera wrote no
/// other, or it is lost, or was not corrected with the still's.
extension PhotoTree {
    /// The row of a video that is about to be stored, dated by the still of its Live Photo. It stays as it is for any
    /// other photo, without a still in moments, or if the user chose the video's day, or only the video has a date.
    func datedByStill(_ row: PhotoRow) throws(FileError) -> PhotoRow {
        guard isVideo(row), isOfLivePhoto(row), !row.isPinned else { return row }
        for mate in try halves(of: row) where isStill(mate.row, of: row) {
            if mate.row.isDatedByMtime && !row.isDatedByMtime { continue }
            return row.dated(by: mate.row)
        }
        return row
    }

    /// Moves the videos of a still's Live Photo to its day. The still was just stored.
    func dateVideos(of still: PhotoRow, now: Timestamp) throws(FileError) {
        guard isOfLivePhoto(still), !isVideo(still) else { return }
        for mate in try halves(of: still) where isVideo(mate.row) && mate.row.day != still.day {
            let dated = try datedByStill(mate.row)
            guard dated.day != mate.row.day else { continue }
            try storePhoto(mate.inode, dated)
            try moveMoment(mate.inode, to: dated.day, now: now)
        }
    }

    /// The other photos in moments with a photo's identifier, the oldest first.
    func halves(of photo: PhotoRow) throws(FileError) -> [(inode: Inode, row: PhotoRow)] {
        guard let group = photo.group else { return [] }
        var found: [(inode: Inode, row: PhotoRow)] = []
        for ino in try sql(tables.photos(group: group, limit: siblingNamesMax)) where ino != photo.ino {
            let other = try inode(ino)
            if other.isPhoto, !other.isTrashed, try moment(of: other) != nil {
                found.append((other, try self.photo(other)))
            }
        }
        return found
    }
}
