import Glibc
package import LinuxIO
import Synchronization

/// Messages between clients, by way of an object.
extension RadosConnection {
    /// A watch of an object: retained until `endWatches`, because callbacks have its address.
    ///
    /// Unchecked Sendable: `state` is used only under the lock of `watches`.
    final class Watch: @unchecked Sendable {
        enum State {
            /// The servers had it, when last heard of.
            case registered(UInt64)
            /// On its way to them again: the watch and the request.
            case registering(UInt64, Librados.Handle)
            case lost
        }

        let pool: Librados.Handle
        let object: String
        let isGranted: @Sendable () -> Bool
        var state = State.lost

        init(_ pool: Librados.Handle, _ object: String, _ isGranted: @escaping @Sendable () -> Bool) {
            (self.pool, self.object, self.isGranted) = (pool, object, isGranted)
        }

        var argument: Librados.Handle { Unmanaged.passUnretained(self).toOpaque() }
    }

    /// Ids of clients are in an answer too, but not these words.
    private static let consent = "obscura: granted"
    private static let askMilliseconds: UInt64 = 10_000
    /// Seconds without a sign of life after which the servers forget a watch.
    private static let watchSeconds: UInt32 = 30

    private static var answer: Librados.WatchCallback {
        { argument, message, cookie, _, _, _ in
            guard let argument else { return }
            let watch = Unmanaged<Watch>.fromOpaque(argument).takeUnretainedValue()
            let answer = watch.isGranted() ? RadosConnection.consent : ""
            _ = Librados.acknowledge(
                watch.pool, watch.object, message, cookie, answer, Int32(answer.utf8.count))
        }
    }

    package func watch(_ object: String, isGranted: @escaping @Sendable () -> Bool) throws(Errno) {
        let watch = Watch(pool, object, isGranted)
        var cookie: UInt64 = 0
        let status = Librados.watch(
            pool, object, &cookie, Self.answer, nil, Self.watchSeconds, watch.argument)
        if status < 0 { throw Errno(-status) }
        watch.state = .registered(cookie)
        watches.withLock { $0.append(watch) }
    }

    package func mendWatches() {
        watches.withLock { watches in for watch in watches { mend(watch) } }
    }

    private func mend(_ watch: Watch) {
        switch watch.state {
        case .registered(let cookie):
            if Librados.checkWatch(pool, cookie) >= 0 { return }
            if let request = request() {
                // Before the next registration: requests to an object stay in order.
                _ = Librados.startEndOfWatch(pool, cookie, request)
                Librados.release(request)
            }
            watch.state = .lost
            fallthrough
        case .lost:
            guard let request = request() else { return }
            var cookie: UInt64 = 0
            let status = Librados.startWatch(
                pool, watch.object, request, &cookie, Self.answer, nil, Self.watchSeconds, watch.argument)
            guard status >= 0 else { return Librados.release(request) }
            watch.state = .registering(cookie, request)
        case .registering(let cookie, let request):
            if Librados.isComplete(request) == 0 { return }
            watch.state = Librados.result(request) < 0 ? .lost : .registered(cookie)
            Librados.release(request)
        }
    }

    private func request() -> Librados.Handle? {
        var made: Librados.Handle?
        return Librados.makeCompletion(nil, nil, &made) == 0 ? made : nil
    }

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

    package func endWatches() {
        let ended = watches.withLock { watches in
            defer { watches = [] }
            return watches
        }
        guard !ended.isEmpty else { return }
        for watch in ended {
            if case .registering(let cookie, let request) = watch.state {
                _ = Librados.wait(request)
                watch.state = Librados.result(request) < 0 ? .lost : .registered(cookie)
                Librados.release(request)
            }
            if case .registered(let cookie) = watch.state { _ = Librados.endWatch(pool, cookie) }
        }
        _ = Librados.flushWatches(cluster)
        withExtendedLifetime(ended) {}
    }
}
