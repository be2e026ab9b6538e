internal import CTIFF
internal import Glibc
internal import PhotoImaging

/// The form of a TIFF's samples: grey, red, green and blue, or four inks, with or without opacity.
struct TIFFSampleForm {
    fileprivate enum Number {
        case unsigned, signed, floating
    }

    fileprivate let number: Number
    fileprivate let bits: Int
    /// Whether the least number is white.
    fileprivate let isInverted: Bool
    /// 1, 3, or 4 for cyan, magenta, yellow and black.
    fileprivate let colors: Int
    /// In each pixel.
    fileprivate let samples: Int
    /// The index of the opacity.
    fileprivate let alpha: Int?
    /// Whether the colours are multiplied by the opacity.
    fileprivate let isMultiplied: Bool

    private static let samplesMax = 64

    /// Nil for a form that ``TIFFSamples`` does not take.
    init?(_ tiff: OpaquePointer) {
        bits = Int(shim_tiff_short(tiff, UInt32(TIFFTAG_BITSPERSAMPLE), 1))
        samples = Int(shim_tiff_short(tiff, UInt32(TIFFTAG_SAMPLESPERPIXEL), 1))
        let bitCounts: [Int]
        switch Int32(shim_tiff_sample_format(tiff)) {
        case SAMPLEFORMAT_UINT, SAMPLEFORMAT_VOID: (number, bitCounts) = (.unsigned, Array(1...32))
        case SAMPLEFORMAT_INT: (number, bitCounts) = (.signed, Array(8...32))
        case SAMPLEFORMAT_IEEEFP: (number, bitCounts) = (.floating, [16, 32, 64])
        default: return nil
        }
        let usual = samples < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB
        let photometric = Int32(shim_tiff_short(tiff, UInt32(TIFFTAG_PHOTOMETRIC), UInt16(usual)))
        switch photometric {
        case PHOTOMETRIC_MINISWHITE, PHOTOMETRIC_MINISBLACK: colors = 1
        case PHOTOMETRIC_RGB: colors = 3
        case PHOTOMETRIC_SEPARATED
        where Int32(shim_tiff_short(tiff, UInt32(TIFFTAG_INKSET), 1)) == INKSET_CMYK:
            colors = 4
        default: return nil
        }
        isInverted = photometric == PHOTOMETRIC_MINISWHITE
        guard bitCounts.contains(bits), samples >= colors, samples <= Self.samplesMax else { return nil }
        var extraCount: UInt16 = 0
        let meanings = shim_tiff_extra_samples(tiff, &extraCount)
        let extra = UnsafeBufferPointer(start: meanings, count: meanings == nil ? 0 : Int(extraCount)).map(
            Int32.init)
        let opacities = [EXTRASAMPLE_ASSOCALPHA, EXTRASAMPLE_UNASSALPHA]
        if let index = extra.firstIndex(where: { opacities.contains($0) }) {
            alpha = colors + index
            isMultiplied = extra[index] == EXTRASAMPLE_ASSOCALPHA
            // Colours of signed samples would be multiplied by an opacity that is one, too.
            guard colors + index < samples, number != .signed else { return nil }
        } else {
            (alpha, isMultiplied) = (nil, false)
        }
    }

    /// Whether libtiff's converter would make another picture of them: it takes floating point for integers, and grey
    /// for multiplied by its opacity, if it reads that at all.
    var isMisconverted: Bool { number == .floating || colors == 1 && hasAlpha }

    /// Whether there is an opacity.
    var hasAlpha: Bool { alpha != nil }
}

/// Reads the samples of a TIFF that libtiff's converter to RGBA does not take: integers of up to 32 bits, and floating
/// point. Floating point is shown as ImageMagick shows it: from 0 to 1, clipped, with the curve that the profile tells,
/// or as sRGB. Measured values, such as heights, mostly lie beyond 1: they are no picture.
final class TIFFSamples {
    private let tiff: OpaquePointer
    private let form: TIFFSampleForm
    private let size: PixelSize
    private let isTiled: Bool
    /// Whether each sample of the pixels lies in a plane of its own.
    private let isSeparate: Bool
    /// The blocks of a band of rows: strips, tiles, or a single row.
    private var blocks: [Block] = []
    private let bandRows: Int
    /// The samples of a row, 0 to 1 where they can be shown.
    private let values: UnsafeMutablePointer<Float>
    /// Samples of colours that are above 1 or no number.
    private var excessCount = 0

