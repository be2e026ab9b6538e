import Foundation
import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultFormat
@testable import VaultStore

/// Full spaces: what was accepted can be committed. `scripts/full` tries more seeds and steps.
@Suite("Space: a full space") struct FullSpaceTests {
    enum Kind: CaseIterable {
        /// Several spaces, files removed at once.
        case shared
        /// Several spaces with hundreds of small segments and the least limits; trash and versions are kept.
        case sharedLeast
        /// One space on a full host.
        case host
        case hostWithTrash
        /// A full host that punches no holes, like sshfs.
        case hostWithoutHoles

        func session() throws -> FaultSession {
            switch self {
            case .shared: return try FaultSession(try MemoryVault(spaces: 2, segments: 8))
            case .sharedLeast:
                return try FaultSession(
                    try MemoryVault(
                        spaces: 2, segments: 64, segmentBytes: Geometry.segmentBytesLeast, limits: .least),
                    trashDays: 30)
            case .host: return try FaultSession(try MemoryVault(spaces: 1, segments: 0), capacity: 32 << 20)
            case .hostWithoutHoles:
                let session = try FaultSession(
                    try MemoryVault(spaces: 1, segments: 0), capacity: 32 << 20)
                session.disk.refuseHoles()
                return session
            case .hostWithTrash:
                return try FaultSession(
                    try MemoryVault(spaces: 1, segments: 0), capacity: 32 << 20, trashDays: 30)
            }
        }
    }

    private static func number(_ name: String, _ usual: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
    }

    @Test(arguments: Kind.allCases) func `random work in a full space is kept`(_ kind: Kind) throws {
        let first = Self.number("OBSCURA_FULL_SEED", 1)
        let steps = Self.number("OBSCURA_FULL_STEPS", 12)
        for seed in first..<first + Self.number("OBSCURA_FULL_SEEDS", 1) {
            let session = try kind.session()
            defer { session.kill() }
            let machine = FullSpaceMachine(session, seed: UInt64(seed))
            do {
                try machine.fill(FullSpaceMachine.sizes)
                for _ in 0..<steps { try machine.step() }
                try machine.remount()
                try machine.removeAll()
                try machine.makeDurable()
                try machine.remount()
            } catch { Issue.record("\(kind), seed \(seed), \(machine.last): \(error)") }
        }
    }

    /// 25,502 unlinks that returned 0 were all undone: large rewrites into the holes of small files made more rows than
    /// a commit could write.
    @Test(arguments: [Kind.shared, .host]) func `rewrites into small holes do not block commits`(_ kind: Kind)
        throws
    {
        let session = try kind.session()
        defer { session.kill() }
        let machine = FullSpaceMachine(session, seed: 1)
        let small = [500, 2000, 4000, 7000, 12_000, 15_000]
        try machine.fill(small)
        try machine.removeHalf()
        try session.makeDurable()
        try machine.fill([4096])
        try machine.fill(small)
        for _ in 0..<4 {
            try machine.rewrite(20, size: 3_000_000)
            session.commit(durable: false)
        }
        try session.makeDurable()
        try machine.removeAll()
        try session.makeDurable()
        try machine.fill([0], most: 10)
        #expect(machine.files.count == 10)
        try machine.remount()
    }

    /// Slots counted as backed on a host that preallocates nothing (exFAT), and content took their disk: a stick that
    /// was full could not commit removals that had returned 0.
    @Test func `a full host that preallocates nothing has room for every slot that counts as backed`() throws
    {
        let session = try Kind.hostWithoutHoles.session()
        defer { session.kill() }
        for number in 0..<8000 { try session.put("albums/\(number)", [1]) }
        try session.makeDurable()
        var count = 0
        while (try? session.put("albums/large\(count)", noise(200_000, seed: count))) != nil { count += 1 }
        #expect(count > 10)
        try session.makeDurable()
        let parts = session.library.session.space.parts
        var (left, missing) = (parts.slots.backed, 0)
        for pair in parts.segments.pairs {
            let bytes = min(left, parts.slots.slotsPerPair) * Geometry.pageBytes
            left -= parts.slots.slotsPerPair
            for number in [pair.a, pair.b] {
                missing += max(0, bytes - (try parts.disk.writtenSectors(Int(number))) * Geometry.sectorBytes)
            }
        }
        #expect(missing > 0)
        #expect(Int(try parts.host.available()) >= missing)
        for number in 0..<8000 { try session.rm("albums/\(number)") }
        try session.makeDurable()
        try session.unmount()
        try session.mount()
        #expect(try session.ls("albums").allSatisfy { $0.hasPrefix("large") })
    }

