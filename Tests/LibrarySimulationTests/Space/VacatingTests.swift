import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// Content lies in every segment, and the catalogue needs some: the space moves what is in the emptiest.
@Suite("Space: content makes way for pages") struct VacatingTests {
    private static let smallBytes = 4096

    /// No photo's, whatever the noise begins with.
    private func bytes(_ size: Int, _ seed: Int) -> [UInt8] {
        [UInt8](repeating: 0, count: 16) + noise(size - 16, seed: seed)
    }

    /// Writes files until one finds no room; returns how many there are.
    private func fill(_ session: FaultSession, _ prefix: String, _ size: Int) throws -> Int {
        for count in 0..<40_000 {
            let path = "albums/\(prefix)\(count)"
            do { try session.put(path, bytes(size, count)) } catch FileError.noRoom {
                try session.rm(path)
                return count
            }
        }
        throw CrashFailure("the space is never full")
    }

    /// Photos with versions, with copies, and with links among albums.
    private func putPhotos(_ session: FaultSession) throws {
        for number in 0..<6 {
            let bytes = jpeg("2024-06-01", more: number) + noise(700_000, seed: number)
            try session.put("albums/p\(number).jpg", bytes)
            if number % 3 == 0 { try session.put("albums/copy\(number).jpg", bytes) }
            try session.makeDurable()
            guard number % 2 == 0 else { continue }
            let handle = try session.open("albums/p\(number).jpg")
            try session.write(handle, noise(140_000, seed: 90), at: 300_000)
            try session.close(handle)
        }
    }

    private func pairs(_ session: FaultSession) -> Int {
        session.library.session.space.parts.lock.withLock {
            session.library.session.space.segments.pairs.count
        }
    }

    /// Of so small segments that a few thousand names take more than one pair.
    private func vault() throws -> MemoryVault {
        try MemoryVault(spaces: 2, segments: 160, segmentBytes: Geometry.segmentBytesLeast)
    }

    @Test(arguments: [3_000_000, 100_000]) func `small files find room where large ones were`(
        size: Int
    ) throws {
        let session = try FaultSession(try vault(), trashDays: 30)
        defer { session.kill() }
        try putPhotos(session)
        let count = try fill(session, "f", size)
        for number in 0..<count where number % 2 == 0 { try session.rm("albums/f\(number)") }
        try session.makeDurable()
        let before = try session.dump()
        let pairsBefore = pairs(session)
        let shown = Int(session.library.statistics().available) * Self.smallBytes
        #expect(shown > count / 2 * size * 6 / 10)
        let open = try session.open("albums/f1")
        let small = try fill(session, "s", Self.smallBytes)
        #expect(small * Self.smallBytes > shown * 9 / 10)
        #expect(pairs(session) > pairsBefore)
        for offset in stride(from: 0, to: size, by: 1 << 20) {
            let found = try session.read(open, at: UInt64(offset))
            #expect(found == Array(bytes(size, 1)[offset..<min(size, offset + 1 << 20)]))
        }
        try session.close(open)
        func expectAll() throws {
            let tree = try session.dump()
            for (path, entry) in before.entries { #expect(tree.entries[path] == entry, "\(path)") }
            for number in stride(from: 0, to: small, by: 97) {
                #expect(try session.get("albums/s\(number)") == bytes(Self.smallBytes, number))
            }
        }
        try expectAll()
        try session.makeDurable()
        try audit(session.library.session.space, "full")
        session.kill()
        try session.mount()
        try expectAll()
        for number in 0..<small { try session.rm("albums/s\(number)") }
        try session.makeDurable()
        let after = try session.dump()
        #expect(after == before, "\(after.difference(from: before))")
    }

    /// Nothing is moved that a program may be changing.
    @Test func `files that are being written stay where they are`() throws {
        let session = try FaultSession(try vault())
        defer { session.kill() }
        let count = try fill(session, "f", 300_000)
        for number in 0..<count where number % 2 == 0 { try session.rm("albums/f\(number)") }
        try session.makeDurable()
        var states: [Handle] = []
        for number in 0..<count where number % 2 == 1 {
            let handle = try session.open("albums/f\(number)")
            states.append(handle)
            try session.write(handle, [UInt8](repeating: 7, count: 10), at: 5)
        }
        _ = try fill(session, "s", Self.smallBytes)
        for handle in states { try session.close(handle) }
        try session.makeDurable()
        session.kill()
        try session.mount()
        for number in 0..<count where number % 2 == 1 {
            var edited = bytes(300_000, number)
            edited.replaceSubrange(5..<15, with: [UInt8](repeating: 7, count: 10))
            #expect(try session.get("albums/f\(number)") == edited)
        }
    }
}
