/// Ogg with video (RFC 3533): Theora, and the codecs of OGM, Dirac and VP8. The date is in the comments of a stream
/// ("Ogg Vorbis I format specification: comment field and header specification"): `DATE`, and ffmpeg's
/// `creation_time`. Sound in the same container is not identified.
enum OggReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        var isVideo = false
        forEachPage(region) { page in
            isVideo = page.isVideo
            // The first pages of all streams come first.
            return page.isFirst && !isVideo
        }
        return isVideo ? .ogg : nil
    }

    /// A video has a few streams, and the comments are on the second page of each.
    private static let pagesMax = 16

    private struct Page {
        /// Whether its stream begins with this page.
        var isFirst: Bool
        var body: Region

        var isVideo: Bool {
            isFirst
                && (OggReader.isTheora(body, packet: 0x80) || body.matches("\u{01}video\0\0\0")
                    || body.matches("BBCD\0")
                    || body.matches("OVP80"))
        }
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        forEachPage(region) { page in
            if page.isVideo { readSize(page.body, into: &facts) }
            if !page.isFirst, let length = commentHeaderBytes(page.body) {
                readComments(page.body.from(length), into: &facts)
            }
            return true
        }
    }

    /// Calls `body` with the pages, until it returns false or they end.
    private static func forEachPage(_ region: Region, _ body: (Page) -> Bool) {
        var offset: UInt64 = 0
        for _ in 0..<pagesMax {
            guard region.matches("OggS\0", at: offset), let flags = region.u8(offset + 5),
                let segments = region.u8(offset + 26).map(UInt64.init)
            else { return }
            var length: UInt64 = 0
            for index in 0..<segments { length += UInt64(region.u8(offset + 27 + index) ?? 0) }
            let start = offset + 27 + segments
            guard body(Page(isFirst: flags & 2 != 0, body: region.clipped(start, length))) else { return }
            offset = start + length
        }
    }

    private static func isTheora(_ body: Region, packet type: UInt8) -> Bool {
        body.u8(0) == type && body.matches("theora", at: 1)
    }

    /// Theora's picture size ("Theora Specification", 6.2), or OGM's.
    private static func readSize(_ header: Region, into facts: inout MediaFacts) {
        if isTheora(header, packet: 0x80) {
            guard let width = header.u32(13), let height = header.u32(16) else { return }
            facts.setSize(width & 0xFF_FFFF, height & 0xFF_FFFF)
        } else if header.matches("\u{01}video\0\0\0") {
            facts.setSize(header.u32(45, .little), header.u32(49, .little))
        }
    }

    /// Bytes before the comments, by the codec.
    private static func commentHeaderBytes(_ packet: Region) -> UInt64? {
        if isTheora(packet, packet: 0x81) || packet.matches("\u{03}vorbis") || packet.matches("OVP80\u{02} ")
        {
            return 7
        }
        return packet.matches("OpusTags") ? 8 : nil
    }

    private static let commentsMax: UInt32 = 256

    private static func readComments(_ body: Region, into facts: inout MediaFacts) {
        guard let vendorBytes = body.u32(0, .little).map(UInt64.init),
            let count = body.u32(4 + vendorBytes, .little)
        else { return }
        var offset = 8 + vendorBytes
        for _ in 0..<min(count, commentsMax) {
            guard let length = body.u32(offset, .little).map(UInt64.init) else { return }
            body.lend(offset + 4, min(length, 128)) { VideoTags.read($0, into: &facts) }
            offset += 4 + length
        }
    }
}

/// Dates that programs write into videos as `name=value`.
enum VideoTags {
    static func read(_ text: ByteView, into facts: inout MediaFacts) {
        guard let end = text.firstIndex(of: UInt8(ascii: "="), from: 0, end: text.count) else { return }
        read(name: text.slice(0..<end), text.slice(end + 1..<text.count), into: &facts)
    }

    /// `creation_time` is in UTC, as ffmpeg writes it; a date is a wall clock.
    static func read(name: ByteView, _ value: ByteView, into facts: inout MediaFacts) {
        func isNamed(_ word: StaticString) -> Bool {
            name.count == word.utf8CodeUnitCount && name.matchesIgnoringCase(word, at: 0)
        }
        if isNamed("creation_time") {
            let date = DateText.parse(value)
            let isUTC = date?.offsetSeconds == 0
            facts.add(
                isUTC ? .quickTimeMovieHeader : .quickTimeCreationDate,
                date.map { ParsedDate(time: $0.time) }, isUTC: isUTC)
        } else if isNamed("date") || isNamed("creationdate") {
            facts.add(.quickTimeCreationDate, DateText.parse(value) ?? AscTime.parse(value))
        }
    }
}
