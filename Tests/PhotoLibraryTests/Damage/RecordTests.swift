import LibraryFixtures
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

@testable import CatalogueRows
@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// Identity records: their contents are compared with the tree by `audit`, whenever a library is opened.
@Suite("Damage: identity records") struct RecordTests {
    private func records(_ fixture: Fixture) throws -> [UInt64: ExtentRun] {
        try fixture.library.session.locked { tree throws(FileError) in
            let all = try tree.tables.identities.locations(after: 0, limit: .max)
            return Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0.run) })
        }
    }

    private func unrecorded(_ fixture: Fixture) throws -> [UInt64] {
        try fixture.library.session.locked { tree throws(FileError) in
            try tree.storeChanges()
            return try tree.tables.identities.unrecorded(after: 0, limit: .max)
        }
    }

    @Test func `everything is recorded at an unmount`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("albums/Trip")
        try fixture.put("albums/Trip/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/Trip/notes.txt", [1, 2, 3])
        try fixture.remount()
        #expect(try unrecorded(fixture).isEmpty)
        for path in ["albums/Trip", "albums/Trip/a.jpg", "albums/Trip/notes.txt", "moments/2024-05-01"] {
            #expect(try records(fixture)[try fixture.ino(path)] != nil, "\(path)")
        }
    }

    /// A record holds the numbers of directories, so the files of a renamed one keep their records.
    @Test func `renaming an album or a day rewrites no record of a photo`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Trip")
        for number in 0..<40 {
            try fixture.put("albums/Trip/\(number).jpg", jpeg("2024-05-01", more: number))
        }
        try fixture.remount()
        let before = try records(fixture)
        try fixture.mv("albums/Trip", "albums/Journey")
        try fixture.mv("moments/2024-05-01", "moments/2024-05-02")
        try fixture.remount()
        let after = try records(fixture)
        let changed = after.filter { before[$0.key] != $0.value }
        let renamed = [try fixture.ino("albums/Journey"), try fixture.ino("moments/2024-05-02")]
        #expect(Set(changed.keys) == Set(renamed + [WellKnownInode.moments, WellKnownInode.albums]))
    }

    /// The first of the last commits finds no slots for records, and releases some.
    @Test(arguments: [1, 2]) func `records without room at an unmount are written by a further commit`(
        spaces: Int
    ) throws {
        let fixture = try Fixture(spaces: spaces)
        try fixture.close()
        try fixture.reopen { $0.commitsByHand = true }
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        let taken = TakenSlots(of: fixture.space, butFor: 40)
        #expect(taken.count > 0)
        #expect(!fixture.space.ledger.hasRoom(for: .edit, pages: 1))
        try fixture.library.session.committer.stop()
        #expect(taken.count == 0)
        #expect(try unrecorded(fixture).isEmpty)
        try fixture.close()
    }

    /// Slots of a space that belong to nobody until the next commit is published.
    private final class TakenSlots: Sendable {
        private let slots = Mutex<[UInt32]>([])

        var count: Int { slots.withLock { $0.count } }

        init(of space: Space, butFor count: Int) {
            space.parts.lock.withLock {
                let room = space.parts.slots
                while room.free > count, let slot = room.allocator.take() {
                    slots.withLock { $0.append(slot) }
                }
            }
            space.willPublish = { [unowned space, self] in
                space.parts.lock.withLock {
                    slots.withLock { list in
                        for slot in list { try? space.parts.slots.release(UInt64(slot)) }
                        list = []
                    }
                }
            }
        }
    }

    /// The killed mount's commit and the first one of the next mount would have the same generation if both began right
    /// behind the newest root; and a record that no root leads to lies where nothing overwrites it.
    @Test func `records of a commit in which a mount was killed do not count`() throws {
        let fixture = try Fixture()
        let path = "albums/a.jpg"
        try fixture.put(path, jpeg("2024-05-01", more: 1) + noise(9000, seed: 1))
        try fixture.close()
        try fixture.reopen { $0.commitsByHand = true }
        try fixture.put(path, jpeg("2024-05-01", more: 2) + noise(90_000, seed: 2))
        _ = fixture.library.session.writeRecords(most: 100)
        let killed = try records(fixture)
        fixture.vanish()
        try fixture.reopen { $0.commitsByHand = true }
        let bytes = jpeg("2024-05-01", more: 3) + noise(20_000, seed: 3)
        try fixture.put(path, bytes)
        let (ino, before) = (try fixture.ino(path), fixture.space.generation)
        try fixture.close()
        try fixture.reopen()
        let newest = try #require(try records(fixture)[ino])
        let lost = try #require(killed[ino])
        #expect(lost.sector > newest.sector, "the lost record would be found first")
        #expect(newest.generation > lost.generation && lost.generation > before)
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        #expect(try fixture.get(path) == bytes)
    }

    /// As builds before 1.0 may have left them.
    @Test func `of two mounts that wrote last neither makes the other's records void`() {
        func record(_ epoch: UInt64, _ generation: UInt64, before: (UInt64, UInt64), durable: UInt64)
            -> FoundRecord
        {
            let run = ExtentRun(
                offset: 0, length: 100, sector: 10 * epoch, generation: generation, epoch: epoch)
            return FoundRecord(id: 20, run: run, history: RecordedHistory(before: before, durable: durable))
        }
        let old = record(1, 14, before: (0, 0), durable: 10)
        let killed = record(2, 23, before: (1, 14), durable: 20)
        let tied = record(3, 23, before: (1, 14), durable: 20)
        for found in [[old, killed, tied], [tied, killed, old], [killed, old, tied]] {
            #expect(RecordSelector(found).records[20]?.run.generation == 23)
        }
        // The killed mount had published records, which the next one found.
        let published = record(2, 18, before: (1, 14), durable: 10)
        let next = record(3, 21, before: (2, 18), durable: 20)
        for found in [[old, published, next, killed], [killed, next, published, old]] {
            #expect(RecordSelector(found).records[20]?.run == next.run)
            #expect(RecordSelector(found).recorder == (3, 21))
        }
    }

    /// A sidecar of the same day changes the photo's row alone, and one that follows its photo only its own name.
    @Test func `changes beside the inode are recorded too`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/b.jpg", jpeg("2024-05-01", more: 2))
        try fixture.put("moments/2024-05-01/b.jpg.xmp", [1])
        try fixture.remount()
        try fixture.put("albums/a.jpg.xmp", xmp("2024-05-01"))
        #expect(try fixture.source("albums/a.jpg") == "sidecar")
        try fixture.mkdir("moments/2020-02-02")
        try fixture.mv("moments/2024-05-01/b.jpg", "moments/2020-02-02/b.jpg")
        #expect(try fixture.ls("moments/2020-02-02") == ["b.jpg", "b.jpg.xmp"])
        // The audit compares.
        try fixture.remount()
        #expect(try unrecorded(fixture).isEmpty)
    }

    /// A change and its mark are one transaction: a killed daemon leaves the mark, and the next one the record.
    @Test func `a mark outlives a kill`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.kill()
        let ino = try fixture.ino("albums/a.jpg")
        #expect(try unrecorded(fixture).contains(ino))
        try fixture.remount()
        #expect(try unrecorded(fixture).isEmpty)
        #expect(try records(fixture)[ino] != nil)
    }

    /// Records that were written, and whose commit came to nothing, are forgotten; their sectors are free again.
    @Test func `a kill between a record and its commit loses nothing`() throws {
        let fixture = try Fixture()
        for number in 0..<20 { try fixture.put("albums/\(number).jpg", jpeg("2024-05-01", more: number)) }
        // No root that says where they lie can be published.
        fixture.vault.calls.failSyncs(.inputOutput)
        #expect(throws: FileError.self) {
            try fixture.library.fsyncDirectory(try fixture.library.openDirectory(3))
        }
        fixture.vault.calls.failSyncs(nil)
        try fixture.kill()
        try fixture.remount()
        #expect(try unrecorded(fixture).isEmpty)
    }

    /// However many are due, a commit that somebody waits for writes few, and all of them come in large pieces.
    @Test func `many records are written in bounded batches`() throws {
        let fixture = try Fixture()
        for number in 0..<150 { try fixture.put("albums/\(number)", [UInt8(number), 1]) }
        let directory = try fixture.library.openDirectory(3)
        try fixture.library.fsyncDirectory(directory)
        let first = try records(fixture).count
        #expect(first > 0 && first <= 64)
        // Within the next seconds nobody pays for the rest.
        try fixture.put("albums/last", [1])
        try fixture.library.fsyncDirectory(directory)
        #expect(try records(fixture).count == first)
        try fixture.remount()
        let sectors = try records(fixture).values.map(\.sector).sorted()
        let gaps = zip(sectors, sectors.dropFirst()).filter { $0 + 1 != $1 }
        #expect(gaps.count < 10, "\(sectors.count) records lie in \(gaps.count + 1) pieces")
    }

    @Test func `fields come back as they were`() throws {
        var record = IdentityRecord(
            row: InodeRow(
                ino: 77, mode: 0o100640, uid: 5, gid: 6, now: Timestamp(seconds: -5, nanoseconds: 999_999_999)
            ))
        (record.row.size, record.row.allocated, record.row.content) = (1 << 40, 300, 12)
        (record.row.rdev, record.row.revision, record.row.flags) = (9, 3, [.photo, .trashed])
        record.row.modified = Timestamp(seconds: 1, nanoseconds: 2)
        var photo = PhotoRow(ino: 77, day: 20_240_501)
        (photo.isPinned, photo.captured, photo.fingerprint) = (true, -1, .max)
        (photo.former, photo.source) = (Array("b".utf8), Array("exif".utf8))
        record.photo = photo
        record.trashed = TrashRow(ino: 77, id: 0, since: 44, name: [0xFF, 0x2E])
        record.names = [RecordedName(parent: 16, name: [1], isMember: true, since: 8)]
        record.keptNames = [DentryRow(parent: 4, id: 0, name: [2], ino: 78, isMember: true)]
        record.runs = [ExtentRun(offset: 0, length: 300, sector: 7, generation: 8, epoch: .max)]
        record.attributes = [ExtendedAttribute(name: [3], value: [])]
        let history = RecordedHistory(before: (.max, 1), durable: 3)
        let bytes = Recorded.inode(record).encoded(history)
        let decoded = bytes.withUnsafeBytes { Recorded.decode($0) }
        #expect(decoded?.content == .inode(record))
        #expect(decoded?.history == history)
        // Cut anywhere it is none, and asks for no byte behind its end.
        for count in bytes.indices {
            #expect(Array(bytes[..<count]).withUnsafeBytes { Recorded.decode($0) } == nil)
        }
    }

    /// Fields that do not fit are left out: attributes first, then names.
    @Test func `a record fits into one extent`() throws {
        var record = IdentityRecord(
            row: InodeRow(ino: 77, mode: 0o100640, uid: 0, gid: 0, now: Timestamp(seconds: 0, nanoseconds: 0))
        )
        record.attributes = (0..<4).map { ExtendedAttribute(name: [$0], value: noise(60_000)) }
        let bytes = Recorded.inode(record).encoded(RecordedHistory(before: (0, 0), durable: 0))
        #expect(bytes.count <= Geometry.chunkBytes)
        record.attributes = Array(record.attributes.prefix(2))
        #expect(bytes.withUnsafeBytes { Recorded.decode($0) }?.content == .inode(record))

        let fixture = try Fixture()
        try fixture.put("albums/f", [1])
        let name = String(repeating: "n", count: 240)
        for number in 100..<240 { try fixture.ln("albums/f", "albums/\(name)\(number)") }
        try fixture.remount()
        let run = try #require(try records(fixture)[try fixture.ino("albums/f")])
        #expect(run.length <= UInt64(Geometry.chunkBytes))
    }
}
