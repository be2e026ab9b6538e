import PhotoImaging
import TestFixtures
import Testing

/// Sizes, cameras and places where formats keep them in ways of their own.
@Suite("Days: facts of a photo") struct FactsTests {
    private func read(_ bytes: [UInt8]) throws -> MediaFacts {
        try #require(readFacts(MemoryByteSource(bytes)))
    }

    // MARK: The full picture's size

    @Test func `Panasonic gives the sensor's borders`() throws {
        let borders: [TIFFTag] = [.short(4, 8), .short(5, 16), .short(6, 2744), .short(7, 3664)]
        let preview = TIFFTag.raw(0x002E, type: 7, Picture.jpeg([], width: 1920, height: 1440))
        let facts = try read(TIFFBuilder(magic: 0x55, main: borders + [preview]).bytes)
        #expect(facts.type == .rw2)
        #expect((facts.width, facts.height) == (3648, 2736))
        let upside = TIFFBuilder(
            magic: 0x55, main: [.short(4, 9), .short(5, 0), .short(6, 8), .short(7, 9), preview])
        #expect(try read(upside.bytes).width == 1920)
    }

    @Test func `Canon's first directory is a preview`() throws {
        var tiff = TIFFBuilder(main: [
            .short(0x0100, 1536), .short(0x0101, 1024), .ascii(0x010F, "Canon"), .exif,
        ])
        tiff.header = Array("CR\u{02}\0\0\0\0\0".utf8)
        #expect(try read(tiff.bytes).width == 1536)
        tiff.exif = [.short(0xA002, 3456), .short(0xA003, 2304)]
        let facts = try read(tiff.bytes)
        #expect(facts.type == .cr2)
        #expect((facts.width, facts.height) == (3456, 2304))
    }

    @Test func `Fujifilm's preview is smaller`() throws {
        let facts = try read(Picture.raf(rawWidth: 4896, rawHeight: 3264))
        #expect(facts.type == .raf)
        #expect((facts.width, facts.height) == (4896, 3264))
        #expect(facts.model == "Model 7")
        #expect(try read(Picture.raf()).width == 4000)
    }

    // MARK: Camera

    @Test(arguments: [
        ("Canon", "Canon EOS 6D", "Canon EOS 6D"), ("NIKON CORPORATION", "NIKON D70", "NIKON D70"),
        ("EASTMAN KODAK COMPANY", "KODAK DX4530", "KODAK DX4530"), ("LG Electronics", "LG-H870", "LG-H870"),
        ("Apple", "iPhone 12 Pro", "Apple iPhone 12 Pro"), ("SONY", "SLT-A77", "SONY SLT-A77"),
        ("samsung", "Samsung SM-G960F", "Samsung SM-G960F"), ("Can", "Canon", "Can Canon"),
        ("Maker", nil, "Maker"),
        (nil, "Model", "Model"), ("", "Model", "Model"), ("--", "--", "-- --"), (nil, nil, nil),
    ])
    func `a camera's name has its maker once`(_ make: String?, _ model: String?, _ camera: String?) {
        var facts = MediaFacts(type: .jpeg)
        facts.make = make
        facts.model = model
        #expect(facts.camera == camera)
    }

    @Test func `Android has keys of its own`() throws {
        let keys = Picture.keyed([("com.android.manufacturer", "Google"), ("com.android.model", "Pixel 7")])
        #expect(try read(Picture.ftyp("isom") + Picture.box("moov", keys)).camera == "Google Pixel 7")
    }

    // MARK: Place

    private func location(name: [UInt8], east: Int, north: Int) -> [UInt8] {
        var body = ByteBuilder()
        body.add([0, 0, 0, 0, 0x15, 0xC7] + name + [0])
        for number in [east, north, 0] { body.u32(number) }
        return Picture.ftyp("3gp5")
            + Picture.box("moov", Picture.box("udta", Picture.box("loci", body.bytes)))
    }

    @Test(arguments: [Array("Kathmandu\0".utf8), [0], [0xFE, 0xFF, 0, 0x4B, 0x4B, 0, 0, 0]])
    func `phones of the third generation write fixed points`(_ name: [UInt8]) throws {
        let facts = try read(location(name: name, east: -(85 << 16) - 0x4000, north: 27 << 16 | 0x8000))
        #expect(facts.latitude == 27.5)
        #expect(facts.longitude == -85.25)
    }

