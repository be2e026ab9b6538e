import Glibc
import LibraryFixtures
import LinuxIO
import Synchronization
import TestFixtures
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// The effects of a claim, case by case. Nothing waits: the clock is the tests'.
@Suite("Claims: one writer at a time") struct ClaimTests {
    let vault: MemoryVault
    let disk: MemoryDisk
    let turns = Turns(seed: 1, stopShare: 1000, stopMilliseconds: 0...0)
    let here: Computer
    let there: Computer

    init() throws {
        vault = try MemoryVault(spaces: 2, segments: 8)
        disk = MemoryDisk(vault.empty)
        here = try Computer("here", vault, disk, turns)
        there = try Computer("there", vault, disk, turns)
    }

    /// A mount that has written.
    private func writer(on computer: Computer) throws -> ComputerProcess {
        let process = computer.start()
        try process.mount()
        try save("albums/first of \(computer.name) \(process.number)", process)
        return process
    }

    /// Writes a file and returns when it is safe.
    private func save(_ path: String, _ process: ComputerProcess) throws {
        let handle = try process.createOpen(path)
        defer { process.library.release(handle) }
        try process.write(handle, Array(path.utf8))
        try process.library.fsync(handle, dataOnly: false)
    }

    private func has(_ path: String, _ process: ComputerProcess) throws -> Bool {
        try process.get(path) == Array(path.utf8)
    }

    private func standing() throws -> ClaimSlot.Standing {
        let directory = try VaultFiles.open(MemoryVault.path, calls: disk)
        let slot = ClaimSlot(
            try directory.segments(of: 0, vault.layout), PageCodec(key: vault.keys.page))
        return try slot.standing()
    }

    /// The writes to the disk so far, without syncs.
    private var changes: Int {
        disk.log.count { !$0.isSync }
    }

    private func refusal(_ body: () throws -> Void) -> VaultError? {
        do { try body() } catch { return error as? VaultError }
        return nil
    }

    /// Writes random bytes over one copy of the claim.
    private func damage(copy: Int) throws {
        let place = SegmentPlace(space: 0, number: copy)
        let path = "\(MemoryVault.path)/\(vault.layout.path(place))"
        let file = try disk.open(-100, path, flags: 2, mode: 0)
        defer { disk.close(file) }
        try disk.writeFully(
            file, [UInt8](repeating: 7, count: 4096),
            at: vault.layout.start(place) + UInt64(RootLayout.claimSlot * 4096))
    }

    // MARK: Whose it is

    @Test func `a mount that changes nothing writes nothing, one that writes claims, an unmount gives it up`()
        throws
    {
        // The first mount makes the tree.
        try writer(on: here).unmount()
        #expect(try standing() == .nothing)
        let events = changes
        let reader = here.start()
        try reader.mount()
        #expect(try reader.get("albums/first of here 1").count > 0)
        try reader.unmount()
        #expect(changes == events)
        let second = try writer(on: here)
        guard case .claim = try standing() else {
            Issue.record("no claim stands")
            return
        }
        try second.unmount()
        #expect(try standing() == .nothing)
    }

    @Test func `another computer's claim is respected, and read past`() throws {
        let process = try writer(on: here)
        #expect(refusal { try there.start().mount() } == .claimed)
        let unlocked = try vault.unlock(disk)
        #expect(throws: Never.self) { try unlocked.openSpace(readOnly: true) }
        // Also when that computer's mount has ended without an unmount.
        process.kill()
        #expect(refusal { try there.start().mount() } == .claimed)
        let next = here.start()
        try next.mount()
        try save("albums/second", next)
        try next.unmount()
        let other = there.start()
        try other.mount()
        #expect(try has("albums/second", other))
        try save("albums/third", other)
    }

    @Test func `after a crash the same computer goes on without a wait`() throws {
        let process = try writer(on: here)
        #expect(refusal { try here.start().mount() } == .inUse)
        process.kill()
        let waited = here.waits.withLock { $0 }
        let next = here.start()
        try next.mount()
        try save("albums/second", next)
        #expect(here.waits.withLock { $0 } == waited + 1, "but for the race of those who find it free")
        next.kill()
        // Restarted, processes have other numbers, and the boot another id.
        try disk.plant("/boot/here", Array("another boot of here".utf8))
        let after = here.start()
        try after.mount()
        #expect(try has("albums/second", after))
        try save("albums/third", after)
        try after.unmount()
    }

