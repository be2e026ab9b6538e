import Glibc
import LinuxIO
import Synchronization
import VaultCrypto
import VaultFormat

/// Cover traffic of a session in a vault of several spaces, so that the host's journal does not tell a session that
/// wrote from one that only read.
///
/// Each write sets mtime and ctime of `spaces`; hosts keep older states of these in their journals (ext4 every 5 s, XFS
/// at each sync). So a thread changes the same times in the same way while the space is used, and for some time after,
/// and syncs: see `CoverSchedule`. Each sync of the session itself is preceded by a change as well, because on XFS
/// fdatasync(2) writes an inode to the log after utimensat(2), but not after a write. Without use the thread waits, and
/// nothing wakes it.
public final class CoverTraffic: Sendable {
    private enum Phase {
        case idle, running, ending, ended
    }

    private let vault: VaultDirectory
    private let uses = Atomic<UInt64>(0)
    /// Of the session itself, since the beginning.
    private let syncs = Atomic<UInt64>(0)
    private let isRunning: Atomic<Bool>
    private let isResting = Atomic(false)
    /// Of the kernel's coarse clock, at the last write.
    private let lastTick = Atomic<Int64>(0)
    private let lock = Lock()
    private let change = Condition()
    private let phase = Mutex(Phase.idle)

    /// Syncs at the end of a session that wrote: at most two durable commits, the erasure of soft roots, and that of
    /// the claim's two copies.
    static let closingSyncs: UInt64 = 7
    private static let closingPauseMicroseconds: UInt32 = 8000

    /// - Parameter isRunning: hide writes and syncs without `start`, and so without the thread: in a command.
    init(_ vault: VaultDirectory, isRunning: Bool = false) {
        self.vault = vault
        self.isRunning = Atomic(isRunning)
    }

    /// Starts the thread, if one can be created. Call once.
    ///
    /// - Parameter isWanted: called at each step; if it returns false, the step is left out.
    public func start(isWanted: @escaping @Sendable () -> Bool) {
        phase.withLock { $0 = .running }
        isRunning.store(true, ordering: .releasing)
        if !startThreadIfPossible({ [self] in run(isWanted) }) { phase.withLock { $0 = .ended } }
    }

    /// Notes a request or a write.
    @inline(__always)
    public func noteUse() {
        guard isRunning.load(ordering: .relaxed) else { return }
        uses.wrappingAdd(1, ordering: .sequentiallyConsistent)
        if isResting.load(ordering: .sequentiallyConsistent) { lock.withLock { change.signalAll() } }
    }

    /// Called after each write. Changes the times once more, if the kernel's clock has moved on since the last call:
    /// on XFS a write dates the file but does not count as a change of its inode, so two states of one count in the log
    /// would show a write between them.
    func didWrite() {
        noteUse()
        guard isRunning.load(ordering: .relaxed) else { return }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &now)
        let tick = Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
        guard lastTick.exchange(tick, ordering: .relaxed) != tick else { return }
        Vault.touch(vault, SegmentLayout.sharedName, count: 1)
    }

    /// Called before each sync of the session itself.
    func willSync() {
        guard isRunning.load(ordering: .relaxed) else { return }
        syncs.wrappingAdd(1, ordering: .relaxed)
        Vault.touch(vault, SegmentLayout.sharedName, count: 1)
    }

    /// Number of syncs of the session so far.
    public var syncCount: UInt64 { syncs.load(ordering: .relaxed) }

    /// Ends the thread, waiting for it, and syncs as often as the end of a session that wrote does.
    ///
    /// - Parameter syncsBefore: `syncCount` before the session began to end.
    public func end(syncsBefore: UInt64) {
        guard stop() else { return }
        while syncCount - syncsBefore < Self.closingSyncs {
            usleep(randomNumber(below: Self.closingPauseMicroseconds))
            guard sync() else { break }
        }
        isRunning.store(false, ordering: .relaxed)
    }

    /// Ends the thread and waits for it. Returns false if `start` was not called, or `end` was before.
    @discardableResult
    public func stop() -> Bool {
        cancel()
        lock.withLock {
            while phase.withLock({ $0 == .ending }) { change.wait(lock) }
        }
        return isRunning.load(ordering: .relaxed)
    }

    /// Lets the thread end.
    public func cancel() {
        phase.withLock { if $0 == .running { $0 = .ending } }
        lock.withLock { change.signalAll() }
    }

    private var isEnding: Bool { phase.withLock { $0 != .running } }

    private func run(_ isWanted: () -> Bool) {
        var schedule = CoverSchedule()
        lock.lock()
        while !isEnding {
            isResting.store(true, ordering: .sequentiallyConsistent)
            let now = MonotonicClock.milliseconds
            let step = schedule.step(
                at: now, uses: uses.load(ordering: .sequentiallyConsistent),
                syncs: syncs.load(ordering: .relaxed))
            guard case .act(let changes, let isSyncing) = step else {
                change.wait(lock)
                continue
            }
            isResting.store(false, ordering: .sequentiallyConsistent)
            lock.unlock()
            if isWanted() {
                Vault.touch(vault, SegmentLayout.sharedName, count: changes)
                if isSyncing {
                    // As a durable commit: before its root and after.
                    for _ in 0..<2 { _ = sync() }
                    if randomNumber(below: 2) == 0 {
                        Vault.touch(vault, VaultDirectory.headerName, count: changes)
                    }
                }
            }
            lock.lock()
            if !isEnding { change.wait(lock, untilMilliseconds: now + CoverSchedule.pause) }
        }
        phase.withLock { $0 = .ended }
        change.signalAll()
        lock.unlock()
    }

    /// Syncs the file of all spaces as a commit does. Returns false if it cannot be opened or synced.
    func sync() -> Bool {
        willSync()
        guard
            let file = try? vault.calls.openRegular(
                vault.directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0)
        else { return false }
        defer { vault.calls.close(file) }
        return (try? vault.calls.dataSync(file)) != nil
    }
}
