import CatalogueRows
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

/// Records that are away when a catalogue is rebuilt, and come back.
@Suite("Damage: records that come back") struct ReturningTests {
    private func runs(_ path: String, _ fixture: Fixture) throws -> [ExtentRun] {
        let handle = try fixture.open(path, O_RDONLY)
        defer { fixture.library.release(handle) }
        return try #require(handle.state).map.pieces.map(\.run)
    }

    private func record(of path: String, _ fixture: Fixture) throws -> ExtentRun {
        let ino = try fixture.ino(path)
        return try #require(
            try fixture.library.session.locked { tree throws(FileError) in
                try tree.tables.identities.location(ino)
            })
    }

    private func segment(of run: ExtentRun, _ fixture: Fixture) -> Int {
        Int(run.sector) / fixture.space.parts.disk.sectorsPerSegment
    }

    /// Of two extents that one commit wrote in one place only the record tells which counts.
    @Test func `without its record a file keeps both of two extents in one place`() throws {
        // In a vault that grows, room that becomes free is punched.
        let fixture = try Fixture(spaces: 2)
        try fixture.close()
        try fixture.reopen { $0.commitsByHand = true }
        // Leaves room for records, so that none overwrites the extent that is replaced.
        try fixture.put("albums/room", noise(20_000, seed: 2))
        let bytes = noise(200_000, seed: 3)
        try fixture.put("albums/notes", bytes)
        let long = try runs("albums/notes", fixture)
        try fixture.rm("albums/room")
        try fixture.truncate("albums/notes", 150_000)
        fixture.library.session.committer.commitByHand(durable: true)
        let short = try runs("albums/notes", fixture)
        #expect(short.last?.sector != long.last?.sector)
        #expect(short.last?.generation == long.last?.generation)
        let sector = try record(of: "albums/notes", fixture).sector
        let perSegment = fixture.space.parts.disk.sectorsPerSegment
        try fixture.vault.damage(
            spaceIndex: try #require(fixture.library.unlocked).index, segment: Int(sector) / perSegment,
            offset: sector % UInt64(perSegment) * 512 + 200)
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        let found = try fixture.ls("albums/Recovered").map { try fixture.get("albums/Recovered/" + $0) }
        let areBoth = Set(found) == [bytes, Array(bytes.prefix(150_000))]
        #expect(areBoth, "\(found.map(\.count))")
        try fixture.close()
        // Nothing more is found, nor is anything wrong.
        #expect(try fixture.repair()?.isEmpty == true)
        try fixture.reopen()
    }

    /// A copy would have the bytes of the other file in place of its own, which a record that is away may name: those
    /// of an original, for example.
    @Test func `equal files without records are no copies of each other`() throws {
        let fixture = try Fixture()
        let original = largeJPEG("2024-05-01", more: 1, size: 200_000)
        for (path, seed) in [("albums/a.jpg", 5), ("albums/b.jpg", 6)] {
            try fixture.put(path, original)
            let handle = try fixture.open(path)
            try fixture.write(handle, noise(50_000, seed: seed), at: 200_000)
            try fixture.close(handle)
        }
        try fixture.remount()
        let records = try fixture.library.session.locked { tree throws(FileError) in
            try tree.tables.identities.locations(after: WellKnownInode.firstOfUsers, limit: .max).map(\.run)
        }
        let index = try #require(fixture.library.unlocked).index
        let perSegment = UInt64(fixture.space.parts.disk.sectorsPerSegment)
        for run in records {
            try fixture.vault.damage(
                spaceIndex: index, segment: Int(run.sector / perSegment),
                offset: run.sector % perSegment * 512 + 200)
        }
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        let files = try fixture.ls("albums/Recovered").map { "albums/Recovered/" + $0 }
        #expect(try files.filter { try fixture.get($0) == original }.count == 2)
        let inodes = try files.map(fixture.ino)
        let contents = try fixture.library.session.locked { tree throws(FileError) in
            try inodes.map { ino throws(FileError) in try tree.inode(ino).row.content }
        }
        #expect(Set(contents).count == files.count)
    }

    /// The segment that is away has all that tells of some photos, and the user has removed what else was found.
    @Test func `photos of which nothing told are found when their segment is back`() throws {
        let fixture = try Fixture(spaces: 1)
        var photos: [String: [UInt8]] = [:]
        for number in 0..<24 {
            let bytes = largeJPEG("2024-05-0\(number % 9 + 1)", more: number, size: 900_000)
            let path = "albums/\(number).jpg"
            try fixture.put(path, bytes)
            let handle = try fixture.open(path)
            try fixture.library.fsync(handle, dataOnly: false)
            try fixture.close(handle)
            photos[path] = bytes
        }
        try fixture.remount()
        // By segment: the photos that lie in it with their records.
        var inside: [Int: Set<String>] = [:]
        for path in photos.keys {
            let places = Set(
                try (runs(path, fixture) + [record(of: path, fixture)]).map { segment(of: $0, fixture) })
            if places.count == 1, let place = places.first { inside[place, default: []].insert(path) }
        }
        let count = fixture.space.segments.count
        let away = try #require(inside.keys.filter { $0 > 1 && $0 < count - 1 }.max())
        let name =
            "\(fixture.vault.path)/segments/\(String(repeating: "0", count: 6 - "\(away)".count))\(away).seg"
        let pages = fixture.space.segments.pageSegments
        #expect(!pages.contains(away))
        try fixture.close()
        let bytes = try Data(contentsOf: URL(fileURLWithPath: name))
        try FileManager.default.removeItem(atPath: name)
        try fixture.reopen(auditing: false) { $0.readOnly = true }
        try fixture.destroyCatalogue()
        #expect(try fixture.repair()?.isEmpty == false)

        try fixture.reopen(auditing: false)
        for path in inside[away] ?? [] { #expect(!fixture.exists(path)) }
        if fixture.exists("albums/Recovered") { try fixture.rmrf("albums/Recovered") }
        try fixture.close()
        try bytes.write(to: URL(fileURLWithPath: name))
        #expect(try fixture.repair()?.isEmpty == true)

        try fixture.reopen()
        for (path, bytes) in photos {
            let isSame = try fixture.get(path) == bytes
            #expect(isSame, "\(path)")
        }
        try fixture.close()
        // Then nothing is missing, and no check looks again.
        #expect(try SpaceCheck.run(fixture.vault.unlock()).plan.mayFindMore == false)
        try fixture.reopen()
    }
}