    /// A part of a band in memory.
    private struct Block {
        var left: Int
        var width: Int
        var sample: Int
        var rowBytes: Int
        var bytes: UnsafeMutableRawPointer
    }

    /// Of ten samples, at most this many may be above 1.
    private static let excessMaxInTen = 9
    /// Bands of more bytes are not decoded.
    private static let bandBytesMax = 512 << 20

    /// Nil when memory is short.
    init?(_ tiff: OpaquePointer, _ form: TIFFSampleForm, _ size: PixelSize) {
        (self.tiff, self.form, self.size) = (tiff, form, size)
        isTiled = TIFFIsTiled(tiff) != 0
        let planar = Int32(shim_tiff_short(tiff, UInt32(TIFFTAG_PLANARCONFIG), UInt16(PLANARCONFIG_CONTIG)))
        isSeparate = form.samples > 1 && planar == PLANARCONFIG_SEPARATE
        let valueCount = size.width * form.samples
        guard let memory = calloc(valueCount, MemoryLayout<Float>.stride) else { return nil }
        values = memory.bindMemory(to: Float.self, capacity: valueCount)
        // Rows of strips can be decoded one by one, unless other planes lie between.
        let blockRows = Self.number(tiff, isTiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP)
        bandRows = isTiled ? blockRows : isSeparate ? min(blockRows, size.height) : 1
        guard bandRows > 0, allocate() else { return nil }
    }

    deinit {
        for block in blocks { free(block.bytes) }
        free(values)
    }

    private static func number(_ tiff: OpaquePointer, _ tag: Int32) -> Int {
        Int(shim_tiff_number(tiff, UInt32(tag)))
    }

    private func allocate() -> Bool {
        let width = isTiled ? Self.number(tiff, TIFFTAG_TILEWIDTH) : size.width
        let rowBytes = Int(isTiled ? TIFFTileRowSize(tiff) : TIFFScanlineSize(tiff))
        let samples = isSeparate ? 1 : form.samples
        guard width > 0, rowBytes >= (width * samples * form.bits + 7) / 8 else { return false }
        let planes = isSeparate ? Array(0..<form.colors) + [form.alpha].compactMap(\.self) : [0]
        let across = (size.width + width - 1) / width
        let (blockBytes, isTooLong) = rowBytes.multipliedReportingOverflow(by: bandRows)
        guard !isTooLong, blockBytes <= Self.bandBytesMax / (across * planes.count) else { return false }
        for sample in planes {
            for column in 0..<across {
                guard let bytes = malloc(blockBytes) else { return false }
                let left = column * width
                blocks.append(
                    Block(
                        left: left, width: min(width, size.width - left), sample: sample, rowBytes: rowBytes,
                        bytes: bytes))
            }
        }
        return true
    }

