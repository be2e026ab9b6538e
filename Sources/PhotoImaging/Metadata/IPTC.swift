/// The date created of IPTC's Information Interchange Model 4.2 (datasets 2:55, `CCYYMMDD`, and 2:60,
/// `HHMMSS±HHMM`), as Photoshop's image resources or a TIFF tag carry it.
enum IPTCScanner {
    /// Maximum number of datasets or resources that are read.
    private static let recordsMax = 512

    /// Photoshop's image resources: `8BIM`, number, padded name, length, padded data. 0x0404 is IPTC, 0x0422
    /// EXIF, 0x0424 XMP, 0x040C a thumbnail behind a header of 28 bytes.
    static func scanPhotoshop(_ region: Region, into facts: inout MediaFacts) {
        var offset: UInt64 = 0
        for _ in 0..<recordsMax {
            guard region.matches("8BIM", at: offset), let number = region.u16(offset + 4),
                let nameLength = region.u8(offset + 6)
            else { return }
            let data = offset + 6 + (UInt64(nameLength) + 2) & ~1
            guard let length = region.u32(data).map(UInt64.init) else { return }
            switch number {
            case 0x040C: facts.addPreview(region, data + 32, length > 28 ? length - 28 : 0)
            case 0x0422: _ = EXIFScanner.scan(region.clipped(data + 4, length), into: &facts)
            case 0x0404: scan(region.clipped(data + 4, length), into: &facts)
            case 0x0424: XMPScanner.scan(region.clipped(data + 4, length), into: &facts)
            default: break
            }
            offset = data + 4 + (length + 1) & ~1
        }
    }

    /// Datasets: 0x1C, record, number, length, data.
    static func scan(_ region: Region, into facts: inout MediaFacts) {
        var date: [UInt8] = []
        var time: [UInt8] = []
        var offset: UInt64 = 0
        for _ in 0..<recordsMax {
            guard region.u8(offset) == 0x1C, let number = region.u16(offset + 1),
                let length = region.u16(offset + 3).map(UInt64.init), length < 0x8000
            else { break }
            if number == 0x0237, date.isEmpty { date = bytes(region, offset + 5, length) }
            if number == 0x023C, time.isEmpty { time = bytes(region, offset + 5, length) }
            offset += 5 + length
        }
        guard date.count >= 8 else { return }
        facts.add(.iptc, DateText.parse(date + [0x20] + time) ?? DateText.parse(date))
    }

    private static func bytes(_ region: Region, _ offset: UInt64, _ length: UInt64) -> [UInt8] {
        region.withView(offset, min(length, 32)) { $0.array } ?? []
    }
}
