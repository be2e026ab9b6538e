internal import CTurboJPEG
internal import Glibc
internal import PhotoImaging

/// Encodes a JPEG without visible errors: repeats with better settings while the error exceeds
/// ``JPEGSettings/errorMax``. Nil if memory is short.
///
/// The error of a large picture is measured on a sample. Ordinary pictures need one trial; noise and fine colours need
/// more.
func encodeJPEG(_ pixels: borrowing Pixels) -> EncodedJPEG? {
    let whole = PixelRows(pixels)
    guard let codec = JPEGCodec(), let sample = PixelSample(of: whole) else { return nil }
    var settings = JPEGSettings(for: whole)
    while true {
        guard let tried = codec.encode(sample.rows, settings),
            let error = codec.meanSquareError(of: tried, sample.rows)
        else { return nil }
        if error > JPEGSettings.errorMax, let better = settings.better(losing: error) {
            settings = better
            continue
        }
        if sample.isWhole { return tried }
        return codec.encode(whole, settings)
    }
}

/// The settings of an encoder.
private struct JPEGSettings {
    let subsampling: TJSAMP
    /// On libjpeg's scale, up to 100.
    let quality: Int32

    /// Longest side, in pixels, of a picture that keeps colour at full resolution: small pictures are viewed closely
    /// and cost little. Larger pictures get colour at half the resolution if that loses little.
    private static let sharpPixelsMax = 512
    private static let qualityMin: Int32 = 93
    private static let qualityMax: Int32 = 98
    /// Largest invisible mean square error, for channels of 0 to 255: 36 dB (PSNR).
    static let errorMax = 16.3

    private init(_ subsampling: TJSAMP, _ quality: Int32) {
        (self.subsampling, self.quality) = (subsampling, quality)
    }

    /// The settings to try first.
    init(for rows: PixelRows) {
        let isSmall = max(rows.size.width, rows.size.height) <= Self.sharpPixelsMax
        self.init(rows.channels == 1 ? TJSAMP_GRAY : isSmall ? TJSAMP_444 : TJSAMP_420, Self.qualityMin)
    }

    /// The settings to try after the error `error`. Nil if these are the best.
    func better(losing error: Double) -> JPEGSettings? {
        if subsampling == TJSAMP_420 { return JPEGSettings(TJSAMP_444, quality) }
        guard quality < Self.qualityMax else { return nil }
        // From quality 50 on, libjpeg's divisor is proportional to 100 - quality; the error grows with its square.
        let divisor = Double(100 - quality) * (Self.errorMax / error).squareRoot()
        return JPEGSettings(subsampling, min(max(100 - Int32(divisor), quality + 1), Self.qualityMax))
    }
}

/// Borrowed rows of pixels: one byte each (grey) or four (the last unused).
private struct PixelRows {
    let start: UnsafePointer<UInt8>
    let size: PixelSize
    /// 1 or 4.
    let channels: Int

    init(_ pixels: borrowing Pixels) {
        self.init(start: pixels.start, size: pixels.size, channels: pixels.channels)
    }

    init(start: UnsafePointer<UInt8>, size: PixelSize, channels: Int) {
        (self.start, self.size, self.channels) = (start, size, channels)
    }

    var rowBytes: Int { size.width * channels }
    var format: Int32 { (channels == 1 ? TJPF_GRAY : TJPF_RGBX).rawValue }
}

/// The pixels on which the error is measured: all of a small picture, evenly spread bands of a large one.
private struct PixelSample: ~Copyable {
    let rows: PixelRows
    let isWhole: Bool

    /// Approximate number of pixels in a sample.
    private static let pixelCountMax = 128 << 10
    /// A multiple of JPEG's block height for every subsampling, so that no block spans two bands.
    private static let bandRows = 16

