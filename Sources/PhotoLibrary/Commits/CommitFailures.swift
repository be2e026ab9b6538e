import LinuxIO
import VaultStore

/// Limits of retries while commits fail in succession. Writing stops once both the attempts and the time are used up.
public struct RetryBounds: Sendable {
    public var attempts = 8
    public var milliseconds: Int64 = 30_000
    /// Pause between two attempts that no client waits for.
    public var pauseMilliseconds: Int64 = 1000

    public init() {}
}

/// Failed commits since the last durable one.
///
/// Some errors are permanent: the host refuses writing, or a segment's file is missing. A full disk may get room again.
/// Other errors may pass, such as those of a network or a cable; they count against `RetryBounds`.
struct CommitFailures {
    private var count = 0
    private var first: Int64 = 0

    /// Counts a failed commit, soft or durable.
    ///
    /// - Parameter now: monotonic clock, in milliseconds.
    /// - Returns: the reason why commits have failed for good; nil if the next may succeed.
    package mutating func note(_ error: StoreError, now: Int64, _ bounds: RetryBounds) -> WriteStop? {
        switch error {
        case .segmentMissing(let number): return .segmentMissing(number)
        case .segmentShort(let number): return .segmentShort(number)
        case .io(let number) where number.refusesWriting || number == .noEntry || number == .stale:
            return .io(number)
        case .newer(let version): return .newer(version)
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
