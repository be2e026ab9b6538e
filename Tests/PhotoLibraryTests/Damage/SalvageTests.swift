import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// A library whose catalogue is gone, rebuilt from identity records and descriptors.
@Suite("Damage: a lost catalogue") struct SalvageTests {
    /// One of everything.
    private func fill(_ fixture: Fixture) throws {
        for album in ["Trip", "Trip/Day 2", "Empty", "Other"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/Trip/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/Trip/Day 2/b.jpg", largeJPEG("2024-05-01", more: 2, size: 700_000))
        try fixture.ln("moments/2024-05-01/b.jpg", "albums/Other/member.jpg")
        try fixture.put("albums/Other/copy.jpg", largeJPEG("2024-05-01", more: 2, size: 700_000))
        try fixture.put("albums/c.jpg", jpeg("2024-05-03", more: 3))
        try fixture.mkdir("moments/2020-02-02")
        try fixture.mv("moments/2024-05-03/c.jpg", "moments/2020-02-02/pinned.jpg")
        try fixture.put("moments/2020-02-02/pinned.xmp", Array("<x/>".utf8))
        try fixture.put("albums/undated.jpg", jpeg(nil, more: 4))
        try fixture.utimes("albums/undated.jpg", modified: 1_000_000_000)
        try fixture.put("albums/notes.txt", noise(300_000))
        try fixture.put("albums/empty", [])
        try fixture.put("albums/sparse", [1])
        try fixture.truncate("albums/sparse", 1_000_000)
        try fixture.ln("albums/notes.txt", "albums/Other/hard")
        _ = try fixture.library.makeSymbolicLink(3, "link", target: Array("Trip/a.jpg".utf8), fixture.caller)
        try fixture.library.setExtendedAttribute(
            try fixture.ino("albums/Trip"), name: Array("user.a".utf8), value: [1, 2], policy: .any)
        try fixture.put("albums/t.jpg", jpeg("2024-06-06", more: 5))
        try fixture.ln("moments/2024-06-06/t.jpg", "albums/Other/t.jpg")
        try fixture.rm("moments/2024-06-06/t.jpg")
        // Moved on since their photos were recorded.
        try fixture.remount()
        try fixture.mv("albums/Trip", "albums/Journey")
        try fixture.mv("moments/2024-05-01", "moments/2024-05-05")
    }

    @Test func `everything comes back`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fill(fixture)
        try fixture.remount()
        let before = try fixture.snapshot()
        try fixture.destroyCatalogue()
        #expect(throws: VaultError.self) { try fixture.vault.unlock().openSpace(readOnly: true) }
        let report = try fixture.salvage()
        try fixture.expectTree(before)
        #expect(report.photos == 4 && report.trashedPhotos == 1 && report.days == 3)
        #expect((report.damagedPhotos, report.nameless, report.lost) == (0, 0, 0))
        // A removed photo is restored as if nothing had happened.
        try fixture.mv(".Trash-0/files/t.jpg", "albums/back.jpg")
        #expect(fixture.exists("moments/2024-06-06/t.jpg"))
        #expect(fixture.exists("albums/Other/t.jpg"))
        try fixture.remount()
        #expect(fixture.exists("albums/back.jpg"))
    }

