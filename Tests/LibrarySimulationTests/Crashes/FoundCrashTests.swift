import LibraryFixtures
import TestFixtures
import TestSupport
import Testing

@testable import PhotoLibrary
@testable import VaultStore

/// Crashes that once lost something, one by one.
@Suite("Crashes: cases that were found") struct FoundCrashTests {
    private func begin(spaces: Int) throws -> CrashSession {
        let vault = try MemoryVault(spaces: spaces, segments: 6)
        return try CrashSession(vault, CrashState(disk: vault.empty))
    }

    /// A mount after the process was killed, with all it wrote, or as much as `disk` has.
    private func afterKill(_ session: CrashSession, _ disk: DiskState? = nil) throws -> CrashSession {
        session.abandon()
        return try CrashSession(session.vault, CrashState(disk: disk ?? session.disk.state))
    }

    /// The tree that a mount finds when all that is not durable is gone.
    private func treeAfterPowerCut(_ session: CrashSession) throws -> TreeDump {
        let disk = try MemoryVault.rebooted(session.disk.state.durable)
        return try CrashSession(session.vault, CrashState(disk: disk)).dump()
    }

    /// The directory of a segment that a killed process made is synced before a durable root leads there.
    @Test func `a segment whose maker was killed keeps its name`() throws {
        let first = try begin(spaces: 1)
        try first.put("albums/f", noise(10_000))
        try first.commit(durable: false)
        let second = try afterKill(first)
        try second.commit(durable: true)
        #expect(second.space.isClean)
        #expect(try treeAfterPowerCut(second) == second.dump())
    }

    @Test func `a segment that grow made keeps its name once something lies there`() throws {
        let session = try begin(spaces: 2)
        session.disk.ignoreSyncs(.directories)
        for _ in 0..<3 { try session.grow() }
        session.disk.ignoreSyncs([])
        for number in 0..<5 { try session.put("albums/f\(number)", noise(3_600_000, seed: number)) }
        try session.commit(durable: true)
        #expect(session.space.sectors.usedCounts[6...].contains { $0 > 0 })
        #expect(try treeAfterPowerCut(session) == session.dump())
    }

    @Test func `grow answers when the new segments are on the disk`() throws {
        let session = try begin(spaces: 2)
        try session.grow()
        let left = session.disk.state.durable
        #expect(left.file("/vault/spaces")?.size == 7 * session.vault.layout.rowBytes)
    }

    /// fsync(2) of a state that was found changes nothing, and must not need to.
    @Test func `a durable root that was found is on the disk, though its writer was killed before its sync`()
        throws
    {
        let first = try begin(spaces: 2)
        try first.put("albums/f", noise(10_000))
        let written = first.disk.eventCount
        try first.commit(durable: true)
        // The commit's last event but one: both copies of the root are written, and not synced.
        var disk = first.start
        for event in first.disk.log.dropLast() { disk.apply(event) }
        #expect(first.disk.eventCount > written + 4)
        let second = try afterKill(first, disk)
        #expect(second.exists("albums/f"))
        let file = try second.open("albums/f")
        try second.library.fsync(file, dataOnly: false)
        second.library.release(file)
        #expect(try treeAfterPowerCut(second) == second.dump())
    }

    /// The root of a commit whose last sync failed is newer than the base of those that come after.
    @Test(arguments: 0..<2) func `soft commits after one that failed outlive a kill`(syncs: Int) throws {
        let first = try begin(spaces: 2)
        try first.put("albums/f", noise(10_000))
        try first.failToCommit(afterSyncs: syncs)
        try first.put("albums/g", noise(10_000, seed: 2))
        try first.commit(durable: false)
        let tree = try first.dump()
        #expect(try afterKill(first).dump() == tree)
    }

    /// The kernel takes pages that a failed sync did not write for clean, and tells no later caller.
    @Test(arguments: 0..<2)
    func `writes that a killed process failed to sync are written again`(syncs: Int) throws {
        let first = try begin(spaces: 2)
        try first.put("albums/f", noise(300_000))
        try first.commit(durable: false)
        try first.put("albums/g", noise(10_000, seed: 2))
        try first.failToCommit(afterSyncs: syncs)
        try first.put("albums/h", noise(10_000, seed: 3))
        try first.commit(durable: false)
        let second = try afterKill(first)
        try second.commit(durable: true)
        #expect(second.space.isClean)
        #expect(try treeAfterPowerCut(second) == second.dump())
    }

    /// Passed over, it would be found when the other copy is written over, and count.
    @Test(arguments: 0..<2) func `a root counts of which a power cut left one copy`(copy: Int) throws {
        let first = try begin(spaces: 2)
        // Each slot of the ring has had a root.
        for number in 0..<6 {
            try first.put("albums/f\(number)", noise(10_000, seed: number))
            try first.commit(durable: true)
        }
        let tree = try first.dump()
        let log = first.disk.log
        // The last events: copies A and B, and their sync.
        var disk = first.start
        for (index, event) in log.enumerated() where index < log.count - 3 || index == log.count - 3 + copy {
            disk.apply(event)
        }
        #expect(try afterKill(first, try MemoryVault.rebooted(disk.live)).dump() == tree)
    }
}
