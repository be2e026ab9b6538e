import Foundation
import Glibc
import LibraryFixtures
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// When the times of the file of all spaces are changed, by a clock of the test's own.
@Suite("Secrets: cover traffic, its times") struct CoverScheduleTests {
    /// The steps until the schedule rests; `syncsAt`: when the session syncs by itself.
    private func steps(
        _ schedule: inout CoverSchedule, uses: UInt64, from start: Int64, syncsAt: [Int64] = []
    )
        -> [(time: Int64, changes: Int, syncs: Bool)]
    {
        var (found, now) = ([(time: Int64, changes: Int, syncs: Bool)](), start)
        while now < start + 100_000 {
            let syncs = UInt64(syncsAt.count { $0 <= now })
            guard case .act(let changes, let isSyncing) = schedule.step(at: now, uses: uses, syncs: syncs)
            else { return found }
            found.append((now, changes, isSyncing))
            now += CoverSchedule.pause
        }
        return found
    }

    @Test func `without use there is no cover traffic`() {
        var schedule = CoverSchedule()
        for now: Int64 in [0, 100, 1_000_000] {
            #expect(schedule.step(at: now, uses: 0, syncs: 0) == .rest)
        }
    }

    @Test
    func `cover traffic goes on for 15 to 25 seconds after the last use, and begins again with the next`() {
        var schedule = CoverSchedule()
        for use: UInt64 in 1...50 {
            let start = Int64(use) * 200_000
            let found = steps(&schedule, uses: use, from: start)
            #expect(found.first?.time == start && found.first?.syncs == true)
            let length = (found.last?.time ?? 0) - start
            #expect((14_900..<25_000).contains(length), "\(length)")
            #expect(found.allSatisfy { (1...53).contains($0.changes) })
        }
    }

    @Test func `cover traffic syncs every 2 to 6 seconds`() {
        var schedule = CoverSchedule()
        for use: UInt64 in 1...50 {
            let syncs = steps(&schedule, uses: use, from: Int64(use) * 200_000).filter(\.syncs).map(\.time)
            for (next, last) in zip(syncs.dropFirst(), syncs) {
                #expect((2000...6100).contains(next - last), "\(next - last)")
            }
            #expect(syncs.count >= 3)
        }
    }

    @Test func `while a session ends, the times of its syncs do not depend on its work between them`() {
        for work: Int64 in [0, 9_000_000] {
            var (schedule, last) = (ClosingSchedule(start: 0), Int64(0))
            for _ in 0..<1000 {
                let turn = schedule.turn(at: last + work)
                #expect((10_000_000..<30_000_000).contains(turn - last))
                last = turn
            }
            #expect(schedule.turn(at: last + 90_000_000) == last + 90_000_000)
        }
    }

    @Test func `a sync of the session counts as one of its own`() {
        var schedule = CoverSchedule()
        let found = steps(
            &schedule, uses: 1, from: 0, syncsAt: Array(stride(from: 1000, to: 30_000, by: 1900)))
        #expect(found.filter(\.syncs).map(\.time) == [0])
    }
}

/// Two sessions' traces in the file of all spaces, one of which writes.
@Suite("Secrets: cover traffic") struct CoverTests {
    /// Counts changes of times and syncs.
    private final class CountingCalls: ForwardingCalls {
        struct Counts: Sendable {
            var touches = 0
            var syncs = 0
            var bytes = 0
            /// Syncs less the changes of times that came before.
            var bareSyncs = 0
        }
        private let counts = Mutex(Counts())
        var now: Counts { counts.withLock { $0 } }

        /// Those of opening the vault, which every session does.
        func forgetBareSyncs() { counts.withLock { $0.bareSyncs = 0 } }

        func touch(_ directory: Int32, _ path: String, count: Int) throws(Errno) {
            counts.withLock {
                $0.touches += 1
                if path == "spaces" { $0.bareSyncs -= 1 }
            }
            try real.touch(directory, path, count: count)
        }

