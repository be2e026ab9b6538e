import Foundation
import TestSupport
import TestThreads
import Testing

/// The daemon and its workers are killed at any moment: I3. A test plays some rounds, `scripts/kills` a thousand.
@Suite("Crashes: daemons and workers killed at random", .serialized, .waiting) struct KillTests {
    private static func variable(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    private static let roundsPerVault = 8
    /// Seeds, each of a vault.
    private static let seeds: [Int] = {
        let rounds = variable("OBSCURA_KILLS_ROUNDS") ?? 16
        let first = variable("OBSCURA_KILLS_SEED") ?? 1
        return Array(first..<first + (rounds + roundsPerVault - 1) / roundsPerVault)
    }()

    @Test(arguments: seeds) func `with any process killed, all finished files are there`(seed: Int) throws {
        let rounds = try KillRounds(
            spaces: seed % 4 == 3 ? 3 : 1 + seed % 2, isLeast: seed % 4 >= 2, seed: UInt64(seed))
        try rounds.play(Self.roundsPerVault)
        let kills = rounds.killed.map { "\($0.value) \($0.key)" }.sorted().joined(separator: ", ")
        print("kills: seed \(seed): \(Self.roundsPerVault) rounds: \(kills)")
    }
}
