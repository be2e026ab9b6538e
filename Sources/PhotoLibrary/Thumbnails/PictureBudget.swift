import PhotoImaging
import VaultCatalogue
import VaultFormat
import VaultStore

/// What kept pictures may cost: together at most 1.5 % of the photos, and a little.
///
/// Each photo has a share of its own, 1.5 % of its bytes, which pays for its pictures. A small photo's is too small for
/// even one: its standard picture is kept while all photos together have not spent their shares, else made whenever it
/// is asked for, which is quick for a small one. Nothing is ever dropped for another's sake at that moment, so no two
/// push each other out in turns. Where the total is exceeded all the same, because photos that paid for others were
/// removed or got pictures of their own later, pictures beyond their photo's share are dropped while nobody needs the
/// machine; without those, the total always holds.
enum PictureBudget {
    /// What pictures may cost without any photo to pay for them: a handful.
    static let allowanceBytes: UInt64 = 64 << 10
    /// A picture's rows, on both copies of their pages.
    static let rowBytes: UInt64 = 256
    /// What a standard picture is expected to cost before it is made.
    static let expectedBytes: UInt64 = 12 << 10

    /// What a photo of that size, or all of them, may spend.
    static func share(of photoBytes: UInt64) -> UInt64 {
        photoBytes / 1000 * 15 + photoBytes % 1000 * 15 / 1000
    }

    /// What all pictures together may cost.
    static func total(_ counters: Counters) -> UInt64 { share(of: counters.photoBytes) + allowanceBytes }
}

extension ThumbnailRow {
    /// Bytes of the space that it takes; none where it only remembers that there is no picture.
    var cost: UInt64 {
        guard content != 0 || length > 0 else { return 0 }
        let bytes = Int(max(0, length))
        let sectors =
            bytes / Geometry.chunkBytes * Geometry.sectorsPerChunk
            + (bytes % Geometry.chunkBytes > 0
                ? Geometry.sectors(forPlaintext: bytes % Geometry.chunkBytes) : 0)
        return UInt64(sectors * Geometry.sectorBytes) + PictureBudget.rowBytes
    }
}

extension Library {
    /// Whether a new picture may be kept: beside a standard one those of the freedesktop sizes alone.
    func mayKeep(_ row: ThumbnailRow, of original: ThumbnailSource) throws(FileError) -> Bool {
        let isStandard = row.size == .standard && row.pictureFormat == .jpeg
        if !isStandard {
            let isFreedesktop = RepositorySize.allCases.contains { $0.pictureSize == row.size }
            guard isFreedesktop, original.row(.standard, .jpeg) != nil else { return false }
        }
        let spent = original.rows.reduce(row.cost) { $0 + $1.cost }
        if spent <= PictureBudget.share(of: original.byteCount) { return true }
        guard isStandard else { return false }
        return try hasLeft(row.cost)
    }

    /// Whether photos have not spent so much of all their shares.
    private func hasLeft(_ cost: UInt64) throws(FileError) -> Bool {
        let counters = try locked { tree throws(FileError) in tree.counters }
        return counters.pictureBytes + cost <= PictureBudget.total(counters)
    }

    /// Whether a photo's standard picture would be kept, as far as that can be told before it is made.
    func wouldKeepPicture(of original: ThumbnailSource) throws(FileError) -> Bool {
        if PictureBudget.share(of: original.byteCount) >= PictureBudget.expectedBytes { return true }
        return try hasLeft(PictureBudget.expectedBytes)
    }

    /// Whether pictures cost more than they may.
    func isOverBudget() throws(FileError) -> Bool { try !hasLeft(0) }

    /// Drops pictures beyond their photo's share, of photos behind `last`, until all together cost what they may.
    /// Returns where to go on; nil where there is nothing left to drop.
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
