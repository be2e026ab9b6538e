import CatalogueRows
package import FileRequests
import VaultCatalogue

/// Thumbnails that are made before any request.
extension PhotoThumbnails {
    /// Whether the background thumbnailer has work.
    package func hasBackgroundThumbnails() throws(FileError) -> Bool {
        if try isOverBudget() { return true }
        return try session.locked { tree throws(FileError) in try tree.pendingPictures.hasThumbnailPending() }
    }

    /// The next photos; nil if there are none, or no room for their pictures.
    func nextBackgroundBatch(_ last: BackgroundBatch?) -> BackgroundBatch? {
        // A failure is retried at the next change or mount.
        try? thinOut()
        let next = try? session.change { change throws(FileError) in
            try change.tree.pendingPictures.nextThumbnailPending(
                after: last?.range, unexamined: last?.unexamined)
        }
        guard hasRoomToSpare, let next = next ?? nil else { return nil }
        return BackgroundBatch(next.range, photos: next.photos, floor: next.floor)
    }

    private func thinOut() throws(FileError) {
        guard try isOverBudget() else { return }
        var last: UInt64? = 0
        while let place = last { last = try thinOut(after: place) }
    }

    /// Makes a photo's standard picture, if it would be kept, and its hash. Where views show similar photos, also a
    /// picture that is not kept, once, for its hash. False if it was postponed, because it uses much processor time.
    func makeInBackground(_ photo: UInt64, isPostponed: Bool) -> Bool {
        // Its writers' close has it made.
        if (try? passOver(photo)) == true { return true }
        // A failure is retried when the picture is requested.
        guard let pictured = try? StoredPhoto(self, photo).photo() else { return true }
        // Neither does a photo whose metadata cannot be read hold up the others: it is in no view of places.
        try? readPosition(of: pictured)
        let isHashed = (try? hasLikeness(photo)) != false
        let isKept = (try? wouldKeepPicture(of: pictured)) == true
        guard isKept || !isHashed && session.options.views else { return true }
        let made = try? thumbnail(of: photo, .standard, for: isPostponed ? .postponed : .background)
        if !isHashed {
            // A failure leaves it unknown: the photo is in no group of similar ones.
            try? storeLikeness(of: pictured, made)
        }
        return !service.takePostponed(photo)
    }

    /// Leaves a photo that is edited to the end of that; see `FileState.passOver`. False if it is not edited.
    private func passOver(_ photo: UInt64) throws(FileError) -> Bool {
        try session.locked { tree throws(FileError) in try tree.inode(photo).state?.passOver() ?? false }
    }

    /// Reads where a photo was taken, unless that is known: classification has told since there are positions.
    private func readPosition(of photo: PicturedPhoto) throws(FileError) {
        let isKnown = try session.locked { tree throws(FileError) in try tree.positions.isKnown(photo.ino) }
        if isKnown { return }
        let classifier = Classifier(session, PhotoSearch(session), session.deferred)
        guard let position = try classifier.position(of: photo.ino) else { return }
        try session.change { change throws(FileError) in
            let inode = try change.tree.inode(photo.ino)
            guard inode.isPhoto, inode.row.revision == photo.revision else { return }
            try change.tree.positions.store(position, of: inode)
        }
    }

    private func hasLikeness(_ photo: UInt64) throws(FileError) -> Bool {
        try session.locked { tree throws(FileError) in try tree.likenesses.likeness(of: photo) != nil }
    }

    /// Stores the hash of a photo's standard picture. A photo that cannot be decoded has none, and neither has the
    /// video of a Live Photo, whose picture is that of its still.
    private func storeLikeness(of photo: PicturedPhoto, _ made: Thumbnail?) throws(FileError) {
        let source = StoredPhoto(self, photo.ino)
        var likeness = Likeness.absent
        if let made, try still(of: photo.ino) == nil {
            guard let hash = try service.likenessHash(of: made.bytes(source)) else { return }
            likeness = hash
        } else if made == nil {
            guard try source.photo().isUndecodable else { return }
        }
        try session.change { change throws(FileError) in
            let inode = try change.tree.inode(photo.ino)
            // Written meanwhile: its new picture will be hashed.
            guard inode.row.revision == photo.revision else { return }
            try change.tree.likenesses.store(likeness, of: inode)
        }
    }
}
