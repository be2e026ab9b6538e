/// JPEG XL: ISO/IEC 18181-1 (codestream) and 18181-2 (boxes `Exif` and `xml `, also compressed in `brob`).
enum JXLReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        Box.isSignature("JXL ", at: region) || (region.u16(0) == 0xFF0A && region.count >= 12) ? .jxl : nil
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        guard Box.isSignature("JXL ", at: region) else {
            readSize(region, into: &facts)
            return
        }
        var packedLeft = packedMax
        Box.forEach(in: region) { box in
            switch box.type {
            case fourCC("brob") where packedLeft > 0:
                if readPacked(box.body, into: &facts) { packedLeft -= 1 }
            case fourCC("Exif"): HEIFMeta.readEXIF(box.body, into: &facts)
            case fourCC("xml "): XMPScanner.scan(box.body, into: &facts)
            case fourCC("jxlc"): readSize(box.body, into: &facts)
            case fourCC("jxlp"): readSize(box.body.from(4), into: &facts)
            default: break
            }
            return true
        }
    }

    /// Maximum number of compressed boxes that are read, as they may decompress to much; `cjxl` writes two.
    private static let packedMax = 4

    /// Reads a compressed box: the type of its contents, then a Brotli stream. Returns whether that type is read.
    private static func readPacked(_ body: Region, into facts: inout MediaFacts) -> Bool {
        guard let type = body.u32(0), type == fourCC("Exif") || type == fourCC("xml ") else { return false }
        guard let bytes = body.withView(4, .max, { Brotli.unpack($0) }) else { return true }
        let contents = Region(unpacked: bytes)
        if type == fourCC("Exif") {
            HEIFMeta.readEXIF(contents, into: &facts)
        } else {
            XMPScanner.scan(contents, into: &facts)
        }
        return true
    }

    /// The size header behind the codestream's two-byte signature: bits, the lowest first.
    private static func readSize(_ stream: Region, into facts: inout MediaFacts) {
        guard stream.u16(0) == 0xFF0A, let low = stream.u64(2, .little) else { return }
        var bits = JXLBits(low)
        let isSmall = bits.take(1) == 1
        let height = isSmall ? (bits.take(5) + 1) * 8 : bits.size()
        var width = height
        switch bits.take(3) {
        case 0: width = isSmall ? (bits.take(5) + 1) * 8 : bits.size()
        case 2: width = height * 12 / 10
        case 3: width = height * 4 / 3
        case 4: width = height * 3 / 2
        case 5: width = height * 16 / 9
        case 6: width = height * 5 / 4
        case 7: width = height * 2
        default: break
        }
        facts.setSize(UInt32(clamping: width), UInt32(clamping: height))
    }
}

/// At most 64 bits. Two sizes of 30 bits with their selectors just exceed that: such a width is truncated.
private struct JXLBits {
    private var bits: UInt64

    init(_ bits: UInt64) {
        self.bits = bits
    }

    mutating func take(_ count: UInt64) -> UInt64 {
        let value = bits & ((1 << count) - 1)
        bits >>= count
        return value
    }

    mutating func size() -> UInt64 {
        switch take(2) {
        case 0: take(9) + 1
        case 1: take(13) + 1
        case 2: take(18) + 1
        default: take(30) + 1
        }
    }
}