        func pwrite(
            _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
        ) throws(Errno) -> Int {
            counts.withLock { $0.bytes += bytes.count }
            return try real.pwrite(descriptor, bytes, at: offset)
        }

        func dataSync(_ descriptor: Int32) throws(Errno) {
            counts.withLock {
                $0.syncs += 1
                $0.bareSyncs += 1
            }
            try real.dataSync(descriptor)
        }
    }

    private func session(
        _ vault: TestVault, _ calls: CountingCalls, body: (Library) throws -> Void
    ) throws -> (before: CountingCalls.Counts, after: CountingCalls.Counts) {
        var unlocked: UnlockedSpace?
        _ = eventually {
            unlocked = try? Vault.unlock(
                vault.path, password: TestVault.password, stretcher: RememberingStretcher.shared, calls: calls
            )
            return unlocked != nil
        }
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.thumbnails = .off
        let library = try Library.open(try #require(unlocked), options: options)
        calls.forgetBareSyncs()
        library.startCoverTraffic()
        try body(library)
        let before = calls.now
        try library.close()
        return (before, calls.now)
    }

    /// The first session of a space writes in any case.
    private func makeCatalogue(_ vault: TestVault) throws { _ = try session(vault, CountingCalls()) { _ in } }

    @Test func `a session that only reads changes times and syncs from its first request on`() throws {
        let (vault, calls) = (try TestVault(), CountingCalls())
        let (before, after) = try session(vault, calls) { library in
            #expect(calls.now.touches == 0)
            library.noteRequest()
            #expect(eventually { calls.now.syncs >= 2 && calls.now.touches >= 3 })
        }
        #expect(after.syncs - before.syncs >= Int(CoverTraffic.closingSyncs))
    }

    @Test(arguments: [false, true])
    func `sessions end with as many syncs, whether they wrote or not`(writes: Bool) throws {
        let (vault, calls) = (try TestVault(), CountingCalls())
        try makeCatalogue(vault)
        let (before, after) = try session(vault, calls) { library in
            library.noteRequest()
            #expect(eventually { calls.now.syncs >= 2 })
            guard writes else { return }
            let caller = Caller(uid: 0, gid: 0)
            let albums = try library.lookup(1, "albums", caller).attributes.ino
            let file = try library.create(albums, "new", mode: 0o644, flags: O_RDWR, caller).1
            _ = try noise(300_000, seed: 1).withUnsafeBytes { try library.write(file, offset: 0, $0, caller) }
            library.release(file)
            try library.makeDurable()
            library.noteRequest()
        }
        // The thread may sync once more, twice, before it ends.
        let count = after.syncs - before.syncs
        #expect(
            (Int(CoverTraffic.closingSyncs)...Int(CoverTraffic.closingSyncs) + 2).contains(count), "\(count)")
        // On XFS a sync leaves a state in the log only after a change by utimensat(2).
        #expect(after.bareSyncs <= before.bareSyncs && before.bareSyncs <= 0)
    }

    @Test(arguments: [false, true])
    func `a session that writes also writes random bytes, one that reads none`(writes: Bool) throws {
        let (vault, calls) = (try TestVault(), CountingCalls())
        try makeCatalogue(vault)
        var space: Space?
        let (before, after) = try session(vault, calls) { library in
            space = library.session.space
            library.noteRequest()
            guard writes else { return }
            // Not committed yet: the end of the session draws the amount.
            let caller = Caller(uid: 0, gid: 0)
            let albums = try library.lookup(1, "albums", caller).attributes.ino
            library.release(try library.create(albums, "new", mode: 0o644, flags: O_RDWR, caller).1)
        }
        #expect(space?.cover.bytesLeft == (writes ? 0 : nil))
        #expect(writes || before.bytes == 0 && after.bytes == 0)
    }

    @Test func `a vault of one space has no cover traffic`() throws {
        let (vault, calls) = (try TestVault(spaces: 1), CountingCalls())
        let (before, after) = try session(vault, calls) { $0.noteRequest() }
        #expect(before.touches == 0 && after.touches == 0)
    }
}
