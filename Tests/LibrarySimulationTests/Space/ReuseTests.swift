import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// Sectors are given out once, and come back: to other photos, and in a vault of one space to the host.
@Suite("Space: room that is used again") struct ReuseTests {
    /// A photo of any size: the bytes behind the picture belong to it.
    private func photo(_ number: Int, _ bytes: Int) -> [UInt8] {
        jpeg("2024-05-01", more: number) + noise(bytes, seed: number)
    }

    // MARK: Never twice

    /// Clears the bits of everything in the space, as a mistake of the allocator would.
    private func forgetUse(_ space: Space) {
        space.parts.lock.withLock {
            for segment in 0..<space.sectors.allocator.segmentCount
            where !space.sectors.allocator.excluded.contains(segment) {
                space.sectors.allocator.replace(
                    segment, with: BitRow(count: space.sectors.allocator.sectorsPerSegment))
            }
            space.sectors.allocator.rewind()
        }
    }

    @Test func `sectors that the catalogue names are not overwritten, though marked free`() throws {
        let fixture = try Fixture()
        let kept = (0..<6).map { photo($0, 200_000) }
        for (number, photo) in kept.enumerated() { try fixture.put("albums/p\(number).jpg", photo) }
        try fixture.library.fsyncDirectory(try fixture.library.openDirectory(3))
        forgetUse(fixture.space)
        var refused = 0
        // A refused sector is marked: at last there is free room.
        while refused < 100 {
            do {
                try fixture.put("albums/new", noise(150_000, seed: 9))
                break
            } catch {
                #expect(error as? FileError == .damaged)
                refused += 1
            }
        }
        #expect((1..<100).contains(refused))
        for (number, photo) in kept.enumerated() {
            #expect(try fixture.get("albums/p\(number).jpg") == photo)
        }
        #expect(try fixture.get("albums/new") == noise(150_000, seed: 9))
        fixture.closeAnyhow()
    }

    // MARK: Room for others

    /// Three times the space goes through it, and it never says that it is full.
    @Test(arguments: MemoryVault.SizeClass.allCases)
    func `a space that has room waits until it is usable`(size: MemoryVault.SizeClass) throws {
        let session = try FaultSession(try MemoryVault(spaces: 2, size))
        defer { session.kill() }
        let space = session.library.session.space.sectors.capacity.available
        let bytes = Int(space) / 12
        for number in 0..<36 {
            try session.put("albums/p\(number % 6).jpg", photo(number, bytes))
            if number % 6 == 5 { for old in 0..<4 { try session.rm("moments/2024-05-01/p\(old).jpg") } }
        }
    }

    // MARK: Room for the host

    @Test(arguments: MemoryVault.SizeClass.allCases)
    func `a vault of one space gives room back when it is unmounted`(size: MemoryVault.SizeClass) throws {
        let session = try FaultSession(try MemoryVault(spaces: 1, size))
        defer { session.kill() }
        let kept = (0..<10).map { noise(500_000, seed: $0) }
        for (number, bytes) in kept.enumerated() {
            try session.put("albums/k\(number)", bytes)
            for other in 0..<4 { try session.put("albums/x\(number)-\(other)", noise(700_000, seed: other)) }
        }
        session.commit(durable: true)
        #expect(session.disk.usedBytes > 30_000_000)
        for number in 0..<10 { for other in 0..<4 { try session.rm("albums/x\(number)-\(other)") } }
        try session.unmount()
        #expect(session.disk.usedBytes < 5_000_000 + 7_000_000, "\(session.disk.usedBytes)")
        try session.mount()
        for (number, bytes) in kept.enumerated() { #expect(try session.get("albums/k\(number)") == bytes) }
        // A segment that was given back is made again.
        for number in 0..<40 { try session.put("albums/n\(number)", noise(700_000, seed: number)) }
        for number in 0..<40 { #expect(try session.get("albums/n\(number)") == noise(700_000, seed: number)) }
        try session.unmount()
        try audit(try session.vault.openSpace(session.disk))
        session.disk.closeAll()
    }

    @Test func `a vault of one space does not grow by what was removed`() throws {
        let session = try FaultSession(try MemoryVault(spaces: 1, .usual))
        defer { session.kill() }
        for round in 0..<40 {
            for number in 0..<8 {
                try session.put("albums/p\(number).jpg", photo(round * 8 + number, 4 << 20))
            }
            for number in 0..<8 { try session.rm("moments/2024-05-01/p\(number).jpg") }
        }
        // 32 MiB at once, and 1280 MiB in all.
        #expect(session.disk.usedBytes < 90 << 20, "\(session.disk.usedBytes >> 20) MiB")
    }
}
