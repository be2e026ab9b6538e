internal import Glibc
internal import ReceiveProtocol

/// The connections of the server, each by its descriptor.
///
/// A connection without a valid cookie or password is a stranger's. It is closed when room is needed, and in any case
/// after a time limit, so strangers cannot keep a device out.
struct Connections {
    private struct Entry {
        /// Seconds.
        var since: Int
        /// Nil for a stranger.
        var owner: [UInt8]?
    }

    private let limits: ReceiveLimits
    private var entries: [Int32: Entry] = [:]

    init(_ limits: ReceiveLimits) { self.limits = limits }

    /// Records a connection, after making room for it. Returns false if all connections are devices'.
    mutating func enter(_ descriptor: Int32, at now: Int) -> Bool {
        if entries.count >= limits.connections {
            let strangers = entries.filter { $0.value.owner == nil }
            guard let oldest = strangers.min(by: { $0.value.since < $1.value.since }) else { return false }
            end(oldest.key)
        }
        entries[descriptor] = Entry(since: now)
        return true
    }

    /// Marks a connection as a device's, unless that device has its share of connections already.
    mutating func trust(_ descriptor: Int32, _ owner: [UInt8]) {
        guard entries[descriptor]?.owner == nil else { return }
        let owned = entries.values.count { $0.owner == owner }
        if owned < limits.connections / 2 { entries[descriptor]?.owner = owner }
    }

    mutating func forget(_ descriptor: Int32) { entries[descriptor] = nil }

    /// Closes strangers' connections past their time limit.
    mutating func sweep(at now: Int) {
        for (descriptor, entry) in entries
        where entry.owner == nil && now - entry.since > limits.strangerSeconds {
            end(descriptor)
        }
    }

    /// libmicrohttpd then finds the connection at its end, and closes it.
    private mutating func end(_ descriptor: Int32) {
        shutdown(descriptor, Int32(SHUT_RDWR))
        entries[descriptor] = nil
    }
}
