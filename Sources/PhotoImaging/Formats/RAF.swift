/// Fujifilm's raw format: a header in big-endian order that points to a whole JPEG with EXIF.
///
/// Source: libopenraw, "Fujifilm RAF file format".
enum RAFReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("FUJIFILMCCD-RAW ") ? .raf : nil
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        guard let offset = region.u32(84).map(UInt64.init), let length = region.u32(88).map(UInt64.init)
        else {
            return
        }
        let jpeg = region.clipped(offset, length)
        guard JPEGReader.identify(jpeg) != nil else { return }
        JPEGReader.read(jpeg, into: &facts)
        facts.addPreview(region, offset, jpeg.count)
    }
}
