/// Thumbnails that are made before anybody asks for them.
extension Library {
    /// Whether there is something to do for whoever makes them.
    func hasBackgroundThumbnails() throws(FileError) -> Bool {
        if try isOverBudget() { return true }
        return try locked { tree throws(FileError) in try tree.hasThumbnailPending() }
    }

    /// The photos that are next; nil where there are none, or no room for their pictures.
    func nextAhead(_ last: BackgroundBatch?) -> BackgroundBatch? {
        // What fails here is tried again at the next change or mount.
        try? thinOut()
        let next = try? changing { tree throws(FileError) in try tree.nextAhead(last) }
        return hasRoomToSpare ? next ?? nil : nil
    }

    private func thinOut() throws(FileError) {
        guard try isOverBudget() else { return }
        var last: UInt64? = 0
        while let place = last { last = try thinOut(after: place) }
    }

    /// Makes a photo's standard picture, if it would be kept.
    func makeAhead(_ photo: UInt64) {
        // What fails now is tried again when it is asked for.
        guard let original = try? original(photo), (try? wouldKeepPicture(of: original)) == true else {
            return
        }
        _ = try? thumbnail(of: photo, .standard, for: .background)
    }
}
