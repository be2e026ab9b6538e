import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import PhotoRules
import Recovery
import TestSupport
import Testing
import VaultFormat

/// Versions: the bytes that a photo had before it was edited.
@Suite("Albums: versions of edited photos") struct VersionTests {
    let one = jpeg("2024-05-01", more: 1)
    let two = jpeg("2024-05-01", more: 2)
    let three = jpeg("2024-05-01", more: 3)

    /// A wall clock that tests set.
    final class Wall: @unchecked Sendable {
        private let lock = NSLock()
        private var seconds: Int64 = 1_764_000_000
        var now: Int64 {
            get { lock.withLock { seconds } }
            set { lock.withLock { seconds = newValue } }
        }
        var clocks: Clocks {
            var clocks = Clocks()
            clocks.wall = { self.now }
            clocks.boot = { self.now }
            return clocks
        }
    }

    /// Functions of their own: a handle keeps the vault locked.
    private func write(_ bytes: [UInt8], to path: String, at offset: UInt64, _ fixture: Fixture) throws {
        let handle = try fixture.open(path)
        try fixture.write(handle, bytes, at: offset)
        try fixture.close(handle)
    }

    /// A program that is killed with the daemon while it writes.
    private func begin(_ bytes: [UInt8], to path: String, _ fixture: Fixture) throws {
        let handle = try fixture.open(path, O_RDWR | O_TRUNC)
        try fixture.write(handle, bytes)
        fixture.library.release(handle)
    }

