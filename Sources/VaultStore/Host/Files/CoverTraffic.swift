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
///
/// While a session ends, all syncs, its own too, keep random intervals that are longer than its work between two of
/// them, so that the times in the log do not show that work.
public final class CoverTraffic: Sendable {
    private enum Phase {
        case idle, running, ending, ended
    }

    private let vault: VaultFiles
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
    private let isClosing = Atomic(false)
    private let closing = Mutex(ClosingSchedule(start: 0))

    /// Syncs at the end of a session that wrote: at most two durable commits, the erasure of soft roots, and that of
    /// the claim's two copies.
    static let closingSyncs: UInt64 = 7
    /// Changes of times before each of them, at most. The session's own writes are a few more.
    private static let closingChangesMax: UInt32 = 32

    /// - Parameter isRunning: hide writes and syncs without `start`, and so without the thread: in a command.
    init(_ vault: VaultFiles, isRunning: Bool = false) {
        self.vault = vault
        self.isRunning = Atomic(isRunning)
    }

    /// Starts the thread, if one can be created. Call once.
    ///
    /// - Parameters:
    ///   - isWanted: called at each step; if it returns false, the step is left out.
    ///   - writeSome: called at each step: writes some of the session's cover writes.
    public func start(
        isWanted: @escaping @Sendable () -> Bool, writeSome: @escaping @Sendable () -> Void = {}
    ) {
        phase.withLock { $0 = .running }
        isRunning.store(true, ordering: .releasing)
        if !startThreadIfPossible({ [self] in run(isWanted, writeSome) }) {
            phase.withLock { $0 = .ended }
        }
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
        guard isRunning.load(ordering: .relaxed), !isClosing.load(ordering: .relaxed) else { return }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &now)
        let tick = Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
        guard lastTick.exchange(tick, ordering: .relaxed) != tick else { return }
        vault.touch(SegmentLayout.sharedName, count: 1)
    }

    /// Called before each sync of the session itself. While the session ends it waits for the sync's turn.
    func willSync() {
        guard isRunning.load(ordering: .relaxed) else { return }
        syncs.wrappingAdd(1, ordering: .relaxed)
        guard isClosing.load(ordering: .relaxed) else {
            return vault.touch(SegmentLayout.sharedName, count: 1)
        }
        closing.withLock { schedule in
            MonotonicClock.sleep(until: schedule.turn(at: MonotonicClock.nanoseconds))
        }
        let changes = 1 + Int(randomNumber(below: Self.closingChangesMax))
        vault.touch(SegmentLayout.sharedName, count: changes)
    }

    /// Ends the thread and waits for it. Call before the session's last writes, and `end` after them.
    ///
    /// - Returns: the number of syncs until then, for `end`.
    public func beginEnd() -> UInt64 {
        if stop() {
            closing.withLock { $0 = ClosingSchedule(start: MonotonicClock.nanoseconds) }
            isClosing.store(true, ordering: .relaxed)
        }
        return syncs.load(ordering: .relaxed)
    }

    /// Syncs as often as the end of a session that wrote does.
    ///
    /// - Parameter syncsBefore: the result of `beginEnd`.
    public func end(syncsBefore: UInt64) {
        guard isRunning.load(ordering: .relaxed) else { return }
        while syncs.load(ordering: .relaxed) - syncsBefore < Self.closingSyncs {
            guard sync() else { break }
        }
        isRunning.store(false, ordering: .relaxed)
    }

    /// Whether `start` was called, and the session has not ended.
    public var isActive: Bool { isRunning.load(ordering: .relaxed) }

    /// Ends the thread and waits for it. Returns false if `start` was not called, or the session has ended.
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

    private func run(_ isWanted: () -> Bool, _ writeSome: () -> Void) {
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
                vault.touch(SegmentLayout.sharedName, count: changes)
                if isSyncing {
                    // As a durable commit: before its root and after.
                    for _ in 0..<2 { _ = sync() }
                    if randomNumber(below: 2) == 0 {
                        vault.touch(VaultFiles.headerName, count: changes)
                    }
                }
                if !isEnding { writeSome() }
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
