import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// A catalogue of which pages are lost, both copies: it is rebuilt from identity records and extents, as of the last
/// durable commit.
@Suite("Damage: what is lost with the catalogue") struct LostCatalogueTests {
    /// 40 photos and 3 albums, with something of everything that rows say. The vault and its segments as they are.
    private struct Subject {
        let fixture: Fixture
        let segments: [(file: SegmentFile, bytes: Data)]
        let before: [String: Seen]
        let pages: [(part: StructurePart, place: SlotPlace)]
        let records: [ExtentRun]
        let index: Int
    }

    private func fill(_ fixture: Fixture) throws {
        for album in ["Trip", "Family", "Family/Old"] { try fixture.mkdir("albums/" + album) }
        for number in 0..<40 {
            let album = ["Trip", "Family", "Family/Old"][number % 3]
            let day = "2024-05-0\(number % 5 + 1)"
            try fixture.put(
                "albums/\(album)/photo \(number).jpg", jpeg(day, more: number, size: 400 + number))
        }
        for number in 0..<10 {
            try fixture.ln(
                "moments/2024-05-0\(number % 5 + 1)/photo \(number).jpg", "albums/member \(number).jpg")
        }
        try fixture.mkdir("moments/2020-02-02")
        try fixture.mv("moments/2024-05-01/photo 35.jpg", "moments/2020-02-02/pinned.jpg")
        try fixture.put("albums/notes.txt", noise(200_000))
        try fixture.put("albums/Trip/photo 3.xmp", Array("<x/>".utf8))
        _ = try fixture.library.makeSymbolicLink(3, "link", target: Array("Trip".utf8), fixture.caller)
        for (path, size) in [("albums/Trip", 3), ("albums/notes.txt", 9000)] {
            try fixture.library.setExtendedAttribute(
                try fixture.ino(path), name: Array("user.a".utf8), value: noise(size), policy: .any)
        }
        try fixture.put("albums/copy.jpg", fixture.get("albums/Trip/photo 6.jpg"))
        try fixture.utimes("albums/Family", modified: 1_000_000_000)
        try fixture.rm("moments/2024-05-03/photo 12.jpg")
    }

    private func subject(_ more: (Fixture) throws -> Void = { _ in }) throws -> Subject {
        let fixture = try Fixture(bytes: 16 << 20, trashDays: 30)
        try fill(fixture)
        try more(fixture)
        try fixture.remount()
        let before = try fixture.snapshot()
        let index = try #require(fixture.library.unlocked).index
        let records = try fixture.library.session.locked { tree throws(FileError) in
            try tree.tables.identities.locations(after: 0, limit: .max).map(\.run)
        }
        try fixture.close()
        let pages = try pages(of: fixture)
        let segments = try (0..<4).map {
            let file = try SegmentFile(fixture.vault.path, space: index, $0)
            return (file: file, bytes: try file.read())
        }
        return Subject(
            fixture: fixture, segments: segments, before: before, pages: pages, records: records, index: index
        )
    }

    /// Where the pages lie.
    private func pages(of fixture: Fixture) throws -> [(part: StructurePart, place: SlotPlace)] {
        let space = try fixture.vault.unlock().openSpace(readOnly: true)
        var walk = PageWalk(space, space.commits.newest)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        return try walk.found.map { ($0.part, try space.parts.pages.place($0.reference.slot)) }
    }

    // MARK: Damage

    private func destroy(_ sector: UInt64, _ subject: Subject) throws {
        try SegmentFile(subject.fixture.vault.path, space: subject.index, Int(sector) / 8192)
            .write(Data(noise(512, seed: Int(sector))), at: sector % 8192 * 512)
    }

    private func destroy(_ page: SlotPlace, _ subject: Subject) throws {
        for sector in [page.sectorA, page.sectorB] { try destroy(sector, subject) }
    }

    private func restore(_ subject: Subject) throws {
        for (file, bytes) in subject.segments { try file.write(bytes) }
    }

    /// Catalogue pages and map nodes, each range of `count` in the order of their places.
    private func ranges(_ subject: Subject, of count: Int) -> [ArraySlice<
        (part: StructurePart, place: SlotPlace)
    >] {
        let pages = subject.pages.sorted { $0.place.sectorA < $1.place.sectorA }
        return stride(from: 0, to: pages.count, by: count).map { pages[$0..<min($0 + count, pages.count)] }
    }

    // MARK: Tests

    /// With their records all files come back, with any loss of the catalogue and its maps.
    @Test func `pages are lost`() throws {
        let subject = try subject()
        #expect(subject.pages.count > 30)
        for range in ranges(subject, of: 4) {
            for page in range { try destroy(page.place, subject) }
            let report = try subject.fixture.salvage()
            #expect(report.photos == 39 && report.trashedPhotos == 1 && report.nameless == 0)
            try subject.fixture.expectTree(subject.before, "\(range.map(\.part.text))")
            try subject.fixture.close()
            try restore(subject)
        }
    }

