import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import PhotoRules
import TestSupport
import Testing
import VaultCatalogue

/// A photo's picture at the next stat after any change; and the room that dropped pictures give back.
@Suite("Thumbnails: after changes of a photo") struct FreshnessTests {
    private static let kinds = ["", "512/", "64x48-fill/"]

    /// The pictures of a photo, each with the size that stat told before it was opened.
    private func pictures(_ fixture: Fixture, _ directory: String, _ name: String) throws -> [[UInt8]] {
        try Self.kinds.map { kind in
            let path = "\(directory)/.thumbs/\(kind)\(name)"
            let size = try fixture.stat(path).size
            let bytes = try fixture.get(path)
            #expect(size == UInt64(bytes.count))
            return bytes
        }
    }

    /// After a change of bytes there are other pictures, which take as much room as the ones before.
    private func expectOthers(_ fixture: Fixture, after change: () throws -> Void) throws {
        let before = try pictures(fixture, "albums", "a.jpg")
        let used = fixture.usedBytes
        try change()
        for (new, old) in zip(try pictures(fixture, "albums", "a.jpg"), before) { #expect(new != old) }
        #expect(fixture.usedBytes == used)
        #expect(try pictures(fixture, "moments/2024-05-01", "a.jpg") == pictures(fixture, "albums", "a.jpg"))
        try fixture.remount()
        try fixture.rm("moments/2024-05-01/a.jpg")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    @Test func `a photo edited in place has another picture`() throws {
        let (fixture, _) = try Fixture.withStandIn { $0.versions = .off }
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        try expectOthers(fixture) {
            let handle = try fixture.open("albums/a.jpg")
            try fixture.write(handle, jpeg(more: 2))
            try fixture.close(handle)
        }
    }

    @Test func `a photo has no picture while it is written over`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        let before = try pictures(fixture, "albums", "a.jpg")
        let handle = try fixture.open("albums/a.jpg")
        #expect(try pictures(fixture, "albums", "a.jpg") == before)
        try fixture.write(handle, Array(jpeg(more: 2).prefix(200)))
        expectError(.noEntry) { _ = try fixture.get("albums/.thumbs/a.jpg") }
        try fixture.write(handle, Array(jpeg(more: 2).dropFirst(200)), at: 200)
        try fixture.close(handle)
        #expect(try pictures(fixture, "albums", "a.jpg") != before)
    }

    /// As editors and rsync save.
    @Test func `a photo replaced by a new file has another picture`() throws {
        let (fixture, _) = try Fixture.withStandIn { $0.versions = .off }
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        try expectOthers(fixture) {
            let old = try fixture.ino("albums/a.jpg")
            try fixture.put("albums/.a.jpg.x7", jpeg(more: 2))
            try fixture.mv("albums/.a.jpg.x7", "albums/a.jpg")
            fixture.library.forget(old)
        }
    }

    /// As exiftool saves, which keeps the original beside.
    @Test func `a photo replaced after it was put aside has another picture`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        let before = try pictures(fixture, "albums", "a.jpg")
        try fixture.put("albums/a.jpg_exiftool_tmp", jpeg(more: 2))
        try fixture.mv("albums/a.jpg", "albums/a.jpg_original")
        try fixture.mv("albums/a.jpg_exiftool_tmp", "albums/a.jpg")
        for (new, old) in zip(try pictures(fixture, "albums", "a.jpg"), before) { #expect(new != old) }
        try fixture.rm("albums/a.jpg_original")
        #expect(try pictures(fixture, "moments/2024-05-01", "a.jpg") == pictures(fixture, "albums", "a.jpg"))
    }

    @Test func `a photo renamed, dated anew, trashed and restored keeps its picture`() throws {
        let (fixture, maker) = try Fixture.withStandIn { $0.trashDays = 30 }
        try fixture.makeTrash()
        try fixture.mkdir("albums/Trip")
        try fixture.put("albums/Trip/a.jpg", jpeg())
        let made = try pictures(fixture, "albums/Trip", "a.jpg")
        let used = fixture.usedBytes
        let count = maker.orders.count
        try fixture.mv("albums/Trip/a.jpg", "albums/Trip/b.jpg")
        #expect(!fixture.exists("albums/Trip/.thumbs/a.jpg"))
        #expect(try pictures(fixture, "albums/Trip", "b.jpg") == made)
        try fixture.mkdir("moments/2020-02-03")
        try fixture.mv("moments/2024-05-01/b.jpg", "moments/2020-02-03/a.jpg")
        #expect(!fixture.exists("moments/2024-05-01/.thumbs/b.jpg"))
        #expect(try pictures(fixture, "moments/2020-02-03", "a.jpg") == made)
        try fixture.mv("moments/2020-02-03/a.jpg", ".Trash-0/files/a.jpg")
        #expect(!fixture.exists("moments/2020-02-03/.thumbs/a.jpg"))
        #expect(!fixture.exists("albums/Trip/.thumbs/b.jpg"))
        try fixture.mv(".Trash-0/files/a.jpg", "moments/2020-02-03/a.jpg")
        #expect(try pictures(fixture, "moments/2020-02-03", "a.jpg") == made)
        #expect(try pictures(fixture, "albums/Trip", "b.jpg") == made)
        // It is the same photo all the time: nothing was made again, nothing is kept twice.
        #expect(maker.orders.count == count)
        #expect(fixture.usedBytes == used)
    }

    @Test func `a copy that is edited has a picture of its own`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        try fixture.put("albums/copy.jpg", jpeg(more: 1))
        let made = try fixture.get("albums/.thumbs/a.jpg")
        #expect(try fixture.get("albums/.thumbs/copy.jpg") == made)
        #expect(maker.orders.count == 1)
        let handle = try fixture.open("albums/copy.jpg")
        try fixture.write(handle, jpeg(more: 2))
        try fixture.close(handle)
        #expect(try fixture.get("albums/.thumbs/copy.jpg") != made)
        #expect(try fixture.get("albums/.thumbs/a.jpg") == made)
    }
}
