import PhotoImaging
import TestFixtures
import Testing

@Suite("Days: videos") struct VideoTests {
    private func read(_ bytes: [UInt8]) throws -> MediaFacts {
        let source = MemoryByteSource(bytes)
        let facts = try #require(readFacts(source))
        #expect(identifyMedia(source) == facts.type)
        #expect(facts.type.isVideo)
        return facts
    }

    private let since1904 = Int(civil(2020, 5, 11, 23, 30).secondsSince1970) + 2_082_844_800

    @Test(arguments: [0, 1])
    func `the movie header is UTC`(version: Int) throws {
        let movie =
            Picture.movieHeader(since1904, version: version)
            + Picture.track(width: 0, height: 0, matrix: Picture.upright)
            + Picture.track(width: 1920, height: 1080, matrix: Picture.quarterTurn)
        let big = Picture.box("mdat", [UInt8](repeating: 1, count: 300_000))
        let source = CountingSource(Picture.ftyp("isom", ["avc1"]) + big + Picture.box("moov", movie))
        let facts = try #require(readFacts(source))
        #expect(source.reads <= 4)
        #expect(facts.type == .mp4)
        #expect(facts.width == 1920)
        #expect(facts.orientation == 6)
        #expect(capture(facts, hoursEast: 2).time == civil(2020, 5, 12, 1, 30))
        #expect(capture(facts, hoursEast: 2).source == .quickTimeMovieHeader)
    }

