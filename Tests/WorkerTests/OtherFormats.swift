import CGIF
import CPNG
import CWebP
import Foundation
import PhotoImaging

// The formats beside JPEG, through their libraries' own encoders where those can be called from Swift.

/// RGBA of the four colours, one in each quarter; the lower right one transparent black where `hasHole`.
func quarters(_ width: Int, _ height: Int, hasHole: Bool = false) -> [UInt8] {
    quarters(width, height) { $0.rgba(hasHole: hasHole) }
}

/// A profile that libpng takes (ICC.1:2010, 7.2 and 7.3): a header and one tag, whose text is noise: libpng finds
/// profiles too short that become very small.
let smallProfile: [UInt8] = {
    let byteCount = 548
    var profile = (0..<byteCount).map { $0 < 152 ? 0 : UInt8(truncatingIfNeeded: ($0 &* $0 &* 31) >> 3) }
    profile.replaceSubrange(2..<4, with: [UInt8(byteCount >> 8), UInt8(byteCount & 0xFF)])
    profile[8] = 2
    profile.replaceSubrange(12..<24, with: Array("mntrRGB XYZ ".utf8))
    profile.replaceSubrange(36..<40, with: Array("acsp".utf8))
    profile.replaceSubrange(68..<80, with: [0, 0, 0xF6, 0xD6, 0, 1, 0, 0, 0, 0, 0xD3, 0x2D])
    let tagBytes = byteCount - 144
    profile.replaceSubrange(128..<140, with: [0, 0, 0, 1] + Array("cprt".utf8) + [0, 0, 0, 144])
    profile.replaceSubrange(140..<144, with: [0, 0, UInt8(tagBytes >> 8), UInt8(tagBytes & 0xFF)])
    profile.replaceSubrange(144..<148, with: Array("text".utf8))
    return profile
}()

struct TestPNG {
    enum Kind { case color, colorWithAlpha, deepColor, gray, palette }

    var width = 400
    var height = 300
    var kind = Kind.color
    var isInterlaced = false
    var profile: [UInt8] = []

    var bytes: [UInt8] {
        let pixels = quarters(width, height) { corner in
            switch kind {
            case .color: corner.rgb
            case .colorWithAlpha: corner.rgba(hasHole: true)
            case .deepColor: corner.rgb.flatMap { [$0, $0] }
            case .gray: [corner.rgb[0]]
            case .palette: [UInt8(Corner.all.firstIndex(of: corner)!)]
            }
        }
        let rowBytes = pixels.count / height
        return encode((0..<height).map { Array(pixels[$0 * rowBytes..<($0 + 1) * rowBytes]) })
    }

    func encode(_ rows: [[UInt8]], bitDepth: Int32? = nil) -> [UInt8] {
        var png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nil, nil, nil)
        var info = png_create_info_struct(png)
        defer { png_destroy_write_struct(&png, &info) }
        let sink = NSMutableData()
        png_set_write_fn(
            png, Unmanaged.passUnretained(sink).toOpaque(),
            { png, bytes, count in
                Unmanaged<NSMutableData>.fromOpaque(png_get_io_ptr(png)).takeUnretainedValue()
                    .append(bytes!, length: count)
            }, { _ in })
        let type =
            switch kind {
            case .color, .deepColor: PNG_COLOR_TYPE_RGB
            case .colorWithAlpha: PNG_COLOR_TYPE_RGBA
            case .gray: PNG_COLOR_TYPE_GRAY
            case .palette: PNG_COLOR_TYPE_PALETTE
            }
        png_set_IHDR(
            png, info, UInt32(width), UInt32(height), bitDepth ?? (kind == .deepColor ? 16 : 8), Int32(type),
            isInterlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
            PNG_FILTER_TYPE_BASE)
        if kind == .palette {
            let colors = Corner.stored.joined().map { corner in
                png_color(red: corner.rgb[0], green: corner.rgb[1], blue: corner.rgb[2])
            }
            png_set_PLTE(png, info, colors, Int32(colors.count))
        }
        if !profile.isEmpty { png_set_iCCP(png, info, "P", 0, profile, UInt32(profile.count)) }
        png_write_info(png, info)
        for _ in 0..<png_set_interlace_handling(png) {
            for row in rows { png_write_row(png, row) }
        }
        png_write_end(png, info)
        return Array(sink as Data)
    }
}

/// A PNG decoded again, as RGBA.
struct DecodedPNG {
    var size: PixelSize
    var rgba: [UInt8]

    init?(_ bytes: [UInt8]) {
        var image = png_image()
        image.version = UInt32(PNG_IMAGE_VERSION)
        guard png_image_begin_read_from_memory(&image, bytes, bytes.count) != 0 else { return nil }
        image.format = UInt32(PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA)
        size = PixelSize(width: Int(image.width), height: Int(image.height))
        rgba = [UInt8](repeating: 0, count: size.width * size.height * 4)
        guard png_image_finish_read(&image, nil, &rgba, 0, nil) != 0 else { return nil }
    }

    func pixel(_ x: Int, _ y: Int) -> [UInt8] {
        Array(rgba[(y * size.width + x) * 4..<(y * size.width + x) * 4 + 4])
    }
}

