internal import CFuse3
internal import Glibc
internal import LinuxIO

/// Lets programs end that are killed while the vault's host does not answer. Only mounts of such hosts have one.
///
/// The kernel lets a killed program end only when the request that it waits for is answered, if a worker has read that.
/// So the watch answers it with EINTR, on a thread of its own, and *abandons* it: the worker goes on serving it. The
/// kernel takes only one answer to each request, so it refuses the late one, and `Request` takes back what that handed
/// out. Requests that the kernel expects to come after an abandoned one are held back here:
///
/// - RELEASE, while any request is abandoned: it may use the same handle.
/// - FORGET, while a request is abandoned that changes the tree: it may remove the inode's last name.
/// - Each request that changes the tree, while another one is abandoned that does: else a write that a killed program
///   has left behind could replace bytes that another program wrote later.
///
/// An abandoned request that was held back itself is not served any more, except a FLUSH.
///
/// Unchecked Sendable: `lock` guards every variable but `thread`, which `start` and `stop` set.
final class RequestWatch: @unchecked Sendable {
    /// A worker, and the request that it serves. Under the watch's lock.
    final class Place {
        fileprivate var request: RequestHeader?
        fileprivate var since: Int64 = 0
        /// The request's number among those that were abandoned; 0 if it is not.
        fileprivate var number: UInt64 = 0
        fileprivate var isHeldBack = false
    }

    enum Order {
        case now
        /// After the abandoned requests with numbers up to this one: see `awaitTurn`.
        case after(UInt64)
        /// Not now: `serveKept` will serve it.
        case kept
    }

    /// A request that was abandoned, and that its worker has served.
    struct Abandoned {
        let request: RequestHeader
        fileprivate let number: UInt64
    }

    private struct Kept {
        let request: RequestHeader
        var bytes: [UInt8]
        /// Of the newest abandoned request when it came.
        let number: UInt64
    }

    private let descriptor: Int32
    private let lock = Lock()
    /// Signalled when an abandoned request or a kept one is done.
    private let progress = Condition()
    private let wake = Condition()
    private var places: [Place] = []
    /// Requests that were abandoned so far.
    private var count: UInt64 = 0
    /// Abandoned requests that their workers still serve, by number: whether each changes the tree.
    private var abandoned: [UInt64: Bool] = [:]
    /// In the order in which they came.
    private var kept: [Kept] = []
    private var isServingKept = false
    private var isAsleep = false
    private var isEnding = false
    private var thread: WorkerThread?
    #if DEBUG
        private var held: Set<UInt32> = []
    #endif

    /// A request that takes less is let be, whatever becomes of its caller.
    private static let patienceMilliseconds: Int64 = 250

    /// - Parameter descriptor: of the connection.
    init(descriptor: Int32) { self.descriptor = descriptor }

    /// - Parameter noteDetained: is told the number of requests that take long, again and again while there are any.
    func start(_ noteDetained: @escaping @Sendable (Int) -> Void) throws(Errno) {
        thread = try WorkerThread { self.run(noteDetained) }
    }

    func stop() {
        lock.withLock {
            isEnding = true
            wake.signalAll()
        }
        thread?.join()
        thread = nil
    }

    // MARK: Workers

    func enter() -> Place {
        let place = Place()
        lock.withLock { places.append(place) }
        return place
    }

    func leave(_ place: Place) { lock.withLock { places.removeAll { $0 === place } } }

    /// Notes a request that was just read. Called with the turn to read, so that requests come in the kernel's order.
    func begin(_ buffer: fuse_buf, by place: Place) -> Order {
        guard let request = RequestHeader(buffer) else { return .now }
        let now = MonotonicClock.milliseconds
        return lock.withLock {
            if request.isForget && hasUnfinishedChange(upTo: count) || request.isRelease && !abandoned.isEmpty
            {
                let bytes = Array(UnsafeRawBufferPointer(start: buffer.mem, count: buffer.size))
                kept.append(Kept(request: request, bytes: bytes, number: count))
                return .kept
            }
            (place.request, place.since) = (request, now)
            if isAsleep { wake.signal() }
            return request.changes && hasUnfinishedChange(upTo: count) ? .after(count) : .now
        }
    }

    /// Waits for requests that were abandoned before this one came. Returns whether to serve it.
    func awaitTurn(after number: UInt64, by place: Place) -> Bool {
        lock.withLock {
            place.isHeldBack = true
            while hasUnfinishedChange(upTo: number) { progress.wait(lock) }
            place.isHeldBack = false
            return place.number == 0 || place.request?.isFlush == true
        }
    }

