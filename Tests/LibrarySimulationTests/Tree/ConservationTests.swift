import Foundation
import LibraryFixtures
import Testing

/// Random operations of programs that destroy nothing in the trash. Every photo that was there once must be there
/// still, with every content that it had: in moments, in an album, in the trash, or as a version. This needs no model
/// of the rules, and so cannot share a mistake with them.
@Suite("The tree: no operation loses a photo") struct ConservationTests {
    /// Seeds to try: few, unless the environment asks for more.
    static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["OBSCURA_MODEL_SEED"].flatMap { UInt64($0) } ?? 1
        let count = environment["OBSCURA_MODEL_SEEDS"].flatMap { UInt64($0) } ?? 3
        return Array(first..<first + count)
    }()

    @Test(arguments: seeds) func `every content of every photo can be found`(seed: UInt64) throws {
        var programs = try RandomPrograms(seed)
        for step in 1...400 {
            programs.step()
            if step % 130 == 0 {
                if step % 260 == 0 { try programs.fixture.kill() } else { try programs.fixture.remount() }
                programs.note(step % 260 == 0 ? "kill" : "mount")
            }
            let lost = try programs.lost()
            try #require(
                lost.isEmpty,
                "seed \(seed), after \(step) operations: \(lost)\n\(programs.done.suffix(30).joined(separator: "\n"))"
            )
        }
        try programs.fixture.remount()
        #expect(try programs.lost().isEmpty)
    }
}
