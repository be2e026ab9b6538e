import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// How much is written to hide how much is written.
@Suite("Secrets: cover writes, their amounts") struct CoverAmountTests {
    private static let mebibyte = Double(1 << 20)

    /// Amounts in MiB, in order.
    private func amounts(_ count: Int, _ draw: () -> UInt64) -> [Double] {
        (0..<count).map { _ in Double(draw()) / Self.mebibyte }.sorted()
    }

    /// How often somebody is right at best who is to say of a number whether `shift` was added to it, and knows how the
    /// numbers are distributed that have one most frequent value: the larger ones, from some number on, have it.
    private func mostRight(_ amounts: [Double], shift: Double) -> Double {
        var (most, end) = (0, 0)
        for (start, amount) in amounts.enumerated() {
            while end < amounts.count, amounts[end] < amount + shift { end += 1 }
            most = max(most, end - start)
        }
        return 0.5 + Double(most) / Double(amounts.count) / 2
    }

    @Test func `eight mebibytes in one session are guessed in less than 65 of 100 cases`() {
        let amounts = amounts(100_000, CoverAmount.ofSession)
        let right = [1.0, 8].map { mostRight(amounts, shift: $0) }
        // The standard error is 0.0007.
        #expect(right[1] < 0.65 && right[1] > 0.63, "\(right)")
        #expect(right[0] < 0.53, "\(right)")
        #expect((17...18).contains(amounts[50_000]), "\(amounts[50_000])")
        #expect(amounts.last.map { $0 > 100 && $0 <= 128 } == true)
        #expect(amounts.allSatisfy { ($0 * Self.mebibyte).truncatingRemainder(dividingBy: 4096) == 0 })
    }

    @Test func `a new vault hides a whole session more`() {
        let amounts = amounts(20_000) { CoverAmount.ofCreation() }
        #expect((220...240).contains(amounts[10_000]), "\(amounts[10_000])")
        #expect((amounts.last ?? 0) <= 1024)
        // The session's own 8 MiB, and the mean of what it adds.
        #expect(mostRight(amounts, shift: 8 + 26) < 0.60)
        // Of three sessions.
        #expect(mostRight(amounts, shift: 3 * (8 + 26)) < 0.65)
    }
}

/// Where cover writes go.
@Suite("Secrets: cover writes") struct CoverWritesTests {
    /// Notes the writes to the file of all spaces.
    private final class Writes: ForwardingCalls {
        private let ranges = Mutex([Range<UInt64>]())
        let directIsRefused: Bool
        private let direct = Mutex(Set<Int32>())

        init(directIsRefused: Bool = false) { self.directIsRefused = directIsRefused }

        func take() -> [Range<UInt64>] {
            ranges.withLock { found in
                defer { found = [] }
                return found
            }
        }

        func open(_ directory: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
            let file = try real.open(directory, path, flags: flags, mode: mode)
            direct.withLock { if flags & 0o40000 != 0 { _ = $0.insert(file) } else { $0.remove(file) } }
            return file
        }

        func pwrite(
            _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
        ) throws(Errno) -> Int {
            if directIsRefused, direct.withLock({ $0.contains(descriptor) }) { throw Errno(EINVAL) }
            let count = try real.pwrite(descriptor, bytes, at: offset)
            ranges.withLock { $0.append(offset..<offset + UInt64(count)) }
            return count
        }
    }

    private let directory = TemporaryDirectory()
    private let data = bytes(700_000, seed: 3)

    private func makeSpace(
        _ calls: any FileSystemCalls, spaces: Int = 2, limits: Limits = .production
    ) throws -> Space {
        let path = try makeVault(
            directory, spaces: spaces, bytes: spaces > 1 ? 16 << 20 : nil, limits: limits)
        return try openSpace(path, limits: limits, calls: calls)
    }

