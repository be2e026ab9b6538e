/// Thumbnails that are made before anybody asks for them.
extension Library {
    /// Makes a photo's standard picture, if it would be kept.
    func makeAhead(_ photo: UInt64) {
        guard hasRoomToSpare else { return }
        // What fails now is tried again when it is asked for.
        _ = try? thumbnail(of: photo, .standard, for: .ahead)
    }
}
