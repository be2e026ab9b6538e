import Foundation
import LibraryFixtures
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// The cost of showing kept pictures, in reads of the vault with its catalogue.
@Suite("Thumbnails: reading many") struct ThumbnailReadingTests {
    private static let count = 1000
    private static let day = "moments/2024-05-01/.thumbs"

    @Test func `the thousand pictures of a day are read with little else`() throws {
        let fixture = try dayOfPictures()
        let names = try fixture.ls(Self.day).filter { $0.hasSuffix(".jpg") }
        #expect(names.count == Self.count)
        let before = fixture.vault.calls.readBytes
        var pictureBytes = 0
        for name in names {
            let size = try fixture.stat("\(Self.day)/\(name)").size
            pictureBytes += try fixture.get("\(Self.day)/\(name)").count
            #expect(size > 12_000)
        }
        let read = fixture.vault.calls.readBytes - before
        #expect(Double(read) <= 1.2 * Double(pictureBytes), "\(read) of \(pictureBytes)")
    }

    /// The reads of the first listing after the mount count as well.
    @Test func `the thousand pictures of a listing are read with little else`() throws {
        let fixture = try dayOfPictures()
        let before = fixture.vault.calls.readBytes
        let names = try fixture.ls(Self.day).filter { $0.hasSuffix(".jpg") }
        let pictureBytes = try names.reduce(0) { try $0 + fixture.get("\(Self.day)/\($1)").count }
        let read = fixture.vault.calls.readBytes - before
        #expect(Double(read) <= 1.2 * Double(pictureBytes), "\(read) of \(pictureBytes)")
    }

    /// One behind the other, in the order in which they were made, with nothing between.
    @Test func `pictures of a day lie together`() throws {
        let fixture = try dayOfPictures()
        let runs = try fixture.library.session.locked { tree throws(FileError) in
            var runs: [ExtentRun] = []
            for photo in try tree.tables.thumbnails.photos(after: 0, limit: Self.count) {
                for row in try tree.tables.thumbnails.rows(of: photo) {
                    runs += try tree.tables.extents.runs(of: row.content)
                }
            }
            return runs
        }
        #expect(runs.count == Self.count)
        let jumps = zip(runs, runs.dropFirst()).filter { $0.sector + UInt64($0.sectorCount) != $1.sector }
        // Where a segment ends, and where the catalogue took the next.
        #expect(jumps.count <= 12, "\(jumps.count)")
    }

    /// Up to the size that it was told the kernel reads; with ESTALE it looks the picture up again.
    @Test func `a picture of another size than the kernel was told is stale`() throws {
        let fixture = try Fixture()
        let maker = StandInMaker()
        try fixture.close()
        try fixture.reopen { $0.pictureMaker = maker }
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        let (photo, picture) = (try fixture.ino("albums/a.jpg"), try fixture.ino("albums/.thumbs/a.jpg"))
        try fixture.library.release(fixture.library.open(picture, flags: O_RDONLY, fixture.caller))
        // Made again from the same photo, as after a damage.
        maker.paddingBytes = 100
        _ = try fixture.library.session.change { change throws(FileError) in
            try change.tree.photos.deleteThumbnails(
                try change.tree.inode(photo), fixture.library.session.space)
        }
        expectError(.stale) { _ = try fixture.library.open(picture, flags: O_RDONLY, fixture.caller) }
        #expect(try fixture.ino("albums/.thumbs/a.jpg") == picture)
        #expect(try fixture.get("albums/.thumbs/a.jpg").count > 100)
    }

    /// The kernel keeps the pages and the size of an inode.
    @Test func `after a change of its photo a picture is another inode, and the former one keeps its size`()
        throws
    {
        let fixture = try Fixture()
        let maker = StandInMaker()
        try fixture.close()
        try fixture.reopen { $0.pictureMaker = maker }
        for name in ["a.jpg", "512/a.jpg", "sheet.jpg"] {
            try fixture.put("albums/a.jpg", jpeg(more: 1))
            let picture = try fixture.stat("albums/.thumbs/\(name)")
            let opened = try fixture.library.open(picture.ino, flags: O_RDONLY, fixture.caller)
            maker.paddingBytes += 100
            try fixture.put("albums/a.jpg", jpeg(more: 2))
            expectError(.stale) { _ = try fixture.library.open(picture.ino, flags: O_RDONLY, fixture.caller) }
            let changed = try fixture.stat("albums/.thumbs/\(name)")
            #expect(changed.ino != picture.ino)
            #expect(try fixture.library.attributes(picture.ino).0.size == picture.size)
            fixture.library.release(opened)
        }
    }

    /// A library that was just opened, with a day of pictures that an earlier session made.
    private func dayOfPictures() throws -> Fixture {
        let fixture = try Fixture()
        let maker = StandInMaker()
        maker.paddingBytes = 12_000
        try fixture.close()
        try fixture.reopen { $0.pictureMaker = maker }
        for number in 0..<Self.count { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        // As if the photos were large enough to pay for their pictures.
        let paid: UInt64 = 1 << 30
        try fixture.library.session.change { change throws(FileError) in
            try change.tree.storeChanges()
            change.tree.counters.photoBytes += paid
        }
        for number in 0..<Self.count { _ = try fixture.stat("\(Self.day)/\(number).jpg") }
        try fixture.library.session.change { change throws(FileError) in
            change.tree.counters.photoBytes -= paid
        }
        try fixture.remount()
        return fixture
    }
}
