/// Matroska and WebM (RFC 9559): DateUTC of the segment's information, and the video track's size and transfer
/// function.
enum MatroskaReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        guard region.u32(0) == 0x1A45_DFA3 else { return nil }
        let isVideo = region.withView(0, 128) { view in
            (4..<view.count).contains { view.matches("matroska", at: $0) || view.matches("webm", at: $0) }
        }
        return isVideo == true ? .matroska : nil
    }

    private static let elementsMax = 64
    private static let depthMax = 6
    /// Seconds from 1970 to 2001, Matroska's epoch.
    private static let epochSeconds: Int64 = 978_307_200

    static func read(_ region: Region, into facts: inout MediaFacts) {
        readElements(region, depthLeft: depthMax, into: &facts)
    }

    private static func readElements(_ region: Region, depthLeft: Int, into facts: inout MediaFacts) {
        guard depthLeft > 0 else { return }
        var offset: UInt64 = 0
        for _ in 0..<elementsMax {
            guard let id = number(region, &offset, keepsMarker: true),
                let length = number(region, &offset, keepsMarker: false)
            else { return }
            let body = region.clipped(offset, length)
            switch id {
            // Segment, Info, Tracks, TrackEntry, Video, Colour.
            case 0x1853_8067, 0x1549_A966, 0x1654_AE6B, 0xAE, 0xE0, 0x55B0:
                readElements(body, depthLeft: depthLeft - 1, into: &facts)
            case 0x4461: readDate(body, &facts)
            case 0xB0: if facts.width == 0 { facts.width = integer(body) }
            case 0xBA: if facts.height == 0 { facts.height = integer(body) }
            case 0x55BA: facts.addTransfer(integer(body))
            // The first cluster: pictures from here on.
            case 0x1F43_B675: return
            default: break
            }
            guard length < region.count - min(offset, region.count) else { return }
            offset += length
        }
    }

    private static func readDate(_ body: Region, _ facts: inout MediaFacts) {
        guard let nanoseconds = body.u64(0).map(Int64.init(bitPattern:)) else { return }
        let seconds = nanoseconds / 1_000_000_000 + epochSeconds
        facts.add(
            DateCandidate(
                source: .quickTimeMovieHeader, time: CivilTime(secondsSince1970: seconds), isUTC: true))
    }

    private static func integer(_ body: Region) -> Int {
        switch body.count {
        case 1: Int(body.u8(0) ?? 0)
        case 2: Int(body.u16(0) ?? 0)
        case 3: Int(body.u16(0) ?? 0) << 8 | Int(body.u8(2) ?? 0)
        case 4: Int(body.u32(0) ?? 0)
        default: 0
        }
    }

    /// A number whose first set bit gives its length in bytes. All ones mean an unknown length.
    private static func number(_ region: Region, _ offset: inout UInt64, keepsMarker: Bool) -> UInt64? {
        guard let first = region.u8(offset), first != 0 else { return nil }
        let length = first.leadingZeroBitCount + 1
        var value = UInt64(keepsMarker ? first : first & (0xFF >> UInt8(length)))
        for index in 1..<max(length, 1) {
            guard let byte = region.u8(offset + UInt64(index)) else { return nil }
            value = value << 8 | UInt64(byte)
        }
        offset += UInt64(length)
        let isUnknown = !keepsMarker && value == (1 << UInt64(7 * length)) - 1
        return isUnknown ? .max : value
    }
}