    /// Gives all rows to `rows`, as red, green, blue and opacity. False if one cannot be decoded.
    func decode(into rows: inout RowReducer) -> Bool {
        let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * 4)
        defer { row.deallocate() }
        for top in stride(from: 0, to: size.height, by: bandRows) {
            let count = min(bandRows, size.height - top)
            guard blocks.allSatisfy({ read($0, top: top, rows: count) }) else { return false }
            for y in 0..<count {
                for block in blocks { unpack(block, row: y) }
                convert(into: row)
                rows.add(row)
            }
        }
        return excessCount * 10 <= size.width * size.height * min(form.colors, 3) * Self.excessMaxInTen
    }

    private func read(_ block: Block, top: Int, rows: Int) -> Bool {
        let byteCount = tmsize_t(block.rowBytes * bandRows)
        let sample = UInt16(block.sample)
        if isTiled {
            let tile = TIFFComputeTile(tiff, UInt32(block.left), UInt32(top), 0, sample)
            return TIFFReadEncodedTile(tiff, tile, block.bytes, byteCount) == byteCount
        }
        guard isSeparate else { return TIFFReadScanline(tiff, block.bytes, UInt32(top), 0) == 1 }
        let strip = TIFFComputeStrip(tiff, UInt32(top), sample)
        return TIFFReadEncodedStrip(tiff, strip, block.bytes, byteCount) >= block.rowBytes * rows
    }

    // MARK: Numbers

    /// Writes the samples of a block's row to `values`: pixel by pixel, or of one plane.
    private func unpack(_ block: Block, row: Int) {
        let source = UnsafeRawPointer(block.bytes + row * block.rowBytes)
        let samples = isSeparate ? 1 : form.samples
        let target = values + (isSeparate ? block.sample * size.width + block.left : block.left * samples)
        let count = block.width * samples
        switch form.number {
        case .floating: Self.unpackFloats(source, bits: form.bits, count, target)
        case .unsigned, .signed:
            // In two's complement, the sign of the highest bit moves numbers by half of their range.
            let sign: UInt32 = form.number == .signed ? 1 << UInt32(form.bits - 1) : 0
            let scale = 1 / (pow(2, Float(form.bits)) - 1)
            Self.unpackIntegers(source, bits: form.bits, count) { target[$0] = Float($1 ^ sign) * scale }
        }
    }

    private static func unpackFloats(
        _ source: UnsafeRawPointer, bits: Int, _ count: Int, _ target: UnsafeMutablePointer<Float>
    ) {
        func number<T>(_ index: Int, _: T.Type) -> T {
            source.loadUnaligned(fromByteOffset: index * MemoryLayout<T>.size, as: T.self)
        }
        for index in 0..<count {
            target[index] =
                switch bits {
                case 16: Float(Float16(bitPattern: number(index, UInt16.self)))
                case 32: Float(bitPattern: number(index, UInt32.self))
                default: Float(Double(bitPattern: number(index, UInt64.self)))
                }
        }
    }

    /// libtiff gives numbers of whole bytes in the machine's order. Other numbers begin with their highest bit.
    @inline(__always)
    private static func unpackIntegers(
        _ source: UnsafeRawPointer, bits: Int, _ count: Int, _ body: (Int, UInt32) -> Void
    ) {
        func byte(_ index: Int) -> UInt32 { UInt32(source.load(fromByteOffset: index, as: UInt8.self)) }
        switch bits {
        case 8:
            for index in 0..<count { body(index, byte(index)) }
        case 16:
            for index in 0..<count {
                body(index, UInt32(source.loadUnaligned(fromByteOffset: index * 2, as: UInt16.self)))
            }
        case 24:
            for index in 0..<count {
                body(index, byte(index * 3) | byte(index * 3 + 1) << 8 | byte(index * 3 + 2) << 16)
            }
        case 32:
            for index in 0..<count {
                body(index, source.loadUnaligned(fromByteOffset: index * 4, as: UInt32.self))
            }
        default:
            var (held, heldBits, next) = (UInt64(0), 0, 0)
            for index in 0..<count {
                while heldBits < bits {
                    held = held << 8 | UInt64(byte(next))
                    heldBits += 8
                    next += 1
                }
                heldBits -= bits
                body(index, UInt32(truncatingIfNeeded: held >> UInt64(heldBits)) & (1 << UInt32(bits) - 1))
            }
        }
    }

    /// Writes the row in `values` as red, green, blue and opacity, multiplied.
    private func convert(into row: UnsafeMutablePointer<UInt8>) {
        let (across, apart) = isSeparate ? (1, size.width) : (form.samples, 1)
        for x in 0..<size.width {
            let pixel = values + x * across
            let alpha = form.alpha.map { Self.shown(pixel[$0 * apart]) }
            let opacity = form.isMultiplied ? 1 : alpha ?? 1
            // By the plain formula, as inks of JPEGs are.
            let light = form.colors == 4 ? 1 - Self.shown(pixel[3 * apart]) : 1
            for channel in 0..<3 {
                let stored = pixel[form.colors == 1 ? 0 : channel * apart]
                if !(stored <= 1), channel < form.colors { excessCount += 1 }
                let value = Self.shown(stored)
                let shown = form.isInverted || form.colors == 4 ? 1 - value : value
                row[x * 4 + channel] = Self.code(shown * light * opacity)
            }
            row[x * 4 + 3] = Self.code(alpha ?? 1)
            // No colour can have more light than its opacity lets through.
            if let alpha, form.isMultiplied {
                for channel in x * 4..<x * 4 + 3 { row[channel] = min(row[channel], Self.code(alpha)) }
            }
        }
    }

    /// From 0 to 1; 0 for not-a-number.
    private static func shown(_ value: Float) -> Float { value > 0 ? min(value, 1) : 0 }

    private static func code(_ value: Float) -> UInt8 { UInt8(value * 255 + 0.5) }
}
