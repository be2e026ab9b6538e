import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@Suite struct ThumbnailTests {
    @Test func aThumbnailHasItsSizeBeforeItIsOpened() throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg())
        try rig.utimes("albums/a.jpg", modified: 1_500_000_000)
        let shown = try rig.stat("albums/.thumbs/a.jpg")
        let bytes = try rig.get("albums/.thumbs/a.jpg")
        #expect(bytes.starts(with: [0xFF, 0xD8]) && bytes.suffix(2) == [0xFF, 0xD9])
        #expect(shown.size == UInt64(bytes.count))
        #expect(shown.mode == 0o100444)
        #expect(shown.modified == Timestamp(seconds: 1_500_000_000))
        #expect(try rig.get("moments/2024-05-01/.thumbs/a.jpg") == bytes)
        #expect(try rig.ls("albums") == ["a.jpg"])
        #expect(try rig.ls("albums/.thumbs") == ["a.jpg", "fast"])
        try rig.remount()
        #expect(try rig.get("albums/.thumbs/a.jpg") == bytes)
    }

    @Test func itFollowsThePhoto() throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg(more: 1))
        let first = try rig.get("albums/.thumbs/a.jpg")
        try rig.put("albums/a.jpg", jpeg(more: 2))
        #expect(try rig.get("albums/.thumbs/a.jpg") != first)
        try rig.rm("moments/2024-05-01/a.jpg")
        #expect(rig.usedBytes == 0)
        #expect(!rig.exists("albums/.thumbs"))
        try rig.expectNothingLeft()
    }

    @Test func namesWithoutJPEGExtensionGetOne() throws {
        let rig = try Rig()
        try rig.put("albums/a.JPG", jpeg(more: 1))
        try rig.put("albums/b.png", jpeg(more: 2))
        try rig.put("albums/notes.txt", [1])
        #expect(try rig.ls("albums/.thumbs") == ["a.JPG", "b.png.jpg", "fast"])
        #expect(rig.exists("albums/.thumbs/b.png.jpg"))
        #expect(!rig.exists("albums/.thumbs/b.png"))
        #expect(!rig.exists("albums/.thumbs/notes.txt.jpg"))
        #expect(!rig.exists("albums/.thumbs/a.JPG.jpg"))
    }

    @Test func whatCannotBeDecodedHasNone() throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", undecodableJPEG("2024-05-01"))
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
        #expect(try rig.ls("albums/.thumbs") == ["a.jpg", "fast"])
        #expect(!rig.exists("albums/.thumbs/a.jpg"))
        #expect(try rig.ls("albums/.thumbs") == ["fast"], "remembered")
    }

    @Test func thumbsCannotBeWritten() throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg())
        let thumbs = try rig.ino("albums/.thumbs")
        let thumb = try rig.ino("albums/.thumbs/a.jpg")
        expectError(.readOnly) {
            _ = try rig.library.makeNode(thumbs, "x", mode: 0o100644, rdev: 0, rig.caller)
        }
        expectError(.readOnly) { try rig.library.unlink(thumbs, "a.jpg", rig.caller) }
        expectError(.readOnly) { _ = try rig.library.open(thumb, flags: O_RDWR, rig.caller) }
        expectError(.readOnly) {
            _ = try rig.library.setAttributes(thumb, AttributeChanges(mode: 0), rig.caller)
        }
        expectError(.readOnly) { try rig.mv("albums/.thumbs/a.jpg", "albums/b.jpg") }
        expectError(.notPermitted) { try rig.ln("albums/.thumbs/a.jpg", "albums/b.jpg") }
    }

    @Test func aRealDirectoryComesFirst() throws {
        let rig = try Rig()
        try rig.mkdir("albums/.thumbs")
        try rig.put("albums/.thumbs/own.txt", [1])
        try rig.put("albums/a.jpg", jpeg())
        #expect(try rig.ls("albums/.thumbs") == ["own.txt"])
        #expect(!rig.exists("albums/.thumbs/a.jpg"))
    }

    @Test func withoutPhotosOrWithoutTheOptionThereIsNone() throws {
        let rig = try Rig()
        try rig.put("albums/t.txt", [1])
        #expect(!rig.exists("albums/.thumbs"))
        try rig.put("albums/a.jpg", jpeg())
        try rig.close()
        try rig.reopen { $0.thumbnails = .off }
        expectError(.noEntry) { _ = try rig.library.lookup(1, ".thumbs", rig.caller) }
        expectError(.noEntry) { _ = try rig.library.lookup(3, ".thumbs", rig.caller) }
    }
}
