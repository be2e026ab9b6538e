/// The colours of a coded picture by code points of ITU-T H.273, as its bitstream tells them: for HEIF files without a
/// box `colr` of code points. Where the bitstream tells none, they are 2, unspecified.
package struct CodedColors: Hashable, Sendable {
    package var primaries = 2
    package var transfer = 2
    package var matrix = 2
    package var isFullRange = false
    /// As H.265 and libheif number it: 0 for grey, 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
    package var chroma = 1

    /// No header that tells colours is longer.
    private static let headerBytesMax: UInt64 = 1024

    // MARK: AV1

    /// From a sequence header among open bitstream units (AV1 Bitstream & Decoding Process Specification, 5.3 to 5.5).
    init?(av1 units: Region) {
        var offset: UInt64 = 0
        // Delimiters and padding may stand before it.
        for _ in 0..<8 {
            guard let header = units.u8(offset), header & 0x80 == 0 else { return nil }
            offset += header & 4 != 0 ? 2 : 1
            var length = units.count - min(offset, units.count)
            if header & 2 != 0 {
                guard let (size, bytes) = Self.leb128(units, offset) else { return nil }
                (length, offset) = (size, offset + bytes)
            }
            if header >> 3 & 15 == 1 {
                let found = units.withView(offset, min(length, Self.headerBytesMax)) { view in
                    Self(sequenceHeader: view.array)
                }
                guard let found else { return nil }
                self = found
                return
            }
            offset += length
        }
        return nil
    }

    private static func leb128(_ region: Region, _ offset: UInt64) -> (value: UInt64, byteCount: UInt64)? {
        var value: UInt64 = 0
        for index in 0..<4 as Range<UInt64> {
            guard let byte = region.u8(offset + index) else { return nil }
            value |= UInt64(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 { return (value, index + 1) }
        }
        return nil
    }

    private init?(sequenceHeader bytes: [UInt8]) {
        var bits = HeaderBits(bytes)
        let profile = bits.number(3)
        bits.skip(1)
        let isReduced = bits.flag()
        if isReduced { bits.skip(5) } else { Self.skipOperatingPoints(&bits) }
        let (widthBits, heightBits) = (bits.number(4) + 1, bits.number(4) + 1)
        bits.skip(widthBits + heightBits)
        if !isReduced, bits.flag() { bits.skip(7) }
        bits.skip(3)
        if !isReduced { Self.skipTools(&bits) }
        bits.skip(3)
        let isDeep = bits.flag()
        let isTwelve = profile == 2 && isDeep && bits.flag()
        let isGray = profile != 1 && bits.flag()
        if bits.flag() { readCodePoints(&bits) }
        let isRGB = !isGray && (primaries, transfer, matrix) == (1, 13, 0)
        isFullRange = isRGB || bits.flag()
        if isGray {
            chroma = 0
        } else if isRGB || profile == 1 {
            chroma = 3
        } else if profile == 2 {
            let isHalved = !isTwelve || bits.flag()
            chroma = !isHalved ? 3 : isTwelve && bits.flag() ? 1 : 2
        }
        if bits.isExhausted { return nil }
    }

    private mutating func readCodePoints(_ bits: inout HeaderBits) {
        (primaries, transfer, matrix) = (bits.number(8), bits.number(8), bits.number(8))
    }

    private static func skipOperatingPoints(_ bits: inout HeaderBits) {
        var delayBits: Int?
        if bits.flag() {
            bits.skip(64)
            if bits.flag() { _ = bits.exponential() }
            if bits.flag() {
                delayBits = bits.number(5) + 1
                bits.skip(42)
            }
        }
        let hasDisplayDelay = bits.flag()
        for _ in 0...bits.number(5) {
            bits.skip(12)
            if bits.number(5) > 7 { bits.skip(1) }
            if let delayBits, bits.flag() { bits.skip(2 * delayBits + 1) }
            if hasDisplayDelay, bits.flag() { bits.skip(4) }
        }
    }

    private static func skipTools(_ bits: inout HeaderBits) {
        bits.skip(4)
        let hasOrder = bits.flag()
        if hasOrder { bits.skip(2) }
        let mayHaveScreenContent = bits.flag() || bits.flag()
        if mayHaveScreenContent, !bits.flag() { bits.skip(1) }
        if hasOrder { bits.skip(3) }
    }

    // MARK: HEVC

    /// From the first sequence parameter set of a `hvcC` box (ISO/IEC 14496-15, 8.3.3; ITU-T H.265, 7.3.2.2 and E.2.1).
    init?(hevc configuration: Region) {
        guard let arrays = configuration.u8(22) else { return nil }
        var offset: UInt64 = 23
        for _ in 0..<arrays {
            guard let type = configuration.u8(offset), let count = configuration.u16(offset + 1) else {
                return nil
            }
            offset += 3
            for _ in 0..<min(count, 64) {
                guard let length = configuration.u16(offset).map(UInt64.init) else { return nil }
                offset += 2
                // The first layer's.
                if type & 0x3F == 33, let header = configuration.u16(offset), header & 0x1F8 == 0 {
                    let found = configuration.withView(offset + 2, min(length, Self.headerBytesMax)) { view in
                        Self(parameterSet: Self.withoutEmulationPrevention(view.array))
                    }
                    guard let found else { return nil }
                    self = found
                    return
                }
                offset += length
            }
        }
        return nil
    }

    /// A 3 after two zeros is no part of the contents.
    private static func withoutEmulationPrevention(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var zeros = 0
        for byte in bytes {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            result.append(byte)
        }
        return result
    }

    private init?(parameterSet bytes: [UInt8]) {
        var bits = HeaderBits(bytes)
        bits.skip(4)
        let lastLayer = bits.number(3)
        bits.skip(1)
        Self.skipProfile(&bits, lastLayer: lastLayer)
        _ = bits.exponential()
        chroma = bits.exponential()
        guard chroma <= 3 else { return nil }
        if chroma == 3 { bits.skip(1) }
        bits.skipExponentials(2)
        if bits.flag() { bits.skipExponentials(4) }
        bits.skipExponentials(2)
        let orderBits = bits.exponential() + 4
        bits.skipExponentials(3 * (bits.flag() ? lastLayer + 1 : 1))
        bits.skipExponentials(6)
        if bits.flag(), bits.flag() { Self.skipScalingLists(&bits) }
        bits.skip(2)
        if bits.flag() {
            bits.skip(8)
            bits.skipExponentials(2)
            bits.skip(1)
        }
        guard Self.skipReferences(&bits, orderBits: orderBits) else { return nil }
        bits.skip(2)
        guard bits.flag(), readUsability(&bits), !bits.isExhausted else { return nil }
    }

    private static func skipProfile(_ bits: inout HeaderBits, lastLayer: Int) {
        bits.skip(96)
        guard lastLayer > 0 else { return }
        var skipped = 0
        for _ in 0..<lastLayer {
            if bits.flag() { skipped += 88 }
            if bits.flag() { skipped += 8 }
        }
        bits.skip(2 * (8 - lastLayer) + skipped)
    }

    private static func skipScalingLists(_ bits: inout HeaderBits) {
        for size in 0..<4 {
            for _ in 0..<(size == 3 ? 2 : 6) {
                if !bits.flag() {
                    _ = bits.exponential()
                } else {
                    bits.skipExponentials(min(64, 1 << (4 + 2 * size)) + (size > 1 ? 1 : 0))
                }
            }
        }
    }

    /// False for sets that are told by their difference from others, as those of sequences are.
    private static func skipReferences(_ bits: inout HeaderBits, orderBits: Int) -> Bool {
        let sets = bits.exponential()
        guard sets <= 64, orderBits <= 16 else { return false }
        for index in 0..<sets {
            if index > 0, bits.flag() { return false }
            let pictures = bits.exponential() + bits.exponential()
            guard pictures <= 32 else { return false }
            for _ in 0..<pictures {
                _ = bits.exponential()
                bits.skip(1)
            }
        }
        if bits.flag() {
            let pictures = bits.exponential()
            guard pictures <= 32 else { return false }
            bits.skip(pictures * (orderBits + 1))
        }
        return true
    }

    /// The beginning of the video usability information. False if that does not tell colours: heif-enc of Debian 12 may
    /// write JPEG's range and not say so.
    private mutating func readUsability(_ bits: inout HeaderBits) -> Bool {
        if bits.flag(), bits.number(8) == 255 { bits.skip(32) }
        if bits.flag() { bits.skip(1) }
        guard bits.flag() else { return false }
        bits.skip(3)
        isFullRange = bits.flag()
        if bits.flag() { readCodePoints(&bits) }
        return true
    }
}

/// The bits of a header, the highest of each byte first. After the end there are zeros.
private struct HeaderBits {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Whether more bits were read than there are.
    var isExhausted: Bool { index > bytes.count * 8 }

    mutating func skip(_ count: Int) { index += count }

    mutating func flag() -> Bool {
        defer { index += 1 }
        guard index < bytes.count * 8 else { return false }
        return bytes[index / 8] >> (7 - index % 8) & 1 == 1
    }

    /// An unsigned number of at most 31 bits.
    mutating func number(_ count: Int) -> Int {
        var value = 0
        for _ in 0..<count { value = value << 1 | (flag() ? 1 : 0) }
        return value
    }

    /// A number in the code of Golomb: as many zeros as bits follow a one.
    mutating func exponential() -> Int {
        var zeros = 0
        while !isExhausted, zeros < 32, !flag() { zeros += 1 }
        return zeros < 32 ? (1 << zeros) - 1 + number(zeros) : Int(UInt32.max)
    }

    mutating func skipExponentials(_ count: Int) {
        for _ in 0..<count { _ = exponential() }
    }
}
