/// MPEG transport streams, as AVCHD camcorders write them, with or without a time stamp before each packet.
///
/// The date is in the first picture's supplemental enhancement information: "MDPM" entries of Sony and Panasonic, in
/// binary-coded decimals. Source: exiftool's `H264.pm`.
enum MPEGTSReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        for (start, step) in [(UInt64(0), UInt64(188)), (4, 192)] {
            let packets = (0..<5).allSatisfy { region.u8(start + step * $0) == 0x47 }
            if packets { return .mpegTS }
        }
        return nil
    }

    private static let entriesMax = 64

    static func read(_ region: Region, into facts: inout MediaFacts) {
        let parsed = region.withView { view -> ParsedDate? in
            var index = 0
            while let found = view.firstIndex(of: UInt8(ascii: "M"), from: index, end: view.count) {
                index = found + 1
                if view.matches("MDPM", at: found), let date = date(view, from: found + 4) { return date }
            }
            return nil
        }
        facts.add(.dateTimeOriginal, parsed)
    }

    private static func date(_ view: ByteView, from start: Int) -> ParsedDate? {
        var bytes = EmulationPrevention(view, start)
        var day: CivilDay?
        var yearAndMonth: (year: Int, month: Int)?
        for _ in 0..<min(Int(bytes.next()), entriesMax) {
            let tag = bytes.next()
            let value = (bytes.next(), bytes.next(), bytes.next(), bytes.next())
            if tag == 0x18 {
                yearAndMonth = (decimal(value.1) * 100 + decimal(value.2), decimal(value.3))
            } else if tag == 0x19, let yearAndMonth {
                day = CivilDay(year: yearAndMonth.year, month: yearAndMonth.month, day: decimal(value.0))
                let time = day.flatMap {
                    CivilTime($0, hour: decimal(value.1), minute: decimal(value.2), second: decimal(value.3))
                }
                return time.map { ParsedDate(time: $0) }
            }
        }
        return nil
    }

    private static func decimal(_ byte: UInt8) -> Int {
        Int(byte >> 4) * 10 + Int(byte & 15)
    }
}

/// Bytes of a NAL unit without the 3 that follows each pair of zeros: ITU-T H.264, 7.4.1.
private struct EmulationPrevention {
    private let view: ByteView
    private var index: Int
    private var zeros = 0

    init(_ view: ByteView, _ index: Int) {
        self.view = view
        self.index = index
    }

    mutating func next() -> UInt8 {
        if zeros >= 2, view[index] == 3 {
            index += 1
            zeros = 0
        }
        let byte = view[index]
        index += 1
        zeros = byte == 0 ? zeros + 1 : 0
        return byte
    }
}
