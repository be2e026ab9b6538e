import Glibc
import LinuxIO

/// The writes of a pool that have not been answered, and those that failed.
///
/// The callbacks of requests share it, and not the pool, which must not end in one of them.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`.
final class PendingWrites: @unchecked Sendable {
    /// A write with bytes of its own.
    ///
    /// Unchecked Sendable: `request` is set before it is begun, and then used under the lock.
    final class Write: @unchecked Sendable {
        let object: String
        let steps: [ClusterPool.Step]
        let bytes: Int
        /// The bytes of the object that it replaces.
        let ranges: [Range<UInt64>]
        /// Until it is answered.
        var request: RequestMeter.Request?
        /// Of the writes in the order in which they were begun.
        fileprivate var number: UInt64 = 0

        init(_ object: String, _ steps: [ClusterPool.Step]) {
            (self.object, self.steps) = (object, steps.map(\.kept))
            bytes = self.steps.reduce(0) { $0 + $1.byteCount }
            ranges = self.steps.compactMap(\.range)
        }
    }

    let versions = ObjectVersions()
    private let lock = Lock()
    private let hasEnded = Condition()
    private var bytes = 0
    /// Writes so far.
    private var count: UInt64 = 0
    /// Writes that are on their way, by object.
    private var begun: [String: [Write]] = [:]
    /// The error of the first write that must not be repeated.
    private var failure: Errno?
    /// Writes of bytes that failed, in order. They were accepted, so they are repeated.
    private var failed: [Write] = []
    private var isFullNow = false
    private var isRepeating = false

    /// Most bytes that wait for an answer. Librados has copies of its own, and blocks its caller at 100 MiB.
    private static let bytesMax = 32 << 20

    /// Whether the cluster had no room for the newest write that takes some.
    var isFull: Bool {
        get { lock.withLock { isFullNow } }
        set { lock.withLock { isFullNow = newValue } }
    }

    /// Whether a write to an object is on its way, or failed and will be repeated.
    func has(_ object: String) -> Bool {
        lock.withLock { begun[object] != nil || failed.contains { $0.object == object } }
    }

    /// Whether a write replaces bytes of one that is on its way, or has just failed: that would be repeated, over the
    /// newer bytes.
    func mustFollow(_ write: Write) -> Bool {
        lock.withLock {
            ((begun[write.object] ?? []) + failed.filter { $0.object == write.object }).contains { earlier in
                earlier.ranges.contains { range in write.ranges.contains { $0.overlaps(range) } }
            }
        }
    }

    // MARK: Writes that failed

    /// The first write that failed, which the caller repeats; `endRepeating` follows. Nil if there is none. Waits while
    /// another thread repeats one: a write that is repeated twice could come after newer bytes.
    func beginRepeating() -> Write? {
        lock.withLock {
            while isRepeating { hasEnded.wait(lock) }
            isRepeating = !failed.isEmpty
            return failed.first
        }
    }

    /// Throws if the write has failed again. Once the lock is lost all are given up, and `lossOfLock` tells: so that
    /// reads go on.
    func endRepeating(_ write: Write, _ result: Int32) throws(Errno) {
        let error = result < 0 ? Errno(-result) : nil
        lock.withLock {
            isRepeating = false
            if error == nil { failed.removeAll { $0 === write } }
            if let error, error.meansLockLost {
                failed = []
                failure = failure ?? error
            }
            hasEnded.signalAll()
        }
        if let error, !error.meansLockLost { throw error }
    }

    // MARK: Writes on their way

    /// Whether `begin` waits for other writes.
    func isFull(for write: Write) -> Bool { lock.withLock { mustWait(write) } }

    /// Under the lock.
    private func mustWait(_ write: Write) -> Bool { bytes > 0 && bytes + write.bytes > Self.bytesMax }

    /// Counts a write. Waits while too many bytes are on their way.
    func begin(_ write: Write) {
        lock.withLock {
            while mustWait(write) { hasEnded.wait(lock) }
            bytes += write.bytes
            count += 1
            write.number = count
            begun[write.object, default: []].append(write)
        }
    }

    /// - Parameter result: the answer: negative for an error.
    func end(_ write: Write, _ result: Int32) {
        lock.withLock {
            write.request = nil
            bytes -= write.bytes
            begun[write.object]?.removeAll { $0 === write }
            if begun[write.object]?.isEmpty == true { begun[write.object] = nil }
            if result < 0 { fail(write, Errno(-result)) }
            hasEnded.signalAll()
        }
    }

    /// Once the lock is lost, no write may be repeated. One that only gives room back need not be.
    private func fail(_ write: Write, _ error: Errno) {
        if error.meansNoRoom { isFullNow = true }
        if error.meansLockLost {
            failure = failure ?? error
        } else if write.bytes > 0 {
            failed.append(write)
        }
    }

    /// The number of the newest write, for `drain`.
    var newest: UInt64 { lock.withLock { count } }

    /// Waits until no write to these objects is on its way; to any if nil.
    ///
    /// - Parameter last: later writes are not waited for. Other threads may begin some all the time.
    func drain(_ objects: Set<String>?, upTo last: UInt64) {
        lock.withLock {
            while isOnItsWay(objects, upTo: last) { hasEnded.wait(lock) }
        }
    }

    /// Under the lock.
    private func isOnItsWay(_ objects: Set<String>?, upTo last: UInt64) -> Bool {
        // The oldest write to an object is the first one.
        func isDue(_ writes: [Write]?) -> Bool { writes?.first.map { $0.number <= last } ?? false }
        return objects.map { $0.contains { isDue(begun[$0]) } } ?? begun.values.contains { isDue($0) }
    }

    /// The error with which the lock was lost, for good: each of several threads that sync must learn of it.
    var lossOfLock: Errno? { lock.withLock { failure } }
}

extension Errno {
    /// Whether another client has the lock, or has shut this one out.
    fileprivate var meansLockLost: Bool { rawValue == EBUSY || rawValue == ESHUTDOWN }
}
