import Foundation
import TestSupport
import Testing

@testable import Recovery

/// Two and three faults at once: a repair never makes a file shorter or worse, and never hides what it has lost.
///
/// `OBSCURA_DAMAGE_SEEDS` says how many seeds are tried, from `OBSCURA_DAMAGE_SEED` on, as `scripts/damage` sets it.
@Suite("Damage: several segments at once", .serialized) struct DamageMachineTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let wanted = environment["OBSCURA_DAMAGE_SEEDS"].flatMap { UInt64($0) }
    private static let first = environment["OBSCURA_DAMAGE_SEED"].flatMap { UInt64($0) } ?? 1
    private static let seedsOfTests: UInt64 = 3

    @Test func `every seed keeps what it had`() throws {
        let count = Self.wanted ?? Self.seedsOfTests
        for seed in Self.first..<Self.first + count {
            do { try DamageMachine(seed: seed).run() } catch { Issue.record("seed \(seed): \(error)") }
            if Self.wanted != nil { print("damage: seed \(seed)") }
        }
    }
}