    /// Notes that a request is served. Returns it if it was abandoned: `finish` follows.
    func end(_ place: Place) -> Abandoned? {
        lock.withLock {
            defer { (place.request, place.number) = (nil, 0) }
            guard place.number > 0, let request = place.request else { return nil }
            return Abandoned(request: request, number: place.number)
        }
    }

    /// Lets requests go on that waited for an abandoned one.
    func finish(_ request: Abandoned) {
        lock.withLock {
            abandoned[request.number] = nil
            progress.signalAll()
        }
    }

    /// Serves kept requests that need not wait any longer. Call after `finish`.
    func serveKept(by place: Place, _ serve: (inout fuse_buf) -> Void) {
        lock.lock()
        defer { lock.unlock() }
        // The worker that is about it looks again after each.
        if isServingKept { return }
        isServingKept = true
        while let index = kept.firstIndex(where: isDue) {
            var bytes = kept[index].bytes
            (place.request, place.since) = (kept[index].request, MonotonicClock.milliseconds)
            lock.unlock()
            bytes.withUnsafeMutableBytes { bytes in
                var buffer = fuse_buf()
                (buffer.mem, buffer.size) = (bytes.baseAddress, bytes.count)
                serve(&buffer)
            }
            lock.lock()
            place.request = nil
            // Meanwhile others were only added behind it.
            kept.remove(at: index)
            progress.signalAll()
        }
        isServingKept = false
    }

    /// Under the lock.
    private func isDue(_ kept: Kept) -> Bool {
        !abandoned.contains { $0.key <= kept.number && ($0.value || kept.request.isRelease) }
    }

    /// Whether an abandoned request that changes the tree is being served still, or a FORGET waits for one. Under the
    /// lock.
    private func hasUnfinishedChange(upTo number: UInt64) -> Bool {
        if abandoned.isEmpty && kept.isEmpty { return false }
        return abandoned.contains { $0.key <= number && $0.value }
            || kept.contains { $0.number <= number && $0.request.isForget }
    }

    // MARK: The watch's thread

    private func run(_ noteDetained: (Int) -> Void) {
        lock.lock()
        defer { lock.unlock() }
        while !isEnding {
            if places.allSatisfy({ $0.request == nil }) {
                isAsleep = true
                wake.wait(lock)
                isAsleep = false
                continue
            }
            wake.wait(lock, untilMilliseconds: MonotonicClock.milliseconds + Self.patienceMilliseconds)
            let limit = MonotonicClock.milliseconds - Self.patienceMilliseconds
            let detained = places.filter { $0.request != nil && $0.since <= limit }
            if detained.isEmpty || isEnding { continue }
            let waiting = detained.compactMap { place in
                place.number == 0 ? place.request.map { (place: place, request: $0) } : nil
            }
            lock.unlock()
            noteDetained(detained.count)
            let unwanted = waiting.filter { $0.request.hasCaller && isThreadEnding($0.request.thread) }
            lock.lock()
            for (place, request) in unwanted where place.request?.unique == request.unique {
                abandon(request, of: place)
            }
        }
    }

    /// Answers a request in the place of its worker. Under the lock.
    private func abandon(_ request: RequestHeader, of place: Place) {
        // Counted first: with the answer, requests may come that must wait for it.
        count += 1
        place.number = count
        abandoned[count] = request.changes
        // `struct fuse_out_header`: length, error, and the request's number.
        var answer: (bytes: UInt32, error: Int32, unique: UInt64) = (16, -EINTR, request.unique)
        if write(descriptor, &answer, MemoryLayout.size(ofValue: answer)) < 0 {
            // The worker was faster.
            place.number = 0
            abandoned[count] = nil
        }
    }

    #if DEBUG
        /// For tests: requests that are abandoned now, and requests that are kept.
        var unfinished: (abandoned: Int, kept: Int) { lock.withLock { (abandoned.count, kept.count) } }

        /// For tests: threads whose requests take long, or are held back.
        func threads(heldBack: Bool = false) -> Set<Int32> {
            let limit = MonotonicClock.milliseconds - Self.patienceMilliseconds
            return lock.withLock {
                let found = places.filter { heldBack ? $0.isHeldBack : $0.since <= limit }
                return Set(found.compactMap { $0.request?.thread })
            }
        }

        /// For tests: from now on no request with one of these operations goes on.
        func hold(_ operations: Set<UInt32>) {
            lock.withLock {
                held = operations
                progress.signalAll()
            }
        }

        func waitIfHeld(_ buffer: fuse_buf) {
            guard let operation = RequestHeader(buffer)?.operation else { return }
            lock.withLock { while held.contains(operation) { progress.wait(lock) } }
        }
    #endif
}
