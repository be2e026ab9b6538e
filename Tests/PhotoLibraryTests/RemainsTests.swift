import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import VaultCatalogue
@testable import VaultStore

/// A catalogue of which pages are lost, both copies: what can be read of it serves, beside identity records.
@Suite struct RemainsTests {
    /// 40 photos and 3 albums, with something of everything that rows say. The vault and its segments as they are.
    private struct Subject {
        let fixture: Fixture
        let segments: [(file: SegmentFile, bytes: Data)]
        let before: [String: Seen]
        /// Numbers of the inodes that rows of a page are of, by page.
        let touched: [Int: Set<UInt64>]
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

    private func subject() throws -> Subject {
        let fixture = try Fixture(bytes: 16 << 20, trashDays: 30)
        try fill(fixture)
        try fixture.remount()
        let before = try fixture.snapshot()
        let index = try #require(fixture.library.unlocked).index
        let records = try fixture.library.locked { tree throws(FileError) in
            try sql(tree.tables.identities(after: 0, limit: .max)).map(\.run)
        }
        try fixture.close()
        let (pages, touched) = try look(fixture)
        let segments = try (0..<4).map {
            let file = try SegmentFile(fixture.vault.path, space: index, $0)
            return (file: file, bytes: try file.read())
        }
        return Subject(
            fixture: fixture, segments: segments, before: before, touched: touched, pages: pages,
            records: records,
            index: index)
    }

