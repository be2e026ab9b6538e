import Foundation
import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing

@testable import VaultStore

/// Every crash a vault may suffer: I3 and I4.
@Suite("Crashes: states of a disk after a power cut") struct CrashStateTests {
    /// `scripts/crash` asks for other seeds, and more than a test has time for.
    private static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["OBSCURA_CRASH_SEED"].flatMap { UInt64($0) } ?? 1
        let count = environment["OBSCURA_CRASH_SEEDS"].flatMap { UInt64($0) } ?? 4
        return Array(first..<first + count)
    }()

    /// Two seeds in a test; as many as the environment asks for in `scripts/crash`.
    private static let clusterSeeds =
        ProcessInfo.processInfo.environment["OBSCURA_CRASH_SEEDS"] == nil ? Array(seeds.prefix(2)) : seeds

    /// Vaults of one space and of several, with much room and with little; every other four of the least size.
    private func machine(_ seed: UInt64) throws -> CrashMachine {
        let size: MemoryVault.SizeClass = seed % 8 < 4 ? .least : .usual
        let vault = try MemoryVault(spaces: seed % 2 == 0 ? (size == .least ? 3 : 2) : 1, size)
        var machine = try CrashMachine(vault, seed: seed)
        machine.isPressed = seed % 4 > 1
        if size == .least {
            // Each commit of theirs is many calls; scripts/crash tries as many seeds as one likes.
            machine.effort.depth = 2
            machine.effort.steps = 12
            machine.effort.mountedShare = 600
        }
        return machine
    }

    /// A mount after any crash begins with the newest state that was safe.
    @Test(arguments: seeds) func `every seed leaves states that a crash may leave`(seed: UInt64) throws {
        var machine = try machine(seed)
        do { try machine.run() } catch { Issue.record("seed \(seed): \(error)") }
        print("crash: seed \(seed): \(machine.stateCount) states, \(machine.mountCount) of them mounted")
    }

    // MARK: On a cluster

    /// As `machine`, on a cluster, where a client is gone while some of its requests are on their way.
    private func clusterMachine(_ seed: UInt64) throws -> CrashMachine {
        let size: MemoryVault.SizeClass = seed % 8 < 4 ? .least : .usual
        let spaces = seed % 2 == 0 ? (size == .least ? 3 : 2) : 1
        var machine = try CrashMachine(try MemoryVault(spaces: spaces, size, on: .cluster), seed: seed)
        machine.isPressed = seed % 4 > 1
        machine.effort.depth = 2
        machine.effort.steps = 12
        machine.effort.mountedShare = 600
        return machine
    }

    @Test(arguments: clusterSeeds) func `every seed leaves states that a client's end may leave on a cluster`(
        seed: UInt64
    ) throws {
        var machine = try clusterMachine(seed)
        do { try machine.run() } catch { Issue.record("seed \(seed): \(error)") }
        print("crash: seed \(seed): \(machine.stateCount) states, \(machine.mountCount) of them mounted")
    }

    // MARK: Faults that the machine must find

    /// Whether the machine, or a mount, finds within a few seeds the fault that `change` plants.
    private func isFound(
        on host: MemoryVault.Host = .files, _ change: (inout CrashMachine) -> Void
    ) throws -> Bool {
        for seed: UInt64 in 1..<40 {
            var machine = try host == .files ? machine(seed) : clusterMachine(seed)
            machine.effort.depth = 1
            machine.isFailing = false
            machine.isAuditing = false
            change(&machine)
            do { try machine.run() } catch { return true }
        }
        return false
    }

    @Test func `roots that are published before what they lead to is on the disk are found`() throws {
        #expect(try isFound { $0.ignoredSyncs = .files })
    }

    @Test func `segments whose names never reach the disk are found`() throws {
        #expect(try isFound { $0.ignoredSyncs = .directories })
    }

    @Test func `sectors that are used again at once are found`() throws {
        #expect(
            try isFound {
                $0.isPressed = true
                $0.sabotage = { space in
                    try space.parts.lock.withLock { try space.parts.freed.releaseAllTooEarly() }
                }
            })
    }

    @Test func `answers before anything has happened are found`() throws {
        #expect(try isFound(on: .cluster) { $0.ignoredSyncs = .files })
    }

    @Test func `soft roots that count in another boot are found`() throws {
        #expect(try isFound { $0.isRebooting = false })
    }

    @Test func `commits that are lost are found`() throws {
        #expect(
            try isFound {
                $0.sabotage = { space in
                    // The newest root of each ring is forgotten, and its place taken by the next.
                    space.parts.lock.withLock { space.parts.roots.setRings { $0.durable = 0 } }
                }
            })
    }
}