    @Test func `on a disk of its own a computer never waits`() throws {
        let local = try Computer("local", vault, disk, turns, isLocal: true)
        let process = try writer(on: local)
        process.kill()
        _ = try writer(on: local)
        #expect(local.waits.withLock { $0 } == 0)
    }

    @Test func `a process of another pid namespace counts as another computer`() throws {
        _ = try writer(on: here)
        let unlocked = try vault.unlock(ComputerCalls(disk, "here"), host: host(.unknown))
        #expect(throws: VaultError.claimed) { try unlocked.openSpace(readOnly: false) }
    }

    @Test func `a process that is ending is waited for`() throws {
        _ = try writer(on: here)
        let asked = Mutex(0)
        var host = host(.ending)
        host.life = { _ in
            asked.withLock { count in
                count += 1
                return count < 5 ? .ending : .ended
            }
        }
        let unlocked = try vault.unlock(ComputerCalls(disk, "here"), host: host)
        _ = try unlocked.openSpace(readOnly: false)
        #expect(asked.withLock { $0 } == 5)
    }

    /// Another process of the computer `here`, which sees other processes so.
    private func host(_ life: ProcessLife) -> ClaimHost {
        ClaimHost(
            machine: Array("here".utf8), process: ProcessIdentity(namespace: 2, id: 99, start: 99),
            life: { _ in life }, now: { [turns] in turns.now },
            sleep: { [turns] in turns.wait(milliseconds: $0) })
    }

    // MARK: Taking over

