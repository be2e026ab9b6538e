import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import VaultCatalogue
@testable import VaultStore

/// The check of a space while it is in use.
@Suite struct LiveCheckTests {
    /// All steps, as `obscura check DIR` asks for them.
    private func check(_ rig: Rig) throws -> (lines: [String], bytes: UInt64) {
        var (lines, bytes, cursor) = ([String](), UInt64(0), CheckCursor.start.description)
        while !cursor.isEmpty {
            let text = try rig.own("check.\(cursor)", "")
            cursor = ""
            for line in text.split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                switch parts[0] {
                case "cursor": cursor = String(parts[1])
                case "bytes": bytes += UInt64(parts[1]) ?? 0
                case "damage": lines.append(String(parts[1]))
                default: continue
                }
            }
        }
        return (lines, bytes)
    }

    @Test func `every byte is read once`() throws {
        let rig = try Rig(bytes: 128 << 20)
        try rig.put("albums/long.bin", noise(50_000_000))
        try rig.put("albums/a.jpg", jpeg())
        try rig.remount()
        let (lines, bytes) = try check(rig)
        #expect(lines == [])
        #expect(bytes > 50_000_320 && bytes < 51_000_000)
        try rig.damage("albums/long.bin", at: 49_999_999)
        try rig.damage("albums/long.bin", at: 0)
        #expect(
            try check(rig).lines == [
                "albums/long.bin: bytes 0 to 131071 cannot be authenticated",
                "albums/long.bin: bytes 49938432 to 49999999 cannot be authenticated",
            ])
    }

    @Test func `names are those of the moment`() throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg())
        try rig.damage("albums/a.jpg", at: 0)
        try rig.mv("albums/a.jpg", "albums/b\n.jpg")
        #expect(
            try check(rig).lines == [
                "moments/2024-05-01/a.jpg, albums/b?.jpg: bytes 0 to 319 cannot be authenticated"
            ])
    }

    @Test(arguments: ["sector = 1 << 60", "length = 1 << 62", "length = 0"])
    func `a row that makes no sense`(change: String) throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg())
        try rig.put("albums/b.jpg", jpeg(more: 2))
        // So that no commit of these publishes what follows, which breaks rules as well.
        try rig.library.makeDurable()
        try rig.library.catalogue.locked { tables in
            try tables.connection.execute(
                "UPDATE extent SET \(change) WHERE content = (SELECT min(content) FROM extent)")
        }
        let lines = try check(rig).lines
        #expect(
            lines == [
                "moments/2024-05-01/a.jpg, albums/a.jpg: bytes from 0 on are said to lie where nothing can"
            ])
    }

    @Test func `pages`() throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg())
        try rig.library.makeDurable()
        let space = rig.space
        let root = space.lock.withLock { space.current }
        var walk = PageWalk(space, root)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        for page in walk.found {
            let place = try space.place(page.reference.slot, pairs: root.pairs)
            let segment = Int(place.sectorB) / space.sectorsPerSegment
            let offset = place.sectorB % UInt64(space.sectorsPerSegment) * 512 + 9
            let index = try #require(rig.library.unlocked).index
            try rig.vault.damage(spaceIndex: index, segment: segment, offset: offset)
            #expect(try check(rig).lines == ["\(page.part.text): copy B is damaged; the other serves"])
            try rig.vault.damage(spaceIndex: index, segment: segment, offset: offset)
        }
    }

    /// What breaks a rule of the catalogue, or a bitmap, is found while the space is in use.
    @Test func `rules and bitmaps`() throws {
        let rig = try Rig(bytes: 16 << 20)
        try rig.mkdir("albums/Trip")
        try rig.put("albums/Trip/a.jpg", jpeg())
        try rig.put("albums/b.bin", noise(3000))
        try rig.remount()
        try rig.library.catalogue.locked { tables in
            try tables.connection.execute("UPDATE photo SET day = 20010101")
            try tables.connection.execute("UPDATE counter SET picture_bytes = 7")
            try tables.connection.execute("DELETE FROM identity WHERE id = (SELECT max(id) FROM identity)")
        }
        let first = try #require(try rig.library.catalogue.locked { try $0.runs(in: 0..<1 << 40) }.first)
        let (segment, bit) = (Int(first.run.sector) / 8192, Int(first.run.sector) % 8192)
        rig.space.lock.withLock {
            guard var row = try? rig.space.sectors.usedRow(of: segment) else { return }
            row.clear(bit..<bit + 1)
            row.set(7000..<7010)
            rig.space.sectors.replace(segment, with: row)
            rig.space.slots.take(found: 600)
            rig.space.isChanged = true
        }
        // Nothing of it is published yet.
        #expect(try check(rig).lines == [])
        let frozen = try rig.library.catalogue.commitTransaction(
            before: { _ in }, freeze: { rig.space.freeze() })
        try rig.space.publish(frozen, durable: true)
        #expect(
            try Set(check(rig).lines) == [
                "moments/2024-05-01/a.jpg, albums/Trip/a.jpg: it does not stand under its day, once",
                "albums/b.bin: it has no identity record",
                ".: the cost of all thumbnails is counted wrongly",
                "the allocation: 11 sectors are taken that nobody has",
                "the allocation: 1 page slots are taken that nobody has",
                "the allocation: 1 sectors are in use and marked as free",
            ])
        rig.closeAnyhow()
    }

    /// What a step looks at stays as it is, however much is committed meanwhile.
    @Test func `a snapshot is held`() throws {
        let rig = try Rig(bytes: 32 << 20)
        try rig.put("albums/a.bin", noise(100_000))
        try rig.library.makeDurable()
        do {
            let snapshot = try rig.space.holdSnapshot()
            for number in 0..<12 {
                try rig.put("albums/a.bin", noise(100_000, seed: number))
                for _ in 0..<2 { try rig.library.makeDurable() }
            }
            #expect(rig.space.lock.withLock { rig.space.released } == snapshot.generation)
            let catalogue = try Catalogue(storage: snapshot, readOnly: true)
            #expect(try catalogue.locked { try $0.integrityErrors() }.isEmpty)
            #expect(rig.space.letGo(snapshot))
            #expect(!rig.space.letGo(snapshot))
        }
        // Once nobody holds it, two commits give back what it needed.
        for number in 0..<2 {
            try rig.put("albums/a.bin", noise(100_000, seed: number))
            try rig.library.makeDurable()
        }
        #expect(rig.space.lock.withLock { rig.space.released + 5 > rig.space.durableGeneration })
        try rig.remount()
        #expect(try check(rig).lines == [])
    }

    /// A full space gives a snapshot up rather than refuse a write that would find room without it.
    @Test func `a snapshot is given up for room`() throws {
        let rig = try Rig(bytes: 16 << 20)
        try rig.put("albums/large.bin", noise(5_000_000))
        try rig.library.makeDurable()
        let snapshot = try rig.space.holdSnapshot()
        for number in 0..<4 { try rig.put("albums/large.bin", noise(5_000_000, seed: number)) }
        #expect(!rig.space.letGo(snapshot))
        #expect(try check(rig).lines == [])
    }

    @Test func `what was read from rows that are no more is no damage`() throws {
        let rig = try Rig(bytes: 16 << 20)
        try rig.put("albums/a.bin", noise(3_000_000))
        try rig.put("albums/b.bin", noise(300_000))
        let rows = try rig.library.catalogue.locked { try $0.runs(from: 0, 0, limit: 100) }
        // Until its sectors have been used again.
        for number in 1..<9 {
            try rig.put("albums/a.bin", noise(3_000_000, seed: number))
            for _ in 0..<2 { try rig.library.makeDurable() }
        }
        #expect(!rig.space.checkExtents(rows).isEmpty)
        #expect(try rig.library.damage(of: rows) == [])
        try rig.damage("albums/b.bin", at: 0)
        #expect(try rig.library.damage(of: rows).map(\.length) == [131_072])
    }

    @Test func `what is written meanwhile is no damage`() throws {
        let rig = try Rig(bytes: 16 << 20)
        let isDone = Flag()
        let writer = Thread {
            for number in 0..<150 {
                _ = try? rig.put("albums/\(number % 7).bin", noise(200_000, seed: number))
                if number % 10 == 0 { try? rig.library.makeDurable() }
            }
            isDone.set()
        }
        writer.start()
        var rounds = 0
        while !isDone.isSet || rounds == 0 {
            #expect(try check(rig).lines == [])
            rounds += 1
        }
        #expect(try check(rig).lines == [])
    }

    @Test func `only who mounted may ask`() throws {
        let rig = try Rig(uid: 1000)
        for name in ["user.obscura.status", "user.obscura.check.pages.0"] {
            let name = Array(name.utf8)
            #expect(throws: FileError.accessDenied) {
                _ = try rig.library.getExtendedAttribute(1, name: name, Caller(uid: 1001, gid: 1001))
            }
            for uid: UInt32 in [0, 1000] {
                #expect(
                    try !rig.library.getExtendedAttribute(1, name: name, Caller(uid: uid, gid: 5)).isEmpty)
            }
            // Of the root alone.
            #expect(throws: FileError.noData) { _ = try rig.library.getExtendedAttribute(3, name: name) }
        }
        #expect(try rig.library.listExtendedAttributes(1) == [])
    }

    @Test(arguments: [
        "", "pages", "pages.", "pages.-1", "extents.1", "extents.x.1", "extents.1.2.3",
        "extents.99999999999999999999.0",
    ])
    func `a cursor that is none`(cursor: String) throws {
        #expect(CheckCursor(cursor) == nil)
        let rig = try Rig()
        expectError(.noData) { _ = try rig.own("check.\(cursor)", "") }
    }

    @Test func `status`() throws {
        let rig = try Rig(trashDays: 30)
        try rig.put("albums/a.jpg", jpeg(more: 1))
        try rig.put("albums/b.jpg", jpeg(more: 2))
        try rig.rm("moments/2024-05-01/b.jpg")
        _ = try rig.library.thumbnail(of: rig.ino("albums/a.jpg"), .standard)
        try rig.library.makeDurable()
        let text = try rig.own("status", "")
        for line in [
            "photos=1", "trashed=1", "thumbnails=1", "unsaved=0", "committed=yes", "durable=yes",
            "readonly=no",
        ] {
            #expect(text.contains(line + "\n"), "\(text)")
        }
        let handle = try rig.createOpen("albums/open.bin")
        try rig.write(handle, [1, 2, 3])
        #expect(try rig.own("status", "").contains("durable=no"))
        try rig.close(handle)
    }

    @Test func `what is in no root yet is not committed`() throws {
        let rig = try Rig()
        try rig.close()
        try rig.reopen { $0.commitsByHand = true }
        #expect(rig.library.isCommitted)
        let handle = try rig.createOpen("albums/a.bin")
        rig.library.committer.commitByHand(durable: false)
        #expect(rig.library.isCommitted)
        try rig.write(handle, [1, 2, 3])
        #expect(!rig.library.isCommitted)
        try rig.close(handle)
        #expect(!rig.library.isCommitted)
        rig.library.committer.commitByHand(durable: false)
        #expect(rig.library.isCommitted)
    }
}

private final class Flag: @unchecked Sendable {
    private let lock = NSLock()
    private var value = false
    var isSet: Bool { lock.withLock { value } }
    func set() { lock.withLock { value = true } }
}
