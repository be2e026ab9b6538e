package import FileRequests
import Glibc
import LinuxIO
import VaultFormat
package import VaultStore

/// The changes that a committer publishes. The library implements it.
package protocol CommitSource: AnyObject, Sendable {
    var space: Space { get }
    /// Limits of retries of failed commits.
    var retryBounds: RetryBounds { get }
    /// The clock of `retryBounds`.
    var monotonicMilliseconds: Int64 { get }
    /// Saves files that have been unsaved since before that time, in milliseconds of the monotonic clock. Returns true
    /// if some are left.
    func saveFiles(unsavedBefore time: Int64) -> Bool
    /// Writes at most `most` outdated identity records, before a durable commit. Returns true if some are left.
    func writeRecords(most: Int) -> Bool
    /// Ends the transaction and takes the store's state, in one critical section.
    func freeze() throws(StoreError) -> FrozenCommit
    /// Ends the transaction without a commit, so that its journal, which is in memory, does not grow on.
    func endTransaction()
    /// Notes that the newest commit is durable.
    func noteDurable()
    /// Destroys trash for that many bytes of room. Returns false if there is nothing.
    func makeRoom(bytes: UInt64) -> Bool
    /// Destroys expired trash, until that time of the monotonic clock. Returns true if some is left.
    func expire(until time: Int64) -> Bool
}

/// When changes are published without being asked for.
package enum CommitPace: Sendable {
    /// As a mount promises: in a soft root 50 ms after a change, in a durable one 5 s after it.
    case prompt
    /// For a command that promises nothing before its end: in a soft root as soon as `Limits.stagedPages` pages wait,
    /// so that memory suffices, in a durable one 30 s after a change. A page that changes often is then written seldom.
    case seldom

    /// Delay of a durable commit after the first change. The kernel writes pages older than 30 s to the disk anyway.
    fileprivate var durableMilliseconds: Int64 { self == .prompt ? 5000 : 30_000 }
}

