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

/// The check of a space while it is in use.
@Suite("Damage: check of a mount") struct LiveCheckTests {
    /// All steps, as `obscura check DIR` asks for them.
    private func check(_ fixture: Fixture) throws -> (lines: [String], bytes: UInt64) {
        var (lines, bytes, cursor) = ([String](), UInt64(0), CheckCursor.start.description)
        while !cursor.isEmpty {
            let text = try fixture.own("check.\(cursor)", "")
            cursor = ""
            for line in text.split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                switch parts[0] {
                case "cursor": cursor = String(parts[1])
                case "bytes": bytes += UInt64(parts[1]) ?? 0
                case "damage", "note": lines.append(String(parts[1]))
                default: continue
                }
            }
        }
        return (lines, bytes)
    }

    @Test func `every byte is read once`() throws {
        let fixture = try Fixture(bytes: 128 << 20)
        try fixture.put("albums/long.bin", noise(50_000_000))
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.remount()
        let (lines, bytes) = try check(fixture)
        #expect(lines == [])
        #expect(bytes > 50_000_320 && bytes < 51_000_000)
        try fixture.damage("albums/long.bin", at: 49_999_999)
        try fixture.damage("albums/long.bin", at: 0)
        #expect(
            try check(fixture).lines == [
                "albums/long.bin: bytes 0 to 131071 cannot be authenticated",
                "albums/long.bin: bytes 49938432 to 49999999 cannot be authenticated",
            ])
    }

    @Test func `names are those of the moment`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.damage("albums/a.jpg", at: 0)
        try fixture.mv("albums/a.jpg", "albums/b\n.jpg")
        #expect(
            try check(fixture).lines == [
                "moments/2024-05-01/b?.jpg, albums/b?.jpg: bytes 0 to 319 cannot be authenticated"
            ])
    }

    @Test(arguments: ["sector = 1 << 60", "length = 1 << 62", "length = 0"])
    func `a row that makes no sense`(change: String) throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.put("albums/b.jpg", jpeg(more: 2))
        // So that no commit of these publishes the next edits, which break rules as well.
        try fixture.library.makeDurable()
        try fixture.library.session.catalogue.locked { tables in
            try tables.connection.execute(
                "UPDATE extent SET \(change) WHERE content = (SELECT min(content) FROM extent)")
        }
        let lines = try check(fixture).lines
        #expect(
            lines == [
                "moments/2024-05-01/a.jpg, albums/a.jpg: invalid extent at offset 0: length or sectors out of range"
            ])
    }

    @Test func `damaged pages`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.library.makeDurable()
        let space = fixture.space
        let root = space.commits.newest
        var walk = PageWalk(space, root)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        for page in walk.found {
            let place = try space.parts.reader.place(page.reference.slot, pairs: root.pairs)
            let segment = Int(place.sectorB) / space.sectors.perSegment
            let offset = place.sectorB % UInt64(space.sectors.perSegment) * 512 + 9
            let index = try #require(fixture.library.unlocked).index
            try fixture.vault.damage(spaceIndex: index, segment: segment, offset: offset)
            #expect(try check(fixture).lines == ["\(page.part.text): one copy of two is damaged (B)"])
            try fixture.vault.damage(spaceIndex: index, segment: segment, offset: offset)
        }
    }

    /// Broken rules of the catalogue, and broken bitmaps, are found while the space is in use.
    @Test func `rules and bitmaps`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        try fixture.mkdir("albums/Trip")
        try fixture.put("albums/Trip/a.jpg", jpeg())
        try fixture.put("albums/b.bin", noise(3000))
        try fixture.remount()
        try fixture.library.session.catalogue.locked { tables in
            try tables.connection.execute("UPDATE photo SET day = 20010101")
            try tables.connection.execute("UPDATE counter SET picture_bytes = 7")
            try tables.connection.execute("DELETE FROM identity WHERE id = (SELECT max(id) FROM identity)")
        }
        let first = try #require(
            try fixture.library.session.catalogue.locked { try $0.runs.runs(in: 0..<1 << 40) }.first)
        let (segment, bit) = (Int(first.run.sector) / 8192, Int(first.run.sector) % 8192)
        fixture.space.parts.lock.withLock {
            guard var row = try? fixture.space.sectors.allocator.usedRow(of: segment) else { return }
            row.clear(bit..<bit + 1)
            row.set(7000..<7010)
            fixture.space.sectors.allocator.replace(segment, with: row)
            fixture.space.parts.slots.allocator.take(found: 600)
            fixture.space.parts.next.noteChange()
        }
        // Nothing of it is published yet.
        #expect(try check(fixture).lines == [])
        let frozen = try fixture.library.session.catalogue.commitTransaction(
            before: { _ in }, freeze: { fixture.space.freeze() })
        try fixture.space.publish(frozen, durable: true)
        #expect(
            try Set(check(fixture).lines) == [
                "moments/2024-05-01/a.jpg, albums/Trip/a.jpg: not listed exactly once under its day",
                "albums/b.bin: it has no identity record",
                ".: the total of thumbnail bytes is wrong",
                "the allocation: 11 sectors are allocated but not in use",
                "the allocation: 1 page slots are allocated but not in use",
                "the allocation: 1 sectors are in use but marked as free",
            ])
        fixture.closeAnyhow()
    }

    /// The state that a step reads stays, with any number of commits meanwhile.
    @Test func `a snapshot is held`() throws {
        let fixture = try Fixture(bytes: 32 << 20)
        try fixture.put("albums/a.bin", noise(100_000))
        try fixture.library.makeDurable()
        do {
            let snapshot = try fixture.space.holdSnapshot()
            for number in 0..<12 {
                try fixture.put("albums/a.bin", noise(100_000, seed: number))
                for _ in 0..<2 { try fixture.library.makeDurable() }
            }
            #expect(
                fixture.space.parts.lock.withLock { fixture.space.parts.freed.released }
                    == snapshot.generation)
            let catalogue = try Catalogue(storage: snapshot, readOnly: true)
            #expect(try catalogue.locked { try $0.checks.integrityErrors() }.isEmpty)
            #expect(fixture.space.letGo(snapshot))
            #expect(!fixture.space.letGo(snapshot))
        }
        // Once it is released, two commits give back its sectors.
        for number in 0..<2 {
            try fixture.put("albums/a.bin", noise(100_000, seed: number))
            try fixture.library.makeDurable()
        }
        #expect(fixture.space.parts.freed.released + 5 > fixture.space.newestDurable)
        try fixture.remount()
        #expect(try check(fixture).lines == [])
    }

    /// A full space gives a snapshot up rather than refuse a write that would find room without it.
    @Test func `a snapshot is given up for room`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        try fixture.put("albums/large.bin", noise(5_000_000))
        try fixture.library.makeDurable()
        let snapshot = try fixture.space.holdSnapshot()
        for number in 0..<4 { try fixture.put("albums/large.bin", noise(5_000_000, seed: number)) }
        #expect(!fixture.space.letGo(snapshot))
        #expect(try check(fixture).lines == [])
    }

    @Test func `bytes read by rows that have gone are no damage`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        try fixture.put("albums/a.bin", noise(3_000_000))
        try fixture.put("albums/b.bin", noise(300_000))
        let rows = try fixture.library.session.catalogue.locked { try $0.runs.runs(from: 0, 0, limit: 100) }
        // Until its sectors have been used again.
        for number in 1..<9 {
            try fixture.put("albums/a.bin", noise(3_000_000, seed: number))
            for _ in 0..<2 { try fixture.library.makeDurable() }
        }
        #expect(!ExtentCheck(of: fixture.space).check(rows).isEmpty)
        #expect(try LiveCheck(fixture.library.session).damage(of: rows) == [])
        try fixture.damage("albums/b.bin", at: 0)
        #expect(try LiveCheck(fixture.library.session).damage(of: rows).map(\.length) == [131_072])
    }

    @Test func `bytes written meanwhile are no damage`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        let isDone = Flag()
        let writer = Thread {
            for number in 0..<150 {
                _ = try? fixture.put("albums/\(number % 7).bin", noise(200_000, seed: number))
                if number % 10 == 0 { try? fixture.library.makeDurable() }
            }
            isDone.set()
        }
        writer.start()
        var rounds = 0
        while !isDone.isSet || rounds == 0 {
            #expect(try check(fixture).lines == [])
            rounds += 1
        }
        #expect(try check(fixture).lines == [])
    }

    @Test func `only the mounting user may ask`() throws {
        let fixture = try Fixture(uid: 1000)
        for name in ["user.obscura.status", "user.obscura.check.pages.0"] {
            let name = Array(name.utf8)
            #expect(throws: FileError.accessDenied) {
                _ = try fixture.library.getExtendedAttribute(1, name: name, Caller(uid: 1001, gid: 1001))
            }
            for uid: UInt32 in [0, 1000] {
                #expect(
                    try !fixture.library.getExtendedAttribute(1, name: name, Caller(uid: uid, gid: 5)).isEmpty
                )
            }
            // Of the root alone.
            #expect(throws: FileError.noData) { _ = try fixture.library.getExtendedAttribute(3, name: name) }
        }
        #expect(try fixture.library.listExtendedAttributes(1) == [])
    }

    @Test(arguments: [
        "", "pages", "pages.", "pages.-1", "extents.1", "extents.x.1", "extents.1.2.3",
        "extents.99999999999999999999.0",
    ])
    func `a cursor that is none`(cursor: String) throws {
        #expect(CheckCursor(cursor) == nil)
        let fixture = try Fixture()
        expectError(.noData) { _ = try fixture.own("check.\(cursor)", "") }
    }

    @Test func `status counts photos, trash and unsaved files`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        try fixture.put("albums/b.jpg", jpeg(more: 2))
        try fixture.rm("moments/2024-05-01/b.jpg")
        _ = try fixture.thumbnails.thumbnail(of: fixture.ino("albums/a.jpg"), .standard)
        try fixture.library.makeDurable()
        let text = try fixture.own("status", "")
        for line in [
            "photos=1", "trashed=1", "thumbnails=1", "unsaved=0", "committed=yes", "durable=yes",
            "readonly=no",
        ] {
            #expect(text.contains(line + "\n"), "\(text)")
        }
        let handle = try fixture.createOpen("albums/open.bin")
        try fixture.write(handle, [1, 2, 3])
        #expect(try fixture.own("status", "").contains("durable=no"))
        try fixture.close(handle)
        // Counted again, whether the change is in a root or not.
        try fixture.put("albums/c.jpg", jpeg(more: 3))
        #expect(try fixture.own("status", "").contains("photos=2\ntrashed=1\n"))
        try fixture.rm("moments/2024-05-01/a.jpg")
        #expect(try fixture.own("status", "").contains("photos=1\ntrashed=2\n"))
    }

    @Test func `changes in no root yet are not committed`() throws {
        let fixture = try Fixture()
        try fixture.close()
        try fixture.reopen { $0.commitsByHand = true }
        #expect(fixture.library.isCommitted)
        let handle = try fixture.createOpen("albums/a.bin")
        fixture.library.session.committer.commitByHand(durable: false)
        #expect(fixture.library.isCommitted)
        try fixture.write(handle, [1, 2, 3])
        #expect(!fixture.library.isCommitted)
        try fixture.close(handle)
        #expect(!fixture.library.isCommitted)
        fixture.library.session.committer.commitByHand(durable: false)
        #expect(fixture.library.isCommitted)
    }
}

private final class Flag: @unchecked Sendable {
    private let lock = NSLock()
    private var value = false
    var isSet: Bool { lock.withLock { value } }
    func set() { lock.withLock { value = true } }
}
