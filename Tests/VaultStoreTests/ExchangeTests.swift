import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// Segments whose files have each other's names.
@Suite("Damage: exchanged segments") struct ExchangeTests {
    let directory = TemporaryDirectory()
    private static let content: UInt64 = 5

    /// A vault with some pages, and content in all of its segments but one.
    private struct Vaulted {
        var path: String
        var data: [UInt8]
        var runs: [ExtentRun]

        var samples: [CheckedRun] {
            runs.flatMap { run in
                (0..<run.chunkCount).map { chunk in
                    var part = run
                    part.offset = run.offset + UInt64(chunk * Geometry.chunkBytes)
                    part.length = UInt64(run.plainBytes(ofChunk: chunk))
                    part.sector = run.sector(ofChunk: chunk)
                    return CheckedRun(content: ExchangeTests.content, run: part)
                }
            }
        }

        func name(_ number: Int) -> String { "\(path)/segments/" + SegmentLayout.name(number) }

        /// Gives files new names at once: number to number.
        func rename(_ names: [Int: Int]) throws {
            for from in names.keys {
                try FileManager.default.moveItem(atPath: name(from), toPath: name(from) + "x")
            }
            for (from, to) in names {
                try FileManager.default.moveItem(atPath: name(from) + "x", toPath: name(to))
            }
        }

        func unlock(_ calls: any FileSystemCalls = LinuxCalls.shared) throws -> UnlockedSpace {
            try patiently { try Vault.unlock(path, password: secret("one"), readOnly: true, calls: calls) }
        }
    }

    private func make() throws -> Vaulted {
        let path = try makeVault(directory)
        let unlocked = try patiently { try Vault.unlock(path, password: secret("one")) }
        let space = try unlocked.openSpace(.writing)
        for page in 0..<300 { space.stage(UInt32(page), 7) }
        let data = bytes(50 << 20, seed: 3)
        let runs = try space.writeAll(Self.content, data)
        space.adopt(runs)
        try space.commit(durable: true)
        try space.close()
        return Vaulted(path: path, data: data, runs: runs)
    }

    private func expectWhole(_ vault: Vaulted, location: SourceLocation = #_sourceLocation) throws {
        #expect(try vault.unlock().findExchange(vault.samples) == nil, sourceLocation: location)
        let space = try vault.unlock().openSpace(.writing)
        #expect(try space.page(299) == 7, sourceLocation: location)
        #expect(try space.readAll(Self.content, vault.runs) == vault.data, sourceLocation: location)
    }

