/// Windows bitmaps. Their only metadata is their size.
enum BMPReader: FormatReader {
    /// The lengths of the second header since OS/2.
    private static let headerBytes: Set<UInt32> = [12, 40, 52, 56, 64, 108, 124]

    static func identify(_ region: Region) -> MediaType? {
        guard region.matches("BM"), region.u32(6) == 0, let length = region.u32(14, .little),
            headerBytes.contains(length)
        else { return nil }
        return .bmp
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        if region.u32(14, .little) == 12 {
            facts.setSize(region.u16(18, .little).map(UInt32.init), region.u16(20, .little).map(UInt32.init))
            return
        }
        // A negative height means that the rows run from the top.
        let width = region.u32(18, .little).map { Int32(bitPattern: $0).magnitude }
        let height = region.u32(22, .little).map { Int32(bitPattern: $0).magnitude }
        facts.setSize(width, height)
    }
}