    private func write(_ space: Space, _ content: UInt64, durable: Bool = true) throws -> [ExtentRun] {
        let runs = try space.writeAll(content, data)
        space.adopt(runs)
        try space.commit(durable: durable)
        return runs
    }

    /// The sectors of the space that ranges of the file are in.
    private func sectors(_ space: Space, _ ranges: [Range<UInt64>]) -> [Range<UInt64>] {
        let layout = space.parts.disk.layout
        return ranges.map { range in
            let (place, offset) = range.lowerBound.quotientAndRemainder(dividingBy: layout.segmentBytes)
            #expect(Int(place) % layout.spaceCount == (space.parts.disk.host as? SegmentFiles)?.space)
            let first =
                place / UInt64(layout.spaceCount) * UInt64(space.parts.disk.sectorsPerSegment)
                + offset / UInt64(Geometry.sectorBytes)
            return first..<first + UInt64(range.count / Geometry.sectorBytes)
        }
    }

    private func isFree(_ space: Space, _ range: Range<UInt64>) throws -> Bool {
        try space.parts.lock.withLock {
            let perSegment = UInt64(space.parts.disk.sectorsPerSegment)
            let segment = Int(range.lowerBound / perSegment)
            let first = Int(range.lowerBound % perSegment)
            let row = try space.sectors.allocator.usedRow(of: segment)
            return !space.sectors.allocator.excluded.contains(segment)
                && (first..<first + range.count).allSatisfy { !row[$0] }
        }
    }

