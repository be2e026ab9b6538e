import Foundation
import Recovery
import TestSupport
import Testing

/// Two and three faults at once: a repair never makes a file shorter or worse, and never hides what it has lost.
///
/// `OBSCURA_DAMAGE_SEEDS` says how many seeds are tried, from `OBSCURA_DAMAGE_SEED` on, as `scripts/damage` sets it.
@Suite("Damage: several segments at once", .serialized) struct DamageMachineTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let wanted = environment["OBSCURA_DAMAGE_SEEDS"].flatMap { UInt64($0) }
    private static let first = environment["OBSCURA_DAMAGE_SEED"].flatMap { UInt64($0) } ?? 1
    /// In the fourth a newer state's photos lie in what the older one takes for free. In the fifth all photos are away;
    /// in the last all roots and the last segment, so that nothing tells of it.
    private static let seedsOfTests: [UInt64] = [1, 2, 3, 15, 55, 89]

    @Test func `every seed keeps what it had`() throws {
        let seeds = Self.wanted.map { Array(Self.first..<Self.first + $0) } ?? Self.seedsOfTests
        for seed in seeds {
            do { try DamageMachine(seed: seed).run() } catch { Issue.record("seed \(seed): \(error)") }
            if Self.wanted != nil { print("damage: seed \(seed)") }
        }
    }

    /// In all of them records of versions, or the newest of photos, are away with segments that are put back.
    private static let seedsOfEdits: [UInt64] = [7, 37, 60, 94, 132, 143]

    @Test func `every seed keeps edited photos and their originals`() throws {
        let seeds = Self.wanted.map { Array(Self.first..<Self.first + $0) } ?? Self.seedsOfEdits
        for seed in seeds {
            do { try DamageMachine(seed: seed, hasEdits: true).run() } catch {
                Issue.record("seed \(seed): \(error)")
            }
            if Self.wanted != nil { print("damage: edits, seed \(seed)") }
        }
    }
}
