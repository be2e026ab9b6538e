import LinuxIO
import VaultStore

/// How long commits that fail, one after the other, are tried again before writing ends: so often at least, and for
/// so long.
public struct RetryBounds: Sendable {
    public var attempts = 8
    public var milliseconds: Int64 = 30_000
    /// Between two attempts that nobody asked for.
    public var pauseMilliseconds: Int64 = 1000

    public init() {}
}

/// Commits that failed since the last durable one.
///
/// Some errors will be the same the next time: the host refuses writing, or a segment's file is gone. A full disk may
/// have room again. All others may pass, as those of a network or of a cable, and so have `RetryBounds`.
struct CommitFailures {
    private var count = 0
    private var first: Int64 = 0

    /// Counts a failed commit, soft or durable.
    ///
    /// - Parameter now: by the monotonic clock, in milliseconds.
    /// - Returns: why commits have failed for good; nil where the next may succeed.
    mutating func note(_ error: StoreError, now: Int64, _ bounds: RetryBounds) -> WriteStop? {
        switch error {
        case .segmentMissing(let number): return .segmentMissing(number)
        case .segmentShort(let number): return .segmentShort(number)
        case .io(let number) where number.refusesWriting || number == .noEntry || number == .stale:
            return .io(number)
        case .noRoom, .readOnly: return nil
        case .io(let number): return isOver(now, bounds) ? .io(number) : nil
        case .damaged: return isOver(now, bounds) ? .io(.inputOutput) : nil
        }
    }

    private mutating func isOver(_ now: Int64, _ bounds: RetryBounds) -> Bool {
        if count == 0 { first = now }
        count += 1
        return count >= bounds.attempts && now - first >= bounds.milliseconds
    }
}
