internal import CJPEGStream
internal import Glibc
internal import PhotoImaging

/// A JPEG, decoded by libjpeg-turbo as it arrives.
final class JPEGDecoder: PictureDecoder {
    private let stream: OpaquePointer
    private let picture: ArrivingPicture
    /// The bytes before the first scan.
    private let head: UnsafeRawBufferPointer
    private let segments: JPEGSegments
    private let colors: jpeg_stream_colors
    let size: PixelSize

    /// Reads the header. Nil when libjpeg cannot.
    init?(_ picture: ArrivingPicture) {
        let stream = jpeg_stream_open(
            picture.start, picture.byteCount,
            { Unmanaged<ArrivingPicture>.fromOpaque($0!).takeUnretainedValue().wait(for: $1) },
            Unmanaged.passUnretained(picture).toOpaque())
        guard let stream else { return nil }
        let head = picture.prefix(jpeg_stream_position(stream))
        guard let segments = JPEGSegments(head) else {
            jpeg_stream_close(stream)
            return nil
        }
        (self.stream, self.picture, self.head, self.segments) = (stream, picture, head, segments)
        colors = jpeg_stream_colors_of(stream)
        size = PixelSize(width: jpeg_stream_width(stream), height: jpeg_stream_height(stream))
        guard colors != jpeg_stream_unknown else { return nil }
    }

    /// Whether pixels that `decode` has returned were not in the file, and are grey.
    var lacksPixels: Bool { jpeg_stream_lacks_pixels(stream) != 0 }

    deinit {
        jpeg_stream_close(stream)
    }

    var orientation: Orientation { segments.orientation }

    /// Empty for CMYK: the profile does not describe the converted colours.
    var colorProfile: [UInt8] {
        if colors == jpeg_stream_inks { return [] }
        return segments.colorProfile.flatMap { head[$0].dropFirst(JPEGSegments.profileHeadBytes) }
    }

    /// Reduces in the inverse transform. Ignores libjpeg's warnings; nil for damage that stops it.
    func decode(for placement: Placement) -> Pixels? {
        let divisor = [8, 4, 2].first { $0 <= placement.reduction(of: size) } ?? 1
        let scaled = PixelSize(
            width: (size.width + divisor - 1) / divisor, height: (size.height + divisor - 1) / divisor)
        let channels = colors == jpeg_stream_gray ? 1 : 4
        guard var pixels = Pixels(size: scaled, channels: channels) else { return nil }
        pixels.covered = (Double(size.width) / Double(divisor), Double(size.height) / Double(divisor))
        guard
            jpeg_stream_decode(stream, Int32(divisor), pixels.start, pixels.rowBytes, scaled.height) == 0
        else { return nil }
        // Adobe's programs store inks inverted.
        if colors == jpeg_stream_inks { pixels.convertInksToRGB(areInverted: segments.hasAdobeMarker) }
        return pixels
    }
}
