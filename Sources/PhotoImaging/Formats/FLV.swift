/// Flash video ("Video File Format Specification", version 10): the size and dates in the script data at its beginning,
/// `onMetaData`. Sound in the same container is not identified.
enum FLVReader: FormatReader {
    private static let firstTag: UInt64 = 13
    private static let scriptTag: UInt8 = 18
    private static let videoTag: UInt32 = 9
    /// The number of tags, from the first one on, in which `hasVideoTag` looks for pictures.
    private static let tagsMax = 4

    static func identify(_ region: Region) -> MediaType? {
        guard region.matches("FLV\u{01}"), region.u32(5) == 9, region.u32(9) == 0, let flags = region.u8(4)
        else { return nil }
        return flags & 0b1 != 0 || hasVideoTag(region) ? .flv : nil
    }

    /// Some programs leave the flags empty.
    private static func hasVideoTag(_ region: Region) -> Bool {
        var offset = firstTag
        for _ in 0..<tagsMax {
            guard let head = region.u32(offset) else { return false }
            if head >> 24 == videoTag { return true }
            offset += 11 + UInt64(head & 0xFF_FFFF) + 4
        }
        return false
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        guard region.u8(firstTag) == scriptTag, let head = region.u32(firstTag) else { return }
        let body = region.clipped(firstTag + 11, UInt64(head & 0xFF_FFFF))
        // The string `onMetaData`, then an array of names and values, or an object, which has no count.
        guard body.matches("\u{02}\0\u{0A}onMetaData"), let type = body.u8(13) else { return }
        switch type {
        case 8: readProperties(body.from(18), into: &facts)
        case 3: readProperties(body.from(14), into: &facts)
        default: return
        }
    }

    private static let propertiesMax = 128

    /// Properties of AMF 0 ("Action Message Format", 2), up to the first whose value is a list of properties.
    private static func readProperties(_ body: Region, into facts: inout MediaFacts) {
        var offset: UInt64 = 0
        for _ in 0..<propertiesMax {
            guard let nameBytes = body.u16(offset).map(UInt64.init), nameBytes > 0,
                let name = body.inside(offset + 2, nameBytes), let type = body.u8(offset + 2 + nameBytes)
            else { return }
            offset += 3 + nameBytes
            switch type {
            case 0:
                if let bits = body.u64(offset) { readNumber(name, Double(bitPattern: bits), into: &facts) }
                offset += 8
            case 1: offset += 1
            case 2:
                guard let length = body.u16(offset).map(UInt64.init) else { return }
                readText(name, body.clipped(offset + 2, length), into: &facts)
                offset += 2 + length
            case 11:
                if let bits = body.u64(offset) { readDate(name, Double(bitPattern: bits), into: &facts) }
                offset += 10
            case 5, 6: break
            default: return
            }
        }
    }

    private static func readNumber(_ name: Region, _ value: Double, into facts: inout MediaFacts) {
        guard value >= 1, value < 65_536 else { return }
        if isNamed("width", name), facts.width == 0 { facts.width = Int(value) }
        if isNamed("height", name), facts.height == 0 { facts.height = Int(value) }
        if isNamed("duration", name) { facts.durationSeconds = value }
    }

    private static func readText(_ name: Region, _ text: Region, into facts: inout MediaFacts) {
        name.lend(0, 32) { name in
            // A view lives until the next one: the name is copied.
            let copy = name.array
            text.lend(0, 64) { text in
                copy.withUnsafeBytes { bytes in
                    guard let start = bytes.baseAddress else { return }
                    VideoTags.read(name: ByteView(start, count: bytes.count), text, into: &facts)
                }
            }
        }
    }

    /// Milliseconds since 1970, in UTC.
    private static func readDate(_ name: Region, _ milliseconds: Double, into facts: inout MediaFacts) {
        guard isNamed("creationdate", name), abs(milliseconds) < 1e15 else { return }
        facts.add(
            DateCandidate(
                source: .quickTimeMovieHeader, time: CivilTime(secondsSince1970: Int64(milliseconds / 1000)),
                isUTC: true))
    }

    private static func isNamed(_ word: StaticString, _ name: Region) -> Bool {
        name.count == UInt64(word.utf8CodeUnitCount) && name.matches(word)
    }
}
