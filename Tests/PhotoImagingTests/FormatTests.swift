import Foundation
import PhotoImaging
import TestFixtures
import Testing

/// Generated pictures of every format, whose truth is known.
@Suite("Days: dates by format") struct FormatTests {
    private func read(_ bytes: [UInt8]) throws -> MediaFacts {
        let source = MemoryByteSource(bytes)
        let facts = try #require(readFacts(source))
        #expect(identifyMedia(source) == facts.type)
        return facts
    }

    private func time(_ facts: MediaFacts, _ source: DateSource) -> CivilTime? {
        facts.dates.first { $0.source == source }?.time
    }

    /// Checks the facts of ``Picture/camera(isBig:)``.
    private func expectCamera(_ facts: MediaFacts, orientation: Int = 6) {
        #expect(facts.make == "Maker")
        #expect(facts.model == "Model 7")
        #expect(facts.orientation == orientation)
        #expect(abs((facts.latitude ?? 0) - 27.71) < 1e-9)
        #expect(abs((facts.longitude ?? 0) + 85.325) < 1e-9)
        #expect(facts.contentIdentifier == "B1A2C3D4-0000-4444-8888-123456789ABC")
        let original = facts.dates.first { $0.source == .dateTimeOriginal }
        #expect(original?.time == Picture.taken)
        #expect(original?.offsetSeconds == 5 * 3600 + 45 * 60)
        #expect(original?.isUTC == false)
        #expect(time(facts, .dateTimeDigitized) == civil(2017, 2, 19, 10))
        #expect(time(facts, .dateTime) == civil(2018, 1, 1, 1, 2, 3))
        let gps = facts.dates.first { $0.source == .gps }
        #expect(gps?.time == civil(2017, 2, 18, 3, 56, 27))
        #expect(gps?.isUTC == true)
    }

    /// A camera whose clock was never set, but which knows its zone.
    @Test(arguments: [0x9010, 0x9011, 0x9012])
    func `the file's offset is that of its GPS date, also where no other date has it`(tag: Int) throws {
        let exif = TIFFBuilder(
            main: [.exif, .gps], exif: [.ascii(tag, "+09:00")],
            gps: [.rational(7, [(22, 1), (30, 1), (0, 1)]), .ascii(29, "2024:05:01")])
        let facts = try read(Picture.jpeg([Picture.exifSegment(exif.bytes)]))
        #expect(capture(facts, hoursEast: 2).time == civil(2024, 5, 2, 7, 30))
    }

    @Test(arguments: [false, true])
    func `JPEG with EXIF`(isBig: Bool) throws {
        let exif = Picture.exifSegment(Picture.camera(isBig: isBig).bytes)
        let bytes = Picture.jpeg([Picture.segment(0xE0, Array("JFIF\0".utf8)), exif])
        let facts = try read(bytes)
        expectCamera(facts)
        #expect(facts.type == .jpeg)
        #expect(facts.width == 4000)
        #expect(facts.height == 3000)
        let preview = try #require(facts.embeddedPreview)
        #expect(Array(bytes[Int(preview.lowerBound)..<Int(preview.upperBound)]) == Picture.thumbnail)
    }

