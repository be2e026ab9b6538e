internal import CTurboJPEG
internal import Glibc
internal import PhotoImaging

/// A JPEG opened for decoding by libjpeg-turbo (TurboJPEG API 2.x).
struct JPEGDecoder: ~Copyable {
    private let handle: tjhandle
    private let bytes: UnsafeRawBufferPointer
    private let colorSpace: Int32
    /// As stored, not yet upright.
    let size: PixelSize

    /// Reads the header. Nil when libjpeg cannot make sense of it.
    static func open(_ bytes: UnsafeRawBufferPointer) -> JPEGDecoder? {
        guard let handle = tjInitDecompress() else { return nil }
        let decoder = JPEGDecoder(handle: handle, bytes: bytes)
        guard decoder.size.width > 0, decoder.size.height > 0, decoder.colorSpace >= 0 else { return nil }
        return decoder
    }

    private init(handle: tjhandle, bytes: UnsafeRawBufferPointer) {
        var width: Int32 = 0
        var height: Int32 = 0
        var subsampling: Int32 = -1
        var colorSpace: Int32 = -1
        // The result is not asked: it also fails for mere warnings, and for subsamplings it has no name for
        // although it decodes them. What it knows by then it has stored.
        tjDecompressHeader3(
            handle, bytes.bindMemory(to: UInt8.self).baseAddress, UInt(bytes.count), &width, &height,
            &subsampling,
            &colorSpace)
        self.handle = handle
        self.bytes = bytes
        self.colorSpace = colorSpace
        size = PixelSize(width: Int(width), height: Int(height))
    }

    deinit {
        tjDestroy(handle)
    }

    /// Whether the picture is stored in inks, which no profile of the picture describes after conversion.
    var isCMYK: Bool { colorSpace == TJCS_CMYK.rawValue || colorSpace == TJCS_YCCK.rawValue }

    /// The whole picture, reduced by the transform itself as far as leaves about twice `target` for the
    /// filter, in grey or RGBX. Damage that libjpeg warns of is passed over; nil for damage that stops it,
    /// and when there is no memory. `adobeInks`: inks are stored inverted.
    func decode(atLeast target: PixelSize, adobeInks: Bool) -> Pixels? {
        let scaled = Self.reducedSize(of: size, atLeast: target)
        let channels = colorSpace == TJCS_GRAY.rawValue ? 1 : 4
        guard let pixels = Pixels(size: scaled, channels: channels) else { return nil }
        let format = channels == 1 ? TJPF_GRAY : isCMYK ? TJPF_CMYK : TJPF_RGBX
        let result = tjDecompress2(
            handle, bytes.bindMemory(to: UInt8.self).baseAddress, UInt(bytes.count), pixels.start,
            Int32(scaled.width), Int32(pixels.rowBytes), Int32(scaled.height), format.rawValue,
            TJFLAG_LIMITSCANS)
        guard result == 0 || tjGetErrorCode(handle) == TJERR_WARNING.rawValue else { return nil }
        if isCMYK { pixels.convertInksToRGB(areInverted: adobeInks) }
        return pixels
    }

    /// What the transform makes of `size`, halved up to three times. A little less than twice the target will
    /// do: 12-megapixel cameras are 4000 pixels wide, and 500 are as good a beginning for 256 as 1000, and 5
    /// ms cheaper.
    static func reducedSize(of size: PixelSize, atLeast target: PixelSize) -> PixelSize {
        for divisor in [8, 4, 2] {
            let width = (size.width + divisor - 1) / divisor
            let height = (size.height + divisor - 1) / divisor
            if width * 8 >= target.width * 15 && height * 8 >= target.height * 15 {
                return PixelSize(width: width, height: height)
            }
        }
        return size
    }
}

/// Memory that libjpeg-turbo has allocated.
struct EncodedJPEG: ~Copyable {
    private let start: UnsafeMutablePointer<UInt8>
    private let count: Int

    fileprivate init(start: UnsafeMutablePointer<UInt8>, count: Int) {
        self.start = start
        self.count = count
    }

    deinit {
        tjFree(start)
    }

    /// Valid as long as this value is.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
}

/// Quality 85; colour at half resolution. Nil when there is no memory.
func encodeJPEG(_ pixels: borrowing Pixels) -> EncodedJPEG? {
    guard let handle = tjInitCompress() else { return nil }
    defer { tjDestroy(handle) }
    let isGray = pixels.channels == 1
    var start: UnsafeMutablePointer<UInt8>?
    var count: UInt = 0
    let result = tjCompress2(
        handle, pixels.start, Int32(pixels.size.width), Int32(pixels.rowBytes), Int32(pixels.size.height),
        (isGray ? TJPF_GRAY : TJPF_RGBX).rawValue, &start, &count,
        Int32((isGray ? TJSAMP_GRAY : TJSAMP_420).rawValue), 85, TJFLAG_ACCURATEDCT)
    guard result == 0, let start else {
        tjFree(start)
        return nil
    }
    return EncodedJPEG(start: start, count: Int(count))
}
