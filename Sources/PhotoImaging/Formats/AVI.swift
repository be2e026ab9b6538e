/// AVI, the video of older cameras: RIFF lists, with the date in `IDIT` of the header list, or in `ICRD` of the list
/// `INFO`, which may follow the pictures.
enum AVIReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("RIFF") && region.matches("AVI ", at: 8) ? .avi : nil
    }

    private static let chunksMax = 64

    static func read(_ region: Region, into facts: inout MediaFacts) {
        readChunks(region.from(12), depthLeft: 3, into: &facts)
    }

    private static func readChunks(_ region: Region, depthLeft: Int, into facts: inout MediaFacts) {
        guard depthLeft > 0 else { return }
        var offset: UInt64 = 0
        for _ in 0..<chunksMax {
            guard let type = region.u32(offset), let length = region.u32(offset + 4, .little).map(UInt64.init)
            else { return }
            let body = region.clipped(offset + 8, length)
            offset += 8 + (length + 1) & ~1
            switch type {
            case fourCC("LIST"):
                if body.matches("movi") { continue }
                readChunks(body.from(4), depthLeft: depthLeft - 1, into: &facts)
            case fourCC("avih"): facts.setSize(body.u32(32, .little), body.u32(36, .little))
            case fourCC("IDIT"), fourCC("ICRD"):
                body.lend(0, 64) { facts.add(.dateTimeOriginal, DateText.parse($0) ?? AscTime.parse($0)) }
            default: break
            }
        }
    }
}

/// A date as C's asctime writes it: `Wed Jan 02 02:03:55 2008`.
enum AscTime {
    private static let months: [StaticString] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func parse(_ text: ByteView) -> ParsedDate? {
        guard let month = months.firstIndex(where: { text.matchesIgnoringCase($0, at: 4) }) else {
            return nil
        }
        let two = { (index: Int) in
            Int(text[index] == 0x20 ? 0 : text[index] & 15) * 10 + Int(text[index + 1] & 15)
        }
        let digits = [8, 11, 14, 17].allSatisfy { ASCII.isDigit(text[$0 + 1]) }
        guard digits, let day = CivilDay(year: two(20) * 100 + two(22), month: month + 1, day: two(8)),
            let time = CivilTime(day, hour: two(11), minute: two(14), second: two(17)) ?? CivilTime(day)
        else { return nil }
        return ParsedDate(time: time)
    }
}
