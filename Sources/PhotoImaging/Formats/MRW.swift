/// Minolta's raw format: blocks of a name and a length, of which one has EXIF. Its picture is not a whole JPEG.
///
/// Source: Dalibor Jelínek, "Minolta raw (MRW) file format"; exiftool's `MinoltaRaw.pm`.
enum MRWReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("\0MRM") && region.u32(8).map { $0 >> 24 == 0 } == true ? .mrw : nil
    }

    /// Cameras write five or six.
    private static let blocksMax = 16

    static func read(_ region: Region, into facts: inout MediaFacts) {
        guard let length = region.u32(4) else { return }
        let blocks = region.clipped(8, UInt64(length))
        var offset: UInt64 = 0
        for _ in 0..<blocksMax {
            guard let name = blocks.u32(offset), let length = blocks.u32(offset + 4).map(UInt64.init) else {
                return
            }
            let body = blocks.clipped(offset + 8, length)
            switch name {
            case fourCC("\0PRD"):
                facts.setSize(body.u16(14).map(UInt32.init), body.u16(12).map(UInt32.init))
            case fourCC("\0TTW"): _ = EXIFScanner.scan(body, into: &facts)
            default: break
            }
            offset += 8 + length
        }
    }
}
