import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultCrypto

/// The shared thumbnail repository of freedesktop.org.
@Suite("Thumbnails: the freedesktop repository") struct RepositoryTests {
    /// From RFC 1321, A.5, and one longer than a block.
    @Test func `digests are those of the specification`() {
        func hex(_ text: String) -> String {
            md5(Array(text.utf8)).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }
        #expect(hex("") == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(hex("abc") == "900150983cd24fb0d6963f7d28e17f72")
        #expect(hex("message digest") == "f96b697d7cb7938d525a2f31aaf161d0")
        #expect(
            hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
                == "d174ab98d277d9f5a5611c2c9f419d9f")
        #expect(
            hex(String(repeating: "1234567890", count: 8)) == "57edf4a22be3c955ac49da2e2107b67a")
    }

    @Test func `names are escaped as GLib does`() {
        let escaped = escapedForURI(Array("Día 1 #2?;%&'()=~[x].JPG".utf8))
        #expect(String(decoding: escaped, as: UTF8.self) == "D%C3%ADa%201%20%232%3F%3B%25&'()=~%5Bx%5D.JPG")
    }

    @Test func `both names in use are found in all sizes`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a b.jpg", jpeg())
        #expect(try fixture.ls("albums/.sh_thumbnails") == ["large", "normal", "x-large", "xx-large"])
        #expect(try fixture.stat("albums/.sh_thumbnails/normal").mode == 0o40555)
        let names = ["a b.jpg", "a%20b.jpg", "./a b.jpg", "./a%20b.jpg"].map { file($0) }
        for (directory, side) in [("normal", 128), ("large", 256), ("x-large", 512), ("xx-large", 1024)] {
            let first = try fixture.get("albums/.sh_thumbnails/\(directory)/\(names[0])")
            #expect(first.firstRange(of: Array("\(side)x\(side) ".utf8)) != nil)
            for name in names {
                let path = "albums/.sh_thumbnails/\(directory)/\(name)"
                #expect(try fixture.get(path) == first)
                #expect(try fixture.stat(path).size == UInt64(first.count))
            }
            #expect(try fixture.ls("albums/.sh_thumbnails/\(directory)") == [names[3]])
        }
        #expect(fixture.exists("moments/2024-05-01/.sh_thumbnails/large/" + names[0]))
        #expect(!fixture.exists("albums/.sh_thumbnails/normal/" + file("b.jpg")))
        #expect(!fixture.exists("albums/.sh_thumbnails/normal/" + names[0].uppercased()))
        #expect(!fixture.exists("albums/.sh_thumbnails/fail"))
        #expect(!fixture.exists("albums/.sh_thumbnails/normal/x.png"))
        #expect(try fixture.ls("albums") == ["a b.jpg"])
        #expect(!fixture.exists(".sh_thumbnails"))
    }

    @Test func `text chunks tell the state of the file that is named`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a b.jpg", jpeg())
        try fixture.put("albums/copy.jpg", jpeg())
        try fixture.utimes("albums/a b.jpg", modified: 1_500_000_000)
        try fixture.setModified("albums/copy.jpg", Timestamp(seconds: 1_400_000_000, nanoseconds: 20_030_999))
        let texts = try texts(of: fixture.get("albums/.sh_thumbnails/large/" + file("a b.jpg")))
        #expect(
            texts.map(\.0) == ["Thumb::URI", "Thumb::MTime", "Thumb::Size", "Thumb::Mimetype", "Software"])
        #expect(
            texts.map(\.1) == ["./a%20b.jpg", "1500000000", "\(jpeg().count)", "image/jpeg", "Obscura"])
        let copied = try self.texts(of: fixture.get("albums/.sh_thumbnails/large/" + file("copy.jpg")))
        #expect(copied.map(\.1).prefix(2) == ["./copy.jpg", "1400000000.020030"])
        #expect(
            try fixture.stat("albums/.sh_thumbnails/large/" + file("copy.jpg")).modified
                == Timestamp(seconds: 1_400_000_000))
    }

    @Test func `names follow the directory`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        let path = { (name: String) in "albums/.sh_thumbnails/normal/" + self.file(name) }
        #expect(fixture.exists(path("a.jpg")) && !fixture.exists(path("b.jpg")))
        try fixture.mv("albums/a.jpg", "albums/b.jpg")
        #expect(!fixture.exists(path("a.jpg")) && fixture.exists(path("b.jpg")))
        try fixture.put("albums/c.jpg", [1])
        #expect(!fixture.exists(path("c.jpg")))
        try fixture.put("albums/c.jpg", jpeg(more: 3))
        #expect(fixture.exists(path("c.jpg")))
        try fixture.rm("albums/b.jpg")
        #expect(!fixture.exists(path("b.jpg")))
        try fixture.rm("albums/c.jpg")
        #expect(!fixture.exists("albums/.sh_thumbnails"))
    }

    private func file(_ name: String) -> String {
        String(decoding: repositoryFileName(md5(Array(name.utf8))), as: UTF8.self)
    }

    /// The tEXt chunks behind the header, as keyword and value.
    private func texts(of png: [UInt8]) throws -> [(String, String)] {
        var at = 33
        var found: [(String, String)] = []
        while at + 12 <= png.count, png[at + 4..<at + 8].elementsEqual("tEXt".utf8) {
            let count = png[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
            let parts = png[at + 8..<at + 8 + count].split(separator: 0)
            try #require(parts.count == 2)
            found.append(
                (String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self)))
            at += 12 + count
        }
        return found
    }
}
