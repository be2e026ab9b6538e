internal import LinuxIO

/// Decides when a mount has been idle long enough. Driven by one thread, which asks every
/// `checkMilliseconds`.
struct IdleClock {
    private let limitMilliseconds: Int64?
    private var lastUses: UInt64 = .max
    private var lastUse: Int64 = 0

    /// `seconds` nil: never.
    init(seconds: Int?) { limitMilliseconds = seconds.map { (Quantity($0) * Quantity(1000)).clamped() } }

    /// How often to ask: an eighth of the limit, within a quarter second and half a minute. Nil: not at all.
    var checkMilliseconds: Int32? {
        limitMilliseconds.map { Int32(min(max($0 / 8, 250), 30_000)) }
    }

    /// True when `uses` has been the same and nothing open for as long as the limit, by the clock that stands
    /// still while the machine sleeps: waking a laptop must not unmount.
    mutating func isOver(uses: UInt64, open: Int, now: Int64 = MonotonicClock.milliseconds) -> Bool {
        guard let limitMilliseconds else { return false }
        if uses != lastUses || open > 0 {
            lastUses = uses
            lastUse = now
        }
        return now - lastUse >= limitMilliseconds
    }
}
