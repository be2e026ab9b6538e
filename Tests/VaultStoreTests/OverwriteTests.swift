import LinuxIO
import Testing
import VaultFormat

@testable import VaultStore

/// The sectors of destroyed files.
@Suite("Trash: destroyed sectors are overwritten") struct OverwriteTests {
    private let directory = TemporaryDirectory()
    private let data = bytes(700_000, seed: 3)
    private let part = bytes(200_000, seed: 4)

    /// A space with content 1, and where that lies.
    private func makeSpace(spaces: Int) throws -> (path: String, space: Space, runs: [ExtentRun]) {
        let path = try makeVault(directory, spaces: spaces, bytes: spaces > 1 ? 16 << 20 : nil)
        let space = try openSpace(path)
        let runs = try space.writeAll(1, data)
        space.adopt(runs)
        try space.commit(durable: true)
        return (path, space, runs)
    }

    /// The sealed bytes of runs, as they are in the vault's files.
    private func sealed(_ space: Space, _ runs: [ExtentRun]) throws -> [[UInt8]] {
        try runs.flatMap { run in
            try (0..<UInt64(run.sectorCount)).map { index in
                var sector = [UInt8](repeating: 0, count: Geometry.sectorBytes)
                do {
                    try sector.withUnsafeMutableBytes {
                        try space.parts.disk.read(run.sector + index, into: $0)
                    }
                } catch StoreError.damaged {
                    // Its segment was given back to the host.
                }
                return sector
            }
        }
    }

    private func changedSectors(_ space: Space, _ runs: [ExtentRun], since before: [[UInt8]]) throws -> Int {
        zip(try sealed(space, runs), before).reduce(0) { $0 + ($1.0 == $1.1 ? 0 : 1) }
    }

    private func taken(_ space: Space) -> UInt64 {
        space.parts.lock.withLock { space.sectors.allocator.usedSectors }
    }

    @Test(arguments: [1, 2])
    func `destroyed sectors are overwritten before they are free`(spaces: Int) throws {
        let (_, space, runs) = try makeSpace(spaces: spaces)
        let before = try sealed(space, runs)
        space.free(runs, overwriting: true)
        #expect(space.eraser.hasDestroyed && !space.eraser.canOverwrite)
        try space.commit(durable: true)
        space.eraser.overwrite(most: 1 << 30)
        #expect(
            try changedSectors(space, runs, since: before) == 0,
            "the durable root before still refers to them")
        try space.commit(durable: true)
        #expect(space.eraser.canOverwrite)
        #expect(taken(space) == UInt64(before.count), "not free yet")
        // A part of them, and the rest after more commits have passed.
        space.eraser.overwrite(most: 100 << 9)
        #expect(taken(space) == UInt64(before.count - 101))
        #expect(try changedSectors(space, runs, since: before) == 101)
        for _ in 0..<2 { try space.commit(durable: true) }
        space.eraser.overwrite(most: 1 << 30)
        #expect(try changedSectors(space, runs, since: before) == before.count)
        #expect(taken(space) == 0 && space.sectors.pendingBytes == 0)
        #expect(!space.eraser.hasDestroyed && !space.eraser.canOverwrite)
    }

    @Test func `other sectors are not overwritten`() throws {
        let (_, space, runs) = try makeSpace(spaces: 1)
        let before = try sealed(space, runs)
        space.free(runs)
        for _ in 0..<2 { try space.commit(durable: true) }
        #expect(!space.eraser.hasDestroyed && !space.eraser.canOverwrite)
        #expect(taken(space) == 0)
        #expect(try changedSectors(space, runs, since: before) == 0)
        try space.close()
    }

    @Test(arguments: [1, 2], [0, 1, 2])
    func `closing finishes overwriting`(spaces: Int, commits: Int) throws {
        try expectNothingTaken(try close(spaces: spaces, after: commits))
    }

    private func close(spaces: Int, after commits: Int) throws -> String {
        let (path, space, runs) = try makeSpace(spaces: spaces)
        let before = try sealed(space, runs)
        space.free(runs, overwriting: true)
        for _ in 0..<commits { try space.commit(durable: commits > 1) }
        try space.close()
        #expect(try changedSectors(space, runs, since: before) == before.count)
        return path
    }

    /// After so many steps there is a crash: they are free, overwritten or not.
    @Test(arguments: 0..<8) func `a crash leaves destroyed sectors free`(steps: Int) throws {
        let path = try crash(after: steps)
        try expectNothingTaken(path)
    }

    private func crash(after count: Int) throws -> String {
        let (path, space, runs) = try makeSpace(spaces: 2)
        space.free(runs, overwriting: true)
        try space.commit(durable: true)
        let steps: [() throws -> Void] = [
            { try space.commit(durable: false) }, { try space.commit(durable: true) },
            { space.eraser.overwrite(most: 50_000) }, { try space.commit(durable: false) },
            { try space.commit(durable: true) }, { space.eraser.overwrite(most: 50_000) },
            { try space.commit(durable: true) }, { space.eraser.overwrite(most: 1 << 30) },
        ]
        for step in steps.prefix(count) { try step() }
        return path
    }

    private func expectNothingTaken(_ path: String) throws {
        let space = try openSpace(path)
        for _ in 0..<2 { try space.commit(durable: true) }
        #expect(taken(space) == 0 && space.sectors.pendingBytes == 0)
    }

    @Test func `sectors written meanwhile are never touched`() throws {
        let (path, kept) = try writeAndDestroy()
        let space = try openSpace(path)
        for (content, runs) in kept { #expect(try space.readAll(content, runs) == part) }
    }

    private typealias Kept = [(content: UInt64, runs: [ExtentRun])]

    private func writeAndDestroy() throws -> (path: String, kept: Kept) {
        let (path, space, first) = try makeSpace(spaces: 2)
        var old = first
        var kept: Kept = []
        for round in 2..<14 as Range<UInt64> {
            space.free(old, overwriting: true)
            old = try space.writeAll(round * 2, data)
            let runs = try space.writeAll(round * 2 + 1, part)
            space.adopt(old + runs)
            kept.append((round * 2 + 1, runs))
            try space.commit(durable: round % 3 != 0)
            space.eraser.overwrite(most: round % 2 == 0 ? 300_000 : 1 << 30)
        }
        for (content, runs) in kept { #expect(try space.readAll(content, runs) == part) }
        try space.close()
        return (path, kept)
    }
}
