import Foundation
import LibraryFixtures
import TestFixtures
import Testing
import VaultStore

/// Two and three computers over storage whose locks do nothing: I11. A test plays some hundred mounts in each vault,
/// `scripts/claims` as many as it is told.
@Suite("Claims: two computers at random") struct ClaimRoundTests {
    private static func variable(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    private static let mountsPerSeed = 60
    private static let seeds: [UInt64] = {
        let rounds = variable("OBSCURA_CLAIMS_ROUNDS") ?? 500
        let first = variable("OBSCURA_CLAIMS_SEED") ?? 1
        return (0..<max(1, rounds / mountsPerSeed)).map { UInt64(first + $0) }
    }()

    @Test(arguments: seeds)
    func `files told to be safe are undone by no other computer`(seed: UInt64) throws {
        let vault = try MemoryVault(spaces: seed % 2 == 0 ? 1 : 2, segments: 24)
        let rounds = try ClaimRounds(
            vault, seed: seed, computers: seed % 5 == 4 ? 3 : 2, mounts: Self.mountsPerSeed)
        try rounds.run()
        print("claims: seed \(seed): \(rounds.summary)")
        #expect(rounds.losses.isEmpty, "seed \(seed)")
        #expect(rounds.takeovers > 0 && rounds.acknowledged > 10, "seed \(seed)")
    }

    /// Without claims the rounds lose files.
    @Test(arguments: 1...4) func `without claims files are lost`(seed: UInt64) throws {
        let vault = try MemoryVault(spaces: seed % 2 == 0 ? 1 : 2, segments: 24)
        let rounds = try ClaimRounds(vault, seed: seed, mounts: 200, claims: false)
        try rounds.run()
        print("claims: seed \(seed), without claims: \(rounds.summary)")
        #expect(!rounds.losses.isEmpty, "seed \(seed)")
    }
}
