/// Finds out when it is worth while to write bytes to the disk before a sync asks for it: a program that syncs each
/// file that it writes will soon wait for the next, and every sync waits for all that was written since the last.
struct SyncPace: Sendable {
    enum Advice {
        /// The kernel may write these bytes when it likes.
        case none
        /// Many bytes wait for the next sync: it will take long if the disk begins only then.
        case long
        /// A program that syncs often is about to sync these bytes.
        case expected
    }

    /// Two syncs within this time mean that another follows the second within it.
    private static let milliseconds: Int64 = 1000
    /// The least write that is worth a request to write to the disk soon.
    private static let soonBytes = 64 << 10
    /// A disk writes as much in a tenth of a second.
    private static let longBytes = 16 << 20

    private var last: Int64?
    private var isQuick = false
    /// Bytes written since the last sync.
    private var waiting = 0

    mutating func noteSync(at time: Int64) {
        isQuick = last.map { time - $0 <= Self.milliseconds } ?? false
        last = time
        waiting = 0
    }

    /// Called before each write. Small writes, the most frequent, need no clock.
    mutating func willWrite(_ bytes: Int, at time: @autoclosure () -> Int64) -> Advice {
        waiting += bytes
        if bytes < Self.soonBytes { return .none }
        if isQuick, let last, time() - last <= Self.milliseconds { return .expected }
        return waiting > Self.longBytes ? .long : .none
    }
}
