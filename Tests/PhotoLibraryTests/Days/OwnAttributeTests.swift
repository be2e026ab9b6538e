import FileRequests
import LibraryFixtures
import PhotoLibrary
import TestSupport
import Testing

/// A photo's attributes `user.obscura.NAME`.
@Suite("Days: user.obscura attributes") struct OwnAttributeTests {
    private static let names = [
        "captured", "captured.source", "width", "height", "orientation", "camera", "latitude", "longitude",
    ]

    /// A JPEG with an XMP packet, and `comment` bytes before it.
    private func photo(_ properties: String, behind comment: Int = 0) -> [UInt8] {
        func segment(_ marker: UInt8, _ body: [UInt8]) -> [UInt8] {
            [0xFF, marker, UInt8((body.count + 2) >> 8), UInt8((body.count + 2) & 0xFF)] + body
        }
        let packet = "http://ns.adobe.com/xap/1.0/\0<rdf:Description \(properties)/>"
        let comments = (0..<comment / 60_000).flatMap { _ in segment(0xFE, noise(60_000)) }
        return [0xFF, 0xD8] + comments + segment(0xE1, Array(packet.utf8)) + jpeg().dropFirst(2)
    }

    private let facts = """
        tiff:Make='NIKON CORPORATION' tiff:Model='NIKON D70' exif:GPSLatitude='27,42.6N' \
        exif:GPSLongitude='85,19.5W'
        """

    @Test func `attributes tell of the photo`() throws {
        let fixture = try Fixture()
        let ino = try fixture.put("albums/a.jpg", photo(facts))
        for path in ["albums/a.jpg", "moments/2024-05-01/a.jpg"] {
            #expect(try fixture.own("width", path) == "8")
            #expect(try fixture.own("height", path) == "8")
            #expect(try fixture.own("orientation", path) == "1")
            #expect(try fixture.own("camera", path) == "NIKON D70")
            #expect(try fixture.own("latitude", path) == "27.710000")
            #expect(try fixture.own("longitude", path) == "-85.325000")
        }
        #expect(try fixture.library.listExtendedAttributes(ino).isEmpty)
    }

    @Test(arguments: [
        ("0.0000004", "-0.0000004", "0.000000", "0.000000"),
        ("-0.05", "179.9999996", "-0.050000", "180.000000"),
        ("90", "-180", "90.000000", "-180.000000"),
    ])
    func `positions have six digits`(_ north: String, _ east: String, _ latitude: String, _ longitude: String)
        throws
    {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", photo("exif:GPSLatitude='\(north)' exif:GPSLongitude='\(east)'"))
        #expect(try fixture.own("latitude", "albums/a.jpg") == latitude)
        #expect(try fixture.own("longitude", "albums/a.jpg") == longitude)
    }

    @Test func `facts that are not known have no attribute`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.put("albums/notes.txt", Array("hello".utf8))
        for name in ["camera", "latitude", "longitude", "", "Width", "aperture"] {
            expectError(.noData) { _ = try fixture.own(name, "albums/a.jpg") }
        }
        for name in Self.names {
            for path in ["albums/notes.txt", "albums", "moments/2024-05-01"] {
                expectError(.noData) { _ = try fixture.own(name, path) }
            }
        }
    }

    @Test func `attributes of the program cannot be written`() throws {
        let fixture = try Fixture()
        let ino = try fixture.put("albums/a.jpg", photo(facts))
        for name in Self.names {
            let name = Array("user.obscura.\(name)".utf8)
            expectError(.notPermitted) {
                try fixture.library.setExtendedAttribute(ino, name: name, value: [1], policy: .any)
            }
            expectError(.notPermitted) { try fixture.library.removeExtendedAttribute(ino, name: name) }
        }
    }

    /// Bytes that are not saved yet count, and those of the file that took the photo's place.
    @Test func `attributes follow the bytes`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", photo(facts))
        try fixture.put("albums/.a.jpg.x7", photo("tiff:Model='iPhone'", behind: 300_000))
        try fixture.mv("albums/.a.jpg.x7", "albums/a.jpg")
        #expect(try fixture.own("camera", "albums/a.jpg") == "iPhone")
        expectError(.noData) { _ = try fixture.own("latitude", "albums/a.jpg") }
        // A handle that is still known would keep the vault locked.
        do {
            let handle = try fixture.open("albums/a.jpg")
            try fixture.write(handle, photo(facts))
            #expect(try fixture.own("camera", "albums/a.jpg") == "NIKON D70")
            try fixture.library.flush(handle)
            fixture.library.release(handle)
        }
        try fixture.remount()
        #expect(try fixture.own("camera", "moments/2024-05-01/a.jpg") == "NIKON D70")
    }
}
