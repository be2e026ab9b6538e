import LinuxIO

/// The commit that changes belong to until the next freeze. Under the space's lock.
///
/// No two commits may have one generation, not even if the mount of one was killed before it published anything: by
/// generations a salvage tells which record is newer. So a mount begins at the time of day, if that is later than the
/// newest root.
final class NextCommit: @unchecked Sendable {
    /// Its generation, as that of extents written now.
    private(set) var generation: UInt64
    /// Whether it has any change.
    private(set) var isChanged = false

    /// Generations in a millisecond: more than a mount can take.
    private static let perMillisecond: UInt64 = 64
    /// 2026-01-01, in seconds since 1970. Generations of then and later take six bytes in a row.
    private static let firstSecond: Int64 = 1_767_225_600
    /// A clock that says more is wrong.
    private static let secondsMax: Int64 = 1 << 32

    /// - Parameter newest: the highest generation of all roots.
    init(after newest: UInt64) { generation = max(newest + 1, Self.generationOfNow()) }

    /// 0 where the clock is wrong.
    private static func generationOfNow() -> UInt64 {
        let now = Timestamp.now()
        let seconds = now.seconds - firstSecond
        guard (0..<secondsMax).contains(seconds) else { return 0 }
        return UInt64(seconds * 1000 + Int64(now.nanoseconds) / 1_000_000) * perMillisecond
    }

    func noteChange() { isChanged = true }

    /// Ends it at a freeze: later changes belong to the one after. Returns its generation.
    func end() -> UInt64 {
        defer { generation += 1 }
        isChanged = false
        return generation
    }

    /// Leaves out so many generations.
    func skip(_ count: UInt64 = 1) { generation += count }

    /// Leaves out all generations up to the given one.
    func skip(through last: UInt64) { generation = max(generation, last + 1) }
}
