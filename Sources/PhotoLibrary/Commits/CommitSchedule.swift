/// When changes are published without being asked for.
package enum CommitPace: Sendable {
    /// As a mount promises: in a soft root 50 ms after a change, in a durable one 5 s after it.
    case prompt
    /// For a command that promises nothing before its end: in a soft root as soon as `Limits.stagedPages` pages wait,
    /// so that memory suffices, in a durable one 30 s after a change. A page that changes often is then written seldom.
    case seldom

    /// Delay of a durable commit after the first change. The kernel writes pages older than 30 s to the disk anyway.
    var durableMilliseconds: Int64 { self == .prompt ? 5000 : 30_000 }
}

/// The times at which a committer's tasks are due, in milliseconds of the monotonic clock. A value without a clock of
/// its own, so that a test can follow a change to its root.
struct CommitSchedule {
    /// A task of the committer.
    enum Task: Equatable {
        /// Saving the files that have been unsaved since before that time.
        case saveFiles(unsavedBefore: Int64)
        case commit(durable: Bool)
        /// Overwriting a batch of destroyed photos.
        case overwrite
        /// Checking that no other mount has claimed the space.
        case verifyClaim
        /// Returning unused room to the host.
        case giveBack
        /// Destroying expired trash and versions for one time slice.
        case expire
        case wait(until: Int64)
    }

    /// Delay of a soft commit after the first change: half of the tenth of a second after which a change survives a
    /// kill. The commit itself has the other half.
    private static let softDelayMilliseconds: Int64 = 50
    private static let unsavedMilliseconds: Int64 = 1000
    private static let retryMilliseconds: Int64 = 1000
    static let expiryMilliseconds: Int64 = 3_600_000
    /// Idle time after the last change before a vault returns free room to its host, which takes durable commits.
    private static let quietMilliseconds: Int64 = 20_000
    /// Background work is done in slices of this length, with a pause between them. No commit begins meanwhile.
    static let expirySliceMilliseconds: Int64 = 25
    private static let pauseMilliseconds: Int64 = 20

    var pace = CommitPace.prompt
    /// When the oldest change that is in no root was made; nil if there is none.
    private(set) var softSince: Int64?
    /// When the oldest change that is in no durable root was made; nil if there is none.
    private(set) var durableSince: Int64?
    /// Since when files have been unsaved; nil if none are.
    private(set) var unsavedSince: Int64?
    /// After a failed commit: when the next one may begin, unless a caller waits for it.
    private var retryAt: Int64 = 0
    /// When the trash is checked next.
    private var expiryAt = Int64.max
    /// When sectors of destroyed photos are overwritten next; nil while none can be.
    private var overwriteAt: Int64?
    /// When the space's claim is checked next.
    private var claimCheckAt = Int64.max
    /// When unused room is returned to the host; nil if nothing has changed since the last time.
    private var giveBackAt: Int64?
    /// Since when identity records have been waiting for the next durable commit; nil if none are.
    private var recordsSince: Int64?
    /// When identity records are written next: repeated fsync(2) calls must not pay for them.
    private var recordsAt: Int64 = 0

    /// Whether something waits for a durable commit.
    var hasPending: Bool { softSince != nil || durableSince != nil || recordsSince != nil }

    /// The task that is due. Commits that callers wait for come before their time.
    ///
    /// - Parameter isAsked: whether a caller waits for a durable commit.
    /// - Parameter isFull: whether so many pages wait that they are published at once.
    func task(at now: Int64, isAsked: Bool, isFull: Bool) -> Task {
        func commitAt(_ since: Int64?, _ delay: Int64?) -> Int64? {
            if let since, let delay { max(since + delay, retryAt) } else { nil }
        }
        let softDelay = isFull ? 0 : pace == .prompt ? Self.softDelayMilliseconds : nil
        let softAt = commitAt(softSince, softDelay)
        let oldest = [durableSince, recordsSince].compactMap { $0 }.min()
        let durableAt = commitAt(oldest, pace.durableMilliseconds)
        let saveAt = unsavedSince.map { $0 + Self.unsavedMilliseconds }
        let returnAt = softSince == nil ? giveBackAt : nil
        func isDue(_ at: Int64?) -> Bool { at.map { now >= $0 } ?? false }

        if isDue(saveAt) { return .saveFiles(unsavedBefore: now - Self.unsavedMilliseconds / 2) }
        if isAsked || isDue(durableAt) { return .commit(durable: true) }
        if isDue(softAt) { return .commit(durable: false) }
        if isDue(overwriteAt) { return .overwrite }
        if isDue(claimCheckAt) { return .verifyClaim }
        if isDue(returnAt) { return .giveBack }
        if isDue(expiryAt) { return .expire }
        let next = [softAt, durableAt, saveAt, overwriteAt, claimCheckAt, returnAt, expiryAt]
        return .wait(until: next.compactMap { $0 }.min() ?? .max)
    }