    @Test(arguments: [false, true], [Limits.production, .least])
    func `they go to free sectors, and leave nothing in the space`(
        directIsRefused: Bool, limits: Limits
    ) throws {
        let kept = try useSpace(Writes(directIsRefused: directIsRefused), limits)
        // As after a kill too, because nothing about them is stored.
        let again = try openSpace(directory.path + "/vault", limits: limits)
        for (content, runs) in kept { #expect(try again.readAll(content, runs) == data) }
    }

    /// Writes, frees, and writes cover in between. Returns the content that is left.
    private func useSpace(_ calls: Writes, _ limits: Limits) throws -> [(UInt64, [ExtentRun])] {
        let space = try makeSpace(calls, limits: limits)
        var kept: [(UInt64, [ExtentRun])] = []
        for content in 1...6 as ClosedRange<UInt64> {
            let runs = try write(space, content, durable: content % 2 == 0)
            if content % 3 == 0 { space.free(runs) } else { kept.append((content, runs)) }
            space.cover.bytesLeft = 6 << 20
            _ = calls.take()
            let before = (
                space.generation, space.sectors.knownCapacity,
                space.parts.lock.withLock { space.parts.next.isChanged }
            )
            #expect(space.cover.write(most: 4 << 20))
            let written = calls.take()
            #expect(written.reduce(0) { $0 + $1.count } == 4 << 20)
            for range in sectors(space, written) { #expect(try isFree(space, range)) }
            // Old content in free room must not tell how many were overwritten.
            #expect(Set(written.map { $0.lowerBound / (1 << 20) }).count <= 2)
            let after = (
                space.generation, space.sectors.knownCapacity,
                space.parts.lock.withLock { space.parts.next.isChanged }
            )
            #expect(before == after)
            #expect(!space.cover.write(most: 4 << 20) && !space.cover.write(most: 4 << 20))
            #expect(calls.take().reduce(0) { $0 + $1.count } == 2 << 20)
        }
        for (content, runs) in kept { #expect(try space.readAll(content, runs) == data) }
        try space.close()
        return kept
    }

    @Test func `content goes where it would have gone without them`() throws {
        let places = try [false, true].map { isCovered in
            let directory = TemporaryDirectory()
            let space = try openSpace(makeVault(directory, spaces: 2, bytes: 16 << 20))
            return try (1...8 as ClosedRange<UInt64>).map { content in
                let runs = try write(space, content)
                if content % 2 == 0 { space.free(runs) }
                if isCovered {
                    space.cover.bytesLeft = 1 << 20
                    space.cover.write(most: 1 << 20)
                    #expect(space.cover.bytesLeft == 0)
                }
                return runs.map(\.sector)
            }
        }
        #expect(places[0] == places[1])
    }

    @Test func `a session that writes nothing has none, and one that writes draws once`() throws {
        let calls = Writes()
        let space = try makeSpace(calls)
        _ = calls.take()
        #expect(!space.cover.write(most: 1 << 30))
        #expect(space.cover.bytesLeft == nil && calls.take().isEmpty)
        _ = try write(space, 1)
        _ = calls.take()
        space.cover.write(most: 4096)
        let drawn = try #require(space.cover.bytesLeft) + 4096
        space.cover.finish(milliseconds: .max / 2, isWriting: false)
        #expect(calls.take().reduce(0) { $0 + UInt64($1.count) } == drawn)
        #expect(space.cover.bytesLeft == 0)
        _ = try write(space, 2)
        _ = calls.take()
        #expect(!space.cover.write(most: 1 << 20) && calls.take().isEmpty)
    }

    @Test func `at the end they take no longer than they may`() throws {
        let calls = Writes()
        let space = try makeSpace(calls)
        _ = calls.take()
        space.cover.bytesLeft = 1 << 40
        space.cover.finish(milliseconds: 0, isWriting: true)
        #expect(calls.take().reduce(0) { $0 + $1.count } <= 4 << 20)
    }

    @Test func `a vault of one space has none`() throws {
        let calls = Writes()
        let space = try makeSpace(calls, spaces: 1)
        _ = try write(space, 1)
        _ = calls.take()
        #expect(!space.cover.write(most: 1 << 20, isWriting: true) && calls.take().isEmpty)
    }

    @Test func `a full space has none, and loses no room to them`() throws {
        let calls = Writes()
        let space = try makeSpace(calls)
        var content: UInt64 = 0
        space.cover.bytesLeft = 1 << 40
        while true {
            content += 1
            do { space.adopt(try space.writeAll(content, data)) } catch StoreError.noRoom { break }
            try space.commit(durable: false)
            _ = calls.take()
            space.cover.write(most: 256 << 10)
            for range in sectors(space, calls.take()) { #expect(try isFree(space, range)) }
        }
        // The last bytes, in small pieces.
        while true {
            do {
                let run = try bytes(400, seed: 1).withUnsafeBytes {
                    try space.write(role: .content, content: content, offset: 0, $0, near: nil)
                }
                space.adopt(run)
            } catch StoreError.noRoom { break }
        }
        try space.commit(durable: true)
        _ = calls.take()
        #expect(!space.cover.write(most: 1 << 20) && calls.take().isEmpty)
        #expect(space.sectors.capacity.available == 0)
    }

    @Test func `a mount that lost its claim writes none`() throws {
        let calls = Writes()
        let space = try makeSpace(calls)
        _ = try write(space, 1)
        space.stopWriting(.claimLost)
        _ = calls.take()
        #expect(!space.cover.write(most: 1 << 20) && calls.take().isEmpty)
    }

    @Test func `a new vault is written more than once, and wholly`() throws {
        let calls = Writes()
        let path = directory.path + "/new"
        for cover in [UInt64(0), 16 << 20, 80 << 20] {
            defer { try? FileManager.default.removeItem(atPath: path) }
            try Vault.create(
                at: path, spaces: 2, bytesPerSpace: 16 << 20, kdf: quickKDF, password: secret("one"),
                calls: calls, coverBytes: cover
            ) { _, _ in }
            let written = calls.take().reduce(0) { $0 + UInt64($1.count) }
            let size = try Data(contentsOf: URL(fileURLWithPath: path + "/spaces")).count
            #expect(size == 32 << 20)
            // Besides these the header, and the roots.
            #expect((0..<1 << 20).contains(Int(written) - 32 << 20 - Int(cover)), "\(written)")
        }
    }
}
