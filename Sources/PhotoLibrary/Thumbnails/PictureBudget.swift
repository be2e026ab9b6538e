import CatalogueRows
import FileRequests
import FileTree
import PhotoImaging
import Thumbnails
import VaultCatalogue
import VaultFormat
import VaultStore

/// Limits the room that kept pictures take: together at most 1.5 % of the photos' bytes, and a small allowance.
///
/// Each photo's share is 1.5 % of its bytes and pays for its own pictures. The share of a small photo is too small for
/// even one: its standard picture is kept while the shares of all photos together are not spent, else made at every
/// request, which is quick for a small photo. Keeping a picture never drops another, so two pictures cannot evict each
/// other in turns. The total can still be exceeded, because photos whose shares paid for others were removed or got
/// pictures of their own later: then pictures beyond their photo's share are dropped while the mount is idle. Without
/// such pictures the total always holds.
enum PictureBudget {
    /// Bytes that pictures may take without a photo to pay for them: a handful of pictures.
    private static let allowanceBytes: UInt64 = 64 << 10
    /// Bytes of a picture's rows, on both copies of their pages.
    static let rowBytes: UInt64 = 256
    /// Bytes that a standard picture is expected to take before it is made.
    static let expectedBytes: UInt64 = 12 << 10

    /// The share, in bytes, of a photo of that size, or of all photos.
    static func share(of photoBytes: UInt64) -> UInt64 {
        photoBytes / 1000 * 15 + photoBytes % 1000 * 15 / 1000
    }

    /// Limit of the bytes of all pictures together.
    static func total(_ counters: Counters) -> UInt64 { share(of: counters.photoBytes) + allowanceBytes }

    /// Bytes of the space that a picture of that many bytes takes.
    static func cost(_ byteCount: Int) -> UInt64 {
        let sectors =
            byteCount / Geometry.chunkBytes * Geometry.sectorsPerChunk
            + (byteCount % Geometry.chunkBytes > 0
                ? Geometry.sectors(forPlaintext: byteCount % Geometry.chunkBytes) : 0)
        return UInt64(sectors * Geometry.sectorBytes) + rowBytes
    }
}

extension ThumbnailRow {
    /// Bytes of the space that it takes; 0 for a row that only records that there is no picture.
    var cost: UInt64 {
        guard content != 0 || length > 0 else { return 0 }
        return PictureBudget.cost(Int(max(0, length)))
    }
}

extension Library {
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
        let counters = try locked { tree throws(FileError) in tree.counters }
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
        try changing { tree throws(FileError) in
            let photos = try sql(
                tree.tables.photosWithThumbnails(after: last, limit: space.limits.thinnedPhotos))
            for photo in photos {
                guard tree.counters.pictureBytes > PictureBudget.total(tree.counters) else { return nil }
                let inode = try tree.inode(photo)
                let spent = try sql(tree.tables.thumbnails(of: photo)).reduce(0) { $0 + $1.cost }
                if spent > PictureBudget.share(of: inode.row.size) { try tree.deleteThumbnails(inode, space) }
            }
            return photos.last
        }
    }
}