    /// Notes the first change of the tree since a commit began; `softSince` is nil.
    mutating func noteChange(at now: Int64) {
        softSince = now
        durableSince = durableSince ?? now
        giveBackAt = now + Self.quietMilliseconds
    }

    /// Notes that a file has bytes or times that are not in the tree yet.
    mutating func noteUnsaved(at now: Int64) { unsavedSince = unsavedSince ?? now }

    /// Notes that unsaved files are being saved. `noteUnsaved` is called again if some stay unsaved.
    mutating func beginSaving() { unsavedSince = nil }

    /// Notes that the space takes writes again after failed commits.
    mutating func noteResumed(at now: Int64) {
        retryAt = 0
        softSince = softSince ?? now
        durableSince = durableSince ?? softSince
    }

    /// Schedules a durable commit while destroyed photos wait: they can be overwritten two durable commits after they
    /// were destroyed.
    mutating func awaitOverwriting(at now: Int64) { durableSince = durableSince ?? now }

    /// Notes that a batch of destroyed photos was overwritten, and whether some are left.
    mutating func endOverwriting(at now: Int64, isLeft: Bool) {
        overwriteAt = isLeft ? now + Self.pauseMilliseconds : nil
    }

    /// Notes that unused room is being returned to the host. If that fails, it is tried after the next change.
    mutating func beginGivingBack() { giveBackAt = nil }

    /// Notes that expired trash is being destroyed. A check that is scheduled meanwhile stays.
    mutating func beginExpiring() { expiryAt = .max }

    /// Notes that expired trash was destroyed for a slice, and whether some is left.
    mutating func endExpiring(at now: Int64, isLeft: Bool) {
        expiryAt = min(expiryAt, now + (isLeft ? Self.pauseMilliseconds : Self.expiryMilliseconds))
    }

    /// Schedules a check of the trash.
    mutating func checkTrash(at time: Int64) { expiryAt = time }

    /// Schedules the next check of the space's claim; nil for none.
    mutating func checkClaim(at time: Int64?) { claimCheckAt = time ?? .max }

    /// Whether the durable commit that begins now may write identity records: not if a caller asked for it
    /// too soon after one that did. If it may, notes the time.
    mutating func mayWriteRecords(at now: Int64, isAsked: Bool) -> Bool {
        if isAsked && now < recordsAt { return false }
        recordsAt = now + pace.durableMilliseconds
        return true
    }

    /// The times of a commit's oldest changes, restored if it fails.
    struct Begun {
        fileprivate let softSince: Int64?
        fileprivate let durableSince: Int64?
    }

    /// Notes that a commit of all changes so far begins.
    mutating func beginCommit(durable: Bool) -> Begun {
        let begun = Begun(softSince: softSince, durableSince: durableSince)
        softSince = nil
        if durable { durableSince = nil }
        // The first commit makes the claim, so it is checked from now on.
        if claimCheckAt == .max { claimCheckAt = 0 }
        return begun
    }

    /// Notes that a commit has published its changes.
    ///
    /// - Parameter canOverwrite: whether destroyed photos can be overwritten now.
    /// - Parameter isBehind: whether a durable commit left identity records to the next.
    /// - Parameter isShort: whether it did because there are few page slots: then the next follows soon.
    mutating func endCommit(
        at now: Int64, durable: Bool, canOverwrite: Bool, isBehind: Bool, isShort: Bool = false
    ) {
        retryAt = 0
        guard durable else { return }
        if canOverwrite { overwriteAt = now }
        recordsSince =
            isBehind ? now - (isShort ? pace.durableMilliseconds - Self.retryMilliseconds / 2 : 0) : nil
    }

    /// Notes that a commit failed: its changes remain to be published.
    mutating func failCommit(_ begun: Begun, at now: Int64) {
        softSince = softSince ?? begun.softSince ?? now
        durableSince = begun.durableSince ?? durableSince ?? softSince
        retryAt = now + Self.retryMilliseconds
    }
}
