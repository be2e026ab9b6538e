internal import LinuxIO

/// Decides when a mount has been idle long enough. Used by one thread, which calls `isOver` every `checkMilliseconds`.
struct IdleClock {
    private let limitMilliseconds: Int64?
    private var lastUses: UInt64 = .max
    private var lastUse: Int64 = 0

    /// `seconds` nil: never.
    init(seconds: Int?) { limitMilliseconds = seconds.map { (Quantity($0) * Quantity(1000)).clamped() } }

    /// Interval between two checks: an eighth of the limit, at least 250 ms and at most 30 s. Nil: no checks.
    var checkMilliseconds: Int32? {
        limitMilliseconds.map { Int32(min(max($0 / 8, 250), 30_000)) }
    }

    /// Returns true if `uses` has not changed and nothing was open for the whole limit. The clock stands still while
    /// the machine sleeps: waking a laptop must not unmount.
    mutating func isOver(uses: UInt64, open: Int, now: Int64 = MonotonicClock.milliseconds) -> Bool {
        guard let limitMilliseconds else { return false }
        if uses != lastUses || open > 0 {
            lastUses = uses
            lastUse = now
        }
        return now - lastUse >= limitMilliseconds
    }
}
