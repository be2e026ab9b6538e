internal import Synchronization

/// Tells workers and waiters that the result is no longer wanted. Cannot be undone.
public final class Cancellation: Sendable {
    private struct Actions {
        var pending: [UInt64: @Sendable () -> Void] = [:]
        var count: UInt64 = 0
    }
    private let actions = Mutex(Actions())
    private let flag = Atomic(false)

    public init() {}

    /// Whether `cancel` was called. Takes no lock.
    public var isCancelled: Bool { flag.load(ordering: .sequentiallyConsistent) }

    /// Cancels and runs the pending actions. The caller must not hold a lock that an action takes.
    public func cancel() {
        guard !flag.exchange(true, ordering: .sequentiallyConsistent) else { return }
        actions.withLock { actions in
            for action in actions.pending.values { action() }
        }
    }

    /// Runs `body`. Calls `onCancel` once if this is cancelled meanwhile, or was before. After this returns, `onCancel`
    /// is neither running nor will be.
    public func during<R, E: Error>(
        _ onCancel: @escaping @Sendable () -> Void, _ body: () throws(E) -> R
    ) throws(E) -> R {
        let number = actions.withLock { actions in
            actions.count += 1
            actions.pending[actions.count] = onCancel
            // If the flag is set, `cancel` may have run the pending actions already; if not, it will find this one.
            if isCancelled, actions.pending.removeValue(forKey: actions.count) != nil { onCancel() }
            return actions.count
        }
        defer { actions.withLock { _ = $0.pending.removeValue(forKey: number) } }
        return try body()
    }
}
