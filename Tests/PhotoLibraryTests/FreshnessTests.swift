import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCatalogue

@testable import PhotoLibrary

/// A photo's picture at the next stat, whatever was done to the photo; and what pictures that are no more leave.
@Suite struct FreshnessTests {
    private static let kinds = ["", "512/", "64x48-fill/"]

    /// The pictures of a photo, each with the size that stat told before it was opened.
    private func pictures(_ rig: Rig, _ directory: String, _ name: String) throws -> [[UInt8]] {
        try Self.kinds.map { kind in
            let path = "\(directory)/.thumbs/\(kind)\(name)"
            let size = try rig.stat(path).size
            let bytes = try rig.get(path)
            #expect(size == UInt64(bytes.count))
            return bytes
        }
    }

    /// After a change of bytes there are other pictures, which take as much room as the ones before.
    private func expectOthers(_ rig: Rig, after change: () throws -> Void) throws {
        let before = try pictures(rig, "albums", "a.jpg")
        let used = rig.usedBytes
        try change()
        for (new, old) in zip(try pictures(rig, "albums", "a.jpg"), before) { #expect(new != old) }
        #expect(rig.usedBytes == used)
        #expect(try pictures(rig, "moments/2024-05-01", "a.jpg") == pictures(rig, "albums", "a.jpg"))
        try rig.remount()
        try rig.rm("moments/2024-05-01/a.jpg")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    @Test func editedInPlace() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg(more: 1))
        try expectOthers(rig) {
            let handle = try rig.open("albums/a.jpg")
            try rig.write(handle, jpeg(more: 2))
            try rig.close(handle)
        }
    }

    /// As editors and rsync save.
    @Test func replacedByANewFile() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg(more: 1))
        try expectOthers(rig) {
            let old = try rig.ino("albums/a.jpg")
            try rig.put("albums/.a.jpg.x7", jpeg(more: 2))
            try rig.mv("albums/.a.jpg.x7", "albums/a.jpg")
            rig.library.forget(old)
        }
    }

    /// As exiftool saves, which keeps the original beside.
    @Test func replacedAfterItWasPutAside() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg(more: 1))
        let before = try pictures(rig, "albums", "a.jpg")
        try rig.put("albums/a.jpg_exiftool_tmp", jpeg(more: 2))
        try rig.mv("albums/a.jpg", "albums/a.jpg_original")
        try rig.mv("albums/a.jpg_exiftool_tmp", "albums/a.jpg")
        for (new, old) in zip(try pictures(rig, "albums", "a.jpg"), before) { #expect(new != old) }
        try rig.rm("albums/a.jpg_original")
        #expect(try pictures(rig, "moments/2024-05-01", "a.jpg") == pictures(rig, "albums", "a.jpg"))
    }

    @Test func renamedRedatedTrashedAndRestored() throws {
        let (rig, maker) = try Rig.withStandIn { $0.trashDays = 30 }
        try rig.makeTrash()
        try rig.mkdir("albums/Trip")
        try rig.put("albums/Trip/a.jpg", jpeg())
        let made = try pictures(rig, "albums/Trip", "a.jpg")
        let used = rig.usedBytes
        let count = maker.orders.count
        try rig.mv("albums/Trip/a.jpg", "albums/Trip/b.jpg")
        #expect(!rig.exists("albums/Trip/.thumbs/a.jpg"))
        #expect(try pictures(rig, "albums/Trip", "b.jpg") == made)
        try rig.mkdir("moments/2020-02-03")
        try rig.mv("moments/2024-05-01/a.jpg", "moments/2020-02-03/a.jpg")
        #expect(!rig.exists("moments/2024-05-01/.thumbs/a.jpg"))
        #expect(try pictures(rig, "moments/2020-02-03", "a.jpg") == made)
        try rig.mv("moments/2020-02-03/a.jpg", ".Trash-0/files/a.jpg")
        #expect(!rig.exists("moments/2020-02-03/.thumbs/a.jpg"))
        #expect(!rig.exists("albums/Trip/.thumbs/b.jpg"))
        try rig.mv(".Trash-0/files/a.jpg", "moments/2020-02-03/a.jpg")
        #expect(try pictures(rig, "moments/2020-02-03", "a.jpg") == made)
        #expect(try pictures(rig, "albums/Trip", "b.jpg") == made)
        // It is the same photo all the time: nothing was made again, nothing is kept twice.
        #expect(maker.orders.count == count)
        #expect(rig.usedBytes == used)
    }

    @Test func aCopyThatIsEditedHasAPictureOfItsOwn() throws {
        let (rig, maker) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg(more: 1))
        try rig.put("albums/copy.jpg", jpeg(more: 1))
        let made = try rig.get("albums/.thumbs/a.jpg")
        #expect(try rig.get("albums/.thumbs/copy.jpg") == made)
        #expect(maker.orders.count == 1)
        let handle = try rig.open("albums/copy.jpg")
        try rig.write(handle, jpeg(more: 2))
        try rig.close(handle)
        #expect(try rig.get("albums/.thumbs/copy.jpg") != made)
        #expect(try rig.get("albums/.thumbs/a.jpg") == made)
    }
}
