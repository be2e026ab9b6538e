import Foundation
import Glibc
import TestFixtures
import TestSupport
import Testing

/// The targets of `scripts/fuzz`, without libFuzzer: each survives its kept corpus, and random inputs that
/// are the same every time.
@Suite("Damage: fuzz targets") struct FuzzTests {
    private static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Corpus")

    @Test func `every directory of the corpus has a target`() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path) {
            #expect(fuzzTargets[name] != nil, "\(name)")
        }
    }

    @Test(arguments: fuzzTargets.keys.sorted()) func `a target survives its corpus and random inputs`(
        name: String
    ) async throws {
        let directory = try makeTemporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (kept, log) = (Self.corpus.path + "/" + name, directory + "/log")
        print("fuzz \(name): \(try FuzzInput.kept(kept).count) kept inputs, seeds \(FuzzInput.seeds)")
        // A target that dies takes its own process along, and no other test.
        let ended = await #expect(processExitsWith: .success) {
            [name = name as String, kept = kept as String, log = log as String] in
            let target = try #require(fuzzTargets[name])
            dup2(open(log, O_WRONLY | O_CREAT | O_APPEND, 0o600), STDERR_FILENO)
            for input in try FuzzInput.all(of: name, kept: kept) {
                FileHandle.standardError.write(Data("\(input.name)\n".utf8))
                input.bytes.withUnsafeBytes { target($0) }
            }
        }
        if ended == nil {
            // With SWIFT_BACKTRACE=enable=yes in the environment, also where.
            let words = try? String(contentsOfFile: log, encoding: .utf8)
            Issue.record("fuzz \(name): it ended after the beginning of \(words ?? "nothing")")
        }
    }
}

/// The input of a target.
private struct FuzzInput {
    /// Says how to have it again.
    let name: String
    let bytes: [UInt8]

    static let seeds: ClosedRange<UInt64> = 1...48
    private static let randomBytesMax = 512

    /// The inputs in a directory of the corpus; none where there is no such directory.
    static func kept(_ directory: String) throws -> [FuzzInput] {
        guard FileManager.default.fileExists(atPath: directory) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: directory).sorted().map { name in
            let url = URL(fileURLWithPath: directory + "/" + name)
            return FuzzInput(name: name, bytes: [UInt8](try Data(contentsOf: url)))
        }
    }

    /// The kept inputs, and one of each seed: a kept one with random changes, or random bytes.
    static func all(of target: String, kept directory: String) throws -> [FuzzInput] {
        let kept = try kept(directory)
        let bases = kept.map(\.bytes) + (target == "metadata" ? Samples.all.map(\.bytes) : [])
        return kept + seeds.map { FuzzInput(name: "seed \($0)", bytes: bytes(seed: $0, bases)) }
    }

    private static func bytes(seed: UInt64, _ bases: [[UInt8]]) -> [UInt8] {
        var random = RandomSource(seed)
        let isMutation = Int.random(in: 0..<4, using: &random) > 0
        if isMutation, let base = bases.randomElement(using: &random) { return mutated(base, &random) }
        return (0..<Int.random(in: 0...randomBytesMax, using: &random)).map { _ in
            UInt8.random(in: .min ... .max, using: &random)
        }
    }
}