/// Publishes changes as roots: soft 50 ms after a change, durable after 5 s or on fsync(2). One thread; waiters share
/// its commits.
package final class Committer: @unchecked Sendable {
    private static let softDelayMilliseconds: Int64 = 50
    private static let unsavedMilliseconds: Int64 = 1000
    private static let retryMilliseconds: Int64 = 1000
    private static let expiryMilliseconds: Int64 = 3_600_000
    /// Idle time after the last change before a vault returns free room to its host, which takes durable commits.
    private static let quietMilliseconds: Int64 = 20_000
    /// Background work is done in slices of this length, with a pause between them.
    private static let expirySliceMilliseconds: Int64 = 200
    private static let pauseMilliseconds: Int64 = 20

    package weak var source: (any CommitSource)?

    package init() {}

    private let lock = Lock()
    private let wake = Condition()
    private let done = Condition()
    // All under `lock`. Times are of the monotonic clock, in milliseconds.
    private var softSince: Int64?
    private var durableSince: Int64?
    private var unsavedSince: Int64?
    private var retryAt: Int64 = 0
    /// When the trash is checked next.
    private var expiryAt: Int64 = 0
    /// When sectors of destroyed photos are overwritten next; nil while none can be.
    private var overwriteAt: Int64?
    /// When the space's claim is checked next.
    private var lookAt = Int64.max
    /// When unused room is returned to the host; nil if nothing has changed since the last time.
    private var giveBackAt: Int64?
    /// Durable commits requested, and finished or failed.
    private var asked: UInt64 = 0
    private var answered: UInt64 = 0
    private var failure: FileError?
    /// Failed commits since the last durable one.
    private var failures = CommitFailures()
    /// Since when identity records have been waiting for the next durable commit; nil if none are.
    private var recordsSince: Int64?
    /// When identity records are written next: repeated fsync(2) calls must not pay for them.
    private var recordsAt: Int64 = 0
    /// The next commit is the last.
    private var isLast = false
    private var isStopping = false
    private var isRunning = false
    /// No thread commits: a caller that waits for a durable commit makes it, and `commitByHand` makes the others.
    private var isByHand = false
    private var pace = CommitPace.prompt
    /// Staged pages when a transaction was last ended between commits.
    private var stagedAtEnd = 0
    private var isCommitting = false
    private var thread = pthread_t()

    package func start(byHand: Bool = false, _ pace: CommitPace = .prompt) {
        lock.withLock {
            isRunning = true
            isByHand = byHand
            self.pace = pace
        }
        if !byHand { startThread { [self] in run() } }
    }

    /// Commits pending changes on the calling thread, for tests that control when commits happen.
    package func commitByHand(durable: Bool) {
        lock.lock()
        defer { lock.unlock() }
        precondition(isByHand)
        if softSince != nil || (durable && durableSince != nil) { commit(durable: durable) }
    }

    /// Notes a change of the tree.
    @inline(__always)
    package func noteChange(if isChange: Bool) {
        guard isChange else { return }
        lock.lock()
        defer { lock.unlock() }
        if isFull { wake.signalAll() }
        guard softSince == nil else { return }
        let now = MonotonicClock.milliseconds
        softSince = now
        if durableSince == nil { durableSince = now }
        giveBackAt = now + Self.quietMilliseconds
        wake.signalAll()
    }

    /// Waits while a commit is under way and as many pages as one may have are waiting for the next. Called before a
    /// change, with no lock held.
    package func waitForStagedPages() {
        lock.lock()
        defer { lock.unlock() }
        while isCommitting, isFull { done.wait(lock) }
        guard pace == .seldom, let source else { return }
        let staged = source.space.stagedPages
        if staged < stagedAtEnd { stagedAtEnd = 0 }
        guard staged >= stagedAtEnd + source.space.limits.stagedPages / 8 else { return }
        lock.unlock()
        source.endTransaction()
        lock.lock()
        stagedAtEnd = source.space.stagedPages
    }

    /// Whether so many pages wait that they are published at once. A mount's commits are never late enough for that.
    private var isFull: Bool {
        guard pace == .seldom, let space = source?.space else { return false }
        return space.stagedPages >= space.limits.stagedPages
    }

    /// Whether all changes noted so far are in a root.
    package var isCommitted: Bool { lock.withLock { softSince == nil && !isCommitting } }

    /// Notes that a file has bytes or times that are not in the tree yet.
    package func noteUnsaved() {
        lock.lock()
        defer { lock.unlock() }
        guard unsavedSince == nil else { return }
        unsavedSince = MonotonicClock.milliseconds
        wake.signalAll()
    }

    /// Makes all changes so far durable, and waits for it.
    package func makeDurable() throws(FileError) {
        lock.lock()
        defer { lock.unlock() }
        guard isRunning else { return }
        if softSince == nil && durableSince == nil && answered == asked && !isCommitting { return }
        if isStopped {
            if softSince == nil && !isCommitting && source?.space.isClean == true { return }
            throw .readOnly
        }
        try waitForDurable()
    }

    /// Whether the space takes no more writes: no commit is tried any more.
    private var isStopped: Bool { source?.space.writeStop != nil }

    /// Whether changes are in no root yet, or never will be. `Space.isClean` covers those that are only in a soft root.
    package var hasPending: Bool { lock.withLock { softSince != nil || isCommitting } }

    /// Forgets failed commits, because the space takes writes again.
    package func noteResumed() {
        lock.withLock {
            failures = CommitFailures()
            retryAt = 0
            softSince = softSince ?? MonotonicClock.milliseconds
            durableSince = durableSince ?? softSince
            wake.signalAll()
        }
    }

    private func waitForDurable() throws(FileError) {
        if isStopped { throw .readOnly }
        // A commit under way may have begun before the change: only the next one counts.
        asked += 1
        let ticket = asked
        failure = nil
        wake.signalAll()
        if isByHand { commit(durable: true) }
        while answered < ticket && isRunning { done.wait(lock) }
        if let failure { throw failure }
    }

    /// Makes room in a full space. Commits, so that freed sectors become usable; if nothing was freed, first destroys
    /// trashed photos of `bytes` in all. Returns true if a retry is worthwhile.
    package func makeRoom(bytes: UInt64) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        // The committer itself, when it saves a file, must not wait for itself.
        guard isRunning, !isStopped, pthread_equal(thread, pthread_self()) == 0 else { return false }
        // Sectors that an earlier session freed also wait for two durable commits of this one.
        guard let source else { return false }
        source.space.giveUpCopies()
        if source.space.pendingBytes == 0 {
            lock.unlock()
            let isFreed = source.makeRoom(bytes: bytes)
            lock.lock()
            guard isFreed else { return false }
        }
        if !source.space.canOverwrite {
            do throws(FileError) {
                try waitForDurable()
                try waitForDurable()
            } catch {
                return false
            }
        }
        lock.unlock()
        source.space.overwriteFreed(most: max(bytes, source.space.limits.overwriteStepBytes))
        lock.lock()
        return true
    }

    /// Waits for two durable commits, then overwrites the sectors that no root refers to any more.
    package func waitForReusableSectors() {
        lock.lock()
        defer { lock.unlock() }
        // The committer itself, when it saves a file, must not wait for itself.
        guard isRunning, pthread_equal(thread, pthread_self()) == 0, let space = source?.space else {
            return
        }
        for _ in 0..<2 where !space.canOverwrite && space.isBacklogged {
            guard (try? waitForDurable()) != nil else { return }
        }
        lock.unlock()
        space.overwriteFreed(most: .max / 2)
        lock.lock()
    }

    /// Commits for the last time and ends the thread.
    package func stop() throws(FileError) {
        lock.lock()
        defer { lock.unlock() }
        guard isRunning else { return }
        let isChanged = softSince != nil || durableSince != nil || recordsSince != nil
        var failed: FileError?
        isLast = true
        if isChanged {
            do throws(FileError) { try waitForDurable() } catch { failed = error }
        }
        isStopping = true
        if isByHand { isRunning = false }
        wake.signalAll()
        while isRunning { done.wait(lock) }
        if let failed { throw failed }
    }

    /// Ends the thread without a last commit: the source was abandoned without being closed.
    package func abort() {
        lock.withLock {
            isStopping = true
            wake.signalAll()
        }
    }

    // MARK: The thread

    private func run() {
        lock.lock()
        thread = pthread_self()
        expiryAt = MonotonicClock.milliseconds + Self.expiryMilliseconds
        while !isStopping {
            let now = MonotonicClock.milliseconds
            if isStopped {
                rest(now)
                continue
            }
            if let since = unsavedSince, now >= since + Self.unsavedMilliseconds {
                unsavedSince = nil
                lock.unlock()
                let isLeft = source?.saveFiles(unsavedBefore: now - Self.unsavedMilliseconds / 2) ?? false
                lock.lock()
                if isLeft, unsavedSince == nil { unsavedSince = MonotonicClock.milliseconds }
                continue
            }
            let isAsked = asked > answered
            let isDurable =
                isAsked
                || [durableSince, recordsSince].contains { since in
                    since.map { now >= $0 + pace.durableMilliseconds } ?? false
                }
            let isSoft =
                softSince.map { isFull || pace == .prompt && now >= $0 + Self.softDelayMilliseconds } ?? false
            if isAsked || (now >= retryAt && (isDurable || isSoft)) {
                commit(durable: isDurable)
            } else if let at = overwriteAt, now >= at {
                overwriteSome()
            } else if now >= lookAt {
                verifyClaim()
            } else if let at = giveBackAt, now >= at, softSince == nil {
                giveBack()
            } else if now >= expiryAt {
                expireSome(now)
            } else {
                wait(now)
            }
        }
        isRunning = false
        done.signalAll()
        lock.unlock()
    }

    /// Fails all waiters, as no commit will come, and waits for the end. `lock` is held.
    private func rest(_ now: Int64) {
        if asked > answered {
            failure = .readOnly
            answered = asked
            done.signalAll()
        }
        wake.wait(lock, untilMilliseconds: now + Self.expiryMilliseconds)
    }

    /// Overwrites one batch of destroyed photos. `lock` is held, and released meanwhile.
    private func overwriteSome() {
        lock.unlock()
        if let space = source?.space { space.overwriteFreed(most: space.limits.overwriteStepBytes) }
        let isLeft = source?.space.canOverwrite ?? false
        lock.lock()
        overwriteAt = isLeft ? MonotonicClock.milliseconds + Self.pauseMilliseconds : nil
        if !isLeft { awaitOverwriting() }
    }

    /// Schedules a durable commit while destroyed photos wait: they can be overwritten two durable commits after they
    /// were destroyed. `lock` is held.
    private func awaitOverwriting() {
        guard durableSince == nil, source?.space.hasDestroyed == true else { return }
        durableSince = MonotonicClock.milliseconds
    }

    /// Returns unused room to the host after a quiet period. `lock` is held, and released meanwhile.
    private func giveBack() {
        giveBackAt = nil
        isCommitting = true
        lock.unlock()
        // A failure is retried after the next quiet period.
        if let source {
            try? source.space.giveBack { () throws(StoreError) in
                guard let frozen = try? source.freeze() else { throw .damaged }
                try source.space.publish(frozen, durable: true)
            }
        }
        lock.lock()
        isCommitting = false
    }

    /// Purges expired trash for one time slice. `lock` is held, and released meanwhile.
    private func expireSome(_ now: Int64) {
        lock.unlock()
        let isLeft = source?.expire(until: now + Self.expirySliceMilliseconds) ?? false
        lock.lock()
        let pause = isLeft ? Self.pauseMilliseconds : Self.expiryMilliseconds
        expiryAt = MonotonicClock.milliseconds + pause
    }

    /// Checks that no other mount has claimed the space. `lock` is held, and released meanwhile.
    private func verifyClaim() {
        lock.unlock()
        let pause = source?.space.lookAtClaimIfDue()
        lock.lock()
        lookAt = pause.map { MonotonicClock.milliseconds + $0 } ?? .max
    }

    /// Schedules a check of the trash now.
    package func noteTrash() {
        lock.lock()
        defer { lock.unlock() }
        expiryAt = MonotonicClock.milliseconds
        wake.signalAll()
    }

    /// Waits until the next task is due. `lock` is held.
    private func wait(_ now: Int64) {
        var due = min(expiryAt, lookAt)
        if let softSince, pace == .prompt {
            due = min(due, max(retryAt, softSince + Self.softDelayMilliseconds))
        }
        if let durableSince { due = min(due, max(retryAt, durableSince + pace.durableMilliseconds)) }
        if let recordsSince { due = min(due, max(retryAt, recordsSince + pace.durableMilliseconds)) }
        if let unsavedSince { due = min(due, unsavedSince + Self.unsavedMilliseconds) }
        if let overwriteAt { due = min(due, overwriteAt) }
        if let giveBackAt { due = min(due, max(giveBackAt, now + Self.pauseMilliseconds)) }
        wake.wait(lock, untilMilliseconds: max(due, now + 1))
    }

    /// Maximum number of identity records that the durable commit that begins now writes. `lock` is held.
    private func recordsDue(isAwaited: Bool) -> Int {
        let now = MonotonicClock.milliseconds
        if isLast || pace == .seldom { return .max }
        if isAwaited && now < recordsAt { return 0 }
        recordsAt = now + pace.durableMilliseconds
        let limits = source?.space.limits ?? .production
        return isAwaited ? limits.awaitedRecords : limits.records
    }

    /// Publishes a root. `lock` is held, and released meanwhile.
    private func commit(durable: Bool) {
        let ticket = asked
        let (soft, hard) = (softSince, durableSince)
        let records = durable ? recordsDue(isAwaited: asked > answered) : 0
        softSince = nil
        if durable { durableSince = nil }
        isCommitting = true
        lock.unlock()
        var failed: StoreError?
        var isBehind = durable && records == 0
        do throws(StoreError) {
            if let source {
                if records > 0 { isBehind = source.writeRecords(most: records) }
                let frozen = try source.freeze()
                try source.space.publish(frozen, durable: durable)
                if durable { source.noteDurable() }
            }
        } catch {
            failed = error
        }
        lock.lock()
        isCommitting = false
        if pace == .seldom { done.signalAll() }
        note(failed, durable: durable)
        // The first commit makes the claim, so check it from now on.
        if lookAt == .max { lookAt = 0 }
        if failed != nil {
            // The changes remain to be published; fsync(2) reports the error, other commits are retried.
            softSince = softSince ?? soft ?? MonotonicClock.milliseconds
            durableSince = hard ?? durableSince ?? softSince
            retryAt = MonotonicClock.milliseconds + Self.retryMilliseconds
        } else {
            retryAt = 0
            if durable, source?.space.canOverwrite == true { overwriteAt = MonotonicClock.milliseconds }
            if durable, overwriteAt == nil { awaitOverwriting() }
            if durable { recordsSince = isBehind ? MonotonicClock.milliseconds : nil }
        }
        if durable {
            if let failed { failure = isStopped ? .readOnly : FileError(failed) }
            answered = max(answered, ticket)
            done.signalAll()
        }
    }

    /// Counts a failed or successful commit, and stops writing after a permanent failure. `lock` is held.
    private func note(_ failed: StoreError?, durable: Bool) {
        guard let source else { return }
        guard let failed else {
            if durable { failures = CommitFailures() }
            return
        }
        let now = source.monotonicMilliseconds
        guard let reason = failures.note(failed, now: now, source.retryBounds) else { return }
        // The state of the space's files may tell a more precise reason than the commit's error.
        source.space.stopWriting(reason == .io(.inputOutput) ? source.space.obstacle ?? reason : reason)
    }
}