    @Test func `movie headers without a date`() throws {
        let unset = Picture.ftyp("isom") + Picture.box("moov", Picture.movieHeader(0))
        #expect(try read(unset).dates.isEmpty)
        let since1970 = Picture.movieHeader(Int(civil(2020, 5, 11).secondsSince1970))
        #expect(
            capture(try read(Picture.ftyp("qt  ") + Picture.box("moov", since1970))).time
                == civil(2020, 5, 11))
    }

    @Test func `Apple's keys`() throws {
        let keys = Picture.keyed([
            ("com.apple.quicktime.content.identifier", "B1A2C3D4"), ("com.example", "2001-01-01T00:00:00Z"),
            ("com.apple.quicktime.creationdate", "2020-05-12T01:30:00+0200"),
            ("com.apple.quicktime.location.ISO6709", "+37.5000-122.2500+010.0/"),
            ("com.apple.quicktime.make", "Apple"), ("com.apple.quicktime.model", "iPhone"),
        ])
        let facts = try read(
            Picture.ftyp("qt  ") + Picture.box("moov", Picture.movieHeader(since1904) + keys))
        #expect(facts.type == .mov)
        #expect(facts.contentIdentifier == "B1A2C3D4")
        #expect(facts.make == "Apple")
        #expect(facts.model == "iPhone")
        #expect(facts.latitude == 37.5)
        #expect(facts.longitude == -122.25)
        #expect(capture(facts, hoursEast: -5).time == civil(2020, 5, 12, 1, 30))
        #expect(capture(facts).source == .quickTimeCreationDate)
        // The file's own zone moves the header's time where the creation date is not plausible.
        #expect(capture(facts, now: civil(2020, 5, 10).secondsSince1970).source == .mtime)
    }

    @Test(arguments: [
        ("+0200", civil(2020, 5, 12, 1, 30)), ("+02:00", civil(2020, 5, 12, 1, 30)),
        ("-0330", civil(2020, 5, 11, 20)), ("+1345", civil(2020, 5, 12, 13, 15)),
        // Nonsense: the zone of the mount.
        ("foo", civil(2020, 5, 11, 18, 30)), ("+2500", civil(2020, 5, 11, 18, 30)),
    ])
    func `Samsung's offset moves the header's time`(offset: String, time: CivilTime) throws {
        let keys = Picture.keyed([("com.samsung.android.utc_offset", offset)])
        let facts = try read(
            Picture.ftyp("mp42") + Picture.box("moov", Picture.movieHeader(since1904) + keys))
        #expect(capture(facts, hoursEast: -5).time == time)
        #expect(capture(facts, hoursEast: -5).source == .quickTimeMovieHeader)
    }

    /// Nonsense before it, another one behind it, and keys that only begin alike.
    @Test func `the first offset that is one counts`() throws {
        let name = "com.samsung.android.utc_offset"
        let keys = Picture.keyed([
            (name + "_x", "+0900"), (name, "foo"), (name, "+0200"), (name, "-0330"),
            ("com.apple.quicktime.creationdate.modified", "2001-01-01T00:00:00Z"),
        ])
        let facts = try read(
            Picture.ftyp("mp42") + Picture.box("moov", Picture.movieHeader(since1904) + keys))
        #expect(facts.dates.count == 1)
        #expect(capture(facts, hoursEast: -5).time == civil(2020, 5, 12, 1, 30))
    }

    @Test(arguments: [
        ("FIRM", "HD9.01.01.72.00", true), ("FIRM", "H21.01.01.30.00", true),
        ("FIRM", "H22.01.01.10.00", false), ("TAGS", "NIKON DIGITAL CAMERA", true),
        ("TAGS", "OLYMPUS", false),
    ])
    func `some makers write the time of their clocks into the header`(
        box: String, content: String, isLocal: Bool
    ) throws {
        let data = Picture.box("udta", Picture.box(box, Array(content.utf8)))
        let facts = try read(
            Picture.ftyp("mp42") + Picture.box("moov", Picture.movieHeader(since1904) + data))
        let time = isLocal ? civil(2020, 5, 11, 23, 30) : civil(2020, 5, 12, 1, 30)
        #expect(capture(facts, hoursEast: 2).time == time)
    }

    @Test func `user data`() throws {
        let user = Picture.box(
            "udta",
            Picture.text("\u{A9}day", "2020-05-12T01:30:00+0200")
                + Picture.text("\u{A9}xyz", "-3315.5+15130.25/")
                + Picture.text("\u{A9}mak", "Maker") + [0, 0, 0, 0])
        let facts = try read(Picture.ftyp("M4V ") + Picture.box("moov", user))
        #expect(facts.type == .m4v)
        #expect(facts.dates.map(\.source) == [.quickTimeCreationDate])
        #expect(facts.make == "Maker")
        #expect(abs((facts.latitude ?? 0) + 33.258333) < 1e-5)
        #expect(abs((facts.longitude ?? 0) - 151.504166) < 1e-5)
    }

    @Test func `movies without file type`() throws {
        #expect(identifyMedia(MemoryByteSource(Picture.box("moov", Picture.movieHeader(since1904)))) == .mov)
        #expect(identifyMedia(MemoryByteSource(Picture.box("wide", []) + Picture.box("mdat", [1]))) == .mov)
        #expect(identifyMedia(MemoryByteSource(Array("I'm free, and a text".utf8))) == nil)
        #expect(identifyMedia(MemoryByteSource(Array("key moov and more of a text".utf8))) == nil)
        #expect(identifyMedia(MemoryByteSource(Picture.ftyp("M4A "))) == nil)
        #expect(identifyMedia(MemoryByteSource(Picture.ftyp("3gp4"))) == .threeGP)
    }

    @Test(arguments: ["Sat Feb 18 09:41:27 2017\n", "2017:02:18 09:41:27", "SAT FEB 18 09:41:27 2017"])
    func `AVI`(_ date: String) throws {
        let facts = try read(Picture.avi(date))
        #expect(facts.type == .avi)
        #expect(facts.width == 640)
        #expect(facts.dates.map(\.time) == [civil(2017, 2, 18, 9, 41, 27)])
    }

    /// As some Kodak cameras write it.
    @Test(arguments: [
        ("2020-08-28\0", civil(2020, 8, 28)), ("2020-08-28 10:11:12", civil(2020, 8, 28, 10, 11, 12)),
    ])
    func `AVI with its date behind the pictures`(_ date: String, _ time: CivilTime) throws {
        let facts = try read(Picture.avi(date, inHeader: false))
        #expect(facts.width == 640)
        #expect(facts.dates == [DateCandidate(source: .dateTimeOriginal, time: time)])
        // A year alone, which converters write, is no day.
        #expect(try read(Picture.avi("2020", inHeader: false)).dates == [])
    }

    @Test func `Matroska`() throws {
        let facts = try read(
            Picture.matroska(
                Int(civil(2017, 2, 18, 9, 41, 27).secondsSince1970 - 978_307_200) * 1_000_000_000))
        #expect(facts.type == .matroska)
        #expect(facts.width == 1280)
        #expect(facts.height == 720)
        #expect(facts.dates.map(\.time) == [civil(2017, 2, 18, 9, 41, 27)])
        #expect(facts.dates.first?.isUTC == true)
    }

    @Test func `Windows Media`() throws {
        let facts = try read(
            Picture.asf(since1601: 11_644_473_600 + Int(civil(2017, 2, 18, 9).secondsSince1970)))
        #expect(facts.type == .asf)
        #expect(facts.width == 640)
        #expect(facts.height == 480)
        #expect(facts.dates.map(\.time) == [civil(2017, 2, 18, 9)])
        #expect(facts.dates.first?.isUTC == true)
    }

    /// The first pages of the streams, then the second ones, each with a packet.
    private func ogg(_ first: [[UInt8]], _ second: [[UInt8]]) -> [UInt8] {
        (first.map { ($0, 2) } + second.map { ($0, 0) }).flatMap { packet, flags -> [UInt8] in
            let segments = [UInt8](repeating: 255, count: packet.count / 255) + [UInt8(packet.count % 255)]
            return Array("OggS".utf8) + [0, UInt8(flags)] + [UInt8](repeating: 0, count: 20)
                + [UInt8(segments.count)] + segments + packet
        }
    }

    private func comments(_ head: [UInt8], _ texts: [String]) -> [UInt8] {
        var out = ByteBuilder(isBig: false)
        out.add(head)
        out.u32(4)
        out.add("Test")
        out.u32(texts.count)
        for text in texts {
            out.u32(text.utf8.count)
            out.add(text)
        }
        return out.bytes
    }

    /// As ffmpeg writes it: 320 by 240.
    private let theora: [UInt8] =
        [0x80] + Array("theora".utf8) + [3, 2, 1, 0, 0x14, 0, 0x0F, 0, 1, 0x40, 0, 0, 0xF0, 0, 0]
    private let vorbis: [UInt8] = [1] + Array("vorbis".utf8) + [UInt8](repeating: 0, count: 23)

    @Test func `Ogg`() throws {
        let head = [0x81] + Array("theora".utf8)
        let dated = comments(
            head, ["TITLE=x", "date=2018-07-25", "creation_time=2018-07-26T10:11:12.000000Z"])
        let facts = try read(ogg([vorbis, theora], [comments([3] + Array("vorbis".utf8), ["A=b"]), dated]))
        #expect(facts.type == .ogg && facts.width == 320 && facts.height == 240)
        #expect(facts.dates.map(\.time) == [civil(2018, 7, 25), civil(2018, 7, 26, 10, 11, 12)])
        #expect(facts.dates.map(\.isUTC) == [false, true])
        // A year alone is no day.
        #expect(try read(ogg([theora], [comments(head, ["DATE=2018"])])).dates.isEmpty)
        // Sound, cut files and other things.
        let sound = ogg([vorbis], [comments([3] + Array("vorbis".utf8), ["DATE=2018-07-25"])])
        #expect(identifyMedia(MemoryByteSource(sound)) == nil)
        let whole = ogg([theora], [dated])
        for count in 0..<whole.count { _ = readFacts(MemoryByteSource(Array(whole[..<count]))) }
    }

    @Test func `Flash video`() throws {
        func file(_ flags: UInt8, _ properties: [UInt8], type: UInt8 = 8) -> [UInt8] {
            let list: [UInt8] = type == 8 ? [8, 0, 0, 0, 3] : [3]
            let body = [2, 0, 10] + Array("onMetaData".utf8) + list + properties + [0, 0, 9]
            return Array("FLV".utf8) + [1, flags, 0, 0, 0, 9, 0, 0, 0, 0, 18, 0, 0, UInt8(body.count)]
                + [UInt8](repeating: 0, count: 7) + body
        }
        func property(_ name: String, _ value: [UInt8]) -> [UInt8] {
            [0, UInt8(name.utf8.count)] + Array(name.utf8) + value
        }
        func text(_ value: String) -> [UInt8] { [2, 0, UInt8(value.utf8.count)] + Array(value.utf8) }
        let size =
            property("width", [0, 0x40, 0x74, 0, 0, 0, 0, 0, 0])
            + property("height", [0, 0x40, 0x6E, 0, 0, 0, 0, 0, 0]) + property("stereo", [1, 1])
        for type: UInt8 in [3, 8] {
            let utc = property("creation_time", text("2018-07-26T10:11:12Z"))
            let facts = try read(file(5, size + utc, type: type))
            #expect(facts.type == .flv && facts.width == 320 && facts.height == 240)
            #expect(facts.dates.map(\.time) == [civil(2018, 7, 26, 10, 11, 12)])
            #expect(facts.dates.map(\.isUTC) == [true])
        }
        let written = try read(file(1, property("creationdate", text("Thu Jul 26 10:11:12 2018"))))
        #expect(written.dates.map(\.time) == [civil(2018, 7, 26, 10, 11, 12)])
        #expect(written.dates.first?.isUTC == false)
        // Milliseconds since 1970, and a zone that is not used.
        let number = Double(civil(2018, 7, 26, 10, 11, 12).secondsSince1970) * 1000
        let bits = withUnsafeBytes(of: number.bitPattern.bigEndian) { Array($0) }
        let counted = try read(file(1, property("creationdate", [11] + bits + [0, 0])))
        #expect(counted.dates.map(\.time) == [civil(2018, 7, 26, 10, 11, 12)])
        #expect(counted.dates.first?.isUTC == true)
        #expect(identifyMedia(MemoryByteSource(file(4, size))) == nil)
        // The flags may be wrong: what comes first counts.
        let tags = [8, 9].map { [UInt8($0), 0, 0, 1] + [UInt8](repeating: 0, count: 12) }
        #expect(identifyMedia(MemoryByteSource(file(0, size) + [0, 0, 0, 0] + tags[0])) == nil)
        #expect(identifyMedia(MemoryByteSource(file(0, size) + [0, 0, 0, 0] + tags[0] + tags[1])) == .flv)
        let whole = file(5, size)
        for count in 0..<whole.count { _ = readFacts(MemoryByteSource(Array(whole[..<count]))) }
    }

    /// The clock of a camcorder, in the subcode or beside the pictures.
    @Test(arguments: [false, true], [false, true]) func `DV`(isPAL: Bool, isSubcode: Bool) throws {
        func file(_ date: [UInt8], _ time: [UInt8]) -> [UInt8] {
            var bytes = [UInt8](repeating: 0xFF, count: 12_000)
            for (block, type) in [0x1F, 0x3F, 0x3F, 0x56, 0x56, 0x56].enumerated() {
                bytes.replaceSubrange(block * 80..<block * 80 + 3, with: [UInt8(type), 7, UInt8(block % 3)])
            }
            bytes.replaceSubrange(81..<83, with: [7, 0])
            bytes[3] = isPAL ? 0xBF : 0x3F
            let start = isSubcode ? 2 * 80 + 3 + 3 * 8 + 3 : 4 * 80 + 3 + 9 * 5
            bytes.replaceSubrange(start..<start + 5, with: [0x62] + date)
            let next = start + (isSubcode ? 8 : 5)
            bytes.replaceSubrange(next..<next + 5, with: [0x63] + time)
            return bytes
        }
        let facts = try read(file([0xFF, 0xE6, 0xE7, 0x98], [0xFF, 0x92, 0x91, 0xD0]))
        #expect(facts.type == .dv && facts.width == 720 && facts.height == (isPAL ? 576 : 480))
        #expect(facts.dates.map(\.time) == [civil(1998, 7, 26, 10, 11, 12)])
        #expect(facts.dates.first?.source == .dateTimeOriginal)
        // No time, no date, no clock at all.
        #expect(
            try read(file([0xFF, 0x01, 0x01, 0x05], [0xFF, 0xFF, 0xFF, 0xFF])).dates.first?.time
                == civil(2005, 1, 1))
        #expect(try read(file([0xFF, 0xFF, 0xFF, 0xFF], [0xFF, 0x12, 0x11, 0x10])).dates.isEmpty)
    }

    @Test func `program stream`() throws {
        let sequence: [UInt8] = [0, 0, 1, 0xB3, 0x2D, 0x02, 0x40, 0x33]
        let facts = try read([0, 0, 1, 0xBA, 0x44, 0, 4, 0, 4, 1, 0, 0, 0, 0xF8] + sequence)
        #expect(facts.type == .mpegPS)
        #expect(facts.width == 720)
        #expect(facts.height == 576)
    }

    @Test(arguments: [188, 192])
    func `transport stream`(step: Int) throws {
        let facts = try read(Picture.transportStream(step: step))
        #expect(facts.type == .mpegTS)
        #expect(facts.dates.map(\.time) == [civil(2017, 2, 18, 9, 41, 27)])
    }
}
