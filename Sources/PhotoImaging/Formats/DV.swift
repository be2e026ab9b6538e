/// Raw DV, as programs copy it from the tapes of camcorders (IEC 61834-2): frames of blocks of 80 bytes. The camera's
/// wall clock is in the packs of the first frame. Source for the packs: exiftool's `DV.pm`.
enum DVReader: FormatReader {
    private static let blockBytes: UInt64 = 80
    /// Blocks of a frame's first sequence before its sound and pictures: a header, two of subcode, three of auxiliary
    /// data.
    private static let headBlocks: UInt64 = 6

    static func identify(_ region: Region) -> MediaType? {
        // A header and the first subcode: types 0 and 1 in the highest three bits, the sequence's number 0.
        guard let header = region.u32(0), header & 0xFFFF_FF7F == 0x1F07_003F,
            let subcode = region.u32(blockBytes), subcode & 0xE0F0_FF00 == 0x2000_0000
        else { return nil }
        return .dv
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        let isPAL = region.u8(3).map { $0 & 0x80 != 0 } ?? false
        facts.setSize(720, isPAL ? 576 : 480)
        var date: CivilDay?
        var time: (hour: Int, minute: Int, second: Int)?
        for block in 1..<headBlocks {
            let isSubcode = block < 3
            for index in 0..<(isSubcode ? 6 : 15) as Range<UInt64> {
                // A subcode's packs follow three bytes of their own.
                let offset = block * blockBytes + 3 + (isSubcode ? index * 8 + 3 : index * 5)
                guard let type = region.u8(offset), let value = region.u32(offset + 1) else { return }
                if type == 0x62 { date = date ?? day(value) }
                if type == 0x63 { time = time ?? clock(value) }
            }
        }
        guard let date else { return }
        let found =
            time.flatMap { CivilTime(date, hour: $0.hour, minute: $0.minute, second: $0.second) }
            ?? CivilTime(date)
        facts.add(.dateTimeOriginal, found.map { ParsedDate(time: $0) })
    }

    /// Two decimal digits in a byte, of which `mask` selects the bits; nil if they are none.
    private static func digits(_ value: UInt32, shift: UInt32, mask: UInt32) -> Int? {
        let byte = value >> shift & mask
        guard byte & 15 < 10, byte >> 4 < 10 else { return nil }
        return Int(byte >> 4 * 10 + byte & 15)
    }

    /// The first tapes were sold in 1995.
    private static func day(_ pack: UInt32) -> CivilDay? {
        guard let day = digits(pack, shift: 16, mask: 0x3F), let month = digits(pack, shift: 8, mask: 0x1F),
            let year = digits(pack, shift: 0, mask: 0xFF)
        else { return nil }
        return CivilDay(year: year + (year < 75 ? 2000 : 1900), month: month, day: day)
    }

    private static func clock(_ pack: UInt32) -> (hour: Int, minute: Int, second: Int)? {
        guard let second = digits(pack, shift: 16, mask: 0x7F),
            let minute = digits(pack, shift: 8, mask: 0x7F),
            let hour = digits(pack, shift: 0, mask: 0x3F)
        else { return nil }
        return (hour, minute, second)
    }
}
