package import FileRequests

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

    /// Makes a photo's standard picture, if it would be kept. False if it was postponed, because it uses much processor
    /// time.
    func makeInBackground(_ photo: UInt64, isPostponed: Bool) -> Bool {
        // A failure is retried when the picture is requested.
        guard let pictured = try? StoredPhoto(self, photo).photo(),
            (try? wouldKeepPicture(of: pictured)) == true
        else { return true }
        // As above.
        _ = try? thumbnail(of: photo, .standard, for: isPostponed ? .postponed : .background)
        return !service.takePostponed(photo)
    }
}