    /// Without a single record names are lost, but no file: each is in `albums/Recovered`, and a photo is under its own
    /// day.
    @Test func `pages and all records are lost`() throws {
        let subject = try subject()
        let files = subject.before.filter { $0.value.attributes.isRegular && !$0.value.bytes.isEmpty }
        let photos = files.filter { $0.key.hasPrefix("moments/") }
        #expect(photos.count > 30)
        for page in ranges(subject, of: 1).flatMap(\.self) {
            guard case .page(.catalogue, _) = page.part else { continue }
            try destroy(page.place, subject)
            for record in subject.records { try destroy(record.sector, subject) }
            _ = try subject.fixture.salvage()
            let kept = Set(try subject.fixture.snapshot().values.map(\.bytes))
            for (path, file) in files {
                let isKept = kept.contains(file.bytes)
                #expect(isKept, "\(page.part.text): \(path) is lost")
            }
            try subject.fixture.close()
            try restore(subject)
        }
    }

    /// The names of files come from the pages that can be read: a page of a table hides only its own rows.
    @Test func `a page and all records are lost`() throws {
        let subject = try subject { fixture in
            for number in 0..<300 { try fixture.put("albums/Trip/file \(number)", noise(40, seed: number)) }
        }
        let names = subject.before.filter { $0.value.attributes.isRegular && !$0.value.bytes.isEmpty }
        var (whole, partly) = (0, 0)
        for page in ranges(subject, of: 1).flatMap(\.self) {
            guard case .page(.catalogue, _) = page.part else { continue }
            try destroy(page.place, subject)
            for record in subject.records { try destroy(record.sector, subject) }
            _ = try subject.fixture.salvage()
            let kept = try subject.fixture.snapshot()
            let contents = Set(kept.values.map(\.bytes))
            let lost = names.filter { !contents.contains($0.value.bytes) }.keys.sorted()
            #expect(lost.isEmpty, "\(page.part.text): bytes are lost of \(lost)")
            let found = names.count { kept[$0.key]?.bytes == $0.value.bytes }
            if found == names.count { whole += 1 } else if found > names.count / 2 { partly += 1 }
            try subject.fixture.close()
            try restore(subject)
        }
        #expect(whole > 30 && whole + partly > 40, "\(whole) whole, \(partly) partly")
    }

    /// Records are part of a durable commit: names and overwritten files are as in the last one. Bytes of files that
    /// came later are found, without a name.
    @Test func `changes after the last durable commit`() throws {
        let fixture = try Fixture(bytes: 16 << 20, trashDays: 30)
        try fill(fixture)
        try fixture.remount()
        let durable = try fixture.snapshot()
        try fixture.mv("albums/Trip", "albums/Journey")
        try fixture.mv("albums/Family/photo 1.jpg", "albums/Journey/moved.jpg")
        try fixture.rm("albums/notes.txt")
        try fixture.put("albums/new.jpg", jpeg("2021-01-01", more: 99))
        try fixture.put("albums/Family/photo 4.jpg", jpeg("2024-05-05", more: 98))
        try fixture.kill()
        let newest = try fixture.snapshot()
        let index = try #require(fixture.library.unlocked).index
        try fixture.die()
        try loseSlotBitmap(fixture, index)
        _ = try fixture.salvage()
        let found = try fixture.snapshot()
        let kept = Set(found.values.map(\.bytes))
        for (path, photo) in newest where photo.attributes.isRegular && !path.hasSuffix("/photo 4.jpg") {
            let isKept = kept.contains(photo.bytes) || path == "albums/member 4.jpg"
            #expect(isKept, "\(path) is lost")
        }
        // Files overwritten since have their former bytes.
        for (path, file) in durable where path.hasPrefix("albums/Trip/") || path.hasSuffix("/photo 4.jpg") {
            let isSame = found[path]?.bytes == file.bytes
            #expect(isSame, "\(path) is not what it was")
        }
    }

    /// Both copies of all its pages, of the newest state, which only a soft root leads to.
    private func loseSlotBitmap(_ fixture: Fixture, _ index: Int) throws {
        let space = try fixture.vault.unlock(readOnly: true).openSpace(readOnly: true)
        #expect(!space.commits.newest.isDurable)
        var walk = PageWalk(space, space.commits.newest)
        walk.collect(.slotBitmap, 0..<Int.max)
        for page in walk.found {
            let place = try space.parts.pages.place(page.reference.slot)
            for sector in [place.sectorA, place.sectorB] {
                try fixture.vault.damage(
                    spaceIndex: index, segment: Int(sector) / 8192, offset: sector % 8192 * 512 + 99)
            }
        }
    }

    /// The directories that every space has keep their modes and attributes.
    @Test func `the first three directories`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        let time = Timestamp(seconds: 1_234_567, nanoseconds: 89)
        for (number, path) in ["", "moments", "albums"].enumerated() {
            let ino = try fixture.ino(path)
            var changes = AttributeChanges(accessed: .set(time), modified: .set(time))
            (changes.mode, changes.uid, changes.gid) = (0o700 + UInt32(number), 5, 6)
            _ = try fixture.library.setAttributes(ino, changes, fixture.caller)
            try fixture.library.setExtendedAttribute(
                ino, name: Array("user.a".utf8), value: [UInt8(number)], policy: .any)
        }
        try fixture.remount()
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        for (number, path) in ["", "moments", "albums"].enumerated() {
            let found = try fixture.stat(path)
            // The root is shown without write bits.
            #expect(found.mode & 0o7777 == (number == 0 ? 0o500 : 0o700 + UInt32(number)), "\(path)")
            #expect((found.uid, found.gid) == (5, 6), "\(path)")
            #expect((found.modified, found.accessed) == (time, time), "\(path)")
            #expect(
                try fixture.library.getExtendedAttribute(found.ino, name: Array("user.a".utf8)) == [
                    UInt8(number)
                ]
            )
        }
    }
}