    @Test func `no position is not the Gulf of Guinea`() throws {
        #expect(try read(location(name: [0], east: 0, north: 0)).latitude == nil)
        #expect(try read(location(name: [0], east: 0, north: 1 << 16)).longitude == 0)
        let endless = location(name: [UInt8](repeating: 65, count: 1000), east: 1 << 16, north: 1 << 16)
        #expect(try read(endless).latitude == nil)
    }

    @Test(arguments: [
        ("27,42.6N", "85,19.5W", 27.71, -85.325), ("27,42,36S", "85,19,30E", -27.71, 85.325),
        ("-27.71", "85.325", -27.71, 85.325), ("0.5", "0", 0.5, 0),
    ])
    func `positions in XMP are read`(_ north: String, _ east: String, _ latitude: Double, _ longitude: Double)
        throws
    {
        let packet = Picture.xmp("exif:GPSLatitude='\(north)' exif:GPSLongitude='\(east)'")
        let facts = try read(Picture.jpeg([Picture.xmpSegment(packet)]))
        #expect(abs((facts.latitude ?? 99) - latitude) < 1e-9)
        #expect(abs((facts.longitude ?? 99) - longitude) < 1e-9)
    }

    @Test(arguments: ["91", "", "N", "nan", "1e999", "inf0", "1,2,3,4N", "x,yN"])
    func `invalid positions in XMP are none`(_ north: String) throws {
        let packet = Picture.xmp("exif:GPSLatitude='\(north)' exif:GPSLongitude='1'")
        #expect(try read(Picture.jpeg([Picture.xmpSegment(packet)])).latitude == nil)
    }

    /// exif:GPSTimeStamp is in UTC, with its zone or without; a sidecar's comes after the photo's own dates.
    @Test(arguments: [
        ("2023-11-15T23:30:00Z", true), ("2023-11-16T01:30:00+02:00", true), ("2023-11-15T23:30:00", true),
        ("2023-11-15", false),
    ])
    func `the moment of GPS in XMP`(_ text: String, _ isUTC: Bool) throws {
        let packet = Picture.xmp("exif:GPSTimeStamp='\(text)'")
        let time = isUTC ? civil(2023, 11, 15, 23, 30) : civil(2023, 11, 15)
        let facts = try read(Picture.jpeg([Picture.xmpSegment(packet)]))
        #expect(facts.dates == [DateCandidate(source: .gps, time: time, isUTC: isUTC)])
        #expect(readSidecar(MemoryByteSource(Array(packet))) == nil)
    }

    /// Reconyx's trail cameras tell the date nowhere else.
    @Test(arguments: [
        ([31, 8, 8, 5, 7, 2015], civil(2015, 5, 7, 8, 8, 31)), ([31, 8, 8, 13, 7, 2015], nil),
        ([31, 8, 8], nil),
    ])
    func `the date in a trail camera's note`(_ fields: [Int], _ time: CivilTime?) throws {
        var note = ByteBuilder(isBig: false)
        for number in [0xF101] + [Int](repeating: 0, count: 10) + fields { note.u16(number) }
        var tiff = TIFFBuilder(main: [.ascii(0x010F, "RECONYX"), .exif])
        tiff.exif = [.raw(0x927C, type: 7, note.bytes)]
        let facts = try read(Picture.jpeg([Picture.exifSegment(tiff.bytes)]))
        #expect(facts.dates.map(\.time) == [time].compactMap(\.self))
    }

    // MARK: Cases that fuzzing found

    /// A directory of many makers, each with its text elsewhere, cost a read for each.
    @Test func `knowing the type costs few reads`() {
        var tiff = ByteBuilder()
        tiff.add("MM")
        tiff.u16(42)
        tiff.u32(8)
        tiff.u16(1500)
        for index in 0..<1500 {
            tiff.u16(index == 0 ? 0x014A : 0x010F)
            tiff.u16(2)
            tiff.u32(64)
            tiff.u32(30_000 + index * 8000)
        }
        tiff.add([UInt8](repeating: 0, count: 13_000_000))
        var asf: [UInt8] = [
            0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11, 0xA6, 0xD9, 0, 0xAA, 0, 0x62, 0xCE, 0x6C,
        ]
        asf += [UInt8](repeating: 0, count: 14)
        for _ in 0..<64 {
            asf += [UInt8](repeating: 0, count: 17) + [0x40] + [UInt8](repeating: 0, count: 16_366)
        }
        for bytes in [tiff.bytes, asf] {
            let source = CountingSource(bytes)
            _ = identifyMedia(source)
            #expect(source.reads <= 20)
        }
    }
}
