/// WebP (RFC 9649): RIFF chunks `EXIF` and `XMP `, and the size from `VP8X`, `VP8 ` or `VP8L`.
enum WebPReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("RIFF") && region.matches("WEBP", at: 8) ? .webp : nil
    }

    private static let chunksMax = 256
    private static let paddingBytesMax: UInt64 = 64 * 1024

    static func read(_ region: Region, into facts: inout MediaFacts) {
        var offset: UInt64 = 12
        for _ in 0..<chunksMax {
            guard let type = region.u32(offset), let length = region.u32(offset + 4, .little).map(UInt64.init)
            else { return }
            if type == 0, length == 0 {
                guard let next = behindZeros(region, offset) else { return }
                offset = next
                continue
            }
            let body = region.clipped(offset + 8, length)
            switch type {
            case fourCC("VP8X"): facts.setSize(u24(body, 4).map { $0 + 1 }, u24(body, 7).map { $0 + 1 })
            case fourCC("VP8 "): readLossy(body, into: &facts)
            case fourCC("VP8L"): readLossless(body, into: &facts)
            case fourCC("EXIF"):
                _ = EXIFScanner.scan(body.withoutEXIFMark, into: &facts)
            case fourCC("XMP "): XMPScanner.scan(body, into: &facts)
            default: break
            }
            offset += 8 + (length + 1) & ~1
        }
    }

    /// The offset behind the padding that some programs leave between chunks; chunks begin at even offsets.
    private static func behindZeros(_ region: Region, _ offset: UInt64) -> UInt64? {
        region.withView(offset, paddingBytesMax) { view in
            (0..<view.count).first { view[$0] != 0 }.map { offset + UInt64($0) & ~1 }
        }
    }

    private static func u24(_ region: Region, _ offset: UInt64) -> UInt32? {
        guard let low = region.u16(offset, .little), let high = region.u8(offset + 2) else { return nil }
        return UInt32(high) << 16 | UInt32(low)
    }

    /// A key frame's header: RFC 6386, 9.1.
    private static func readLossy(_ body: Region, into facts: inout MediaFacts) {
        guard let start = u24(body, 3), start == 0x2A_019D, let width = body.u16(6, .little),
            let height = body.u16(8, .little)
        else { return }
        facts.setSize(UInt32(width & 0x3FFF), UInt32(height & 0x3FFF))
    }

    private static func readLossless(_ body: Region, into facts: inout MediaFacts) {
        guard body.u8(0) == 0x2F, let bits = body.u32(1, .little) else { return }
        facts.setSize(bits & 0x3FFF + 1, bits >> 14 & 0x3FFF + 1)
    }
}
