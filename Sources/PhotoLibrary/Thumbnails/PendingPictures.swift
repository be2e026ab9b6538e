package import FileRequests
import VaultCatalogue
import VaultFormat

/// Photos that may lack a standard picture, in a range of inodes.
package struct ThumbnailPending: Sendable {
    package let range: Range<UInt64>
    /// The photos with the highest numbers in the range that lack a picture or its hash, or whose position is not
    /// known.
    package let photos: [UInt64]
    /// From this number on the range holds no others.
    package let floor: UInt64
}

/// Tracks photos that may lack a standard picture, its likeness hash, or their position. New ones need no row: they are
/// those from `counters.pictured` on.
package final class PendingPictures {
    private unowned let tree: Tree
    /// Whether thumbnails of a batch are being made, and photos that lost theirs meanwhile.
    private var isBatchActive = false
    private var late: Set<UInt64> = []
    /// Whether this session still has to look for photos that one without views left without a hash, or any without a
    /// position.
    private var mayHaveUnhashed: Bool

    init(_ tree: Tree) { (self.tree, mayHaveUnhashed) = (tree, tree.options.views) }

    /// Notes that a photo lost its picture, has other bytes, or became a photo late.
    package func noteThumbnailPending(_ ino: UInt64) throws(FileError) {
        guard ino < tree.counters.pictured else { return }
        if try tree.tables.pendingThumbnails.contains(ino) {
            // The batch may already have passed it, and the range not be cut yet.
            if isBatchActive { late.insert(ino) }
        } else {
            try tree.tables.pendingThumbnails.store(InodeRange(first: ino, end: ino + 1))
        }
    }

    /// Whether a photo may lack a picture. Reads a row or two.
    package func hasThumbnailPending() throws(FileError) -> Bool {
        if mayHaveUnhashed { return true }
        if try tree.tables.pendingThumbnails.highest() != nil { return true }
        return try hasNewPhotos()
    }

    private func hasNewPhotos() throws(FileError) -> Bool {
        guard tree.counters.pictured < tree.counters.ino else { return false }
        let new = InodeRange(first: tree.counters.pictured, end: tree.counters.ino)
        return try !tree.tables.pendingThumbnails.photos(in: new, limit: 1).isEmpty
    }

    /// The next photos; nil if there are no more to examine.
    ///
    /// - Parameters:
    ///   - examined: the range of the last ones, if any; `rest` its part that is still to be examined.
    package func nextThumbnailPending(
        after examined: Range<UInt64>?, unexamined: Range<UInt64>?
    ) throws(FileError) -> ThumbnailPending? {
        if let examined, let unexamined { try cut(examined, to: unexamined) }
        isBatchActive = false
        for ino in late { try noteThumbnailPending(ino) }
        late = []
        try noteUnhashed()
        if try hasNewPhotos() {
            try tree.tables.pendingThumbnails.store(
                InodeRange(first: tree.counters.pictured, end: tree.counters.ino))
            tree.counters.pictured = tree.counters.ino
        }
        guard let range = try tree.tables.pendingThumbnails.highest() else { return nil }
        let photos = try tree.tables.pendingThumbnails.photos(
            in: range, limit: tree.options.limits.backgroundThumbnails)
        let isAll = photos.count < tree.options.limits.backgroundThumbnails
        isBatchActive = true
        var lacking: [UInt64] = []
        for photo in photos {
            let likeness = try tree.likenesses.likeness(of: photo.ino)
            let isPlaced = try tree.positions.isKnown(photo.ino)
            if !photo.hasPicture || likeness == nil || !isPlaced { lacking.append(photo.ino) }
        }
        return ThumbnailPending(
            range: range.first..<max(range.first, range.end), photos: lacking,
            floor: isAll ? range.first : photos.last?.ino ?? range.first)
    }

    /// Has all photos examined again, once in a session with views, if some have no hash, or an unknown position.
    private func noteUnhashed() throws(FileError) {
        guard mayHaveUnhashed else { return }
        mayHaveUnhashed = false
        let shown = try tree.tables.photos.shownCount()
        let known = try min(tree.tables.likenesses.count(), tree.tables.positions.count())
        guard known < shown else { return }
        try tree.tables.pendingThumbnails.deleteAll()
        tree.counters.pictured = 0
    }

    private func cut(_ range: Range<UInt64>, to rest: Range<UInt64>) throws(FileError) {
        if rest.isEmpty {
            try tree.tables.pendingThumbnails.delete(from: range.lowerBound)
        } else if rest != range {
            try tree.tables.pendingThumbnails.store(InodeRange(first: rest.lowerBound, end: rest.upperBound))
        }
    }
}
