internal import Synchronization

/// Tells whoever works or waits that nobody wants the result any more. Never taken back.
public final class Cancellation: Sendable {
    private struct Actions {
        var pending: [UInt64: @Sendable () -> Void] = [:]
        var count: UInt64 = 0
    }
    private let actions = Mutex(Actions())
    private let flag = Atomic(false)

    /// Nothing is called off yet.
    public init() {}

    /// Whether `cancel` was called. Takes no lock.
    public var isCancelled: Bool { flag.load(ordering: .sequentiallyConsistent) }

    /// Calls off. From any thread that holds no lock which the actions take.
    public func cancel() {
        guard !flag.exchange(true, ordering: .sequentiallyConsistent) else { return }
        actions.withLock { actions in
            for action in actions.pending.values { action() }
        }
    }

    /// Runs `body`; `onCancel` is called once when it is called off meanwhile, or was before. When this has
    /// returned, `onCancel` is neither running nor will be.
    public func during<R, E: Error>(
        _ onCancel: @escaping @Sendable () -> Void, _ body: () throws(E) -> R
    ) throws(E) -> R {
        let number = actions.withLock { actions in
            actions.count += 1
            actions.pending[actions.count] = onCancel
            // Who set the flag has been here already, or will find the action.
            if isCancelled, actions.pending.removeValue(forKey: actions.count) != nil { onCancel() }
            return actions.count
        }
        defer { actions.withLock { _ = $0.pending.removeValue(forKey: number) } }
        return try body()
    }
}
