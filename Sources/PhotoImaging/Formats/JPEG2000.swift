/// JPEG 2000 in boxes, or the codestream alone (ISO/IEC 15444-1, annexes I and A). EXIF, XMP, IPTC are `uuid` boxes.
enum JPEG2000Reader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        Box.isSignature("jP  ", at: region) || isCodestream(region) ? .jp2 : nil
    }

    /// Two markers, of which the second one's length is that of the size of 1 to 16,384 components.
    private static func isCodestream(_ region: Region) -> Bool {
        region.u32(0) == 0xFF4F_FF51 && (region.u16(4) ?? 0) >= 41
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        guard Box.isSignature("jP  ", at: region) else {
            readSize(region, into: &facts)
            return
        }
        Box.forEach(in: region) { box in
            switch box.type {
            case fourCC("jp2h"):
                if let header = Box.first("ihdr", in: box.body) {
                    facts.setSize(header.u32(4), header.u32(0))
                }
            case fourCC("jp2c"): readSize(box.body, into: &facts)
            default:
                if let xmp = box.xmp { XMPScanner.scan(xmp, into: &facts) }
                if let iptc = box.contents(ofUUID: 0x33C7_A4D2_B81D_4723, 0xA0BA_F1A3_E097_AD38) {
                    IPTCScanner.scan(iptc, into: &facts)
                }
                // "JpgTiffExif->JP2"
                if let exif = box.contents(ofUUID: 0x4A70_6754_6966_6645, 0x7869_662D_3E4A_5032) {
                    _ = EXIFScanner.scan(exif.withoutEXIFMark, into: &facts)
                }
            }
            return true
        }
    }

    /// The size of the grid, less the offset of the picture in it.
    private static func readSize(_ stream: Region, into facts: inout MediaFacts) {
        guard isCodestream(stream), let right = stream.u32(8), let bottom = stream.u32(12),
            let left = stream.u32(16), let top = stream.u32(20), left < right, top < bottom
        else { return }
        facts.setSize(right - left, bottom - top)
    }
}
