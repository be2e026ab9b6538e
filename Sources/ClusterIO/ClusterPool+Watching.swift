import Glibc
package import LinuxIO
import Synchronization

/// Messages between clients, by way of an object.
extension ClusterPool {
    /// A watch of an object: retained until `endWatches`, because callbacks have its address.
    ///
    /// Unchecked Sendable: `cookie` is written once, before others know the watch.
    final class Watch: @unchecked Sendable {
        let pool: Librados.Handle
        let object: String
        let isGranted: @Sendable () -> Bool
        var cookie: UInt64 = 0

        init(_ pool: Librados.Handle, _ object: String, _ isGranted: @escaping @Sendable () -> Bool) {
            (self.pool, self.object, self.isGranted) = (pool, object, isGranted)
        }
    }

    /// Ids of clients are in an answer too, but not these words.
    private static let consent = "obscura: granted"
    private static let askMilliseconds: UInt64 = 3000
    /// Seconds without a sign of life after which the servers forget a watch.
    private static let watchSeconds: UInt32 = 30

    /// Calls `isGranted` whenever another client asks by `ask`, and answers as it does. On threads of librados.
    package func watch(_ object: String, isGranted: @escaping @Sendable () -> Bool) throws(Errno) {
        let watch = Watch(pool, object, isGranted)
        let status = Librados.watch(
            pool, object, &watch.cookie,
            { argument, message, cookie, _, _, _ in
                guard let argument else { return }
                let watch = Unmanaged<Watch>.fromOpaque(argument).takeUnretainedValue()
                let answer = watch.isGranted() ? ClusterPool.consent : ""
                _ = Librados.acknowledge(
                    watch.pool, watch.object, message, cookie, answer, Int32(answer.utf8.count))
            }, nil, Self.watchSeconds, Unmanaged.passUnretained(watch).toOpaque())
        if status < 0 { throw Errno(-status) }
        watches.withLock { $0.append(watch) }
    }

    /// Asks those that watch an object. Returns whether one of them grants it.
    package func ask(_ object: String) -> Bool {
        var answer: UnsafeMutablePointer<CChar>?
        var count = 0
        _ = Librados.notify(pool, object, nil, 0, Self.askMilliseconds, &answer, &count)
        guard let answer else { return false }
        defer { Librados.free(answer) }
        let bytes = UnsafeRawBufferPointer(start: answer, count: count)
        let words = Array(Self.consent.utf8)
        return bytes.indices.dropLast(words.count - 1).contains { bytes[$0...].starts(with: words) }
    }

    func endWatches() {
        let ended = watches.withLock { watches in
            defer { watches = [] }
            return watches
        }
        guard !ended.isEmpty else { return }
        for watch in ended { _ = Librados.endWatch(pool, watch.cookie) }
        _ = Librados.flushWatches(cluster)
        withExtendedLifetime(ended) {}
    }
}
