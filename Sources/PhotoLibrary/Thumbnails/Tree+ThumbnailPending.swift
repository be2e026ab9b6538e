import VaultCatalogue
import VaultFormat

/// Photos that get their standard pictures in the background: the upper part of a range, the newest first.
struct BackgroundBatch: Sendable, Equatable {
    let stretch: InodeRange
    /// Photos without a picture, those with the highest numbers in the range.
    let photos: [UInt64]
    /// From this number on the range holds no others.
    let floor: UInt64
    /// How many of them were handed out.
    private(set) var takenCount = 0

    init(_ stretch: InodeRange, photos: [UInt64], floor: UInt64) {
        (self.stretch, self.photos, self.floor) = (stretch, photos, floor)
    }

    mutating func next() -> UInt64? {
        guard takenCount < photos.count else { return nil }
        takenCount += 1
        return photos[takenCount - 1]
    }

    /// The part of the range that is still to be examined.
    var rest: InodeRange {
        if takenCount == photos.count { return InodeRange(first: stretch.first, end: floor) }
        return InodeRange(first: stretch.first, end: takenCount == 0 ? stretch.end : photos[takenCount - 1])
    }
}

/// Tracks photos that may lack a standard picture. New ones need no row: they are those from `counters.pictured` on.
extension Tree {
    /// Notes that a photo lost its picture, or became a photo late.
    func noteThumbnailPending(_ ino: UInt64) throws(FileError) {
        guard ino < counters.pictured else { return }
        if try sql(tables.isInPendingRange(ino)) {
            // The batch may already have passed it, and the range not be cut yet.
            if isBatchActive { lateThumbnailPending.append(ino) }
        } else {
            try sql(tables.store(InodeRange(first: ino, end: ino + 1)))
        }
    }

    /// Whether a photo may lack a picture. Reads a row or two.
    func hasThumbnailPending() throws(FileError) -> Bool {
        if try sql(tables.highestPendingRange()) != nil { return true }
        return try hasNewPhotos()
    }

    private func hasNewPhotos() throws(FileError) -> Bool {
        guard counters.pictured < counters.ino else { return false }
        let new = InodeRange(first: counters.pictured, end: counters.ino)
        return try !sql(tables.photos(in: new, limit: 1)).isEmpty
    }

    /// Stores the progress of a batch, and returns the next; nil if there are no more photos to examine.
    func nextBackgroundBatch(_ last: BackgroundBatch?) throws(FileError) -> BackgroundBatch? {
        if let last { try cut(last.stretch, to: last.rest) }
        isBatchActive = false
        for ino in lateThumbnailPending { try noteThumbnailPending(ino) }
        lateThumbnailPending = []
        if try hasNewPhotos() {
            try sql(tables.store(InodeRange(first: counters.pictured, end: counters.ino)))
            counters.pictured = counters.ino
        }
        guard let stretch = try sql(tables.highestPendingRange()) else { return nil }
        let photos = try sql(tables.photos(in: stretch, limit: options.limits.backgroundThumbnails))
        let isAll = photos.count < options.limits.backgroundThumbnails
        isBatchActive = true
        return BackgroundBatch(
            stretch, photos: photos.filter { !$0.hasPicture }.map(\.ino),
            floor: isAll ? stretch.first : photos.last?.ino ?? stretch.first)
    }

    private func cut(_ stretch: InodeRange, to rest: InodeRange) throws(FileError) {
        guard rest != stretch else { return }
        if rest.end > rest.first {
            try sql(tables.store(rest))
        } else {
            try sql(tables.deleteRange(from: stretch.first))
        }
    }
}
