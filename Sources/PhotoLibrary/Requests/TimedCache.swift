import LinuxIO

/// A number that is computed at most for a tenth of the time: a cheap one is always current.
final class TimedCache: @unchecked Sendable {
    private static let keptFactor: Int64 = 9
    private static let keptNanosecondsMax: Int64 = 1_000_000_000

    private let lock = Lock()
    // Both under `lock`.
    private var known: UInt64 = 0
    private var until: Int64 = 0

    func value(_ count: () -> UInt64) -> UInt64 {
        lock.lock()
        defer { lock.unlock() }
        let begun = MonotonicClock.nanoseconds
        if begun >= until {
            known = count()
            let end = MonotonicClock.nanoseconds
            until = end + min((end - begun) * Self.keptFactor, Self.keptNanosecondsMax)
        }
        return known
    }
}
