internal import CPNG
internal import Glibc
internal import PhotoImaging

/// A PNG, read by libpng's progressive reader, which also decodes the beginning of a truncated file.
///
/// A libpng error ends the process: the alternative, longjmp, must not cross Swift's frames.
final class PNGDecoder: PictureDecoder {
    private let bytes: UnsafeRawBufferPointer
    private var png: png_structp?
    private var info: png_infop?
    let orientation: Orientation
    private(set) var size = PixelSize(width: 0, height: 0)
    private(set) var colorProfile: [UInt8] = []
    private var channels = 0
    private var hasAlpha = false
    /// For colours that the file describes by code points (`cICP`), else without a profile or `sRGB` by `gAMA` and
    /// `cHRM`: PNG, third edition, 4.3.
    private var conversion: DisplayConversion?
    private var hasCodePoints: Bool
    /// Whether black is 16 and white 235 of 8 bits: the code points say so.
    private let isNarrow: Bool
    /// Bytes of a pixel as libpng delivers it: more than `channels` where 16 bits are converted.
    private var pixelBytes = 0
    /// All rows of an interlaced picture, which arrives in seven passes. Nil for other pictures.
    private var whole: UnsafeMutablePointer<UInt8>?
    private var rows: RowReducer?
    private var row: UnsafeMutablePointer<UInt8>?
    private var position = 0
    private var hasPixels = false

    /// Bytes given to libpng at a time.
    private static let stepBytes = 64 << 10
    /// Size of a decompressed chunk of metadata, at most.
    private static let chunkBytesMax = 8 << 20
    private static let sideMax: UInt32 = 1_000_000

    /// Reads up to the first pixels. Nil if the file ends before.
    init?(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        let source = MappedSource(bytes: bytes)
        orientation = Orientation(readFacts(source))
        let colors = Self.colors(source)
        hasCodePoints = colors != nil
        isNarrow = colors?.isFullRange == false
        conversion = colors.flatMap { DisplayConversion($0) }
        png = png_create_read_struct(
            PNG_LIBPNG_VER_STRING, nil, { _, _ in refusePicture() }, { _, _ in })
        guard png != nil else { return nil }
        info = png_create_info_struct(png)
        guard info != nil else { return nil }
        png_set_user_limits(png, Self.sideMax, Self.sideMax)
        png_set_chunk_malloc_max(png, Self.chunkBytesMax)
        png_set_progressive_read_fn(
            png, Unmanaged.passUnretained(self).toOpaque(),
            { png, _ in PNGDecoder.of(png).begin() },
            { png, row, number, _ in PNGDecoder.of(png).take(row, number) }, nil)
        while size.width == 0 {
            guard feed() else { return nil }
        }
    }

    deinit {
        png_destroy_read_struct(&png, &info, nil)
        row?.deallocate()
        free(whole)
    }

    private static func of(_ png: png_structp?) -> PNGDecoder {
        Unmanaged<PNGDecoder>.fromOpaque(png_get_progressive_ptr(png)).takeUnretainedValue()
    }

    /// Gives libpng more of the file. False at its end.
    private func feed() -> Bool {
        let count = min(Self.stepBytes, bytes.count - position)
        guard count > 0 else { return false }
        // libpng takes a mutable pointer, but changes nothing.
        let part = UnsafeMutableRawPointer(mutating: bytes.baseAddress! + position)
        position += count
        png_process_data(png, info, part.assumingMemoryBound(to: UInt8.self), count)
        return true
    }

    /// The header is read: asks for 8 bits a channel, grey without opacity or colour with it.
    private func begin() {
        if !hasCodePoints { conversion = conversionByPower() }
        let type = Int32(png_get_color_type(png, info))
        let isTransparent = png_get_valid(png, info, UInt32(PNG_INFO_tRNS)) != 0
        hasAlpha = type & PNG_COLOR_MASK_ALPHA != 0 || isTransparent
        channels = type == PNG_COLOR_TYPE_GRAY && !hasAlpha && conversion == nil ? 1 : 4
        let isDeep = conversion != nil && png_get_bit_depth(png, info) == 16
        pixelBytes = isDeep ? 8 : channels
        png_set_expand(png)
        if !isDeep { png_set_scale_16(png) }
        if channels == 4 {
            png_set_gray_to_rgb(png)
            png_set_add_alpha(png, isDeep ? 0xFFFF : 0xFF, PNG_FILLER_AFTER)
        }
        png_set_interlace_handling(png)
        png_read_update_info(png, info)
        if conversion == nil { readProfile() }
        let width = Int(png_get_image_width(png, info))
        size = PixelSize(width: width, height: Int(png_get_image_height(png, info)))
        guard isWithinLimits(size), png_get_rowbytes(png, info) == width * pixelBytes else { refusePicture() }
        let isInterlaced = png_get_interlace_type(png, info) != PNG_INTERLACE_NONE
        if isInterlaced {
            whole = calloc(size.height, width * pixelBytes)?.assumingMemoryBound(to: UInt8.self)
            guard whole != nil else { refusePicture() }
        }
        row = .allocate(capacity: width * channels)
        // The pixels stay in the file until `decode`.
        position -= png_process_data_pause(png, 0)
    }

