import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@Suite("Thumbnails: sizes, times, names") struct ThumbnailTests {
    @Test func `a thumbnail has its size before it is opened`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.utimes("albums/a.jpg", modified: 1_500_000_000)
        let shown = try fixture.stat("albums/.thumbs/a.jpg")
        let bytes = try fixture.get("albums/.thumbs/a.jpg")
        #expect(bytes.starts(with: [0xFF, 0xD8]) && bytes.suffix(2) == [0xFF, 0xD9])
        #expect(shown.size == UInt64(bytes.count))
        #expect(shown.mode == 0o100444)
        #expect(shown.modified == Timestamp(seconds: 1_500_000_000))
        #expect(try fixture.get("moments/2024-05-01/.thumbs/a.jpg") == bytes)
        #expect(try fixture.ls("albums") == ["a.jpg"])
        #expect(try fixture.ls("albums/.thumbs") == ["a.jpg", "fast"])
        try fixture.remount()
        #expect(try fixture.get("albums/.thumbs/a.jpg") == bytes)
    }

    @Test func `a thumbnail follows its photo`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        let first = try fixture.get("albums/.thumbs/a.jpg")
        try fixture.put("albums/a.jpg", jpeg(more: 2))
        #expect(try fixture.get("albums/.thumbs/a.jpg") != first)
        try fixture.rm("moments/2024-05-01/a.jpg")
        #expect(fixture.usedBytes == 0)
        #expect(!fixture.exists("albums/.thumbs"))
        try fixture.expectNothingLeft()
    }

    @Test func `names without the extension of a JPEG get one`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.JPG", jpeg(more: 1))
        try fixture.put("albums/b.png", jpeg(more: 2))
        try fixture.put("albums/notes.txt", [1])
        #expect(try fixture.ls("albums/.thumbs") == ["a.JPG", "b.png.jpg", "fast"])
        #expect(fixture.exists("albums/.thumbs/b.png.jpg"))
        #expect(!fixture.exists("albums/.thumbs/b.png"))
        #expect(!fixture.exists("albums/.thumbs/notes.txt.jpg"))
        #expect(!fixture.exists("albums/.thumbs/a.JPG.jpg"))
    }

    @Test func `a photo that cannot be decoded has no thumbnail`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", undecodableJPEG("2024-05-01"))
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        #expect(try fixture.ls("albums/.thumbs") == ["a.jpg", "fast"])
        #expect(!fixture.exists("albums/.thumbs/a.jpg"))
        #expect(try fixture.ls("albums/.thumbs") == ["fast"], "remembered")
    }

    @Test func `.thumbs cannot be written`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg())
        let thumbs = try fixture.ino("albums/.thumbs")
        let thumb = try fixture.ino("albums/.thumbs/a.jpg")
        expectError(.readOnly) {
            _ = try fixture.library.makeNode(thumbs, "x", mode: 0o100644, rdev: 0, fixture.caller)
        }
        expectError(.readOnly) { try fixture.library.unlink(thumbs, "a.jpg", fixture.caller) }
        expectError(.readOnly) { _ = try fixture.library.open(thumb, flags: O_RDWR, fixture.caller) }
        expectError(.readOnly) {
            _ = try fixture.library.setAttributes(thumb, AttributeChanges(mode: 0), fixture.caller)
        }
        expectError(.readOnly) { try fixture.mv("albums/.thumbs/a.jpg", "albums/b.jpg") }
        expectError(.notPermitted) { try fixture.ln("albums/.thumbs/a.jpg", "albums/b.jpg") }
    }

    @Test func `a real directory named .thumbs comes first`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/.thumbs")
        try fixture.put("albums/.thumbs/own.txt", [1])
        try fixture.put("albums/a.jpg", jpeg())
        #expect(try fixture.ls("albums/.thumbs") == ["own.txt"])
        #expect(!fixture.exists("albums/.thumbs/a.jpg"))
    }

    @Test func `without photos or without the option there is none`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/t.txt", [1])
        #expect(!fixture.exists("albums/.thumbs"))
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.close()
        try fixture.reopen { $0.thumbnails = .off }
        expectError(.noEntry) { _ = try fixture.library.lookup(1, ".thumbs", fixture.caller) }
        expectError(.noEntry) { _ = try fixture.library.lookup(3, ".thumbs", fixture.caller) }
    }
}
