internal import PhotoImaging

/// A camera's raw file: its largest embedded JPEG, turned as the file says. Where that is not there as a whole, a
/// smaller one; else the file's first picture, which is a preview in formats based on TIFF.
func openRaw(_ bytes: UnsafeRawBufferPointer) -> (any PictureDecoder)? {
    let facts = readFacts(MappedSource(bytes: bytes))
    var parts: [UnsafeRawBufferPointer] = []
    for range in [facts?.largestPreview, facts?.embeddedPreview] {
        guard let range else { continue }
        let part = UnsafeRawBufferPointer(rebasing: bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        if part.baseAddress != parts.first?.baseAddress { parts.append(part) }
    }
    return RawPreviews(parts, orientation: Orientation(facts), file: bytes) ?? TIFFDecoder(bytes)
}

/// The JPEGs in a raw file with the orientation of that: many have none of their own.
///
/// A plain JPEG that ends too early is shown as far as it goes, as its owner has no better one. A raw file is whole
/// without its preview, or has another: a grey half would be a wrong picture of it.
private final class RawPreviews: PictureDecoder {
    private var current: any PictureDecoder
    private var others: ArraySlice<UnsafeRawBufferPointer>
    private let file: UnsafeRawBufferPointer
    private let ownOrientation: Orientation

    /// Nil if none of them has a header that can be read.
    init?(_ parts: [UnsafeRawBufferPointer], orientation: Orientation, file: UnsafeRawBufferPointer) {
        var others = parts[...]
        guard let first = Self.next(of: &others) else { return nil }
        (current, self.others, self.file, ownOrientation) = (first, others, file, orientation)
    }

    private static func next(of parts: inout ArraySlice<UnsafeRawBufferPointer>) -> JPEGDecoder? {
        while let part = parts.popFirst() {
            if let preview = JPEGDecoder(ArrivingPicture(whole: part)) { return preview }
        }
        return nil
    }

    var size: PixelSize { current.size }
    var colorProfile: [UInt8] { current.colorProfile }
    var orientation: Orientation { current is JPEGDecoder ? ownOrientation : current.orientation }

    func decode(for placement: Placement) -> Pixels? {
        while let preview = current as? JPEGDecoder {
            if let pixels = preview.decode(for: placement), !preview.lacksPixels { return pixels }
            guard let next: any PictureDecoder = Self.next(of: &others) ?? TIFFDecoder(file),
                isWithinLimits(next.size)
            else { return nil }
            current = next
        }
        return current.decode(for: placement)
    }
}
