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