    @Test func `a write in place keeps the original`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.utimes("albums/x.jpg", modified: 1_600_000_000)
        #expect(!fixture.exists("albums/.versions"))
        try fixture.put("albums/x.jpg", two)
        #expect(try fixture.get("albums/x.jpg") == two)
        for place in ["albums", "moments/2024-05-01"] {
            #expect(try !fixture.ls(place).contains(".versions"))
            #expect(try fixture.ls(place + "/.versions") == ["x.jpg"])
            #expect(try fixture.ls(place + "/.versions/x.jpg") == ["original"])
            #expect(try fixture.get(place + "/.versions/x.jpg/original") == one)
        }
        let shown = try fixture.stat("albums/.versions/x.jpg/original")
        #expect(shown.modified.seconds == 1_600_000_000)
        #expect(shown.size == UInt64(one.count))
        #expect(shown.mode == 0o100444)
        #expect(shown.nlink == 1)
        #expect(try fixture.stat("albums/.versions/x.jpg").mode == 0o040555)
    }

    @Test func `an edit of a part keeps the rest`() throws {
        let fixture = try Fixture()
        let bytes = largeJPEG("2024-05-01", more: 9, size: 400_000)
        try fixture.put("albums/x.jpg", bytes)
        try write([1, 2, 3], to: "albums/x.jpg", at: 300_000, fixture)
        var edited = bytes
        edited.replaceSubrange(300_000..<300_003, with: [1, 2, 3])
        #expect(try fixture.get("albums/x.jpg") == edited)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == bytes)
        try fixture.remount()
        #expect(try fixture.get("albums/x.jpg") == edited)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == bytes)
    }

    @Test(arguments: [".x.jpg.Ab12", "x.jpg_new"]) func `a file renamed over a photo keeps its former bytes`(
        name: String
    ) throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/other.jpg")
        try fixture.put("albums/" + name, two)
        try fixture.mv("albums/" + name, "albums/x.jpg")
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
        #expect(try fixture.get("albums/.versions/other.jpg/original") == one)
        #expect(try fixture.get("albums/x.jpg") == two)
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.expectNothingLeft()
    }

    @Test func `a backup keeps the original too`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.mv("albums/x.jpg", "albums/x.jpg~")
        try fixture.put("albums/x.jpg", two)
        try fixture.rm("albums/x.jpg~")
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
    }

    @Test func `there is at most one version a minute`() throws {
        let wall = Wall()
        let fixture = try Fixture(clocks: wall.clocks)
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", two)
        wall.now += 59
        try fixture.put("albums/x.jpg", three)
        #expect(try fixture.ls("albums/.versions/x.jpg") == ["original"])
        wall.now += 1
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 4))
        let names = try fixture.ls("albums/.versions/x.jpg")
        let name = try #require(names.first)
        #expect(names.count == 2)
        #expect(name == String(decoding: versionName(replaced: wall.now), as: UTF8.self) + ".jpg")
        #expect(try fixture.get("albums/.versions/x.jpg/" + name) == three)
        wall.now += 60
        try fixture.put("albums/.t", two)
        try fixture.mv("albums/.t", "albums/x.jpg")
        #expect(try fixture.ls("albums/.versions/x.jpg").count == 3)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
    }

    /// `find -exec cp {} DIRECTORY`, with names that several cameras give.
    @Test(arguments: [true, false]) func `other photos under one name are all kept`(isRenamed: Bool) throws {
        let fixture = try Fixture(clocks: Wall().clocks)
        let photos = (1...4).map { jpeg("2024-0\($0)-01", more: $0) }
        for photo in photos {
            guard isRenamed else {
                try fixture.put("albums/x.jpg", photo)
                continue
            }
            try fixture.put("albums/.x.jpg.Ab12", photo)
            try fixture.mv("albums/.x.jpg.Ab12", "albums/x.jpg")
        }
        let versions = try fixture.ls("albums/.versions/x.jpg").map {
            try fixture.get("albums/.versions/x.jpg/" + $0)
        }
        #expect(Set(versions) == Set(photos.dropLast()))
    }

    /// A copy, or the name of a photo of which a hard link keeps the bytes.
    @Test(arguments: [true, false]) func `a file renamed over another name of a photo keeps them too`(
        isCopy: Bool
    ) throws {
        let fixture = try Fixture()
        if isCopy {
            try fixture.put("albums/x.jpg", one)
            try fixture.put("albums/y.jpg", one)
        } else {
            try fixture.put("albums/y.jpg", one)
            try fixture.ln("albums/y.jpg", "albums/x.jpg")
        }
        try fixture.put("albums/.y.jpg.Ab12", two)
        try fixture.mv("albums/.y.jpg.Ab12", "albums/y.jpg")
        #expect(try fixture.get("albums/x.jpg") == one && !fixture.exists("albums/.versions/x.jpg"))
        #expect(try fixture.get("albums/y.jpg") == two)
        #expect(try fixture.get("albums/.versions/y.jpg/original") == one)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(try fixture.get("albums/.versions/y.jpg/original") == one)
        try fixture.rm("moments/2024-05-01/y.jpg")
        try fixture.expectNothingLeft()
    }

    @Test func `the same bytes renamed over a copy are no edit`() throws {
        let fixture = try Fixture()
        for path in ["albums/x.jpg", "albums/y.jpg", "albums/.y.jpg.Ab12"] { try fixture.put(path, one) }
        try fixture.mv("albums/.y.jpg.Ab12", "albums/y.jpg")
        #expect(!fixture.exists("albums/.versions/y.jpg"))
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
    }

    @Test func `the original is brought back by copying it`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", two)
        try fixture.put("albums/x.jpg", try fixture.get("albums/.versions/x.jpg/original"))
        #expect(try fixture.get("albums/x.jpg") == one)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
    }

    @Test func `nothing changes a version`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", two)
        let path = "albums/.versions/x.jpg/original"
        expectError(.readOnly) { _ = try fixture.open(path) }
        expectError(.readOnly) { _ = try fixture.open(path, O_RDONLY | O_TRUNC) }
        expectError(.readOnly) { try fixture.truncate(path, 3) }
        expectError(.readOnly) { try fixture.utimes(path, modified: 7) }
        expectError(.readOnly) { try fixture.rm(path) }
        expectError(.readOnly) { try fixture.mv(path, "albums/y.jpg") }
        expectError(.readOnly) { try fixture.mv("albums/x.jpg", "albums/.versions/x.jpg/y.jpg") }
        expectError(.readOnly) { try fixture.put("albums/.versions/x.jpg/new", one) }
        expectError(.readOnly) { try fixture.mkdir("albums/.versions/y") }
        expectError(.notPermitted) { try fixture.ln(path, "albums/y.jpg") }
        expectError(.readOnly) {
            try fixture.library.setExtendedAttribute(
                try fixture.ino(path), name: Array("user.a".utf8), value: [1], policy: .any)
        }
        #expect(try fixture.get(path) == one)
    }

    @Test func `a real directory named .versions comes first`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", two)
        try fixture.mkdir("albums/.versions")
        #expect(try fixture.ls("albums").contains(".versions"))
        #expect(try fixture.ls("albums/.versions") == [])
        #expect(try fixture.get("moments/2024-05-01/.versions/x.jpg/original") == one)
    }

    @Test func `versions follow their photo`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("albums/A")
        try fixture.put("albums/A/x.jpg", one)
        try fixture.put("albums/A/x.jpg", two)
        try fixture.mv("albums/A/x.jpg", "albums/y.jpg")
        #expect(try fixture.get("albums/.versions/y.jpg/original") == one)
        #expect(!fixture.exists("albums/A/.versions"))
        try fixture.mkdir("moments/2020-02-02")
        try fixture.mv("moments/2024-05-01/y.jpg", "moments/2020-02-02/z.jpg")
        #expect(try fixture.get("moments/2020-02-02/.versions/z.jpg/original") == one)
        try fixture.rm("moments/2020-02-02/z.jpg")
        #expect(!fixture.exists("moments/2020-02-02/.versions"))
        #expect(!fixture.exists("albums/.versions"))
        #expect(try fixture.get(".Trash-0/files/.versions/z.jpg/original") == one)
        try fixture.mv(".Trash-0/files/z.jpg", "moments/2020-02-02/z.jpg")
        #expect(try fixture.get("albums/.versions/y.jpg/original") == one)
        try fixture.rm("moments/2020-02-02/z.jpg")
        try fixture.rmrf(".Trash-0")
        try fixture.expectNothingLeft()
    }

    @Test func `a copy in the trash that takes the place of its destroyed photo takes its versions`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("albums/A")
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", two)
        try fixture.put("albums/A/y.jpg", two)
        for path in [".Trash-0", ".Trash-0/files", ".Trash-0/info"] { try fixture.mkdir(path, mode: 0o700) }
        try fixture.mv("albums/A", ".Trash-0/files/A")
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.rm(".Trash-0/files/x.jpg")
        try fixture.remount()
        #expect(try fixture.get(".Trash-0/files/A/y.jpg") == two)
        #expect(try fixture.get(".Trash-0/files/A/.versions/y.jpg/original") == one)
    }

    /// A save that failed, or a mistake: the file is no photo any more, or stands for another one.
    @Test(arguments: ["text", "copy"], ["albums", "moments/2024-05-01"])
    func `a file that was a photo goes into the trash with its versions`(left: String, place: String) throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("moments/2024-05-01")
        try fixture.put("albums/other.jpg", two)
        try fixture.put(place + "/x.jpg", one)
        try fixture.put(place + "/x.jpg", left == "text" ? [1, 2, 3] : two)
        #expect(fixture.exists(place + "/x.jpg"))
        try fixture.rm(place + "/x.jpg")
        try fixture.remount()
        #expect(try fixture.ls(".Trash-0/files") == ["x.jpg"])
        #expect(try fixture.ls(".Trash-0/info") == ["x.jpg.trashinfo"])
        #expect(try fixture.get(".Trash-0/files/.versions/x.jpg/original") == one)
        try fixture.mv(".Trash-0/files/x.jpg", place + "/y.jpg")
        #expect(try fixture.get(place + "/.versions/y.jpg/original") == one)
        try fixture.rm(place + "/y.jpg")
        try fixture.rm(".Trash-0/files/y.jpg")
        #expect(try fixture.ls(".Trash-0/files").isEmpty)
        try fixture.remount()
        #expect(try fixture.get("albums/other.jpg") == two)
    }

    @Test func `a file that is renamed over one that was a photo takes its versions over`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", [1, 2, 3])
        try fixture.put("albums/.new", two)
        try fixture.mv("albums/.new", "albums/x.jpg")
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
        #expect(try fixture.ls("moments/2024-05-01") == ["x.jpg"])
    }

    @Test func `a link that is renamed over a file that was a photo leaves that to the trash`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", [1, 2, 3])
        _ = try fixture.library.makeSymbolicLink(3, "link", target: [120], fixture.caller)
        try fixture.mv("albums/link", "albums/x.jpg")
        #expect(try fixture.ls(".Trash-0/info") == ["x.jpg.trashinfo"])
        #expect(try fixture.get(".Trash-0/files/.versions/x.jpg/original") == one)
    }

    /// The copy has the old bytes, and the photo the new ones and the version.
    @Test func `copies and versions share their bytes`() throws {
        let fixture = try Fixture()
        let bytes = largeJPEG("2024-05-01", more: 9, size: 400_000)
        try fixture.put("albums/x.jpg", bytes)
        try fixture.put("albums/copy.jpg", bytes)
        let used = fixture.usedBytes
        try fixture.put("albums/x.jpg", two)
        #expect(fixture.usedBytes < used + 100_000)
        #expect(try fixture.get("albums/copy.jpg") == bytes)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == bytes)
        #expect(try fixture.moments().count == 2)
        for day in try fixture.moments() { try fixture.rm("moments/" + day) }
        try fixture.expectNothingLeft()
    }

    @Test func `versions=off keeps none`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try fixture.close()
        try fixture.reopen { $0.versions = .off }
        try fixture.put("albums/x.jpg", two)
        #expect(!fixture.exists("albums/.versions"))
    }

    @Test func `old versions end and the original stays`() throws {
        let wall = Wall()
        let fixture = try Fixture(clocks: wall.clocks)
        try fixture.put("albums/x.jpg", one)
        for more in 2..<5 {
            wall.now += 100
            try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: more))
        }
        #expect(try fixture.ls("albums/.versions/x.jpg").count == 3)
        wall.now += 31 * 86_400
        try fixture.remount()
        #expect(try fixture.ls("albums/.versions/x.jpg").count == 3, "only noted")
        wall.now += 86_500
        try fixture.remount()
        #expect(try fixture.ls("albums/.versions/x.jpg") == ["original"])
        wall.now += 900 * 86_400
        try fixture.remount()
        wall.now += 86_500
        try fixture.remount()
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.expectNothingLeft()
    }

    /// One that was wrong for a while.
    @Test func `a clock in the future ends none`() throws {
        let wall = Wall()
        let fixture = try Fixture(clocks: wall.clocks)
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", two)
        wall.now += 100
        try fixture.put("albums/x.jpg", three)
        let now = wall.now
        wall.now += 4000 * 86_400
        try fixture.remount()
        wall.now = now + 86_400
        try fixture.remount()
        #expect(try fixture.ls("albums/.versions/x.jpg").count == 2)
        wall.now = now + 31 * 86_400
        try fixture.remount()
        #expect(try fixture.ls("albums/.versions/x.jpg").count == 2)
    }

    @Test func `a kill leaves the original`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", one)
        try begin(Array(two.prefix(100)), to: "albums/x.jpg", fixture)
        try fixture.kill()
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
        try fixture.put("albums/x.jpg", two)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
    }

    @Test func `a salvage finds versions`() throws {
        let wall = Wall()
        let fixture = try Fixture(clocks: wall.clocks)
        try fixture.put("albums/x.jpg", one)
        try fixture.put("albums/x.jpg", two)
        wall.now += 100
        try fixture.put("albums/.t", three)
        try fixture.mv("albums/.t", "albums/x.jpg")
        let names = try fixture.ls("albums/.versions/x.jpg")
        #expect(names.count == 2)
        try fixture.destroyCatalogue()
        let report = try fixture.salvage()
        #expect(report.photos == 1)
        #expect(try fixture.ls("albums/.versions/x.jpg") == names)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == one)
        #expect(try fixture.get("albums/.versions/x.jpg/" + names[0]) == two)
        #expect(try fixture.get("albums/x.jpg") == three)
        #expect(try fixture.ls("albums") == ["x.jpg"])
    }

    /// Versions make room for photos, the oldest first.
    @Test func `a full space gives versions up`() throws {
        let wall = Wall()
        let fixture = try Fixture(bytes: 64 << 20, clocks: wall.clocks)
        try fixture.put("albums/x.jpg", largeJPEG("2024-05-01", more: 1, size: 8_000_000))
        for more in 2..<4 {
            wall.now += 100
            try fixture.put("albums/x.jpg", largeJPEG("2024-05-01", more: more, size: 8_000_000))
        }
        #expect(try fixture.ls("albums/.versions/x.jpg").count == 2)
        let statistics = fixture.library.statistics()
        var count = 0
        while true {
            let bytes = largeJPEG("2020-05-01", more: 100 + count, size: 1_000_000)
            do { try fixture.put("albums/n\(count).jpg", bytes) } catch FileError.noRoom { break }
            count += 1
            if count == 8 { #expect(fixture.exists("albums/.versions/x.jpg/original")) }
        }
        #expect(!fixture.exists("albums/.versions"))
        #expect(UInt64(count) * 1_000_000 > statistics.available * statistics.blockBytes * 8 / 10)
        #expect(try fixture.get("albums/x.jpg") == largeJPEG("2024-05-01", more: 3, size: 8_000_000))
    }

    /// Without that version, an edit that finds no room would have destroyed the photo.
    @Test func `a full space keeps the version of a photo that is being rewritten`() throws {
        let fixture = try Fixture(bytes: 64 << 20)
        let old = largeJPEG("2024-05-01", more: 1, size: 4_000_000)
        try fixture.put("albums/x.jpg", old)
        let handle = try fixture.open("albums/x.jpg", O_WRONLY | O_TRUNC)
        let piece = largeJPEG("2024-05-01", more: 2, size: 1_000_000)
        var offset: UInt64 = 0
        expectError(.noRoom) {
            while true {
                try fixture.write(handle, piece, at: offset)
                offset += UInt64(piece.count)
            }
        }
        #expect(try fixture.get("albums/.versions/x.jpg/original") == old)
        try? fixture.close(handle)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == old)
    }

    /// A photo that fills most of the space can still be edited in place.
    @Test func `an edit without room for a version goes on`() throws {
        let fixture = try Fixture(bytes: 64 << 20)
        let bytes = largeJPEG("2024-05-01", more: 1, size: 18_000_000)
        try fixture.put("albums/x.jpg", bytes)
        try write([7], to: "albums/x.jpg", at: 17_000_000, fixture)
        var edited = bytes
        edited[17_000_000] = 7
        #expect(try fixture.get("albums/x.jpg") == edited)
    }
}
