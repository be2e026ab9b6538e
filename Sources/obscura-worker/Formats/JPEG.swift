internal import CTurboJPEG
internal import Glibc
internal import PhotoImaging

/// A JPEG, read by libjpeg-turbo (TurboJPEG API 2.x).
final class JPEGDecoder: PictureDecoder {
    private let handle: tjhandle
    private let bytes: UnsafeRawBufferPointer
    private let segments: JPEGSegments
    private let colorSpace: Int32
    let size: PixelSize

    /// Reads the header. Nil when libjpeg cannot make sense of it.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let segments = JPEGSegments(bytes), let handle = tjInitDecompress() else { return nil }
        var width: Int32 = 0
        var height: Int32 = 0
        var subsampling: Int32 = -1
        var colorSpace: Int32 = -1
        // The result is not asked: it also fails for mere warnings, and for subsamplings it has no name for
        // although it decodes them. What it knows by then it has stored.
        tjDecompressHeader3(
            handle, bytes.bindMemory(to: UInt8.self).baseAddress, UInt(bytes.count), &width, &height,
            &subsampling, &colorSpace)
        self.handle = handle
        self.bytes = bytes
        self.segments = segments
        self.colorSpace = colorSpace
        size = PixelSize(width: Int(width), height: Int(height))
        guard width > 0, height > 0, colorSpace >= 0 else { return nil }
    }

    deinit {
        tjDestroy(handle)
    }

    var orientation: Orientation { segments.orientation }

    /// None for inks: it would be wrong on what is no longer CMYK.
    var colorProfile: [UInt8] {
        isCMYK ? [] : segments.colorProfile.flatMap { bytes[$0].dropFirst(JPEGSegments.profileHeadBytes) }
    }

    private var isCMYK: Bool { colorSpace == TJCS_CMYK.rawValue || colorSpace == TJCS_YCCK.rawValue }

    /// Reduced by the transform itself. Damage that libjpeg warns of is passed over; nil for damage that
    /// stops it.
    func decode(for placement: Placement) -> Pixels? {
        let divisor = [8, 4, 2].first { $0 <= placement.reduction(of: size) } ?? 1
        let scaled = PixelSize(
            width: (size.width + divisor - 1) / divisor, height: (size.height + divisor - 1) / divisor)
        let channels = colorSpace == TJCS_GRAY.rawValue ? 1 : 4
        guard var pixels = Pixels(size: scaled, channels: channels) else { return nil }
        pixels.covered = (Double(size.width) / Double(divisor), Double(size.height) / Double(divisor))
        let format = channels == 1 ? TJPF_GRAY : isCMYK ? TJPF_CMYK : TJPF_RGBX
        let result = tjDecompress2(
            handle, bytes.bindMemory(to: UInt8.self).baseAddress, UInt(bytes.count), pixels.start,
            Int32(scaled.width), Int32(pixels.rowBytes), Int32(scaled.height), format.rawValue,
            TJFLAG_LIMITSCANS)
        guard result == 0 || tjGetErrorCode(handle) == TJERR_WARNING.rawValue else { return nil }
        // Adobe's programs store inks inverted.
        if isCMYK { pixels.convertInksToRGB(areInverted: segments.hasAdobeMarker) }
        return pixels
    }
}