    /// Nil when there is no memory.
    init?(of whole: PixelRows) {
        let bandCount = whole.size.height / Self.bandRows
        let takenMax = max(Self.pixelCountMax / (whole.size.width * Self.bandRows), 1)
        isWhole = bandCount <= takenMax
        if isWhole {
            rows = whole
            return
        }
        let size = PixelSize(width: whole.size.width, height: takenMax * Self.bandRows)
        let bandBytes = whole.rowBytes * Self.bandRows
        guard let memory = malloc(takenMax * bandBytes) else { return nil }
        lockAsFarAsAllowed(UnsafeRawBufferPointer(start: memory, count: takenMax * bandBytes))
        for number in 0..<takenMax {
            // The middle band of each of `takenMax` equal parts.
            let band = (2 * number + 1) * bandCount / (2 * takenMax)
            (memory + number * bandBytes).copyMemory(
                from: whole.start + band * bandBytes, byteCount: bandBytes)
        }
        rows = PixelRows(
            start: UnsafePointer(memory.assumingMemoryBound(to: UInt8.self)), size: size,
            channels: whole.channels)
    }

    deinit {
        if !isWhole { free(UnsafeMutablePointer(mutating: rows.start)) }
    }
}

/// An encoder and a decoder of libjpeg-turbo (TurboJPEG API 2.x).
private struct JPEGCodec: ~Copyable {
    private let encoder: tjhandle
    private let decoder: tjhandle

    init?() {
        guard let encoder = tjInitCompress() else { return nil }
        guard let decoder = tjInitDecompress() else {
            tjDestroy(encoder)
            return nil
        }
        (self.encoder, self.decoder) = (encoder, decoder)
    }

    deinit {
        tjDestroy(encoder)
        tjDestroy(decoder)
    }

    /// Nil when there is no memory.
    func encode(_ rows: PixelRows, _ settings: JPEGSettings) -> EncodedJPEG? {
        var start: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        let result = tjCompress2(
            encoder, rows.start, Int32(rows.size.width), Int32(rows.rowBytes), Int32(rows.size.height),
            rows.format, &start, &count, Int32(settings.subsampling.rawValue), settings.quality,
            TJFLAG_ACCURATEDCT)
        guard result == 0, let start else {
            tjFree(start)
            return nil
        }
        return EncodedJPEG(start: start, count: Int(count))
    }

    /// The mean square error of the decoded JPEG over all channels. Nil when memory is short.
    func meanSquareError(of jpeg: borrowing EncodedJPEG, _ rows: PixelRows) -> Double? {
        guard let seen = Pixels(size: rows.size, channels: rows.channels) else { return nil }
        let result = tjDecompress2(
            decoder, jpeg.bytes.bindMemory(to: UInt8.self).baseAddress, UInt(jpeg.bytes.count), seen.start,
            Int32(rows.size.width), Int32(rows.rowBytes), Int32(rows.size.height), rows.format, 0)
        guard result == 0 else { return nil }
        let count = rows.size.width * rows.size.height
        let sum =
            rows.channels == 1
            ? grayError(rows.start, seen.start, count) : colorError(rows.start, seen.start, count)
        return Double(sum) / Double(count * (rows.channels == 1 ? 1 : 3))
    }
}

private func grayError(_ one: UnsafePointer<UInt8>, _ other: UnsafePointer<UInt8>, _ count: Int) -> UInt64 {
    var sum: UInt64 = 0
    var index = 0
    while index < count {
        let difference = Int(one[index]) &- Int(other[index])
        sum &+= UInt64(truncatingIfNeeded: difference &* difference)
        index &+= 1
    }
    return sum
}

/// The error in the first three bytes of every four.
private func colorError(_ one: UnsafePointer<UInt8>, _ other: UnsafePointer<UInt8>, _ count: Int) -> UInt64 {
    var sum: UInt64 = 0
    var index = 0
    while index < count &* 4 {
        let red = Int(one[index]) &- Int(other[index])
        let green = Int(one[index &+ 1]) &- Int(other[index &+ 1])
        let blue = Int(one[index &+ 2]) &- Int(other[index &+ 2])
        sum &+= UInt64(truncatingIfNeeded: red &* red &+ green &* green &+ blue &* blue)
        index &+= 4
    }
    return sum
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

    /// Valid for the lifetime of this value.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
}