    @Test func `JPEG with everything behind other segments`() throws {
        let filler = (0..<20).map { _ in Picture.segment(0xE2, [UInt8](repeating: 0x55, count: 65_000)) }
        let comment = Picture.segment(0xFE, Array("hello".utf8))
        let packet = Picture.xmp(#"exif:DateTimeOriginal="2016-05-04T03:02:01.5-07:00""#)
        let iptc = Picture.photoshopSegment([
            (0x03ED, [1, 2, 3]), (0x0404, Picture.iptc(date: "20140203", time: "101112+0100")),
        ])
        let facts = try read(
            Picture.jpeg(
                filler + [
                    comment, Picture.xmpSegment(packet), iptc, Picture.exifSegment(Picture.camera().bytes),
                ]))
        expectCamera(facts)
        #expect(time(facts, .xmp) == civil(2016, 5, 4, 3, 2, 1, 500_000_000))
        #expect(facts.dates.first { $0.source == .xmp }?.offsetSeconds == -7 * 3600)
        #expect(time(facts, .iptc) == civil(2014, 2, 3, 10, 11, 12))
        #expect(facts.width == 4000)
    }

    @Test func `a JPEG's first block of EXIF counts`() throws {
        let second = TIFFBuilder(main: [.exif], exif: [.ascii(0x9003, "2007:09:19 01:01:01")])
        let broken = Picture.exifSegment(Array("no header".utf8))
        let facts = try read(
            Picture.jpeg([
                broken, Picture.exifSegment(Picture.camera().bytes), Picture.exifSegment(second.bytes),
            ]))
        #expect(time(facts, .dateTimeOriginal) == Picture.taken)
    }

    @Test func `JPEG with garbage between segments and cut EXIF`() throws {
        let exif = Picture.exifSegment(Picture.camera().bytes)
        let garbage = [UInt8](repeating: 0x20, count: 300) + [0xFF, 0xFF, 0xFF]
        let jfif = Picture.segment(0xE0, Array("JFIF\0".utf8))
        let spoilt = Picture.jpeg([jfif, garbage, Array(exif.dropFirst())])
        #expect(time(try read(spoilt), .dateTimeOriginal) == Picture.taken)
        let cut = Array(Picture.jpeg([exif]).prefix(2 + exif.count - 80))
        #expect(time(try read(cut), .dateTimeOriginal) == Picture.taken)
    }

    @Test func `XMP in attributes and elements`() throws {
        let packet = Picture.xmp(
            "xmp:CreateDate = '2012-01-02T03:04'",
            elements: """
                <photoshop:DateCreated>2011-01-02</photoshop:DateCreated><tiff:Make>Maker</tiff:Make>
                <exif:GPSLatitude>27,42.6N</exif:GPSLatitude><exif:GPSLongitude>85,19,30W</exif:GPSLongitude>
                <xmpMM:History><rdf:li stEvt:when="2019-01-01T00:00:00Z"/></xmpMM:History>
                """)
        let facts = try read(Picture.jpeg([Picture.xmpSegment(packet)]))
        #expect(
            facts.dates.filter { $0.source == .xmp }.map(\.time) == [
                civil(2012, 1, 2, 3, 4), civil(2011, 1, 2),
            ])
        #expect(facts.make == "Maker")
        #expect(abs((facts.latitude ?? 0) - 27.71) < 1e-9)
        #expect(abs((facts.longitude ?? 0) + 85.325) < 1e-9)
    }

    @Test(arguments: [
        ("xmp:Rating=\"4\"", "", 4), ("", "<xmp:Rating>5</xmp:Rating>", 5), ("xap:Rating='-1'", "", -1),
        ("xmp:Rating=\"3.0\"", "", 3), ("xmp:Rating=\"6\"", "", nil), ("xmp:Rating=\"many\"", "", nil),
    ]) func `a rating in XMP`(attributes: String, elements: String, stars: Int?) throws {
        let packet = Picture.xmp(attributes, elements: elements)
        #expect(try read(Picture.jpeg([Picture.xmpSegment(packet)])).rating == stars)
        #expect(readSidecar(MemoryByteSource(packet))?.rating == stars)
    }

    @Test func `panoramas and pictures of screens say so`() throws {
        let sphere = Picture.xmp("GPano:ProjectionType=\"equirectangular\"")
        #expect(try read(Picture.jpeg([Picture.xmpSegment(sphere)])).isPanorama)
        let rendered = { TIFFBuilder(main: [.exif], exif: [.short(0xA401, $0)]).bytes }
        #expect(try read(Picture.jpeg([Picture.exifSegment(rendered(6))])).isPanorama)
        #expect(try !read(Picture.jpeg([Picture.exifSegment(rendered(1))])).isPanorama)
        let comment = Picture.xmp(
            "",
            elements:
                "<exif:UserComment><rdf:Alt><rdf:li xml:lang=\"x-default\">Screenshot</rdf:li></rdf:Alt>")
        #expect(try read(Picture.jpeg([Picture.xmpSegment(comment)])).isScreenshot)
        let exif = TIFFBuilder(
            main: [.exif], exif: [.raw(0x9286, type: 7, Array("ASCII\0\0\0Screenshot".utf8))])
        #expect(try read(Picture.jpeg([Picture.exifSegment(exif.bytes)])).isScreenshot)
        #expect(try !read(Picture.jpeg([])).isScreenshot)
    }

    @Test func `XMP elements with nothing in them`() throws {
        let packet = Picture.xmp(
            "", elements: "<exif:DateTimeOriginal/><exif:DateTimeOriginal></exif:DateTimeOriginal>")
        #expect(try read(Picture.jpeg([Picture.xmpSegment(packet)])).dates.isEmpty)
    }