func testWebP(_ width: Int = 400, _ height: Int = 300, isLossless: Bool = false, hasHole: Bool = false)
    -> [UInt8]
{
    let pixels = quarters(width, height, hasHole: hasHole)
    var output: UnsafeMutablePointer<UInt8>?
    let stride = Int32(width * 4)
    let count =
        isLossless
        ? WebPEncodeLosslessRGBA(pixels, Int32(width), Int32(height), stride, &output)
        : WebPEncodeRGBA(pixels, Int32(width), Int32(height), stride, 90, &output)
    defer { WebPFree(output) }
    return Array(UnsafeBufferPointer(start: output, count: count))
}

/// The first frame of an animation: four colours, `left` and `top` pixels inside a canvas. A second one fills it.
func testAnimation(canvas: PixelSize, frame: PixelSize, left: Int, top: Int) -> [UInt8] {
    func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
        (0..<byteCount).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
        Array(name.utf8) + number(body.count, 4) + body + [UInt8](repeating: 0, count: body.count & 1)
    }
    func frameChunk(_ left: Int, _ top: Int, _ size: PixelSize) -> [UInt8] {
        let still = testWebP(size.width, size.height, isLossless: true).dropFirst(12)
        let place = number(left / 2, 3) + number(top / 2, 3)
        return chunk(
            "ANMF",
            place + number(size.width - 1, 3) + number(size.height - 1, 3) + number(100, 3) + [0] + still)
    }
    // The background colour is black, which browsers ignore.
    let body =
        chunk("VP8X", [0x02, 0, 0, 0] + number(canvas.width - 1, 3) + number(canvas.height - 1, 3))
        + chunk("ANIM", [0, 0, 0, 255, 0, 0]) + frameChunk(left, top, frame) + frameChunk(0, 0, canvas)
    return Array("RIFF".utf8) + number(body.count + 4, 4) + Array("WEBP".utf8) + body
}

/// Four colours; the fourth transparent where `hasHole`. The frame lies `inset` pixels inside its screen.
func testGIF(
    _ width: Int = 400, _ height: Int = 300, isInterlaced: Bool = false, hasHole: Bool = false, inset: Int = 0
) -> [UInt8] {
    let sink = NSMutableData()
    let file = EGifOpen(
        Unmanaged.passUnretained(sink).toOpaque(),
        { file, bytes, count in
            Unmanaged<NSMutableData>.fromOpaque(file!.pointee.UserData).takeUnretainedValue()
                .append(bytes!, length: Int(count))
            return count
        }, nil)!
    let colors = Corner.stored.joined().map {
        GifColorType(Red: $0.rgb[0], Green: $0.rgb[1], Blue: $0.rgb[2])
    }
    let map = GifMakeMapObject(4, colors)
    defer { GifFreeMapObject(map) }
    EGifSetGifVersion(file, true)
    EGifPutScreenDesc(file, Int32(width + 2 * inset), Int32(height + 2 * inset), 2, 0, map)
    if hasHole {
        EGifPutExtension(file, Int32(GRAPHICS_EXT_FUNC_CODE), 4, [1, 0, 0, 3] as [UInt8])
    }
    EGifPutImageDesc(file, Int32(inset), Int32(inset), Int32(width), Int32(height), isInterlaced, nil)
    let passes = isInterlaced ? [(0, 8), (4, 8), (2, 4), (1, 2)] : [(0, 1)]
    for y in passes.flatMap({ Array(stride(from: $0.0, to: height, by: $0.1)) }) {
        var row = (0..<width).map { UInt8(y * 2 / height * 2 + $0 * 2 / width) }
        EGifPutLine(file, &row, Int32(width))
    }
    EGifCloseFile(file, nil)
    return Array(sink as Data)
}

/// Uncompressed (TIFF 6.0), little-endian, RGB or RGBA (its opacity not multiplied in), strips of 16 rows.
struct TestTIFF {
    var width = 400
    var height = 300
    var orientation = 1
    var hasHole = false
    var profile: [UInt8] = []
    /// 1 is none. The pixels are stored without any.
    var compression = 1
    /// A strip that lies behind the end of the file.
    var missingStrip: Int?
    /// Samples are stored less half of their range.
    var isSigned = false
    /// In each sample.
    var bits = 8
    var isFloat = false
    /// Floating point is as many times larger.
    var scale = 1.0
    /// Each colour has strips of its own.
    var isSeparate = false
    /// Cyan, magenta, yellow and black, without a hole.
    var hasInks = false

    private static let rowsInStrip = 16