    /// Rebuilding a whole space changes nothing visible, and can be repeated.
    @Test func `a whole space stays unchanged`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fill(fixture)
        try fixture.remount()
        let before = try fixture.snapshot()
        for _ in 0..<2 {
            try fixture.close()
            _ = try fixture.salvage()
            try fixture.expectTree(before)
        }
    }

    @Test func `removed and replaced files stay away`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Old")
        try fixture.put("albums/Old/removed.txt", noise(5000))
        try fixture.put("albums/Old/removed.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/edited.jpg", jpeg("2024-05-02", more: 2))
        try fixture.put("albums/rewritten.jpg", largeJPEG("2024-05-02", more: 3, size: 400_000))
        try fixture.remount()
        try fixture.mv("albums/edited.jpg", "albums/renamed.jpg")
        try fixture.remount()
        try fixture.rm("moments/2024-05-01/removed.jpg")
        try fixture.rm("albums/Old/removed.txt")
        try fixture.rmdir("albums/Old")
        try fixture.put("albums/.save", jpeg("2024-05-02", more: 4))
        try fixture.mv("albums/.save", "albums/renamed.jpg")
        try fixture.put("albums/rewritten.jpg", largeJPEG("2024-05-04", more: 5, size: 200_000))
        try fixture.remount()
        let before = try fixture.snapshot()
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        try fixture.expectTree(before)
    }

    /// A bit flipped in the second chunk: the file is there, and says so where it is damaged.
    @Test func `a damaged photo is there with an error where it is damaged`() throws {
        let fixture = try Fixture()
        let bytes = largeJPEG("2024-05-01", more: 1, size: 500_000)
        try fixture.put("albums/a.jpg", bytes)
        try fixture.put("albums/gone.jpg", jpeg("2024-05-02", more: 2))
        try fixture.put("albums/whole.jpg", jpeg("2024-05-03", more: 3))
        try fixture.damage("albums/a.jpg", at: 140_000)
        try fixture.damage("albums/gone.jpg", at: 0)
        try fixture.destroyCatalogue()
        let report = try fixture.salvage()
        #expect((report.photos, report.damagedPhotos, report.lost) == (2, 1, 1))
        #expect(report.summary == "2 photos in 2 days, 1 of them damaged; 1 lost but for the name")
        #expect(try fixture.get("albums/whole.jpg") == jpeg("2024-05-03", more: 3))
        #expect(try fixture.stat("moments/2024-05-01/a.jpg").size == UInt64(bytes.count))
        let handle = try fixture.open("albums/a.jpg", O_RDONLY)
        defer { fixture.library.release(handle) }
        #expect(try fixture.read(handle, 131_072) == Array(bytes.prefix(131_072)))
        #expect(throws: FileError.damaged) { try fixture.read(handle, 10, at: 140_000) }
        #expect(try fixture.read(handle, 131_072, at: 262_144) == Array(bytes[262_144..<393_216]))
        // All of it is lost but the name.
        #expect(
            try fixture.stat("moments/2024-05-02/gone.jpg").size == UInt64(jpeg("2024-05-02", more: 2).count))
        #expect(throws: FileError.damaged) { try fixture.get("albums/gone.jpg") }
    }

    /// The last chunks overwritten: the size stays, and what is lost is an error there, and named.
    @Test func `a file whose end is lost keeps its size`() throws {
        let fixture = try Fixture()
        let bytes = largeJPEG("2024-05-01", more: 1, size: 1_000_000)
        try fixture.put("albums/a.jpg", bytes)
        try fixture.remount()
        try overwrite("albums/a.jpg", fromChunk: 4, fixture)
        try fixture.destroyCatalogue()
        #expect(try fixture.salvage().damagedPhotos == 1)
        #expect(try fixture.stat("albums/a.jpg").size == UInt64(bytes.count))
        try expectBeginning(bytes, of: "albums/a.jpg", fixture)
        try fixture.close()
        let lost = try SpaceCheck.run(try fixture.vault.unlock(readOnly: true)).findings.filter(\.isOfFile)
        #expect(!lost.isEmpty && lost.allSatisfy { $0.text.contains("albums/a.jpg: bytes ") })
        try fixture.reopen()
    }

    /// Expects four chunks of a file, and an error behind them. A function of its own: a handle keeps the vault locked.
    private func expectBeginning(_ bytes: [UInt8], of path: String, _ fixture: Fixture) throws {
        let handle = try fixture.open(path, O_RDONLY)
        defer { fixture.library.release(handle) }
        #expect(try fixture.read(handle, 4 * 131_072) == Array(bytes.prefix(4 * 131_072)))
        for offset in [524_288, 900_000, 999_999] as [UInt64] {
            #expect(throws: FileError.damaged) { try fixture.read(handle, 10, at: offset) }
        }
    }

    /// Without a record nobody knows the size: after a whole chunk the file may go on.
    @Test func `a file without a record and without its end is named`() throws {
        let fixture = try Fixture()
        let bytes = largeJPEG("2024-05-01", more: 1, size: 1_000_000)
        try fixture.put("albums/a.jpg", bytes)
        try fixture.put("albums/b.jpg", largeJPEG("2024-05-02", more: 2, size: 300_000))
        try fixture.remount()
        for name in ["a.jpg", "b.jpg"] { try damageRecord(of: "albums/" + name, fixture) }
        try overwrite("albums/a.jpg", fromChunk: 4, fixture)
        try fixture.destroyCatalogue()
        #expect(try fixture.salvage().nameless == 2)
        let sizes = try fixture.ls("albums/Recovered").map { try fixture.stat("albums/Recovered/" + $0).size }
        #expect(Set(sizes) == [300_000, 524_289])
        let name = try #require(
            try fixture.ls("albums/Recovered").first {
                try fixture.stat("albums/Recovered/" + $0).size == 524_289
            })
        #expect(throws: FileError.damaged) { try fixture.get("albums/Recovered/" + name) }
        try fixture.close()
        let texts = try SpaceCheck.run(try fixture.vault.unlock(readOnly: true)).findings.map(\.text)
        #expect(texts.contains { $0.contains("Recovered/\(name)") && $0.contains("are lost") }, "\(texts)")
        try fixture.reopen()
    }

    /// Overwrites the extents of a file from a chunk on, whole.
    private func overwrite(_ path: String, fromChunk first: Int, _ fixture: Fixture) throws {
        let handle = try fixture.open(path, O_RDONLY)
        defer { fixture.library.release(handle) }
        let index = try #require(fixture.library.unlocked).index
        for piece in try #require(handle.state).map.pieces {
            for chunk in 0..<piece.run.chunkCount where Int(piece.run.offset / 131_072) + chunk >= first {
                let sector = piece.run.sector(ofChunk: chunk)
                let perSegment = UInt64(fixture.space.parts.disk.sectorsPerSegment)
                let count = Geometry.sectors(forPlaintext: piece.run.plainBytes(ofChunk: chunk)) * 512
                try SegmentFile(fixture.vault.path, space: index, Int(sector / perSegment))
                    .write(Data(noise(count, seed: chunk + 9)), at: sector % perSegment * 512)
            }
        }
    }

    /// A photo whose record is damaged too is filed by its own bytes. Other files are kept as well, unless they were
    /// removed.
    @Test func `a photo without a record is filed by its own date`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Trip")
        let bytes = largeJPEG("2024-05-01", more: 1, size: 300_000)
        try fixture.put("albums/Trip/a.jpg", bytes)
        try fixture.put("albums/Trip/b.jpg", jpeg("2024-05-02", more: 2))
        try fixture.put("albums/Trip/notes.txt", [1, 2, 3])
        try fixture.put("albums/Trip/removed.txt", [4, 5, 6])
        try fixture.remount()
        try fixture.rm("albums/Trip/removed.txt")
        try fixture.remount()
        for name in ["a.jpg", "notes.txt"] { try damageRecord(of: "albums/Trip/" + name, fixture) }
        try fixture.destroyCatalogue()
        #expect(try fixture.salvage().nameless == 2)
        let names = try fixture.ls("albums/Recovered")
        let photo = try #require(names.first { $0.hasSuffix(".jpg") })
        let notes = try #require(names.first { !$0.hasSuffix(".jpg") })
        #expect(names.count == 2)
        #expect(try fixture.get("albums/Recovered/" + photo) == bytes)
        #expect(try fixture.get("albums/Recovered/" + notes) == [1, 2, 3])
        #expect(try fixture.moments() == ["2024-05-01/" + photo, "2024-05-02/b.jpg"])
        #expect(try fixture.ls("albums/Trip") == ["b.jpg"])
    }

    /// An album and a day whose records are damaged: photos keep their day, and files of one directory stay together.
    @Test func `files of a lost directory are kept`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Trip")
        try fixture.put("albums/Trip/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/Trip/notes.txt", [1, 2, 3])
        let ino = try fixture.ino("albums/Trip")
        try fixture.remount()
        try damageRecord(of: "albums/Trip", fixture)
        try damageRecord(of: "moments/2024-05-01", fixture)
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        #expect(try fixture.get("albums/Recovered/\(ino)/notes.txt") == [1, 2, 3])
    }

    private func damageRecord(of path: String, _ fixture: Fixture) throws {
        let ino = try fixture.ino(path)
        let run = try #require(
            try fixture.library.session.locked { tree throws(FileError) in
                try tree.tables.identities.location(ino)
            })
        try damage(run.sector, at: 200, fixture)
    }

    /// Sectors flipped at random beside a catalogue that is gone: every photo whose bytes are whole comes back, and
    /// nothing is served that was not written.
    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func `with any other damage the rest comes back`(seed: UInt64) throws {
        var random = RandomSource(seed)
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("albums/Trip")
        var photos: [(bytes: [UInt8], sectors: [Range<UInt64>])] = []
        for number in 0..<30 {
            let size = [400, 3000, 200_000].randomElement(using: &random) ?? 400
            let bytes = largeJPEG("2024-05-0\(number % 9 + 1)", more: number, size: size)
            try fixture.put("albums/Trip/\(number).jpg", bytes)
            if number % 4 == 0 { try fixture.put("albums/Trip/\(number).txt", noise(number + 1)) }
        }
        try fixture.remount()
        for number in 0..<30 {
            let bytes = try fixture.get("albums/Trip/\(number).jpg")
            photos.append((bytes, try sectors(of: "albums/Trip/\(number).jpg", fixture)))
        }
        let records = try fixture.library.session.locked { tree throws(FileError) in
            try tree.tables.identities.locations(after: 0, limit: .max).map(\.run.sector)
        }
        let all = records + photos.flatMap(\.sectors).flatMap { Array($0) }
        let hit = Set((0..<20).map { _ in all.randomElement(using: &random) ?? 0 })
        for sector in hit { try damage(sector, at: UInt64.random(in: 0..<96, using: &random), fixture) }
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()

        var found: Set<[UInt8]> = []
        for place in try fixture.moments() {
            guard let bytes = try readable("moments/" + place, fixture) else { continue }
            let isKnown = photos.contains { $0.bytes == bytes }
            #expect(isKnown, "seed \(seed): \(place) was never written")
            found.insert(bytes)
        }
        for (number, photo) in photos.enumerated()
        where !photo.sectors.contains(where: { $0.contains(any: hit) }) {
            #expect(found.contains(photo.bytes), "seed \(seed): photo \(number) is lost")
        }
    }

    private func sectors(of path: String, _ fixture: Fixture) throws -> [Range<UInt64>] {
        let handle = try fixture.open(path, O_RDONLY)
        defer { fixture.library.release(handle) }
        return try #require(handle.state).map.pieces.map { piece in
            piece.run.sector..<piece.run.sector + UInt64(piece.run.sectorCount)
        }
    }

    /// All bytes of a file; nil where some cannot be read.
    private func readable(_ path: String, _ fixture: Fixture) throws -> [UInt8]? {
        do { return try fixture.get(path) } catch FileError.damaged { return nil }
    }

    private func damage(_ sector: UInt64, at offset: UInt64, _ fixture: Fixture) throws {
        let perSegment = fixture.space.parts.disk.sectorsPerSegment
        try fixture.vault.damage(
            spaceIndex: try #require(fixture.library.unlocked).index, segment: Int(sector) / perSegment,
            offset: UInt64(Int(sector) % perSegment * 512) + offset)
    }

    /// After any failed write the old state is there or the new one.
    @Test(arguments: [0, 1, 2, 3, 5, 8, 13, 21, 34])
    func `a rebuild that fails leaves the old state`(failing: Int) throws {
        let fixture = try Fixture(trashDays: 30)
        try fill(fixture)
        try fixture.remount()
        let before = try fixture.snapshot()
        try fixture.close()
        fixture.vault.calls.failOnce(after: failing)
        _ = try? fixture.rebuild()
        fixture.vault.calls.failOnce(after: nil)
        // Of the root at work, one copy may be torn, as after a crash.
        try fixture.reopen(auditing: false)
        try fixture.expectTree(before)
    }

    /// Without two free segments for its pages a full space is rebuilt in place.
    @Test func `a full space is rebuilt`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        var count = 0
        while (try? fixture.put("albums/\(count).jpg", largeJPEG("2024-05-01", more: count, size: 300_000)))
            != nil
        {
            count += 1
        }
        if fixture.exists("albums/\(count).jpg") { try fixture.rm("albums/\(count).jpg") }
        try fixture.remount()
        let before = try fixture.snapshot()
        #expect(before.count > 20)
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        try fixture.expectTree(before)
    }

    /// Neither looking nor rebuilding touches another space.
    @Test func `other spaces stay as they are`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        let other = 1 - (try #require(fixture.library.unlocked).index)
        func bytes() throws -> [Data] {
            try (0..<16).map { try SegmentFile(fixture.vault.path, space: other, $0).read() }
        }
        try fixture.destroyCatalogue()
        let before = try bytes()
        _ = try fixture.salvage()
        #expect(try bytes() == before)
    }

    @Test func `ranges are subtracted`() {
        #expect(subtracting([], from: [5..<9]) == [5..<9])
        #expect(subtracting([0..<4, 5..<6, 8..<9], from: [5..<9, 20..<22]) == [6..<8, 20..<22])
        #expect(subtracting([4..<30], from: [5..<9, 20..<22]).isEmpty)
        #expect(subtracting([6..<21], from: [20..<25, 5..<9]) == [5..<6, 21..<25])
    }
}

extension Range<UInt64> {
    fileprivate func contains(any numbers: Set<UInt64>) -> Bool { numbers.contains { contains($0) } }
}
