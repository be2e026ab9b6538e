internal import CShims
internal import Glibc
internal import Synchronization

/// The processors that threads may use: sched_setaffinity(2).
///
/// The kernel has threads and processes inherit what their starter may use. Those that are started by `startThread`,
/// `onAllCores` and `spawn` are not bound, on whichever thread they start.
public enum Processors {
    /// A bit for each processor: what a thread may use that is not bound. Nil: no thread was ever bound.
    private static let all = Mutex<[UInt64]?>(nil)
    private static let areBound = Atomic<Bool>(false)
    private static let words = 16

    /// Lets the calling thread run only on this processor, until `releaseThread`. Does nothing if the process may not
    /// use it (taskset(1)), or it is not there.
    public static func bindThread(to processor: Int) {
        guard (0..<words * UInt64.bitWidth).contains(processor) else { return }
        var set = [UInt64](repeating: 0, count: words)
        let (word, bit) = (processor / UInt64.bitWidth, UInt64(1) << UInt64(processor % UInt64.bitWidth))
        set[word] = bit
        let isAllowed = all.withLock { all in
            if all == nil { all = current() }
            return (all?[word] ?? 0) & bit != 0
        }
        guard isAllowed else { return }
        areBound.store(true, ordering: .releasing)
        apply(set)
    }

    /// Lets the calling thread run wherever the process may.
    public static func releaseThread() {
        guard areBound.load(ordering: .acquiring), let set = all.withLock({ $0 }) else { return }
        apply(set)
    }

    /// Runs `body` with the calling thread released.
    static func released<R>(_ body: () -> R) -> R {
        guard areBound.load(ordering: .acquiring), let before = current() else { return body() }
        releaseThread()
        defer { apply(before) }
        return body()
    }

    private static func current() -> [UInt64]? {
        var set = [UInt64](repeating: 0, count: words)
        let bytes = set.withUnsafeMutableBytes { obscura_get_processors($0.baseAddress, UInt($0.count)) }
        return bytes >= 0 ? set : nil
    }

    private static func apply(_ set: [UInt64]) {
        set.withUnsafeBytes { _ = obscura_set_processors($0.baseAddress, UInt($0.count)) }
    }
}
