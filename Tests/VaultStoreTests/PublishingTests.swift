import Glibc
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// Bounds of caches, reached on purpose.
@Suite("Crashes: commits and syncs") struct PublishingTests {
    private let directory = TemporaryDirectory()

    /// Random writes, removals and commits in a space, and which sectors its contents have.
    private struct Work {
        let space: Space
        let calls: FaultyCalls
        var generator: SeededGenerator
        private var contents: [UInt64: (runs: [ExtentRun], bytes: [UInt8])] = [:]
        private var next: UInt64 = 1
        private var wasFailing = false

        init(_ space: Space, _ calls: FaultyCalls, seed: UInt64) {
            self.space = space
            self.calls = calls
            generator = SeededGenerator(seed)
        }

        mutating func run(steps: Int) throws {
            for _ in 0..<steps {
                switch Int.random(in: 0..<10, using: &generator) {
                case 0..<5:
                    scatter()
                    try put()
                case 5..<8: remove()
                default: try commit()
                }
            }
        }

        /// Lets the next content lie in any of hundreds of segments, or in the one where the last ended.
        private mutating func scatter() {
            space.parts.lock.withLock {
                let segment = Int.random(in: 0..<space.sectors.allocator.segmentCount, using: &generator)
                space.sectors.allocator.begin(atSegment: Bool.random(using: &generator) ? segment : 0)
            }
        }

        mutating func put() throws {
            let data = noise(Int.random(in: 1...500_000, using: &generator), seed: Int(next))
            let runs = try space.writeAll(next, data)
            space.adopt(runs)
            contents[next] = (runs, data)
            next += 1
        }

        private mutating func remove() {
            guard
                let (content, found) = contents.sorted(by: { $0.key < $1.key }).randomElement(
                    using: &generator)
            else { return }
            space.free(found.runs)
            contents[content] = nil
        }

        /// A commit with work between its freeze and its root, which may fail.
        private mutating func commit() throws {
            let frozen = space.freeze()
            for _ in 0..<3 {
                scatter()
                try put()
            }
            let isFailing = Int.random(in: 0..<4, using: &generator) == 0
            if isFailing { calls.failSyncs(.inputOutput) }
            let isDurable = Bool.random(using: &generator) || isFailing
            defer {
                calls.failSyncs(nil)
                wasFailing = isFailing || wasFailing && !isDurable
            }
            do { try space.publish(frozen, durable: isDurable) } catch {
                // A failure before a file was closed is told by the next durable commit.
                guard isFailing || wasFailing else { throw error }
            }
        }

        /// Contents that do not read as they were written, and segments whose bits are not what they were.
        func mistakes() -> Int {
            let lost = contents.count { content, found in
                (try? space.readAll(content, found.runs)) != found.bytes
            }
            return lost + space.parts.lock.withLock { space.sectors.allocator.distrusted.count }
        }
    }

