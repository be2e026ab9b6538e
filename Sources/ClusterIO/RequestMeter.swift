import LinuxIO

/// Requests to a cluster since this process connected.
package struct ClusterCounts: Sendable {
    package var reads: UInt64 = 0
    package var bytesRead: UInt64 = 0
    package var writes: UInt64 = 0
    package var bytesWritten: UInt64 = 0
    /// Locks, sizes, attributes, lists and messages.
    package var others: UInt64 = 0
}

/// Counts requests, and measures how long the oldest one waits for its answer.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`.
final class RequestMeter: @unchecked Sendable {
    enum Kind { case read, write, other }

    /// A request on its way: until this object is gone.
    final class Request: Sendable {
        private let meter: RequestMeter
        private let number: UInt64

        init(_ meter: RequestMeter, _ number: UInt64) { (self.meter, self.number) = (meter, number) }

        deinit { meter.end(number) }
    }

    private let lock = Lock()
    private var counted = ClusterCounts()
    private var made: UInt64 = 0
    /// The beginnings of those on their way, in milliseconds.
    private var begun: [UInt64: Int64] = [:]

    var counts: ClusterCounts { lock.withLock { counted } }

    /// How long the oldest request has waited; 0 if none is on its way.
    var waitingMilliseconds: Int64 {
        let now = MonotonicClock.milliseconds
        return lock.withLock { begun.values.min().map { now - $0 } ?? 0 }
    }

    func begin(_ kind: Kind, bytes: Int = 0) -> Request {
        let now = MonotonicClock.milliseconds
        return lock.withLock {
            switch kind {
            case .read:
                counted.reads += 1
                counted.bytesRead += UInt64(bytes)
            case .write:
                counted.writes += 1
                counted.bytesWritten += UInt64(bytes)
            case .other: counted.others += 1
            }
            made += 1
            begun[made] = now
            return Request(self, made)
        }
    }

    private func end(_ number: UInt64) { lock.withLock { begun[number] = nil } }
}
