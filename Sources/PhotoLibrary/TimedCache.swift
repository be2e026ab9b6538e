import LinuxIO

/// A number that is computed at most once a second.
final class TimedCache: @unchecked Sendable {
    private static let keptMilliseconds: Int64 = 1000

    private let lock = Lock()
    // Both under `lock`.
    private var known: UInt64 = 0
    private var until: Int64 = 0

    func value(_ count: () -> UInt64) -> UInt64 {
        lock.lock()
        defer { lock.unlock() }
        let now = MonotonicClock.milliseconds
        if now >= until {
            known = count()
            until = now + Self.keptMilliseconds
        }
        return known
    }
}
