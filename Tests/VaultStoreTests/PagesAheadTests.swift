import LinuxIO
import Synchronization
import TestFixtures
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// On a cluster pages that will be read are asked for together, by the program that knows which these are.
@Suite("Space: pages of a cluster that are asked for") struct PagesAheadTests {
    /// Counts the requests to read from a cluster in memory.
    private final class Requests: Sendable {
        private let number = Mutex(0)
        var count: Int { number.withLock { $0 } }

        init(_ disk: MemoryDisk) {
            disk.pool.noteReads { _, _ in
                self.number.withLock { $0 += 1 }
                return nil
            }
        }
    }

    private let count = 3000

    private func content(_ page: Int) -> [UInt8] {
        var random = RandomSource(UInt64(page + 1))
        return (0..<Geometry.pagePlainBytes).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// A cluster with a space of some pages.
    private func made(_ vault: MemoryVault) throws -> MemoryDisk {
        let disk = MemoryDisk(vault.empty)
        let space = try vault.openSpace(disk)
        for page in 0..<count {
            (content(page) + [UInt8](repeating: 0, count: Geometry.pageBytes - Geometry.pagePlainBytes))
                .withUnsafeBytes { space.stagePage(UInt32(page), $0) }
        }
        try space.publish(space.freeze(), durable: true)
        try space.close()
        return disk
    }

    private func requireSame(_ space: Space, _ page: UInt32) throws {
        var bytes = [UInt8](repeating: 0, count: Geometry.pageBytes)
        try bytes.withUnsafeMutableBytes { try space.readPage(page, into: $0) }
        #expect(Array(bytes.prefix(Geometry.pagePlainBytes)) == content(Int(page)), "page \(page)")
    }

    @Test(arguments: [1, 2]) func `pages that were asked for are read without a request`(spaces: Int) throws {
        let vault = try MemoryVault(spaces: spaces, .usual, on: .cluster)
        let disk = try made(vault)
        let space = try vault.openSpace(disk, isReadOnly: true)
        // As the pages of one tree lie: far from each other, in any order.
        let pages = (0..<60).map { UInt32($0 * 1009 % count) }
        let requests = Requests(disk)
        space.willReadPages(pages[..<30], later: pages[30...])
        #expect(requests.count > 0)
        let first = requests.count
        for page in pages[..<30] { try requireSame(space, page) }
        #expect(requests.count == first)
        // The nodes that refer to the others are there.
        space.willReadPages(pages[30...], later: [])
        #expect(requests.count <= first + 30)
        let second = requests.count
        for page in pages[30...] { try requireSame(space, page) }
        #expect(requests.count == second)
    }

    @Test func `pages that do not exist are not asked for`() throws {
        let vault = try MemoryVault(spaces: 1, .usual, on: .cluster)
        let disk = try made(vault)
        let space = try vault.openSpace(disk, isReadOnly: true)
        let requests = Requests(disk)
        space.willReadPages([UInt32(count), .max], later: [UInt32(count) + 1, .max - 1])
        #expect(requests.count == 0)
    }

    @Test func `what was asked for has the bytes that were written last`() throws {
        let vault = try MemoryVault(spaces: 1, .usual, on: .cluster)
        let space = try vault.openSpace(try made(vault))
        var random = RandomSource(1)
        var last: [UInt32: UInt8] = [:]
        for step in 0..<300 {
            let pages = (0..<8).map { _ in UInt32.random(in: 0..<UInt32(count), using: &random) }
            space.willReadPages(pages[..<6], later: pages[6...])
            let changed = pages[step % 8]
            let value = UInt8(step % 255 + 1)
            [UInt8](repeating: value, count: Geometry.pageBytes).withUnsafeBytes {
                space.stagePage(changed, $0)
            }
            last[changed] = value
            if step % 3 == 0 { try space.publish(space.freeze(), durable: step % 2 == 0) }
            for page in pages {
                guard let value = last[page] else {
                    try requireSame(space, page)
                    continue
                }
                var bytes = [UInt8](repeating: 0, count: Geometry.pageBytes)
                try bytes.withUnsafeMutableBytes { try space.readPage(page, into: $0) }
                #expect(bytes.prefix(Geometry.pagePlainBytes).allSatisfy { $0 == value }, "step \(step)")
            }
        }
    }

    /// A mount looks at all segments of pages, some fifty here, before it writes.
    @Test func `sizes are asked for together`() throws {
        let vault = try MemoryVault(spaces: 1, .least, on: .cluster)
        let disk = try made(vault)
        let before = disk.pool.sizeWaits
        let unlocked = try vault.unlock(disk)
        let space = try unlocked.openSpace(.writing, limits: vault.limits)
        #expect(space.segments.count > 50)
        #expect(disk.pool.sizeWaits - before < 15)
        try space.close()
    }

    /// Both copies of all roots, in a request each.
    @Test(arguments: [1, 2]) func `roots are read together`(spaces: Int) throws {
        let vault = try MemoryVault(spaces: spaces, .usual, on: .cluster)
        let disk = try made(vault)
        let host = try hostPlace(vault.path, disk).open()
        let segments = SpaceDisk(try host.segments(of: 0, vault.layout, cover: nil, openMax: 8), vault.layout)
        let requests = Requests(disk)
        let reading = RootStore.read(segments, PageCodec(key: vault.keys.page))
        #expect(reading.found.contains { $0.root.isDurable } && requests.count == 2)
        // Where that fails, each is read by itself.
        let failed = Atomic<Int>(0)
        disk.pool.noteReads { _, range in
            guard range.count > Geometry.pageBytes else { return nil }
            failed.add(1, ordering: .relaxed)
            return .inputOutput
        }
        let single = RootStore.read(segments, PageCodec(key: vault.keys.page))
        #expect(failed.load(ordering: .relaxed) == 2 && single.error == nil)
        #expect(single.found.map(\.root.generation) == reading.found.map(\.root.generation))
    }
}
