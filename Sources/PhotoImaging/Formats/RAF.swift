/// Fujifilm's raw format: a header in big-endian order that points to a whole JPEG with EXIF, often a smaller picture,
/// and to a directory with the raw picture's size.
///
/// Source: libopenraw, "Fujifilm RAF file format"; exiftool's `FujiFilm.pm`.
enum RAFReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("FUJIFILMCCD-RAW ") ? .raf : nil
    }

    private static let entriesMax: UInt32 = 256

    static func read(_ region: Region, into facts: inout MediaFacts) {
        readSize(region, into: &facts)
        guard let offset = region.u32(84).map(UInt64.init), let length = region.u32(88).map(UInt64.init)
        else {
            return
        }
        let jpeg = region.clipped(offset, length)
        guard JPEGReader.identify(jpeg) != nil else { return }
        JPEGReader.read(jpeg, into: &facts)
        facts.addPreview(region, offset, jpeg.count)
    }

    /// Entries of a tag, a length and a value; 0x0111 is the cropped raw picture's height and width.
    private static func readSize(_ region: Region, into facts: inout MediaFacts) {
        guard let start = region.u32(92).map(UInt64.init), let length = region.u32(96).map(UInt64.init),
            start > 0
        else { return }
        let directory = region.clipped(start, length)
        guard let count = directory.u32(0), count <= entriesMax else { return }
        var offset: UInt64 = 4
        for _ in 0..<count {
            guard let tag = directory.u16(offset), let length = directory.u16(offset + 2) else { return }
            if tag == 0x0111, length == 4 {
                let height = directory.u16(offset + 4).map(UInt32.init)
                facts.setSize(directory.u16(offset + 6).map(UInt32.init), height)
                return
            }
            offset += 4 + UInt64(length)
        }
    }
}
