import PhotoImaging
import TestFixtures
import Testing

@Suite("Days: formats that few write") struct RareFormatTests {
    private func read(_ bytes: [UInt8]) throws -> MediaFacts {
        try #require(readFacts(MemoryByteSource(bytes)))
    }

    private let taken = civil(2012, 1, 2, 3, 4, 5)
    private var exif: [UInt8] {
        var tiff = TIFFBuilder(main: [.ascii(0x010F, "Maker"), .short(0x0112, 6), .exif])
        tiff.exif = [.ascii(0x9003, "2012:01:02 03:04:05")]
        return tiff.bytes
    }

    @Test(arguments: [2, 4]) func `Sigma's raw files have EXIF in their picture`(_ major: Int) throws {
        let jpeg = Picture.jpeg([Picture.exifSegment(exif)], width: 640, height: 480)
        let facts = try read(Picture.x3f(jpeg, seconds: "978350644", major: major))
        #expect(facts.type == .x3f)
        #expect((facts.width, facts.height) == (2640, 1760))
        #expect(facts.orientation == 6)
        #expect(facts.dates.map(\.time) == [taken])
        #expect(facts.largestPreview?.count == jpeg.count)
    }

    @Test(arguments: [("978350644", civil(2001, 1, 1, 12, 4, 4)), ("97835064x", nil), ("99999999999", nil)])
    func `Sigma's older cameras tell the clock`(_ seconds: String, _ time: CivilTime?) throws {
        let facts = try read(Picture.x3f(Picture.jpeg([]), seconds: seconds))
        #expect(facts.dates.map(\.time) == [time].compactMap(\.self))
        #expect(facts.largestPreview != nil)
    }

    @Test func `Minolta's raw files`() throws {
        let facts = try read(Picture.mrw(exif))
        #expect(facts.type == .mrw)
        #expect((facts.width, facts.height) == (2624, 2016))
        #expect(facts.dates.map(\.time) == [taken])
        #expect(facts.make == "Maker")
    }

    @Test func `JPEG 2000`() throws {
        let xmp = Picture.xmp(#"xmp:CreateDate="2012-01-02T03:04:05""#)
        let identifiers: [(name: [UInt8], body: [UInt8], source: DateSource)] = [
            (Array("JpgTiffExif->JP2".utf8), exif, .dateTimeOriginal),
            (Array("JpgTiffExif->JP2".utf8), Array("Exif\0\0".utf8) + exif, .dateTimeOriginal),
            (
                [
                    0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF,
                    0xAC,
                ], xmp, .xmp
            ),
            (
                [
                    0x33, 0xC7, 0xA4, 0xD2, 0xB8, 0x1D, 0x47, 0x23, 0xA0, 0xBA, 0xF1, 0xA3, 0xE0, 0x97, 0xAD,
                    0x38,
                ], Picture.iptc(date: "20120102", time: "030405"), .iptc
            ),
        ]
        for (name, body, source) in identifiers {
            let facts = try read(Picture.jp2(Picture.box("uuid", name + body)))
            #expect(facts.type == .jp2)
            #expect((facts.width, facts.height) == (2000, 1500))
            #expect(facts.dates.map(\.source) == [source])
            #expect(facts.dates.map(\.time) == [taken])
        }
        let bare = try read(Picture.codestream(width: 640, height: 480))
        #expect(bare.type == .jp2)
        #expect((bare.width, bare.height) == (640, 480))
    }

    /// As Nokia's conformance files are, and animations in AVIF. Of a single picture a movie beside it tells nothing.
    @Test(arguments: [("msf1", true), ("avis", true), ("heic", false)])
    func `a sequence has the date of its movie`(_ brand: String, _ counts: Bool) throws {
        let seconds = Int(taken.secondsSince1970) + 2_082_844_800
        let movie = Picture.box("moov", Picture.movieHeader(seconds))
        let facts = try read(Picture.ftyp(brand) + Picture.box("meta", [0, 0, 0, 0]) + movie)
        #expect(facts.dates.map(\.time) == (counts ? [taken] : []))
        #expect(facts.dates.first?.isUTC == (counts ? true : nil))
    }
}
