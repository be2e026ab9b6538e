import CatalogueRows
import FileRequests
import PhotoImaging
import VaultCatalogue
import VaultFormat
import VaultStore

extension PhotoThumbnails {
    /// Whether a new picture may be kept. Besides standard ones only those of the freedesktop sizes may, and only
    /// beside a standard one.
    func mayKeep(_ row: ThumbnailRow, of photo: PicturedPhoto) throws(FileError) -> Bool {
        let isStandard = row.size == .standard && row.pictureFormat == .jpeg
        if !isStandard {
            let isFreedesktop = RepositorySize.allCases.contains { $0.pictureSize == row.size }
            guard isFreedesktop, photo.picture(.standard, .jpeg) != nil else { return false }
        }
        let spent = photo.kept.reduce(row.cost) { $0 + PictureBudget.cost($1.byteCount) }
        if spent <= PictureBudget.share(of: photo.byteCount) { return true }
        guard isStandard else { return false }
        return try hasLeft(row.cost)
    }

    /// Whether the shares of all photos together have this much left.
    private func hasLeft(_ cost: UInt64) throws(FileError) -> Bool {
        let counters = try session.locked { tree throws(FileError) in tree.counters }
        return counters.pictureBytes + cost <= PictureBudget.total(counters)
    }

    /// Whether a photo's standard picture would be kept: an estimate before it is made.
    func wouldKeepPicture(of photo: PicturedPhoto) throws(FileError) -> Bool {
        if PictureBudget.share(of: photo.byteCount) >= PictureBudget.expectedBytes { return true }
        return try hasLeft(PictureBudget.expectedBytes)
    }

    /// Whether pictures cost more than they may.
    func isOverBudget() throws(FileError) -> Bool { try !hasLeft(0) }

    /// Drops pictures beyond their photo's share, of photos after `last`, until the total holds. Returns the photo to
    /// continue after; nil if there is nothing left to drop.
    func thinOut(after last: UInt64) throws(FileError) -> UInt64? {
        try session.change { change throws(FileError) in
            let photos = try change.tree.tables.thumbnails.photos(
                after: last, limit: session.space.limits.thinnedPhotos)
            for photo in photos {
                guard change.tree.counters.pictureBytes > PictureBudget.total(change.tree.counters) else {
                    return nil
                }
                let inode = try change.tree.inode(photo)
                let spent = try change.tree.tables.thumbnails.rows(of: photo).reduce(0) { $0 + $1.cost }
                if spent > PictureBudget.share(of: inode.row.size) {
                    try change.tree.photos.deleteThumbnails(inode, session.space)
                }
            }
            return photos.last
        }
    }
}
