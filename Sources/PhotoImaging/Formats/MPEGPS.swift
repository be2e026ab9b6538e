/// MPEG program streams (ISO/IEC 13818-1, 2.5), the video of early cameras and DVDs. They carry no date; the size is
/// in the first sequence header (ISO/IEC 13818-2, 6.2.2.1).
enum MPEGPSReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        // A pack header: MPEG-2 begins its clock with bits 01, MPEG-1 with 0010.
        guard region.u32(0) == 0x0000_01BA, let clock = region.u8(4) else { return nil }
        return clock >> 6 == 1 || clock >> 4 == 2 ? .mpegPS : nil
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        region.lend(0, UInt64(ReadLimits.headBytes)) { view in
            var index = 0
            while let found = view.firstIndex(of: 0xB3, from: index, end: view.count) {
                index = found + 1
                guard found >= 3, view[found - 1] == 1, view[found - 2] == 0, view[found - 3] == 0 else {
                    continue
                }
                let sizes =
                    UInt32(view[found + 1]) << 16 | UInt32(view[found + 2]) << 8 | UInt32(view[found + 3])
                facts.setSize(sizes >> 12, sizes & 0xFFF)
                return
            }
        }
    }
}