    /// Where the pages lie, and which inodes the rows of each page of the catalogue are of.
    private func look(_ fixture: Fixture) throws -> (
        [(part: StructurePart, place: SlotPlace)], [Int: Set<UInt64>]
    ) {
        let space = try fixture.vault.unlock().openSpace(readOnly: true)
        var walk = PageWalk(space, space.current)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        let pages = try walk.found.map { ($0.part, try space.place($0.reference.slot)) }
        let database = try Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: true)
        var owners: [Int64: UInt64] = [:]
        for (content, ino) in try database.prepare("SELECT content, ino FROM inode WHERE content <> 0").all({
            ($0.integer(0), $0.unsigned(1))
        }) { owners[content] = ino }
        // Which column of each table names the inode.
        let columns = [
            "inode": 0, "dentry": 3, "symlink": 0, "xattr": 0, "photo": 0, "copy": 0, "trash": 0,
            "trash_name": 4, "extent": 0,
        ]
        var touched: [Int: Set<UInt64>] = [:]
        let attributed = try database.prepare("SELECT DISTINCT ino FROM xattr").all { $0.unsigned(0) }
        let roots = try database.prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0").all {
            (String(decoding: $0.bytes(0), as: UTF8.self), UInt32($0.integer(1)))
        }
        for (name, root) in roots {
            guard let column = columns[name] else { continue }
            var reader = TreeReader(space)
            _ = reader.read(root, isTable: nil) { _ in }
            for number in reader.visited {
                for row in rows(of: number, space) {
                    guard let row else {
                        // A part of an attribute's value.
                        touched[Int(number) - 1, default: []].formUnion(attributed)
                        continue
                    }
                    guard case .integer(let value) = row[column] else { continue }
                    let ino = name == "extent" ? owners[value] ?? 0 : UInt64(value)
                    touched[Int(number) - 1, default: []].insert(ino)
                }
            }
        }
        return (pages, touched)
    }

    /// The rows in a page; nil for one that does not lie in it as a whole.
    private func rows(of number: UInt32, _ space: Space) -> [[StoredValue]?] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        bytes.withUnsafeMutableBytes { try? space.readPage(number - 1, into: $0) }
        guard let page = TreePage(bytes, number: number) else { return [nil] }
        if page.kind == .tableInterior { return [] }
        return page.allCells.map { cell in
            guard let cell, cell.overflow == 0, var row = StoredBytes.row(cell.local) else { return nil }
            if page.isOfTable { row[0] = .integer(cell.rowid) }
            return row
        }
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

    /// With their records all comes back, whatever is lost of the catalogue and its maps.
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

    /// Without a single record: what no row in the lost page is of is as it was, and no photo is lost.
    @Test func `a page and all records are lost`() throws {
        let subject = try subject()
        let photos = subject.before.filter { $0.key.hasPrefix("moments/") && $0.value.attributes.isRegular }
        var (right, wrong) = (0, 0)
        for page in subject.pages {
            guard case .page(.catalogue, let number) = page.part else { continue }
            try destroy(page.place, subject)
            for record in subject.records { try destroy(record.sector, subject) }
            _ = try subject.fixture.salvage()
            let found = try subject.fixture.snapshot()
            let touched = touchedPaths(subject, by: number)
            for (path, seen) in subject.before where !touched.contains(path) {
                // A day that photos were filed in anew is another one.
                if touched.contains(where: { $0.hasPrefix("moments/") && $0.hasPrefix(path + "/") }) {
                    continue
                }
                let isSame = found[path].map(comparable) == comparable(seen)
                #expect(isSame, "\(page.part.text), of which are \(touched.count) names: \(path)")
                right += isSame ? 1 : 0
            }
            wrong += touched.count
            let kept = Set(found.values.map(\.bytes))
            for (path, photo) in photos {
                #expect(kept.contains(photo.bytes), "\(page.part.text): \(path) is lost")
            }
            try subject.fixture.close()
            try restore(subject)
        }
        // Most rows are in other pages than the one that is lost.
        #expect(wrong * 4 < right, "\(wrong) names touched, \(right) right")
    }

    /// Paths with an inode in them that a row in the page is of, or that is a copy of one.
    private func touchedPaths(_ subject: Subject, by page: Int) -> Set<String> {
        var inodes = (subject.touched[page] ?? []).filter { $0 >= WellKnownInode.firstOfUsers }
        let pair = Set(
            ["albums/copy.jpg", "albums/Trip/photo 6.jpg"].compactMap { subject.before[$0]?.attributes.ino })
        if !pair.isDisjoint(with: inodes) { inodes.formUnion(pair) }
        return Set(
            subject.before.keys.filter { path in
                var part = ""
                return path.split(separator: "/").contains { name in
                    part += (part.isEmpty ? "" : "/") + name
                    return subject.before[part].map { inodes.contains($0.attributes.ino) } ?? false
                }
            })
    }

    /// Without what a directory counts.
    private func comparable(_ seen: Seen) -> Seen {
        var seen = seen
        if seen.attributes.isDirectory { (seen.attributes.size, seen.attributes.nlink) = (0, 0) }
        return seen
    }

    /// What was changed since the last records were written is in rows alone.
    @Test func `rows are newer than records`() throws {
        let fixture = try Fixture(bytes: 16 << 20, trashDays: 30)
        try fill(fixture)
        try fixture.remount()
        try fixture.mv("albums/Trip", "albums/Journey")
        try fixture.mv("albums/Family/photo 1.jpg", "albums/Journey/moved.jpg")
        try fixture.rm("albums/notes.txt")
        try fixture.put("albums/new.jpg", jpeg("2021-01-01", more: 99))
        try fixture.put("albums/Family/photo 4.jpg", jpeg("2024-05-05", more: 98))
        try fixture.kill()
        let before = try fixture.snapshot()
        let index = try #require(fixture.library.unlocked).index
        try fixture.die()
        try loseSlotBitmap(fixture, index)
        let report = try fixture.salvage()
        #expect((report.cataloguePages > 0, report.lostPages) == (true, 0))
        try fixture.expectTree(before)
    }

    /// Both copies of all its pages, of the newest state, which only a soft root leads to.
    private func loseSlotBitmap(_ fixture: Fixture, _ index: Int) throws {
        let space = try fixture.vault.unlock(readOnly: true).openSpace(readOnly: true)
        #expect(!space.current.isDurable)
        var walk = PageWalk(space, space.current)
        walk.collect(.slotBitmap, 0..<Int.max)
        for page in walk.found {
            let place = try space.place(page.reference.slot)
            for sector in [place.sectorA, place.sectorB] {
                try fixture.vault.damage(
                    spaceIndex: index, segment: Int(sector) / 8192, offset: sector % 8192 * 512 + 99)
            }
        }
    }

    /// The directories that every space has keep what a user gave them.
    @Test(arguments: [true, false]) func `the first three directories`(isAllLost: Bool) throws {
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
        let index = try #require(fixture.library.unlocked).index
        if isAllLost {
            try fixture.destroyCatalogue()
        } else {
            let records = try fixture.library.locked { tree throws(FileError) in
                try sql(tree.tables.identities(after: 0, limit: .max)).map(\.run.sector)
            }
            try fixture.close()
            for sector in records {
                try fixture.vault.damage(
                    spaceIndex: index, segment: Int(sector) / 8192, offset: sector % 8192 * 512 + 99)
            }
        }
        _ = try fixture.salvage()
        for (number, path) in ["", "moments", "albums"].enumerated() {
            let found = try fixture.stat(path)
            #expect(found.mode & 0o7777 == 0o700 + UInt32(number), "\(path)")
            #expect((found.uid, found.gid) == (5, 6), "\(path)")
            #expect((found.modified, found.accessed) == (time, time), "\(path)")
            #expect(
                try fixture.library.getExtendedAttribute(found.ino, name: Array("user.a".utf8)) == [
                    UInt8(number)
                ]
            )
        }
    }

    /// Trees begin where SQLite makes them in an empty database: so they are found without the first page.
    @Test func `a catalogue without its first page`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        try fill(fixture)
        try fixture.close()
        let space = try fixture.vault.unlock().openSpace(readOnly: true)
        let whole = try #require(CatalogueRemains(space))
        let headless = try #require(CatalogueRemains(Headless(space)))
        #expect((whole.lostPages, headless.lostPages) == (0, 1))
        for table in CatalogueRemains.Table.allCases {
            #expect(whole.isWhole(table) && headless.isWhole(table))
            let query = "SELECT count(*) FROM \(table.rawValue)"
            func count(_ remains: CatalogueRemains) throws -> Int64? {
                try remains.catalogue.locked { try $0.connection.prepare(query).one { $0.integer(0) } }
            }
            #expect(try count(whole) == count(headless), "\(table)")
        }
    }

    /// Pages of which the first is lost.
    private final class Headless: PageStorage {
        private let space: Space
        var pageCount: UInt32 { space.pageCount }

        init(_ space: Space) { self.space = space }

        func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
            if index == 0 { throw .damaged }
            try space.readPage(index, into: bytes)
        }

        func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {}
        func truncatePages(to count: UInt32) {}
    }
}
