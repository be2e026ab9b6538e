import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

@Suite("Space: extents, pages and roots") struct SpaceTests {
    let directory = TemporaryDirectory()

    @Test(arguments: [0, 1, 2, 5, 511, 4056, 131_071, 131_072, 131_073, 1_000_000, 3_333_333])
    func `content comes back as it was`(count: Int) throws {
        let path = try makeVault(directory)
        let data = bytes(count, seed: 7)
        var runs: [ExtentRun] = []
        do {
            let space = try openSpace(path)
            if count > 0 { runs = try space.writeAll(1, data) }
            space.adopt(runs)
            try space.commit(durable: true)
            #expect(try space.readAll(1, runs) == data)
            try space.close()
        }
        let space = try openSpace(path)
        #expect(try space.readAll(1, runs) == data)
        #expect(throws: StoreError.damaged) {
            if count == 0 { throw StoreError.damaged } else { _ = try space.readAll(2, runs) }
        }
    }

    @Test func `pages come back after soft and durable roots`() throws {
        let path = try makeVault(directory)
        for durable in [true, false] {
            let mark: UInt8 = durable ? 1 : 101
            do {
                let space = try openSpace(path)
                for page in 0..<300 { space.stage(UInt32(page), UInt8(page % 100) + mark) }
                try space.commit(durable: durable)
                space.stage(7, 250)
                try space.commit(durable: durable)
                // No close: as if the process was killed.
            }
            let space = try openSpace(path)
            #expect(space.pageCount == 300)
            #expect(try space.page(0) == mark)
            #expect(try space.page(7) == 250)
            #expect(try space.page(299) == 99 + mark)
        }
    }

    @Test func `soft roots of another boot do not count`() throws {
        let path = try makeVault(directory)
        do {
            let space = try openSpace(path)
            space.stage(0, 1)
            try space.commit(durable: true)
            space.stage(0, 2)
            try space.commit(durable: false)
        }
        let unlocked = try patiently { try Vault.unlock(path, password: secret("one")) }
        let disk = SpaceDisk(try unlocked.vault.segments(of: 0, unlocked.layout), unlocked.layout)
        let options = SpaceOptions(
            isReadOnly: true, grows: true, bootHash: [UInt8](repeating: 9, count: 32), segmentCount: 2,
            segmentCountNow: { 2 })
        let space = try Space.open(disk: disk, keys: SpaceKeys(unlocked.key), options: options)
        #expect(try space.page(0) == 1)
    }

    @Test func `a soft root counts only if all it leads to opens`() throws {
        let path = try makeVault(directory)
        var run: ExtentRun?
        do {
            let space = try openSpace(path)
            space.stage(0, 1)
            try space.commit(durable: true)
            space.stage(0, 2)
            let runs = try space.writeAll(5, bytes(200_000, seed: 1))
            space.adopt(runs)
            run = runs.first
            try space.commit(durable: false)
        }
        #expect(try openSpace(path, readOnly: true).page(0) == 2)
        let sector = try #require(run).sector
        let segment = FileHandle(
            forUpdatingAtPath: path + "/segments/" + SegmentLayout.name(Int(sector) / 32768))
        let handle = try #require(segment)
        try handle.seek(toOffset: (sector % 32768) * 512 + 1000)
        try handle.write(contentsOf: Data([1, 2, 3, 4]))
        try handle.close()
        #expect(try openSpace(path, readOnly: true).page(0) == 1)
    }

    @Test func `freed room is used again after two durable roots`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 32 << 20)
        let space = try openSpace(path)
        let empty = space.sectors.capacity
        var fill: UInt64 = 0
        let data = bytes(700_000, seed: 3)
        for round in 0..<8 {
            var all: [[ExtentRun]] = []
            var written: UInt64 = 0
            do {
                while true {
                    let runs = try space.writeAll(UInt64(all.count + 1), data)
                    space.adopt(runs)
                    all.append(runs)
                    written += 700_000
                    if all.count % 5 == 0 { try space.commit(durable: false) }
                }
            } catch StoreError.noRoom {}
            if round == 0 { fill = written } else { #expect(written == fill) }
            for runs in all { space.free(runs) }
            space.stage(0, UInt8(round))
            try space.commit(durable: true)
            try space.commit(durable: true)
            #expect(space.sectors.capacity == empty)
        }
    }

    @Test func `reserved room is forgotten and given back`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 32 << 20)
        let space = try openSpace(path)
        let before = space.sectors.capacity.free
        let runs = try space.writeAll(1, bytes(1 << 20, seed: 2))
        #expect(space.sectors.capacity.free < before)
        space.abandon(runs)
        #expect(space.sectors.capacity.free == before)
    }

    @Test func `many commits keep the catalogue small`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 32 << 20)
        var model: [UInt32: UInt8] = [:]
        var generator = SeededGenerator(42)
        for round in 0..<4 {
            let space = try openSpace(path)
            for (page, byte) in model { #expect(try space.page(page) == byte) }
            for commit in 0..<200 {
                for _ in 0..<20 {
                    let page = UInt32.random(in: 0..<400, using: &generator)
                    let byte = UInt8.random(in: 1...255, using: &generator)
                    space.stage(page, byte)
                    model[page] = byte
                }
                try space.commit(durable: commit % 17 == 0)
            }
            #expect(space.segments.pairs.count == 1)
            if round % 2 == 0 {
                try space.commit(durable: true)
                try space.close()
            }
        }
    }

    /// Pages, map nodes, deltas and roots are there twice: either segment of a pair may be lost as a whole.
    @Test(arguments: [0, 1]) func `either copy of all pages suffices`(lost: Int) throws {
        let path = try makeVault(directory)
        do {
            let space = try openSpace(path)
            for page in 0..<500 { space.stage(UInt32(page), UInt8(page % 250)) }
            try space.commit(durable: true)
            try space.close()
        }
        let file = path + "/segments/" + SegmentLayout.name(lost)
        let size = try Data(contentsOf: URL(fileURLWithPath: file)).count
        try Data(bytes(size, seed: 5)).write(to: URL(fileURLWithPath: file))
        do {
            let space = try openSpace(path)
            for page in 0..<500 { #expect(try space.page(UInt32(page)) == UInt8(page % 250)) }
            space.stage(3, 251)
            try space.commit(durable: true)
            try space.commit(durable: true)
        }
        try FileManager.default.removeItem(atPath: file)
        #expect(try openSpace(path, readOnly: true).page(3) == 251)
    }

    /// A flipped bit of content is an error for that chunk and for nothing else.
    @Test func `damaged content is never served`() throws {
        let path = try makeVault(directory)
        let space = try openSpace(path)
        let data = bytes(600_000, seed: 9)
        let runs = try space.writeAll(1, data)
        let other = try space.writeAll(2, data)
        space.adopt(runs + other)
        try space.commit(durable: true)
        let sector = Int(try #require(runs.first).sector)
        let file = path + "/segments/" + SegmentLayout.name(sector / 32768)
        var generator = SeededGenerator(77)
        for _ in 0..<40 {
            let offset = UInt64((sector % 32768) * 512) + UInt64.random(in: 0..<590_000, using: &generator)
            let handle = try #require(FileHandle(forUpdatingAtPath: file))
            try handle.seek(toOffset: offset)
            let old = try #require(try handle.read(upToCount: 1))
            try handle.seek(toOffset: offset)
            try handle.write(contentsOf: Data([old[0] ^ 0x10]))
            let outcome = Result { try space.readAll(1, runs) }
            switch outcome {
            case .success(let read): #expect(read == data)
            case .failure(let error): #expect(error as? StoreError == .damaged)
            }
            #expect(try space.readAll(2, other) == data)
            try handle.seek(toOffset: offset)
            try handle.write(contentsOf: old)
            try handle.close()
        }
        #expect(try space.readAll(1, runs) == data)
    }

    /// A deleted segment costs its contents; its number and those after it are not taken for free.
    @Test func `a deleted segment endangers no other`() throws {
        let path = try makeVault(directory)
        let data = bytes(3_000_000, seed: 4)
        var all: [[ExtentRun]] = []
        do {
            let space = try openSpace(path)
            for content in 0..<24 {
                let runs = try space.writeAll(UInt64(content), data)
                space.adopt(runs)
                all.append(runs)
            }
            try space.commit(durable: true)
            try space.close()
        }
        try FileManager.default.removeItem(atPath: path + "/segments/" + SegmentLayout.name(3))
        let space = try openSpace(path)
        for content in 100..<130 {
            let runs = try space.writeAll(UInt64(content), data)
            space.adopt(runs)
        }
        try space.commit(durable: true)
        var lost = 0
        for (content, runs) in all.enumerated() {
            let touched = runs.contains { run in
                (0..<run.chunkCount).contains { Int(run.sector(ofChunk: $0)) / 32768 == 3 }
            }
            let read = try? space.readAll(UInt64(content), runs)
            if touched { lost += 1 } else { #expect(read == data) }
        }
        #expect(lost > 0 && lost < 10)
    }

    /// A mount that finds a soft root and changes nothing must not lose it by unmounting.
    @Test func `a soft root survives a mount that changes nothing`() throws {
        let path = try makeVault(directory)
        do {
            let space = try openSpace(path)
            space.stage(0, 9)
            try space.commit(durable: false)
        }
        do { try openSpace(path).close() }
        #expect(try openSpace(path).page(0) == 9)
    }

    /// Two runs may meet at the end of a segment and be put together to one row.
    @Test func `a run may go on in the next segment`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 32 << 20)
        let space = try openSpace(path)
        let before = space.sectors.capacity
        // Segments of 4 MiB have 8,192 sectors: 31 chunks and 225 sectors, which one small extent fills.
        let chunk = Geometry.chunkBytes
        let small = try space.writeAll(1, bytes(225 * 512 - 96, seed: 1))
        let data = bytes(40 * chunk, seed: 2)
        let runs = try space.writeAll(2, data)
        let first = try #require(runs.first)
        try #require(runs.count == 2 && first.isContinued(by: runs[1]))
        let whole = ExtentRun(
            offset: 0, length: UInt64(data.count), sector: first.sector, generation: first.generation,
            epoch: first.epoch)
        space.adopt(small + [whole])
        try space.commit(durable: true)
        #expect(try space.readAll(2, [whole]) == data)
        space.free(small + [whole])
        for _ in 0..<3 {
            space.stage(0, 1)
            try space.commit(durable: true)
        }
        #expect(space.sectors.capacity == before)
    }
}
