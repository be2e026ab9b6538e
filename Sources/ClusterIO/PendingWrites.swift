import Glibc
import LinuxIO

/// The writes of a pool that have not been answered, and those that failed.
///
/// The callbacks of requests share it, and not the pool, which must not end in one of them.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`.
final class PendingWrites: @unchecked Sendable {
    /// A write with bytes of its own.
    final class Write {
        let owner: PendingWrites
        let object: String
        let steps: [ClusterPool.Step]
        let bytes: Int
        /// Until it is answered. Set before it is begun.
        var request: RequestMeter.Request?
        /// Set before it is begun; nil if its object is not followed.
        var turn: ObjectVersions.Turn?

        init(_ owner: PendingWrites, _ object: String, _ steps: [ClusterPool.Step]) {
            (self.owner, self.object, self.steps) = (owner, object, steps.map(\.kept))
            bytes = self.steps.reduce(0) { $0 + $1.byteCount }
        }
    }

    let versions = ObjectVersions()
    private let lock = Lock()
    private let hasEnded = Condition()
    private var bytes = 0
    /// How many there are, by object.
    private var counts: [String: Int] = [:]
    /// The error of a write that must not be repeated, since the last `takeFailure`.
    private var failure: Errno?
    /// Writes of bytes that failed, in order. They were accepted, so they are repeated.
    private var failed: [Write] = []
    private var isFullNow = false

    /// Most bytes that wait for an answer. Librados has copies of its own, and blocks its caller at 100 MiB.
    private static let bytesMax = 32 << 20

    /// Whether the cluster had no room for the newest write that takes some.
    var isFull: Bool {
        get { lock.withLock { isFullNow } }
        set { lock.withLock { isFullNow = newValue } }
    }

    /// Whether a write to an object is on its way, or failed and will be repeated.
    func has(_ object: String) -> Bool {
        lock.withLock { counts[object] != nil || failed.contains { $0.object == object } }
    }

    var firstFailed: Write? { lock.withLock { failed.first } }

    /// Called once a failed write has been repeated.
    func settle(_ write: Write) { lock.withLock { if failed.first === write { failed.removeFirst() } } }

    /// Counts a write. Waits while too many bytes are on their way.
    func begin(_ write: Write) {
        lock.withLock {
            while bytes > 0, bytes + write.bytes > Self.bytesMax { hasEnded.wait(lock) }
            bytes += write.bytes
            counts[write.object, default: 0] += 1
        }
    }

    /// - Parameter result: the answer: negative for an error.
    func end(_ write: Write, _ result: Int32) {
        lock.withLock {
            write.request = nil
            bytes -= write.bytes
            let left = (counts[write.object] ?? 1) - 1
            counts[write.object] = left > 0 ? left : nil
            if result < 0 { fail(write, Errno(-result)) }
            hasEnded.signalAll()
        }
    }

    /// Once the lock is lost, no write may be repeated. One that only gives room back need not be.
    private func fail(_ write: Write, _ error: Errno) {
        if error.meansNoRoom { isFullNow = true }
        if error.rawValue == EBUSY || error.rawValue == ESHUTDOWN {
            failure = failure ?? error
        } else if write.bytes > 0 {
            failed.append(write)
        }
    }

    /// Waits until no write to these objects is on its way; to any if nil.
    func drain(_ objects: Set<String>?) {
        lock.withLock {
            while objects.map({ $0.contains { counts[$0] != nil } }) ?? !counts.isEmpty {
                hasEnded.wait(lock)
            }
        }
    }

    func takeFailure() -> Errno? {
        lock.withLock {
            defer { failure = nil }
            return failure
        }
    }
}
