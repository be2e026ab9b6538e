internal import PhotoImaging

/// A camera's raw file: its largest embedded JPEG, turned as the file says. Where that cannot be decoded, the
/// file's first picture, which is a preview in formats based on TIFF.
func openRaw(_ bytes: UnsafeRawBufferPointer) -> (any PictureDecoder)? {
    let facts = readFacts(MappedSource(bytes: bytes))
    for range in [facts?.largestPreview, facts?.embeddedPreview] {
        guard let range else { continue }
        let part = UnsafeRawBufferPointer(rebasing: bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        if let preview = RawPreview(part, orientation: Orientation(facts)) { return preview }
    }
    return TIFFDecoder(bytes)
}

/// An embedded JPEG with the orientation of the surrounding file: many have none of their own.
private final class RawPreview: PictureDecoder {
    private let preview: JPEGDecoder
    let orientation: Orientation

    init?(_ bytes: UnsafeRawBufferPointer, orientation: Orientation) {
        guard let preview = JPEGDecoder(ArrivingPicture(whole: bytes)) else { return nil }
        self.preview = preview
        self.orientation = orientation
    }

    var size: PixelSize { preview.size }
    var colorProfile: [UInt8] { preview.colorProfile }

    func decode(for placement: Placement) -> Pixels? {
        preview.decode(for: placement)
    }
}