    /// The longest free run was taken though it was a hole, and the host had no room to fill it.
    @Test func `on a full host bytes go where files were, and not into holes`() throws {
        let session = try FaultSession(try MemoryVault(spaces: 1, segments: 0))
        defer { session.kill() }
        let bytes = noise(3_000_000)
        for number in 0..<300 { try session.put("albums/\(number)", Array(bytes[..<3000])) }
        try session.put("albums/long", Array(bytes[..<100_000]))
        try session.put("albums/last", bytes)
        try session.makeDurable()
        for number in 0..<150 { try session.rm("albums/\(2 * number)") }
        try session.rm("albums/last")
        let space = session.library.session.space
        while space.sectors.pendingBytes > 0 {
            #expect(session.library.session.committer.commitNow())
            space.eraser.overwrite(most: .max / 2)
        }
        let segments = space.parts.lock.withLock {
            Set(0..<space.sectors.allocator.segmentCount).subtracting(space.sectors.allocator.excluded)
        }
        for number in segments {
            for run in space.parts.lock.withLock({
                space.sectors.allocator.reserveFreeRuns(of: number, least: 100)
            }) {
                space.parts.disk.giveBack(number, sectors: run)
                let first = UInt64(number * space.parts.disk.sectorsPerSegment + run.lowerBound)
                try space.parts.lock.withLock { try space.sectors.allocator.abandon(first, run.count) }
            }
        }
        #expect(space.ledger.makesRoom(for: .addition, pages: 500))
        session.disk.setCapacity(session.disk.usedBytes)
        let handle = try session.open("albums/long")
        try session.truncate(handle, 50_000)
        try session.close(handle)
        try session.makeDurable()
        session.kill()
        try session.mount()
        #expect(try session.get("albums/long") == Array(bytes[..<50_000]))
    }

    @Test(arguments: [4096, 20_000, 300_000, 3_000_000], [Kind.shared, .host, .hostWithoutHoles])
    func `what df shows can be written`(size: Int, kind: Kind) throws {
        let session = try kind.session()
        defer { session.kill() }
        let machine = FullSpaceMachine(session, seed: UInt64(size))
        try machine.expectShown(size)
        try machine.fill([500, 2000, 4000, 7000, 12_000, 15_000])
        try machine.removeHalf()
        try machine.expectShown(size)
        try machine.removeAll()
        try machine.expectShown(size)
    }

    /// The first 192 KiB that were removed became the room for cutting files: of sixty files of 2 kB none could be
    /// written again.
    @Test(arguments: [(2000, Kind.hostWithoutHoles), (60_000, .hostWithoutHoles), (60_000, .host)])
    func `files that are removed on a full host are room for as many`(size: Int, kind: Kind) throws {
        let session = try kind.session()
        defer { session.kill() }
        let machine = FullSpaceMachine(session, seed: 1)
        try machine.fill([size])
        try machine.fill([2000])
        let names = machine.files.keys.sorted()
        let content = Array(noise(size))
        try session.makeDurable()
        var removed = 0
        for name in names where removed < 60 && machine.files[name]?.count == size {
            try session.rm("albums/" + name)
            removed += 1
        }
        #expect(removed == 60)
        for _ in 0..<3 { try session.makeDurable() }
        var written = 0
        do {
            while written < removed {
                try session.put("albums/again\(written)", content)
                written += 1
            }
        } catch let error as FileError { #expect(error == .noRoom) }
        #expect(written >= removed * 9 / 10, "\(written) of \(removed)")
        // Cutting works as before.
        let handle = try session.open("albums/again0")
        try session.truncate(handle, UInt64(size / 2))
        try session.close(handle)
        try session.makeDurable()
        session.kill()
        try session.mount()
        #expect(try session.get("albums/again0") == Array(content[..<(size / 2)]))
        #expect(try session.get("albums/again1") == content)
    }

    /// A commit with the records of thousands of small files counted the pages of all of them by their worst case, and
    /// took half of the disk for slots.
    @Test func `identity records take no disk for slots that no commit needs`() throws {
        let session = try Kind.host.session()
        defer { session.kill() }
        let machine = FullSpaceMachine(session, seed: 1)
        try machine.fill([500], most: 2000)
        let space = session.library.session.space
        func backed() -> Int { space.parts.lock.withLock { space.parts.slots.backed } }
        let before = backed()
        for _ in 0..<3 { session.commit(durable: true) }
        #expect(backed() <= before + space.limits.slotsPerStep)
    }
}
