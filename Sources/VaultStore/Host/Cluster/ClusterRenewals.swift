import Glibc
import LinuxIO

/// Renewals on their way, and whether the lock is lost. Without a reference to the lease or its connection: answers
/// come on threads of librados, which would wait for themselves if they ended the connection.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`.
final class ClusterRenewals: @unchecked Sendable {
    private let lock = Lock()
    private var pending: Set<String> = []
    private var isLostNow = false

    var isLost: Bool { lock.withLock { isLostNow } }

    /// Returns those of these objects whose last renewal is answered, and counts them as begun.
    func begin(_ objects: Set<String>) -> Set<String> {
        lock.withLock {
            defer { pending.formUnion(objects) }
            return objects.subtracting(pending)
        }
    }

    func end(_ object: String, _ error: Errno?) {
        lock.withLock { _ = pending.remove(object) }
        if let error { note(error) }
    }

    /// Losing the lock, or being shut out, is final.
    func note(_ error: Errno) {
        guard error.rawValue == EBUSY || error.rawValue == ESHUTDOWN else { return }
        lock.withLock { isLostNow = true }
    }
}