    /// Nil if the file gives no power of light, or a profile.
    private func conversionByPower() -> DisplayConversion? {
        let described = UInt32(PNG_INFO_sRGB | PNG_INFO_iCCP)
        var power: png_fixed_point = 0
        guard png_get_valid(png, info, described) == 0, png_get_gAMA_fixed(png, info, &power) != 0 else {
            return nil
        }
        return DisplayConversion(power: Double(power) / Double(PNG_FP_1), chromaticities)
    }

    private var chromaticities: Chromaticities? {
        var points = [png_fixed_point](repeating: 0, count: 8)
        let isThere = points.withUnsafeMutableBufferPointer { points -> Bool in
            guard let start = points.baseAddress else { return false }
            return png_get_cHRM_fixed(
                png, info, start, start + 1, start + 2, start + 3, start + 4, start + 5, start + 6, start + 7)
                != 0
        }
        guard isThere else { return nil }
        func point(_ index: Int) -> SIMD2<Double> {
            SIMD2(Double(points[index]), Double(points[index + 1])) / Double(PNG_FP_1)
        }
        return Chromaticities(red: point(2), green: point(4), blue: point(6), white: point(0))
    }

    private func readProfile() {
        var name: png_charp?
        var compression: Int32 = 0
        var profile: png_bytep?
        var count: png_uint_32 = 0
        guard png_get_iCCP(png, info, &name, &compression, &profile, &count) != 0, let profile else { return }
        colorProfile = Array(UnsafeBufferPointer(start: profile, count: Int(count)))
    }

    private func take(_ source: png_bytep?, _ number: png_uint_32) {
        guard let source else { return }
        hasPixels = true
        if let whole {
            png_progressive_combine_row(png, whole + Int(number) * size.width * pixelBytes, source)
            return
        }
        add(source)
    }

    /// Adds a row as libpng has delivered it.
    private func add(_ source: UnsafePointer<UInt8>) {
        guard let row else { return }
        if let conversion {
            convert(source, conversion, into: row)
        } else {
            row.update(from: source, count: size.width * channels)
            if isNarrow { expand(row) }
        }
        if hasAlpha { row.multiplyByAlpha(count: size.width) }
        rows?.add(row)
    }

    /// Gives colours of 8 bits their full range.
    private func expand(_ row: UnsafeMutablePointer<UInt8>) {
        for index in 0..<size.width * channels where channels == 1 || index % 4 != 3 {
            row[index] = UInt8((min(max(Int(row[index]), 16), 235) - 16) * 255 / 219)
        }
    }

    private func convert(
        _ source: UnsafePointer<UInt8>, _ conversion: DisplayConversion, into row: UnsafeMutablePointer<UInt8>
    ) {
        let codes = UnsafeMutablePointer<SIMD4<UInt16>>.allocate(capacity: size.width)
        defer { codes.deallocate() }
        let isDeep = pixelBytes == 8
        let shift = isDeep ? 8 : 0
        let (black, white) = isNarrow ? (16 << shift, 235 << shift) : (0, isDeep ? 0xFFFF : 0xFF)
        for x in 0..<size.width {
            for channel in 0..<4 {
                // Samples of 16 bits have the higher byte first.
                let index = x * pixelBytes + channel * pixelBytes / 4
                let high = Int(source[index])
                let value = isDeep ? high << 8 | Int(source[index + 1]) : high
                let light =
                    (min(max(value, black), white) - black) * DisplayConversion.codeMax / (white - black)
                codes[x][channel] = UInt16(channel == 3 ? high : light)
            }
        }
        row.withMemoryRebound(to: SIMD4<UInt8>.self, capacity: size.width) {
            conversion.convert(codes, into: $0, count: size.width)
        }
    }

    /// Nil for a file without code points, and for luma and chroma, which PNG has not.
    private static func colors(_ source: MappedSource) -> ColorDescription? {
        guard let points = pngCodePoints(source), points.count == 4, points[2] == 0, points[3] <= 1 else {
            return nil
        }
        return ColorDescription(
            primaries: points[0], transfer: points[1], matrix: 0, isFullRange: points[3] == 1)
    }

    func decode(for placement: Placement) -> Pixels? {
        rows = RowReducer(
            size, channels: channels, hasAlpha: hasAlpha, factor: placement.reduction(of: size))
        guard rows != nil else { return nil }
        while feed() {}
        guard hasPixels else { return nil }
        if let whole {
            for number in 0..<size.height {
                add(whole + number * size.width * pixelBytes)
            }
        }
        return rows.take()?.finish()
    }
}