    @Test func `a computer that is taken over from writes nothing more, and safe files stay`() throws {
        let old = try writer(on: here)
        try save("albums/safe", old)
        try old.put("albums/unsafe", [1, 2, 3])
        let new = there.start()
        try new.mount(takingOver: true)
        #expect(try has("albums/safe", new))
        try save("albums/new", new)
        let events = changes
        #expect(throws: FileError.self) { try save("albums/late", old) }
        #expect(old.space.writeStop == .claimLost)
        old.commit(durable: true)
        #expect(throws: FileError.self) { try old.unmount() }
        #expect(changes == events)
        try save("albums/newer", new)
        try new.unmount()
        let after = here.start()
        try after.mount()
        for path in ["albums/safe", "albums/new", "albums/newer"] { #expect(try has(path, after)) }
    }

    @Test func `in a vault of one space it gives no room back either`() throws {
        let vault = try MemoryVault(spaces: 1, segments: 0)
        let disk = MemoryDisk(vault.empty)
        let old = try Computer("here", vault, disk, turns).start()
        try old.mount()
        try old.put("albums/large", [UInt8](repeating: 1, count: 12 << 20))
        old.commit(durable: true)
        try old.rm("albums/large")
        old.commit(durable: true)
        let new = try Computer("there", vault, disk, turns).start()
        try new.mount(takingOver: true)
        try save("albums/new", new)
        let before = disk.log.count { !$0.isSync }
        let space = old.space
        _ = try? old.unmount()
        #expect(space.writeStop == .claimLost)
        #expect(disk.log.count { !$0.isSync } == before)
        #expect(try has("albums/new", new))
    }

    @Test func `a takeover waits longer than a reading of the claim counts, and reads after it`() throws {
        let old = try writer(on: here)
        let new = there.start()
        let start = turns.now
        // While the other waits, this one still publishes: it has looked just before.
        let isDone = Mutex(false)
        new.beforeWrite.withLock { hook in
            hook = { offset in
                guard offset == UInt64(RootLayout.claimSlot * 4096), !isDone.withLock({ $0 }) else { return }
                isDone.withLock { $0 = true }
                try? save("albums/in time", old)
            }
        }
        try new.mount(takingOver: true)
        #expect(isDone.withLock { $0 } && turns.now >= start + 7000)
        #expect(try has("albums/in time", new))
    }

    @Test func `a durable root that is another's by the time it is synced is told nobody`() throws {
        let old = try writer(on: here)
        let new = there.start()
        let roots = UInt64(RootLayout.durableSlots.upperBound * 4096)
        let isTaken = Mutex(false)
        old.beforeWrite.withLock { hook in
            hook = { offset in
                // Between the look before the root and the root.
                guard offset < roots, !isTaken.withLock({ $0 }) else { return }
                isTaken.withLock { $0 = true }
                try? new.mount(takingOver: true)
            }
        }
        #expect(throws: FileError.self) { try save("albums/late", old) }
        #expect(isTaken.withLock { $0 } && old.space.writeStop == .claimLost)
        try save("albums/new", new)
        new.kill()
        let after = there.start()
        try after.mount()
        #expect(try has("albums/new", after))
    }

    /// The other has not waited yet; but the sync may have taken any time.
    @Test func `a durable root is told nobody either when another's claim is found after it`() throws {
        let old = try writer(on: here)
        let roots = UInt64(RootLayout.durableSlots.upperBound * 4096)
        let isStolen = Mutex(false)
        let other = there.start()
        old.beforeWrite.withLock { hook in
            hook = { offset in
                guard offset < roots, !isStolen.withLock({ $0 }) else { return }
                isStolen.withLock { $0 = true }
                try? stealClaim(for: other)
            }
        }
        #expect(throws: FileError.self) { try save("albums/late", old) }
        #expect(isStolen.withLock { $0 } && old.space.writeStop == .claimLost)
    }

    // MARK: Looks

    @Test func `a mount looks again before its first write after five seconds, and before every root`() throws
    {
        let old = try writer(on: here)
        turns.wait(milliseconds: 4999)
        let new = there.start()
        try new.mount(takingOver: true)
        let events = changes
        #expect(throws: StoreError.readOnly) { try old.space.parts.gate.requireOpen() }
        #expect(changes == events)
        // Within them a root is still not written.
        let next = try taken(from: new, by: here)
        let other = there.start()
        next.beforeWrite.withLock { hook in hook = { _ in Issue.record("it writes a root") } }
        #expect(throws: Never.self) { try next.space.parts.gate.verifyClaim() }
        try stealClaim(for: other)
        #expect(throws: StoreError.readOnly) { try next.space.parts.gate.verifyClaim() }
    }

    private func taken(from old: ComputerProcess, by computer: Computer) throws -> ComputerProcess {
        old.kill()
        let process = computer.start()
        try process.mount(takingOver: true)
        return process
    }

    /// Claims the space for a process without a wait, as at the beginning of a takeover.
    private func stealClaim(for process: ComputerProcess) throws {
        let directory = try VaultFiles.open(MemoryVault.path, calls: disk)
        let slot = ClaimSlot(
            try directory.segments(of: 0, vault.layout), PageCodec(key: vault.keys.page))
        let claim = Claim(
            of: host(.running), key: vault.keys.claim, bootHash: [UInt8](repeating: 1, count: 32))
        _ = try slot.write(claim)
    }

    @Test func `the timer finds another's claim though nothing is written`() throws {
        let old = try writer(on: here)
        #expect(old.space.checkClaimIfDue() == 4000)
        try stealClaim(for: there.start())
        #expect(old.space.checkClaimIfDue() == nil)
        #expect(old.space.writeStop == .claimLost)
    }

    @Test func `while the claim cannot be read nothing is written`() throws {
        let process = try writer(on: here)
        turns.wait(milliseconds: 5000)
        for number in 0..<40 { try process.mkdir("albums/directory \(number)") }
        process.failsToOpen.withLock { $0 = true }
        let events = changes
        process.commit(durable: true)
        #expect(throws: FileError.self) { try save("albums/second", process) }
        #expect(changes == events && process.space.writeStop == nil)
        #expect(process.space.claimFailure == .io(.inputOutput))
        process.failsToOpen.withLock { $0 = false }
        try save("albums/third", process)
        #expect(process.space.claimFailure == nil)
        // The changes of the failed commit are in the next one.
        process.kill()
        let after = here.start()
        try after.mount()
        #expect(try has("albums/third", after))
        for number in 0..<40 { #expect(after.exists("albums/directory \(number)")) }
    }

    @Test func `one copy is enough, none is a loss`() throws {
        let process = try writer(on: here)
        for copy in [0, 1] {
            try damage(copy: copy)
            if copy == 0 { #expect(refusal { try there.start().mount() } == .claimed) }
            if copy == 0 { #expect(throws: Never.self) { try process.space.parts.gate.verifyClaim() } }
        }
        #expect(throws: StoreError.readOnly) { try process.space.parts.gate.verifyClaim() }
    }

    // MARK: Two at once

    /// Both have opened the space before either wrote. At every moment at which the first may be stopped while it
    /// claims, the other does the same.
    @Test func `of two that find a space free one writes`() throws {
        try writer(on: here).unmount()
        let start = disk.state
        for stop in 0..<40 {
            let disk = MemoryDisk(start)
            let here = try Computer("here", vault, disk, turns, isLocal: stop % 2 == 1)
            let there = try Computer("there", vault, disk, turns)
            let (one, other) = (here.start(), there.start())
            try one.mount()
            try other.mount()
            let left = Mutex(stop / 2)
            var saved: [String] = []
            one.beforeCall.withLock { hook in
                hook = { _ in
                    let isDue = left.withLock { count in
                        count -= 1
                        return count == -1
                    }
                    if isDue { try? save("albums/other", other) }
                }
            }
            if (try? save("albums/one", one)) != nil { saved.append("albums/one") }
            // It is told safe only while nobody else has the space.
            one.beforeCall.withLock { $0 = nil }
            if other.space.writeStop == nil, (try? save("albums/more", other)) != nil {
                saved.append("albums/more")
            }
            #expect(saved.count <= 1, "stop \(stop): \(saved)")
            one.kill()
            other.kill()
            let after = here.start()
            try after.mount(takingOver: true)
            for path in saved { #expect(try has(path, after), "stop \(stop): \(path)") }
        }
    }

    /// One is stopped when it is about to write its claim, before or behind the check of the time, while the other
    /// claims the space and does not write yet. Whose disk it is, if it is one of theirs, makes no difference.
    @Test(arguments: [nil, "here", "there"], [false, true])
    func `files told to be safe after a race are not overwritten`(local: String?, isBehind: Bool) throws {
        try writer(on: here).unmount()
        let here = try Computer("here", vault, disk, turns, isLocal: local == "here")
        let there = try Computer("there", vault, disk, turns, isLocal: local == "there")
        let (one, other) = (here.start(), there.start())
        try one.mount()
        try other.mount()
        let isDone = Mutex(false)
        @Sendable func claimForOther() {
            if isDone.withLock({ $0 }) { return }
            isDone.withLock { $0 = true }
            #expect(throws: Never.self) { try other.space.parts.gate.requireOpen() }
        }
        if isBehind {
            one.beforeWrite.withLock { $0 = { _ in claimForOther() } }
        } else {
            one.beforeCall.withLock { hook in
                hook = { call in
                    if case .open(_, let flags) = call, flags & O_ACCMODE == O_RDWR { claimForOther() }
                }
            }
        }
        let isSafe = (try? save("albums/one", one)) != nil
        // Content goes to the first free sectors, and no root follows.
        _ = try? other.put("albums/other", [UInt8](repeating: 1, count: 400_000))
        #expect(isDone.withLock { $0 } && isSafe == (isBehind || local == "there"))
        one.kill()
        other.kill()
        let after = there.start()
        try after.mount(takingOver: true)
        if isSafe { #expect(try has("albums/one", after)) }
    }

    @Test func `a session that finds the space changed since its opening does not write`() throws {
        try writer(on: here).unmount()
        let late = here.start()
        try late.mount()
        try writer(on: there).unmount()
        #expect(throws: FileError.self) { try save("albums/late", late) }
        #expect(late.space.writeStop == .claimLost)
        #expect(try standing() == .nothing)
        let after = there.start()
        try after.mount()
        #expect(try after.get("albums/first of there 1").count > 0)
    }

    // MARK: Arithmetic

    @Test func `the farthest place`() {
        #expect(farthestPlace(in: [], from: [0]) == nil)
        #expect(farthestPlace(in: [0, 0], from: [0]) == nil)
        #expect(farthestPlace(in: [5, 5, 5, 5], from: [0]) == 2)
        #expect(farthestPlace(in: [5, 5, 5, 5], from: [0, 2]) == 1)
        #expect(farthestPlace(in: [1, 1, 1, 1, 100, 1], from: [0]) == 4)
        #expect(farthestPlace(in: [9, 0, 9, 0, 9, 0, 9], from: [0, 1]) == 4)
        #expect(farthestPlace(in: [3, 3], from: [7]) == 0)
    }

    @Test func `a claim is read as it was written`() throws {
        let claim = Claim(
            of: host(.running), key: vault.keys.claim, bootHash: [UInt8](repeating: 3, count: 32))
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 16) { page in
            claim.encode(into: page)
            #expect(Claim(decoding: UnsafeRawBufferPointer(page)) == claim)
        }
    }
}

/// The disk as a computer has it that cannot be stopped.
private final class ComputerCalls: ForwardingCalls {
    let real: any FileSystemCalls
    private let name: String

    init(_ disk: MemoryDisk, _ name: String) { (real, self.name) = (disk, name) }

    func open(_ d: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        try real.open(d, path == MemoryVault.bootPath ? "/boot/\(name)" : path, flags: flags, mode: mode)
    }
    func lock(_ d: Int32) throws(Errno) {}
}

extension DiskEvent {
    fileprivate var isSync: Bool {
        switch self {
        case .synced, .syncedDirectory, .lost: true
        default: false
        }
    }
}