    var bytes: [UInt8] {
        let channels = hasHole || hasInks ? 4 : 3
        let pixels =
            hasInks
            ? quarters(width, height) { $0.rgb.map { 255 - $0 } + [0] }
            : quarters(width, height, hasHole: hasHole)
        let planes = isSeparate ? (0..<channels).map { [$0] } : [Array(0..<channels)]
        var (data, starts, counts): ([UInt8], [Int], [Int]) = ([], [], [])
        for plane in planes {
            for top in stride(from: 0, to: height, by: Self.rowsInStrip) {
                starts.append(starts.count == missingStrip ? 1 << 28 : 8 + data.count)
                let count = data.count
                for y in top..<min(top + Self.rowsInStrip, height) {
                    let samples = (0..<width).flatMap { x in plane.map { pixels[(y * width + x) * 4 + $0] } }
                    data += row(samples)
                }
                counts.append(data.count - count)
            }
        }
        var entries: [(tag: Int, type: Int, values: [Int])] = [
            (256, 4, [width]), (257, 4, [height]), (258, 3, Array(repeating: bits, count: channels)),
            (259, 3, [compression]), (262, 3, [hasInks ? 5 : 2]), (273, 4, starts), (274, 3, [orientation]),
            (277, 3, [channels]), (278, 4, [Self.rowsInStrip]), (279, 4, counts),
        ]
        if isSeparate { entries.append((284, 3, [2])) }
        if hasHole { entries.append((338, 3, [2])) }
        if isSigned || isFloat {
            entries.append((339, 3, Array(repeating: isFloat ? 3 : 2, count: channels)))
        }
        if !profile.isEmpty { entries.append((34675, 7, profile.map(Int.init))) }
        return Self.file(data, entries)
    }

    /// The samples of a row, from 0 to 255, as they are stored.
    private func row(_ samples: [UInt8]) -> [UInt8] {
        func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: number.littleEndian) { Array($0) }
        }
        let largest = (1 << bits) - 1
        func number(_ sample: UInt8) -> Int {
            let number = Int(sample) * largest / 255
            return isSigned ? number ^ 1 << (bits - 1) : number
        }
        if isFloat {
            return samples.flatMap { sample -> [UInt8] in
                let value = Double(sample) / 255 * scale
                return switch bits {
                case 16: bytes(Float16(value).bitPattern)
                case 32: bytes(Float(value).bitPattern)
                default: bytes(value.bitPattern)
                }
            }
        }
        switch bits {
        case 8: return samples.map { UInt8(number($0)) }
        case 32: return samples.flatMap { bytes(UInt32(number($0))) }
        default: break
        }
        var packed: [UInt8] = []
        var (held, heldBits) = (0, 0)
        for sample in samples {
            held = held << bits | number(sample)
            heldBits += bits
            while heldBits >= 8 {
                heldBits -= 8
                packed.append(UInt8(truncatingIfNeeded: held >> heldBits))
            }
            held &= 1 << heldBits - 1
        }
        return heldBits > 0 ? packed + [UInt8(truncatingIfNeeded: held << (8 - heldBits))] : packed
    }

    /// Of 64 by 16 pixels, white or black, as fax machines compress them (ITU-T T.6).
    static func fax(_ data: [UInt8]) -> [UInt8] {
        file(
            data,
            [
                (256, 4, [64]), (257, 4, [16]), (258, 3, [1]), (259, 3, [4]), (262, 3, [0]), (273, 4, [8]),
                (277, 3, [1]), (278, 4, [16]), (279, 4, [data.count]),
            ])
    }

    /// Grey and an opacity that it is not multiplied by, of 8 or 16 bits.
    static func gray(_ gray: UInt8, opacity: UInt8, bits: Int) -> [UInt8] {
        let pixel = [gray, opacity].flatMap { bits == 8 ? [$0] : [$0, $0] }
        let data = [[UInt8]](repeating: pixel, count: 64 * 64).flatMap(\.self)
        return file(
            data,
            [
                (256, 4, [64]), (257, 4, [64]), (258, 3, [bits, bits]), (259, 3, [1]), (262, 3, [1]),
                (273, 4, [8]), (277, 3, [2]), (278, 4, [64]), (279, 4, [data.count]), (338, 3, [2]),
            ])
    }

    /// A row of grey, of 32 bits.
    static func floats(_ row: [Float]) -> [UInt8] {
        let data = row.flatMap { value in withUnsafeBytes(of: value.bitPattern.littleEndian) { Array($0) } }
        return file(
            data,
            [
                (256, 4, [row.count]), (257, 4, [1]), (258, 3, [32]), (259, 3, [1]), (262, 3, [1]),
                (273, 4, [8]), (277, 3, [1]), (278, 4, [1]), (279, 4, [data.count]), (339, 3, [3]),
            ])
    }

    private static func file(_ data: [UInt8], _ entries: [(tag: Int, type: Int, values: [Int])]) -> [UInt8] {
        func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
            (0..<byteCount).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        var extra: [UInt8] = []
        let extraStart = 8 + data.count + 2 + entries.count * 12 + 4
        var directory = number(entries.count, 2)
        for (tag, type, values) in entries {
            let size = [3: 2, 4: 4, 7: 1][type]!
            let value = values.flatMap { number($0, size) }
            directory += number(tag, 2) + number(type, 2) + number(values.count, 4)
            if value.count <= 4 {
                directory += value + [UInt8](repeating: 0, count: 4 - value.count)
            } else {
                directory += number(extraStart + extra.count, 4)
                extra += value
            }
        }
        return [0x49, 0x49, 42, 0] + number(8 + data.count, 4) + data + directory + number(0, 4) + extra
    }
}
