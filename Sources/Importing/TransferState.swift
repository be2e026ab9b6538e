/// The progress of an import or export.
package struct TransferState: Equatable {
    /// Photos that are done.
    package var photos = 0
    /// Photos in total.
    package var photosMax: Int
    /// Bytes that are done.
    package var bytes: UInt64 = 0
    /// Bytes in total.
    package var bytesMax: UInt64

    /// A transfer that has come so far.
    package init(photos: Int = 0, photosMax: Int, bytes: UInt64 = 0, bytesMax: UInt64) {
        (self.photos, self.photosMax) = (photos, photosMax)
        (self.bytes, self.bytesMax) = (bytes, bytesMax)
    }

    /// Thousandths of the bytes, or of the photos if there are no bytes.
    package var share: Int {
        if bytesMax > 0 { return Int(Double(min(bytes, bytesMax)) / Double(bytesMax) * 1000) }
        return photosMax > 0 ? min(photos, photosMax) * 1000 / photosMax : 1000
    }
}
