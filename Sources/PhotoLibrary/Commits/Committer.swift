package import FileRequests
import Glibc
import LinuxIO
import Synchronization
import VaultFormat
package import VaultStore

/// Publishes changes as roots: soft 50 ms after a change, durable after 5 s or on fsync(2). One thread; waiters share
/// its commits.
package final class Committer: @unchecked Sendable {
    /// The session whose changes it publishes. Set once, at the start.
    package weak var session: TreeSession?
    /// Whether a full space commits and destroys by itself; false in tests that choose the moments of commits.
    package var makesRoom = true

    package init() {}

    private let lock = Lock()
    private let wake = Condition()
    private let done = Condition()
    // All under `lock`.
    private var schedule = CommitSchedule()
    private var tickets = CommitTickets()
    /// Failed commits since the last durable one.
    private var failures = CommitFailures()
    private let outOfRoom = Atomic<Bool>(false)
    /// The next commit is the last.
    private var isLast = false
    /// Whether the newest durable commit left identity records to the next.
    private var areRecordsBehind = false
    /// Durable commits at the end for records that found no room.
    private static let lastCommitsMax = 4
    private var isStopping = false
    private var isRunning = false
    /// No thread commits: a caller that waits for a durable commit makes it, and `commitByHand` makes the others.
    private var isByHand = false
    /// Staged pages when a transaction was last ended between commits.
    private var stagedAtEnd = 0
    private var isCommitting = false
    private var thread = pthread_t()

    package func start(byHand: Bool = false, _ pace: CommitPace = .prompt) {
        lock.withLock {
            isRunning = true
            isByHand = byHand
            schedule.pace = pace
        }
        if !byHand { startThread { [self] in run() } }
    }

    /// Commits pending changes on the calling thread, for tests that control when commits happen.
    package func commitByHand(durable: Bool) {
        lock.lock()
        defer { lock.unlock() }
        precondition(isByHand)
        if schedule.softSince != nil || (durable && schedule.durableSince != nil) {
            commit(durable: durable)
        }
    }

    /// Notes a change of the tree.
    @inline(__always)
    package func noteChange(if isChange: Bool) {
        guard isChange else { return }
        lock.lock()
        defer { lock.unlock() }
        if isFull { wake.signalAll() }
        // Most changes follow another, and need no clock.
        guard schedule.softSince == nil else { return }
        schedule.noteChange(at: MonotonicClock.milliseconds)
        wake.signalAll()
    }

    /// Waits while the commit under way and the next have twice `Limits.stagedPages` pages. At the pace
    /// `seldom` also ends the transaction now and then, so that its journal does not grow. Called before a
    /// change, with no lock held.
    package func waitForStagedPages() {
        lock.lock()
        defer { lock.unlock() }
        while isCommitting, hasManyPages(2) { done.wait(lock) }
        guard schedule.pace == .seldom, let session else { return }
        let staged = session.space.stagedPages
        if staged < stagedAtEnd { stagedAtEnd = 0 }
        guard staged >= stagedAtEnd + session.space.limits.stagedPages / 8 else { return }
        lock.unlock()
        session.endTransaction()
        lock.lock()
        stagedAtEnd = session.space.stagedPages
    }

    /// Whether so many pages wait that they are published at once. A mount's commits are never late enough for that.
    private var isFull: Bool { !isCommitting && hasManyPages(1) }

    /// Whether changed pages in memory are so many times `Limits.stagedPages`.
    private func hasManyPages(_ factor: Int) -> Bool {
        guard schedule.pace == .seldom, let space = session?.space else { return false }
        return space.unwrittenPages >= factor * space.limits.stagedPages
    }

    /// Whether all changes noted so far are in a root.
    package var isCommitted: Bool { lock.withLock { schedule.softSince == nil && !isCommitting } }

    /// Notes that a file has bytes or times that are not in the tree yet.
    package func noteUnsaved() {
        lock.lock()
        defer { lock.unlock() }
        guard schedule.unsavedSince == nil else { return }
        schedule.noteUnsaved(at: MonotonicClock.milliseconds)
        wake.signalAll()
    }

    /// Makes all changes so far durable, and waits for it.
    package func makeDurable() throws(FileError) {
        lock.lock()
        defer { lock.unlock() }
        guard isRunning else { return }
        let isSaved = schedule.softSince == nil && schedule.durableSince == nil
        if isSaved && !tickets.isAsked && !isCommitting { return }
        if isStopped {
            if schedule.softSince == nil && !isCommitting && session?.space.isClean == true { return }
            throw .readOnly
        }
        try waitForDurable()
    }

    /// Whether the space takes no more writes: no commit is tried any more.
    private var isStopped: Bool { session?.space.writeStop != nil }

    /// Whether a change is in no root, or a commit is under way. `Space.isClean` covers changes in a soft
    /// root only.
    package var hasPending: Bool { lock.withLock { schedule.softSince != nil || isCommitting } }

    /// Forgets failed commits, because the space takes writes again.
    package func noteResumed() {
        lock.withLock {
            failures = CommitFailures()
            schedule.noteResumed(at: MonotonicClock.milliseconds)
            wake.signalAll()
        }
    }

    /// Whether the caller may wait for a commit: the committer itself, when it saves a file, must not. By hand, nobody
    /// would end the commit under way. `lock` is held.
    private var mayWait: Bool {
        isRunning && pthread_equal(thread, pthread_self()) == 0 && !(isByHand && isCommitting)
    }

    private func waitForDurable() throws(FileError) {
        if isStopped { throw .readOnly }
        // A commit under way may have begun before the change: only the next one counts.
        let ticket = tickets.ask()
        wake.signalAll()
        if isByHand { commit(durable: true) }
        while !tickets.isAnswered(ticket) && isRunning { done.wait(lock) }
        if let failure = tickets.takeFailure(of: ticket) { throw failure }
    }

    /// Makes room in a full space. Commits, so that freed sectors become usable; if nothing was freed, first
    /// destroys versions or trashed photos of `bytes` in all. Returns true if a retry is worthwhile.
    package func makeRoom(bytes: UInt64) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard makesRoom, mayWait, !isStopped else { return false }
        // Sectors that an earlier session freed also wait for two durable commits of this one.
        guard let session else { return false }
        session.space.releaseBackupHolds()
        if session.space.sectors.pendingBytes == 0 {
            lock.unlock()
            let isFreed = session.makeRoom(bytes: bytes)
            lock.lock()
            guard isFreed else { return false }
        }
        if !session.space.eraser.canOverwrite {
            do throws(FileError) {
                try waitForDurable()
                try waitForDurable()
            } catch {
                return false
            }
        }
        lock.unlock()
        session.space.eraser.overwrite(most: max(bytes, session.space.limits.overwriteStepBytes))
        lock.lock()
        return true
    }

    /// Whether the newest commit failed for lack of room: nothing is added until one succeeds.
    package var isOutOfRoom: Bool { outOfRoom.load(ordering: .relaxed) }

    /// Durable commits after which all slots are free that only older states use, and one for changes meanwhile.
    private static let releasingCommits = 3

    /// Makes room for a change of so many catalogue pages: ends the transaction, so that its pages are known, then
    /// commits, so that freed slots become usable. Returns false if that cannot help. Called with the catalogue's lock
    /// not held.
    package func makePageRoom(for purpose: ChangePurpose, pages: () -> Int) -> Bool {
        guard let session, !isStopped else { return false }
        session.endTransaction()
        for attempt in 0...Self.releasingCommits {
            let isEnough = session.space.ledger.makesRoom(for: purpose, pages: pages())
            if isEnough, purpose == .removal || !isOutOfRoom { return true }
            guard attempt < Self.releasingCommits,
                isEnough || session.space.ledger.commitsMakeRoom(for: purpose, pages: pages()), commitNow()
            else { return false }
        }
        return false
    }

    /// Makes a durable commit, also on the committer's own thread between its tasks. Returns false if it fails.
    package func commitNow() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard isRunning, !isStopped else { return false }
        if mayWait { return (try? waitForDurable()) != nil }
        return !isCommitting && commit(durable: true)
    }

    /// Destroys versions or a trashed photo, and commits, so that their slots become usable. Returns false if there are
    /// none.
    package func makeRowRoom() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard mayWait, !isStopped, let session else { return false }
        lock.unlock()
        let isFreed = session.makeRoom(bytes: 1)
        lock.lock()
        guard isFreed else { return false }
        for _ in 0..<2 { guard (try? waitForDurable()) != nil else { return false } }
        return true
    }

    /// Waits for two durable commits, then overwrites the sectors that no root refers to any more.
    package func waitForReusableSectors() {
        lock.lock()
        defer { lock.unlock() }
        guard makesRoom, mayWait, let space = session?.space else { return }
        for _ in 0..<2 where !space.eraser.canOverwrite && space.isBacklogged {
            guard (try? waitForDurable()) != nil else { return }
        }
        lock.unlock()
        space.eraser.overwrite(most: .max / 2)
        lock.lock()
    }

    /// Commits for the last time and ends the thread.
    package func stop() throws(FileError) {
        lock.lock()
        defer { lock.unlock() }
        guard isRunning else { return }
        let isChanged = schedule.hasPending
        var failed: FileError?
        isLast = true
        if isChanged {
            do throws(FileError) {
                try waitForDurable()
                // Where slots are short, each durable commit releases some, for records that had no room before.
                var commitsLeft = Self.lastCommitsMax
                while areRecordsBehind, commitsLeft > 0 {
                    commitsLeft -= 1
                    try waitForDurable()
                }
            } catch { failed = error }
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
        schedule.endExpiring(at: MonotonicClock.milliseconds, isLeft: false)
        while !isStopping {
            let now = MonotonicClock.milliseconds
            if isStopped {
                failWaiters(now)
                continue
            }
            switch schedule.task(at: now, isAsked: tickets.isAsked, isFull: isFull) {
            case .saveFiles(let time): saveFiles(unsavedBefore: time)
            case .commit(let durable): commit(durable: durable)
            case .overwrite: overwriteSome()
            case .verifyClaim: verifyClaim()
            case .giveBack: giveBack()
            case .expire: expireSome(now)
            case .wait(let time): wake.wait(lock, untilMilliseconds: max(time, now + 1))
            }
        }
        isRunning = false
        done.signalAll()
        lock.unlock()
    }

    /// Fails all waiters, as no commit will come, and waits for the end. `lock` is held.
    private func failWaiters(_ now: Int64) {
        if tickets.isAsked {
            tickets.answer(through: tickets.newest, .readOnly)
            done.signalAll()
        }
        wake.wait(lock, untilMilliseconds: now + CommitSchedule.expiryMilliseconds)
    }

    /// Saves files that have been unsaved for long enough. `lock` is held, and released meanwhile.
    private func saveFiles(unsavedBefore time: Int64) {
        schedule.beginSaving()
        lock.unlock()
        let isLeft = session?.saveFiles(unsavedBefore: time) ?? false
        lock.lock()
        if isLeft { schedule.noteUnsaved(at: MonotonicClock.milliseconds) }
    }

    /// Overwrites one batch of destroyed photos. `lock` is held, and released meanwhile.
    private func overwriteSome() {
        lock.unlock()
        if let space = session?.space { space.eraser.overwrite(most: space.limits.overwriteStepBytes) }
        let isLeft = session?.space.eraser.canOverwrite ?? false
        lock.lock()
        schedule.endOverwriting(at: MonotonicClock.milliseconds, isLeft: isLeft)
        if !isLeft { awaitOverwriting() }
    }

    /// Schedules a durable commit if destroyed photos wait for one. `lock` is held.
    private func awaitOverwriting() {
        guard session?.space.eraser.hasDestroyed == true else { return }
        schedule.awaitOverwriting(at: MonotonicClock.milliseconds)
    }

    /// Returns unused room to the host after a quiet period. `lock` is held, and released meanwhile.
    private func giveBack() {
        schedule.beginGivingBack()
        isCommitting = true
        lock.unlock()
        // A failure is retried after the next quiet period.
        if let session {
            try? session.space.giveBack { () throws(StoreError) in
                guard let frozen = try? session.freeze() else { throw .damaged }
                try session.space.publish(frozen, durable: true)
            }
        }
        lock.lock()
        isCommitting = false
    }

    /// Destroys expired trash and versions for one time slice. `lock` is held, and released meanwhile.
    private func expireSome(_ now: Int64) {
        schedule.beginExpiring()
        lock.unlock()
        let isLeft = session?.expire(until: now + CommitSchedule.expirySliceMilliseconds) ?? false
        lock.lock()
        schedule.endExpiring(at: MonotonicClock.milliseconds, isLeft: isLeft)
    }

    /// Checks that no other mount has claimed the space. `lock` is held, and released meanwhile.
    private func verifyClaim() {
        lock.unlock()
        let pause = session?.space.checkClaimIfDue()
        lock.lock()
        schedule.checkClaim(at: pause.map { MonotonicClock.milliseconds + $0 })
    }

    /// Schedules a check of the trash now.
    package func noteTrash() {
        lock.lock()
        defer { lock.unlock() }
        schedule.checkTrash(at: MonotonicClock.milliseconds)
        wake.signalAll()
    }

    /// Maximum number of identity records that the durable commit that begins now writes. `lock` is held.
    private func recordsDue(isAwaited: Bool) -> Int {
        if isLast || schedule.pace == .seldom { return .max }
        guard schedule.mayWriteRecords(at: MonotonicClock.milliseconds, isAsked: isAwaited) else { return 0 }
        let limits = session?.space.limits ?? .production
        return isAwaited ? limits.awaitedRecords : limits.records
    }

    /// Publishes a root. Returns false if that fails. `lock` is held, and released meanwhile.
    @discardableResult
    private func commit(durable: Bool) -> Bool {
        let ticket = tickets.newest
        let records = durable ? recordsDue(isAwaited: tickets.isAsked) : 0
        let begun = schedule.beginCommit(durable: durable)
        isCommitting = true
        lock.unlock()
        var failed: StoreError?
        var isBehind = durable && records == 0
        do throws(StoreError) {
            if let session {
                if records > 0 { isBehind = session.writeRecords(most: records) }
                let frozen = try session.freeze()
                try session.space.publish(frozen, durable: durable)
                if durable { session.noteDurable() }
            }
        } catch {
            failed = error
        }
        lock.lock()
        isCommitting = false
        outOfRoom.store(failed == .noRoom, ordering: .relaxed)
        if schedule.pace == .seldom { done.signalAll() }
        note(failed, durable: durable)
        let now = MonotonicClock.milliseconds
        if failed != nil {
            // fsync(2) reports the error, other commits are retried.
            schedule.failCommit(begun, at: now)
        } else {
            let canOverwrite = session?.space.eraser.canOverwrite == true
            let isShort = isBehind && session?.space.ledger.isShortOfRowRoom == true
            schedule.endCommit(
                at: now, durable: durable, canOverwrite: canOverwrite, isBehind: isBehind, isShort: isShort)
            if durable, !canOverwrite { awaitOverwriting() }
        }
        if durable {
            areRecordsBehind = failed == nil && isBehind
            tickets.answer(through: ticket, failed.map { isStopped ? .readOnly : FileError($0) })
            done.signalAll()
        }
        return failed == nil
    }

    /// Counts a failed or successful commit, and stops writing after a permanent failure. `lock` is held.
    private func note(_ failed: StoreError?, durable: Bool) {
        guard let session else { return }
        guard let failed else {
            if durable { failures = CommitFailures() }
            return
        }
        let now = session.options.clocks.monotonic()
        guard let reason = failures.note(failed, now: now, session.options.commitRetries) else { return }
        // The state of the space's files may tell a more precise reason than the commit's error.
        session.space.stopWriting(reason == .io(.inputOutput) ? session.space.obstacle ?? reason : reason)
    }
}
