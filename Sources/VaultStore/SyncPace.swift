/// Detects syncs that follow each other: a program that syncs each file that it writes will soon wait for the next.
struct SyncPace: Sendable {
    /// Two syncs within this time mean that another follows the second within it.
    private static let milliseconds: Int64 = 1000

    private var last: Int64?
    private var isQuick = false

    mutating func note(at time: Int64) {
        isQuick = last.map { time - $0 <= Self.milliseconds } ?? false
        last = time
    }

    /// Whether a sync is to be expected soon.
    func isExpected(at time: Int64) -> Bool {
        guard isQuick, let last else { return false }
        return time - last <= Self.milliseconds
    }
}
