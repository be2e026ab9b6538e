/// GIF89a, with XMP in an application extension (XMP specification part 3, 1.1.2).
enum GIFReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("GIF87a") || region.matches("GIF89a") ? .gif : nil
    }

    private static let blocksMax = 4096

    static func read(_ region: Region, into facts: inout MediaFacts) {
        facts.setSize(region.u16(6, .little).map(UInt32.init), region.u16(8, .little).map(UInt32.init))
        guard let flags = region.u8(10) else { return }
        var offset: UInt64 = 13 + colourTableBytes(flags)
        var blocksLeft = blocksMax
        while blocksLeft > 0 {
            blocksLeft -= 1
            switch region.u8(offset) {
            case 0x21:
                if region.u8(offset + 1) == 0xFF, region.matches("XMP DataXMP", at: offset + 3) {
                    // The packet is not split into sub-blocks, so the scanner gets everything from here on.
                    XMPScanner.scan(region.from(offset + 14), into: &facts)
                    return
                }
                offset += 2
            case 0x2C:
                guard let flags = region.u8(offset + 9) else { return }
                offset += 11 + colourTableBytes(flags)
            default: return
            }
            while let length = region.u8(offset), length > 0, blocksLeft > 0 {
                offset += 1 + UInt64(length)
                blocksLeft -= 1
            }
            offset += 1
        }
    }

    private static func colourTableBytes(_ flags: UInt8) -> UInt64 {
        flags & 0x80 == 0 ? 0 : 3 << (UInt64(flags & 7) + 1)
    }
}