    @Test func `sidecars are read`() {
        let packet = Picture.xmp(
            "", elements: "<exif:DateTimeOriginal>2010-09-08T07:06:05Z</exif:DateTimeOriginal>")
        #expect(readSidecar(MemoryByteSource(packet))?.dates.map(\.time) == [civil(2010, 9, 8, 7, 6, 5)])
        #expect(readSidecar(MemoryByteSource(Array("no XMP: at all".utf8))) == nil)
        #expect(readSidecar(MemoryByteSource([])) == nil)
        #expect(readFacts(MemoryByteSource(packet)) == nil)
    }

    @Test func `TIFF with packets`() throws {
        var tiff = Picture.camera(isBig: true)
        let packet = Picture.xmp(#"xmp:CreateDate="2012-01-02T03:04:05""#)
        tiff.main += [
            .short(0x0100, 800), .long(0x0101, 600), .raw(0x02BC, type: 1, packet),
            .raw(0x83BB, type: 7, Picture.iptc(date: "20140203", time: nil)),
            .raw(0x8649, type: 7, Picture.photoshop([(0x0404, Picture.iptc(date: "20150203", time: nil))])),
        ]
        let facts = try read(tiff.bytes)
        expectCamera(facts)
        #expect(facts.type == .tiff)
        #expect(facts.width == 800)
        #expect(facts.height == 600)
        #expect(time(facts, .xmp) == civil(2012, 1, 2, 3, 4, 5))
        #expect(time(facts, .iptc) == civil(2014, 2, 3))
    }

    @Test func `BigTIFF`() throws {
        var out = ByteBuilder(isBig: false)
        out.add("II")
        for value in [43, 8, 0] { out.u16(value) }
        out.u64(16)
        out.u64(2)
        for (tag, type, count, value) in [(0x0100, 4, 1, 1234), (0x0132, 2, 20, 16 + 8 + 40 + 8)] {
            out.u16(tag)
            out.u16(type)
            out.u64(count)
            out.u64(value)
        }
        out.u64(0)
        out.add("2004:11:23 18:49:38\0")
        let facts = try read(out.bytes)
        #expect(facts.type == .tiff)
        #expect(time(facts, .dateTime) == civil(2004, 11, 23, 18, 49, 38))
    }

    /// The first pages are small copies, and the full picture comes later.
    @Test(arguments: [false, true], [2, 16])
    func `a TIFF whose later page has the date`(isBig: Bool, pageCount: Int) throws {
        var out = ByteBuilder(isBig: false)
        out.add("II")
        for value in isBig ? [43, 8, 0] : [42] { out.u16(value) }
        func number(_ value: Int) { if isBig { out.u64(value) } else { out.u32(value) } }
        let page = isBig ? 8 + 20 + 8 : 2 + 12 + 4
        let first = isBig ? 16 : 8
        number(first)
        let small = [(Int, Int, Int, Int)](repeating: (0x0100, 4, 1, 1234), count: pageCount - 1)
        let entries = small + [(0x0132, 2, 20, first + pageCount * page)]
        for (index, (tag, type, count, value)) in entries.enumerated() {
            if isBig { out.u64(1) } else { out.u16(1) }
            out.u16(tag)
            out.u16(type)
            number(count)
            number(value)
            number(index < small.count ? first + (index + 1) * page : 0)
        }
        out.add("2004:11:23 18:49:38\0")
        #expect(time(try read(out.bytes), .dateTime) == civil(2004, 11, 23, 18, 49, 38))
    }

    @Test(arguments: [
        ("NIKON CORPORATION", MediaType.nef), ("SONY", .arw), ("PENTAX Corporation", .pef), ("SAMSUNG", .srw),
        ("Somebody", .tiff),
    ])
    func `raw formats by maker`(_ make: String, _ type: MediaType) throws {
        let preview = Picture.jpeg([Picture.segment(0xFE, [UInt8](repeating: 3, count: 5000))])
        let raw = TIFFBuilder(
            main: [
                .long(0x00FE, 1), .short(0x0100, 160), .short(0x0101, 120), .ascii(0x010F, make), .subs(2),
                .exif,
            ],
            exif: [.ascii(0x9003, "2017:02:18 09:41:27")],
            next: [.data(0x0201, index: 0), .long(0x0202, Picture.thumbnail.count)],
            subs: [
                [.long(0x00FE, 1), .data(0x0201, index: 1), .long(0x0202, preview.count)],
                [.long(0x00FE, 0), .long(0x0100, 6000), .long(0x0101, 4000), .short(0x0103, 34_713)],
            ],
            data: [Picture.thumbnail, preview])
        let facts = try read(raw.bytes)
        #expect(facts.type == type)
        #expect(facts.width == 6000)
        #expect(facts.height == 4000)
        #expect(time(facts, .dateTimeOriginal) == civil(2017, 2, 18, 9, 41, 27))
        if type.isRaw {
            #expect(facts.embeddedPreview?.count == Picture.thumbnail.count)
            #expect(facts.largestPreview?.count == preview.count)
        }
    }

    @Test func `raw formats by header and tag`() throws {
        var raw = Picture.camera()
        raw.magic = 0x4F52
        #expect(try read(raw.bytes).type == .orf)
        raw.magic = 42
        raw.header = Array("CR\u{02}\0".utf8) + [0, 0, 0, 0]
        #expect(try read(raw.bytes).type == .cr2)
        expectCamera(try read(raw.bytes))
        raw.header = []
        raw.main.append(.raw(0xC612, type: 1, [1, 4, 0, 0]))
        #expect(try read(raw.bytes).type == .dng)
        raw.header = [UInt8](repeating: 0, count: 9000)
        #expect(try read(raw.bytes).type == .dng)
    }

    @Test func `Panasonic raw`() throws {
        let jpeg = Picture.jpeg([Picture.exifSegment(Picture.camera().bytes)])
        let raw = TIFFBuilder(magic: 0x55, main: [.short(0x0112, 6), .raw(0x002E, type: 7, jpeg)])
        let facts = try read(raw.bytes)
        #expect(facts.type == .rw2)
        expectCamera(facts)
        #expect(facts.largestPreview?.count == jpeg.count)
        #expect(facts.embeddedPreview?.count == Picture.thumbnail.count)
    }

    @Test func `Canon raws`() throws {
        let cr3 = try read(Picture.cr3())
        #expect(cr3.type == .cr3)
        #expect(cr3.width == 6000)
        #expect(cr3.orientation == 8)
        #expect(cr3.make == "Canon")
        #expect(time(cr3, .dateTimeOriginal) == Picture.taken)
        #expect(cr3.latitude == -10.5)
        #expect(cr3.embeddedPreview != nil)
        let crw = try read(Picture.crw())
        #expect(crw.type == .crw)
        #expect(crw.width == 2272)
        #expect(crw.orientation == 6)
        #expect(crw.make == "Maker")
        #expect(crw.model == "Model 7")
        #expect(time(crw, .dateTimeOriginal) == civil(2017, 2, 18, 9, 41, 27))
        #expect(crw.embeddedPreview?.count == Picture.thumbnail.count)
    }

    @Test func `Fujifilm raw`() throws {
        let facts = try read(Picture.raf())
        #expect(facts.type == .raf)
        expectCamera(facts)
        #expect(facts.largestPreview?.lowerBound == 160)
    }

    @Test(arguments: [("heic", MediaType.heic), ("mif1", .heic), ("avif", .avif)])
    func `HEIF items`(_ brand: String, _ type: MediaType) throws {
        let bytes = Picture.heif(
            brand, exif: Picture.camera().bytes, xmp: Picture.xmp(#"xmp:CreateDate="2012-01-02T03:04:05""#),
            transforms: [Picture.box("irot", [3])])
        let facts = try read(bytes)
        #expect(facts.type == type)
        #expect(facts.width == 4032)
        #expect(facts.height == 3024)
        expectCamera(facts)
        #expect(time(facts, .xmp) == civil(2012, 1, 2, 3, 4, 5))
    }

    /// Mirrors come from `imir`, turns from `irot`, in the order of association; EXIF's own word does not count.
    @Test(arguments: [
        ([], 1), ([("irot", 1)], 8), ([("irot", 2)], 3), ([("irot", 3)], 6), ([("imir", 1)], 2),
        ([("imir", 0)], 4),
        ([("irot", 3), ("imir", 1)], 5), ([("irot", 1), ("imir", 1)], 7), ([("imir", 1), ("irot", 3)], 7),
    ])
    func `HEIF transforms`(_ transforms: [(String, Int)], _ orientation: Int) throws {
        let boxes = transforms.map { Picture.box($0.0, [UInt8($0.1)]) }
        let bytes = Picture.heif("heic", exif: Picture.camera().bytes, xmp: [], transforms: boxes)
        #expect(try read(bytes).orientation == orientation)
    }

    @Test func `PNG chunks`() throws {
        let packet =
            Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + Picture.xmp(#"xmp:CreateDate="2012-01-02T03:04:05""#)
        let chunks = [("eXIf", Picture.camera(isBig: true).bytes), ("iTXt", packet)]
        for bytes in [Picture.png(chunks), Picture.png([], images: 300, last: chunks)] {
            let facts = try read(bytes)
            #expect(facts.type == .png)
            #expect(facts.width == 640)
            expectCamera(facts)
            #expect(time(facts, .xmp) == civil(2012, 1, 2, 3, 4, 5))
        }
    }

    /// A program that keeps a picture's layers puts them behind the metadata.
    @Test func `PNG with metadata between images and a long tail`() throws {
        let chunks = [("eXIf", Picture.camera().bytes), ("laYR", [UInt8](repeating: 7, count: 200_000))]
        expectCamera(try read(Picture.png([], images: 300, last: chunks)))
        let texts = (0..<100).map { ("tEXt", Array("Title\0\($0)".utf8)) }
        expectCamera(try read(Picture.png([], images: 300, last: chunks + texts)))
    }

    @Test func `texts of PNG that are not the camera's`() throws {
        let text = Array("Creation Time\u{0}2009:08:09 10:11:12".utf8)
        #expect(try read(Picture.png([("tEXt", text)])).dates.isEmpty)
    }

    @Test func `PNG raw profiles`() throws {
        let block = Array("Exif\0\0".utf8) + Picture.camera().bytes
        let digits = block.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let profile = Array("\nexif\n    \(block.count)\n\(digits)\n".utf8)
        let keyword = Array("Raw profile type exif\0".utf8)
        expectCamera(try read(Picture.png([("tEXt", keyword + profile)])))
        // zlib, in one stored block.
        let count = profile.count
        let low = UInt8(count & 255)
        let high = UInt8(count >> 8)
        let packed: [UInt8] = [0x78, 0x01, 1, low, high, ~low, ~high] + profile + [0, 0, 0, 0]
        expectCamera(try read(Picture.png([("zTXt", keyword + [0] + packed)])))
    }

    @Test func `WebP chunks`() throws {
        let exif = Picture.camera().bytes
        let packet = Picture.xmp(#"xmp:CreateDate="2012-01-02T03:04:05""#)
        let extended: [UInt8] = [0x0C, 0, 0, 0, 0x9F, 0x0F, 0, 0xB7, 0x0B, 0]
        let facts = try read(
            Picture.webp([
                ("VP8X", extended), ("VP8 ", [1, 2, 3]), ("EXIF", Array("Exif\0\0".utf8) + exif),
                ("XMP ", packet),
            ]))
        #expect(facts.type == .webp)
        #expect(facts.width == 4000)
        #expect(facts.height == 3000)
        expectCamera(facts)
        #expect(time(facts, .xmp) == civil(2012, 1, 2, 3, 4, 5))
        expectCamera(try read(Picture.webp([("EXIF", exif)])))
        let lossy: [UInt8] = [0, 0, 0, 0x9D, 0x01, 0x2A, 0x2C, 0x01, 0xC8, 0x00]
        #expect(try read(Picture.webp([("VP8 ", lossy)])).width == 300)
        let lossless: [UInt8] = [0x2F, 0x2B, 0x01, 0x32, 0x00]
        #expect(try read(Picture.webp([("VP8L", lossless)])).width == 300)
        #expect(try read(Picture.webp([("VP8L", lossless)])).height == 201)
    }

    @Test func `GIF with XMP`() throws {
        let facts = try read(Picture.gif(Picture.xmp(#"xmp:CreateDate="2012-01-02T03:04:05""#)))
        #expect(facts.type == .gif)
        #expect(facts.width == 320)
        #expect(time(facts, .xmp) == civil(2012, 1, 2, 3, 4, 5))
    }

    @Test func `Photoshop documents`() throws {
        let thumbnail = [UInt8](repeating: 0, count: 28) + Picture.thumbnail
        let resources = Picture.photoshop([
            (0x040C, thumbnail), (0x0422, Picture.camera(isBig: true).bytes),
            (0x0404, Picture.iptc(date: "20140203", time: nil)),
        ])
        var out = ByteBuilder()
        out.add("8BPS")
        out.u16(1)
        out.add([UInt8](repeating: 0, count: 6))
        out.u16(3)
        for value in [600, 800, 0x0008_0003, 0, resources.count] { out.u32(value) }
        let facts = try read(out.bytes + resources)
        #expect(facts.type == .psd)
        #expect(facts.width == 800)
        #expect(facts.height == 600)
        expectCamera(facts)
        #expect(time(facts, .iptc) == civil(2014, 2, 3))
        #expect(facts.largestPreview?.count == Picture.thumbnail.count)
    }

    @Test func `bitmaps and JPEG XL`() throws {
        var bmp = ByteBuilder(isBig: false)
        bmp.add("BM")
        for value in [100, 0, 54, 40, 640, -480] { bmp.u32(value) }
        #expect(try read(bmp.bytes).height == 480)
        let naked: [UInt8] = [0xFF, 0x0A, 0x41, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        #expect(try read(naked).type == .jxl)
        #expect(try read(naked).height == 8)
        let signature = Picture.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
        let file =
            signature + Picture.ftyp("jxl ") + Picture.box("Exif", [0, 0, 0, 0] + Picture.camera().bytes)
        let facts = try read(file)
        #expect(facts.type == .jxl)
        expectCamera(facts)
    }

    /// Damaged files, and those that a careless program has edited, may turn a picture twice.
    @Test func `the first of several orientations counts`() throws {
        let tags = { (values: [Int]) in TIFFBuilder(main: values.map { .short(0x0112, $0) }).bytes }
        #expect(try read(tags([6, 3])).orientation == 6)
        #expect(try read(tags([3, 6])).orientation == 3)
        let segments = [6, 3].map { Picture.exifSegment(tags([$0])) }
        #expect(try read(Picture.jpeg(segments)).orientation == 6)
        #expect(try read(Picture.jpeg(segments.reversed())).orientation == 3)
        // Of HEIF the properties count, in their order, and Exif's not at all.
        let turns = [Picture.box("irot", [3]), Picture.box("irot", [2])]
        let heif = Picture.heif("heic", exif: tags([6]), xmp: [], transforms: turns)
        #expect(try read(heif).orientation == 8)
    }

    /// The packet is Brotli's own work, with words of its dictionary; the block is stored.
    @Test func `JPEG XL with compressed boxes`() throws {
        let signature = Picture.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + Picture.ftyp("jxl ")
        let packet = try #require(Data(base64Encoded: FormatTests.brotliPacket))
        let facts = try read(signature + Picture.box("brob", Array("xml ".utf8) + packet))
        #expect(facts.dates.map(\.time) == [civil(2009, 8, 7, 6, 5, 4)])
        let block = [0, 0, 0, 0] + Picture.camera().bytes
        expectCamera(
            try read(signature + Picture.box("brob", Array("Exif".utf8) + Picture.storedBrotli(block))))
        // Cut or damaged streams are no error.
        for count in 0..<packet.count {
            #expect(
                try read(signature + Picture.box("brob", Array("xml ".utf8) + packet[..<count])).type == .jxl)
        }
    }

    static let brotliPacket = """
        G9oAAORsW+pHftXEWGeE4s1U3ZbiQ30I9Tvn3KwgvCSDwSaY82v3bSLeXrKYjSeIoM/4+W/e5vFq34qaX4L5Gh6hqgjkeAyTr8vKSiQjwS6O\
        QXsdJCyUE84RVOj8l6v90HIWTu4CzRl985bLiUNrM8+v3QjDlIBx3/ytRvjdIKz0iagl3DRUe6o2CSRHkqVwXlPL
        """

    @Test func `inflate reads every kind of block`() throws {
        let keyword = Array("XML:com.adobe.xmp\0".utf8) + [1, 0, 0, 0]
        let packed = try #require(Data(base64Encoded: Samples.dynamicBlock))
        let facts = try read(Picture.png([("iTXt", keyword + [UInt8](packed))]))
        #expect(facts.dates.map(\.time) == [civil(2009, 8, 7, 6, 5, 4)])
        let fixed = try #require(Data(base64Encoded: FormatTests.fixedBlock))
        #expect(try read(Picture.png([("iTXt", keyword + [UInt8](fixed))])).dates.count == 1)
    }

    static let fixedBlock = "eAGzSVRIrchMs3JJLEkNycxN9S/KTM/MS8yxVTcyMLDUNbDQNTAPMTCzMjC1MjBRt1NIxAEANvUW0g=="
}