    private func expectFound(
        _ texts: [String], _ vault: Vaulted, location: SourceLocation = #_sourceLocation
    ) throws -> SegmentExchange {
        let exchange = try #require(
            try vault.unlock().findExchange(vault.samples), sourceLocation: location)
        #expect(exchange.texts == texts, sourceLocation: location)
        // All can be read as if nothing had happened.
        let space = try vault.unlock().openSpace(through: exchange)
        #expect(try space.page(299) == 7, sourceLocation: location)
        #expect(try space.readAll(Self.content, vault.runs) == vault.data, sourceLocation: location)
        return exchange
    }

    @Test func `any two exchanged segments are found and get their own names again`() throws {
        let vault = try make()
        try expectWhole(vault)
        let used = Set(vault.runs.map { Int($0.sector / 32_768) }).union([0, 1]).sorted()
        #expect(used.count >= 5)
        for (first, second) in [(0, 1), (0, used[3]), (1, used[2]), (used[2], used[3]), (used[3], used[4])] {
            try vault.rename([first: second, second: first])
            let exchange = try expectFound(["segments \(first) and \(second) are exchanged"], vault)
            try vault.unlock().undo(exchange)
            try expectWhole(vault)
        }
    }

    @Test func `rings, several at once, and names of no segment`() throws {
        let vault = try make()
        try vault.rename([0: 2, 2: 3, 3: 0, 1: 4, 4: 1])
        let exchange = try expectFound(
            ["segments 0, 2 and 3 are exchanged", "segments 1 and 4 are exchanged"], vault)
        try vault.unlock().undo(exchange)
        try expectWhole(vault)
        try vault.rename([0: 77])
        let renamed = try expectFound(["segments 0 and 77 are exchanged"], vault)
        try vault.unlock().undo(renamed)
        try expectWhole(vault)
    }

    /// The bytes of one are gone: the others get their names, and nothing is lost by it.
    @Test func `a file that took the place of another`() throws {
        let vault = try make()
        try FileManager.default.removeItem(atPath: vault.name(3))
        try vault.rename([2: 3])
        let exchange = try #require(try vault.unlock().findExchange(vault.samples))
        #expect(exchange.texts == ["segments 2 and 3 are exchanged"])
        try vault.unlock().undo(exchange)
        #expect(try vault.unlock().findExchange(vault.samples) == nil)
        #expect(!FileManager.default.fileExists(atPath: vault.name(3)))
    }

    @Test func `damage and copies are no exchange`() throws {
        let vault = try make()
        let old = try Data(contentsOf: URL(fileURLWithPath: vault.name(2)))
        try Data(bytes(1 << 20, seed: 8)).write(to: URL(fileURLWithPath: vault.name(2)))
        #expect(try vault.unlock().findExchange(vault.samples) == nil)
        try old.write(to: URL(fileURLWithPath: vault.name(2)))
        try FileManager.default.copyItem(atPath: vault.name(2), toPath: vault.name(99))
        #expect(try vault.unlock().findExchange(vault.samples) == nil)
        try FileManager.default.removeItem(atPath: vault.name(0))
        #expect(try vault.unlock().findExchange(vault.samples) == nil)
    }

    @Test func `a mount shows what there is and writes nothing`() throws {
        let vault = try make()
        for other in [1, 3] {
            try vault.rename([0: other, other: 0])
            let stop = WriteStop.segmentsExchanged([0, other])
            #expect(throws: VaultError.notWritable(stop)) { try vault.unlock().openSpace(.writing) }
            #expect(throws: VaultError.notWritable(stop)) { try vault.unlock().openSpace(.repairing) }
            try show(vault, stop)
            try vault.rename([0: other, other: 0])
        }
        try expectWhole(vault)
    }

    /// The catalogue is asked for the runs of each segment that is compared.
    @Test func `all segments are compared before an empty one with data is written`() throws {
        let vault = try make()
        let perSegment = try vault.unlock().openSpace(.reading).sectors.perSegment
        let used = Set(vault.runs.map { Int($0.sector) / perSegment })
        let empty = try #require((0..<used.count + 1).first { !used.contains($0) })
        let size = try #require(
            try FileManager.default.attributesOfItem(atPath: vault.name(empty))[.size] as? UInt64)
        for data in [nil, Data(repeating: 0, count: 4096), Data([1])] {
            let file = try #require(FileHandle(forUpdatingAtPath: vault.name(empty)))
            try file.truncate(atOffset: 0)
            try file.truncate(atOffset: size)
            if let data {
                try file.seek(toOffset: size / 2)
                file.write(data)
            }
            try file.close()
            let space = try vault.unlock().openSpace(.writing)
            let rows = SampleRows(vault.samples)
            space.rows = rows
            try space.references.requireOwnFiles(UInt64(empty * perSegment), 1)
            let asked = Set(rows.asked.withLock { $0 }.map { Int($0) / perSegment })
            #expect(asked.isSuperset(of: used) == (data != nil))
            try space.close()
        }
    }

    /// The rows of a catalogue that has some runs only.
    private final class SampleRows: ExtentRows {
        private let samples: [CheckedRun]
        /// First sectors of the ranges that were asked for.
        let asked = Mutex<[UInt64]>([])

        init(_ samples: [CheckedRun]) { self.samples = samples }

        func isReferenced(_ sectors: Range<UInt64>) -> Bool { false }

        func firstRuns(in sectors: Range<UInt64>, limit: Int) -> [CheckedRun] {
            asked.withLock { $0.append(sectors.lowerBound) }
            return Array(samples.filter { sectors.contains($0.run.sector) }.prefix(limit))
        }
    }

    private func show(_ vault: Vaulted, _ stop: WriteStop) throws {
        let space = try vault.unlock().openSpace(.writingIfPossible)
        #expect(space.isReadOnly && space.writeStop == stop)
        #expect(try space.page(299) == 7)
    }

    /// On a host that cannot exchange two names, and a process that is killed between any two renames.
    @Test func `killed at any moment, it can be done again`() throws {
        final class Calls: ForwardingCalls {
            let left = Mutex(0)
            func rename(_ d: Int32, _ from: String, _ to: String, isExchange: Bool) throws(Errno) {
                if isExchange { throw Errno(EINVAL) }
                let isRetired = left.withLock { left in
                    left -= 1
                    return left < 0
                }
                if isRetired { throw .inputOutput }
                try real.rename(d, from, to, isExchange: false)
            }
        }
        let vault = try make()
        for count in 0...6 {
            try vault.rename([0: 1, 1: 0, 2: 3, 3: 2])
            let exchange = try #require(try vault.unlock().findExchange(vault.samples))
            #expect(exchange.groups == [[0, 1], [2, 3]])
            let calls = Calls()
            calls.left.withLock { $0 = count }
            if count < 6 {
                #expect(throws: VaultError.self) { try vault.unlock(calls).undo(exchange) }
                let rest = try #require(try vault.unlock().findExchange(vault.samples))
                try vault.unlock().undo(rest)
            } else {
                try vault.unlock(calls).undo(exchange)
            }
            try expectWhole(vault)
        }
    }

    @Test func `any permutation is undone by its steps`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed)
        for _ in 0..<500 {
            let count = Int.random(in: 2...9, using: &generator)
            // Segments and the names of their files, some of which are no segment's.
            let names = Array(0..<count + 3).shuffled(using: &generator)
            var files: [Int: Int] = [:]
            for segment in 0..<count { files[names[segment]] = segment }
            let places = Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, names[$0]) })
            guard let exchange = SegmentExchange(places) else { continue }
            for (first, second) in exchange.steps {
                let moved = files[first]
                files[first] = files[second]
                files[second] = moved
            }
            #expect((0..<count).allSatisfy { files[$0] == $0 }, "seed \(seed)")
            #expect(Set(exchange.places.keys) == Set(exchange.places.values), "seed \(seed)")
            #expect(Set(exchange.groups.joined()).isSuperset(of: exchange.places.keys), "seed \(seed)")
        }
    }
}