    private func work(seed: UInt64, spaces: Int) throws -> Work {
        let path = try makeVault(
            directory, spaces: spaces, bytes: spaces > 1 ? 64 << 20 : nil, limits: .least)
        let calls = FaultyCalls()
        return Work(try openSpace(path, limits: .least, calls: calls), calls, seed: seed)
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `the bits of an unpublished commit are not read from the disk again`(seed: UInt64) throws {
        var work = try work(seed: seed, spaces: seed % 2 == 0 ? 1 : 2)
        try work.run(steps: 100)
        #expect(work.mistakes() == 0, "seed \(seed)")
    }

    /// Takes sectors of one segment, freezes, and takes of another, so that the first leaves memory if it may.
    private func takeTwice(afterFreeze: (SectorAllocator) -> Void) throws -> (
        first: UInt64, again: UInt64?, Bool
    ) {
        let allocator = SectorAllocator(sectorsPerSegment: 8192, usedCounts: [0, 0, 0], limits: .least)
        // The bytes on the disk are older than the commit.
        allocator.loadPage = { _ in [UInt64](repeating: 0, count: 256) }
        let first = try #require(try allocator.take(least: 257, most: 257, near: 0))
        try allocator.adopt(first.sector, first.count)
        _ = allocator.freezeDirtyPages()
        afterFreeze(allocator)
        let other = try #require(try allocator.take(least: 257, most: 257, near: 8192))
        #expect(other.sector == 8192)
        allocator.rewind()
        let again = try allocator.take(least: 257, most: 257, near: nil)
        return (first.sector, again?.sector, allocator.distrusted.isEmpty)
    }

    @Test func `a frozen segment stays, and one that was taken for clean is not believed`() throws {
        let (first, again, isBelieved) = try takeTwice { _ in }
        #expect(again == first + 257 && isBelieved)
        let mistaken = try takeTwice { $0.didPublish() }
        #expect(mistaken.again != mistaken.first && !mistaken.2)
    }

    // MARK: Pages of zeros

    @Test(arguments: [false, true]) func `pages of zeros take no slots`(isDurable: Bool) throws {
        let path = try makeVault(directory, spaces: 1, limits: .least)
        try writeZeros(path, isDurable: isDurable)
        let space = try openSpace(path, limits: .least)
        #expect(try space.page(150) == 9 && space.page(299) == 0 && space.pageCount == 300)
        #expect(StructureCheck(of: space).run().damage == [])
    }

    /// Fills 299 pages, then zeroes all of them but one.
    private func writeZeros(_ path: String, isDurable: Bool) throws {
        let calls = FaultyCalls()
        let space = try openSpace(path, limits: .least, calls: calls)
        func used() throws -> Int {
            // Two durable commits give the slots of older states back.
            for _ in 0..<3 {
                space.stage(0, 7)
                try space.commit(durable: true)
            }
            return space.parts.lock.withLock { space.parts.slots.allocator.usedSlots }
        }
        space.stage(0, 7)
        let before = try used()
        for page in 1..<300 as Range<UInt32> { space.stage(page, 9) }
        try space.commit(durable: isDurable)
        #expect(try used() > before + 299)
        for page in 1..<300 as Range<UInt32> where page != 150 { space.stage(page, 0) }
        // A commit that fails leaves the pages as they are for the next.
        calls.failSyncs(.inputOutput)
        #expect(throws: StoreError.self) { try space.commit(durable: true) }
        #expect(try space.page(1) == 0 && space.page(150) == 9)
        calls.failSyncs(nil)
        // The next one tells of a file that was closed meanwhile.
        try? space.commit(durable: true)
        try space.commit(durable: isDurable)
        #expect(try space.page(299) == 0 && space.page(150) == 9)
        // A page in the middle of others may be written again, and then go once more.
        space.stage(100, 3)
        try space.commit(durable: isDurable)
        #expect(try space.page(99) == 0 && space.page(100) == 3)
        space.stage(100, 0)
        #expect(try used() < before + 16)
        try space.close()
    }

    // MARK: Files of segments

    /// Calls that let a test act in the middle of a write.
    private final class InterruptedCalls: ForwardingCalls {
        let real: any FileSystemCalls = LinuxCalls.shared
        nonisolated(unsafe) var beforeWrite: () -> Void = {}
        nonisolated(unsafe) var synced: [Int32] = []
        nonisolated(unsafe) var failingSyncs = 0
        nonisolated(unsafe) var afterStatus: () -> Void = {}

        func status(_ descriptor: Int32) throws(Errno) -> FileStatus {
            let act = afterStatus
            let status = try real.status(descriptor)
            act()
            return status
        }

        func pwrite(
            _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
        ) throws(Errno) -> Int {
            let act = beforeWrite
            beforeWrite = {}
            act()
            return try real.pwrite(descriptor, bytes, at: offset)
        }

        func dataSync(_ descriptor: Int32) throws(Errno) {
            synced.append(descriptor)
            if failingSyncs > 0 {
                failingSyncs -= 1
                throw .inputOutput
            }
            try real.dataSync(descriptor)
        }
    }

    private func segments(_ calls: InterruptedCalls, openMax: Int) throws -> SegmentFiles {
        let descriptor = try calls.open(AT_FDCWD, directory.path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        let files = SegmentFiles(
            directory: descriptor,
            layout: SegmentLayout(spaceCount: 1, segmentBytes: Geometry.segmentBytesMin), space: 0,
            calls: calls,
            openMax: openMax)
        for number in 0..<4 { try files.create(number) }
        try files.sync()
        calls.synced = []
        return files
    }

    @Test func `writes while files are synced are part of the next sync`() throws {
        let calls = InterruptedCalls()
        let files = try segments(calls, openMax: 8)
        // The sync comes between the mark and the bytes.
        calls.beforeWrite = { try? files.sync() }
        try [1, 2, 3].withUnsafeBytes { try files.write(0, at: 0, $0, .other) }
        calls.synced = []
        try files.sync()
        #expect(calls.synced.count == 1)
    }

    @Test func `a file that is closed before its sync is synced, and a failure of that is told`() throws {
        let calls = InterruptedCalls()
        let files = try segments(calls, openMax: 1)
        try [1, 2, 3].withUnsafeBytes { try files.write(0, at: 0, $0, .other) }
        calls.failingSyncs = 1
        var sector = [UInt8](repeating: 0, count: 512)
        try sector.withUnsafeMutableBytes { try files.read(1, at: 0, into: $0) }
        #expect(calls.synced.count == 1)
        #expect(throws: StoreError.io(.inputOutput)) { try files.sync() }
        try files.sync()
    }

    @Test func `a file that others make longer while it is synced is not too short`() throws {
        let calls = InterruptedCalls()
        let files = try segments(calls, openMax: 8)
        try [1, 2, 3].withUnsafeBytes { try files.write(0, at: 0, $0, .other) }
        var sector: UInt64 = 0
        calls.afterStatus = {
            sector += 1
            _ = try? [1, 2, 3].withUnsafeBytes { try files.write(0, at: sector * 512, $0, .other) }
        }
        try files.sync()
        #expect(sector > 1)
    }

    @Test func `a file that is closed while others are synced fails that very sync`() throws {
        let calls = InterruptedCalls()
        let files = try segments(calls, openMax: 1)
        for number in 0..<2 {
            try [1, 2, 3].withUnsafeBytes { try files.write(number, at: 0, $0, .other) }
        }
        // Segment 1 is closed where 0 is opened to be synced; its own sync comes later, and finds nothing wrong.
        calls.synced = []
        calls.failingSyncs = 1
        #expect(throws: StoreError.io(.inputOutput)) { try files.sync() }
        #expect(calls.synced.count == 4)
        try files.sync()
    }
}
