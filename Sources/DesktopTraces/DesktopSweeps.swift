import Glibc
import LinuxIO
package import PhotoLibrary
import Synchronization

/// The sweeps of one mount.
package final class DesktopSweeps: Sendable {
    private let user: DesktopUser
    private let directory: String
    private let vault: dev_t?
    /// False with sweep=off.
    private let isWanted: Bool
    /// One second early: the clock of files is coarser than this one.
    private let begun = time(nil) - 1
    private let wasLive = Atomic<Bool>(false)
    private let isOver = Atomic<Bool>(false)
    private let isOldTrashDone = Atomic<Bool>(false)

    private let lock = Lock()
    private let changed = Condition()
    // `lock` guards the following.
    /// The first sweep's process, until it has been waited for.
    nonisolated(unsafe) private var early: pid_t?
    nonisolated(unsafe) private var isSweepingOld = false
    /// The process of the sweep at the end.
    nonisolated(unsafe) private var late: pid_t?
    nonisolated(unsafe) private var isSweptAgain = false

    /// How long the vault may wait for the digests of the last sweep, in milliseconds.
    private static let digestMilliseconds: Int64 = 10_000
    /// For everything before the machine sleeps (logind waits 5 s). The next mount does the rest.
    private static let sleepMilliseconds: Int64 = 1500
    /// A program that opened a photo just before the end notes that some seconds later (Eye of GNOME 43: in 3 of 14).
    private static let againSeconds: UInt32 = 5

    /// - Parameters:
    ///   - directory: where the vault will be mounted: an absolute path, as the user named it.
    ///   - vault: the path of the vault.
    ///   - isWanted: whether anything is swept.
    package init(of user: DesktopUser, directory: String, vault: String, isWanted: Bool) {
        self.user = user
        self.directory = directory
        self.vault = deviceNumber(of: vault)
        self.isWanted = isWanted
    }

    // MARK: Traces of an earlier mount

    /// Call this when the mount is live.
    package func sweepOld(_ library: Library) {
        wasLive.store(true, ordering: .relaxed)
        guard isWanted else { return }
        lock.withLock { unsafe isSweepingOld = true }
        startThread { [self] in
            removeOldThumbnails(library)
            TrashReturn(user: user, directory: directory, vault: vault)
                .returnOld(to: library, before: begun) { [self] in isOver.load(ordering: .relaxed) }
            isOldTrashDone.store(!isOver.load(ordering: .relaxed), ordering: .relaxed)
            lock.withLock {
                unsafe isSweepingOld = false
                changed.signalAll()
            }
        }
    }

    private func removeOldThumbnails(_ library: Library) {
        let started = lock.withLock { () -> (process: pid_t, output: Int32)? in
            let sweep = DesktopSweep(user: user.id, since: nil, directory: directory)
            guard !isOver.load(ordering: .relaxed), let started = sweep.start() else { return nil }
            unsafe early = started.process
            return started
        }
        guard let started else { return }
        removeNameless(readDigests(started.output, until: .max), library) { [self] in
            isOver.load(ordering: .relaxed)
        }
        var end = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(started.process), &end, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        lock.withLock {
            unsafe early = nil
            _ = waitForEnd(of: started.process)
        }
    }

    /// Ends the first sweep. The next mount does the rest.
    private func endOldSweep() {
        isOver.store(true, ordering: .relaxed)
        lock.withLock {
            if let early = unsafe early { kill(early, SIGKILL) }
            while unsafe isSweepingOld { changed.wait(lock) }
        }
    }

    // MARK: Traces of this mount

    /// How the mount ended, which bounds the last sweep.
    package enum End: Sendable {
        /// The sweep takes as long as it needs.
        case usual
        /// The machine is about to sleep.
        case beforeSleep
        /// Changes are given up: deleted files stay in the trashes outside.
        case givenUp
    }

    /// Call this when the mount is gone and the library still open. Moves deleted files into the vault's trash, and
    /// removes thumbnails that only the library can identify.
    package func sweepNew(_ library: Library, _ end: End) {
        endOldSweep()
        guard isWanted, wasLive.load(ordering: .relaxed) else { return }
        // Earlier writes must not wait for the moved files.
        try? library.flushAll()
        let started = DesktopSweep(user: user.id, since: begun, directory: directory).start()
        unsafe late = started?.process
        unsafe isSweptAgain = end == .usual
        let isBrief = end == .beforeSleep
        let now = MonotonicClock.milliseconds
        if end != .givenUp {
            let limit = isBrief ? now + Self.sleepMilliseconds : .max
            let trash = TrashReturn(user: user, directory: directory, vault: vault)
            trash.returnNew(to: library, since: begun) { MonotonicClock.milliseconds >= limit }
            // The mount was too short to finish that.
            if !isOldTrashDone.load(ordering: .relaxed) {
                trash.returnOld(to: library, before: begun) { MonotonicClock.milliseconds >= limit }
            }
        }
        guard let started else { return }
        let limit =
            isBrief ? now + Self.sleepMilliseconds : MonotonicClock.milliseconds + Self.digestMilliseconds
        removeNameless(readDigests(started.output, until: limit), library) { false }
    }

    /// Call this when the vault is free again and this process no longer holds a key. Returns when the sweep has ended;
    /// a process of its own looks once more after some seconds.
    ///
    /// - Returns: the number of deleted files that remain in trashes outside; 0 if they were not looked for.
    package func finish() -> Int {
        endOldSweep()
        if let late = unsafe late { _ = waitForEnd(of: late) }
        guard isWanted, wasLive.load(ordering: .relaxed) else { return 0 }
        if unsafe isSweptAgain {
            DesktopSweep(user: user.id, since: begun, directory: directory, waitSeconds: Self.againSeconds)
                .startAlone()
        }
        return TrashReturn(user: user, directory: directory, vault: vault).count()
    }

    // MARK: Thumbnails without a URI

    /// Reads until the end or `limit`, and closes `output`.
    private func readDigests(_ output: Int32, until limit: Int64) -> Set<[UInt8]> {
        defer { close(output) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let wait = limit == .max ? -1 : Int32(clamping: max(0, limit - MonotonicClock.milliseconds))
            guard hasEnded(output, within: wait) else { break }
            let count = unsafe read(output, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            bytes += buffer[..<count]
        }
        let size = DesktopSweep.digestBytes
        return Set(
            stride(from: 0, through: bytes.count - size, by: size).map { Array(bytes[$0..<$0 + size]) })
    }

    private func removeNameless(
        _ digests: Set<[UInt8]>, _ library: Library, unless isStopped: () -> Bool
    ) {
        guard !digests.isEmpty else { return }
        let places = Set([directory, realPath(directory)]).map { pathBytes($0) }
        let ours = library.walk.thumbnailDigests(among: digests, mountedAt: places, unless: isStopped)
        guard !ours.isEmpty else { return }
        _ = user.acting {
            ThumbnailCache(in: DesktopPlaces(of: user).open(.cache)).removeEntries(named: ours)
        }
    }
}
