import Glibc
package import LinuxIO
import Synchronization

/// A pool of a Ceph cluster, or a namespace in it, with a connection of its own.
///
/// Calls come from several threads at once. A request to a server that is down waits until it is up again, as one to a
/// disk would. The connection does not survive fork(2): connect in the process that uses it.
package final class ClusterPool: @unchecked Sendable {
    let cluster: Librados.Handle
    let pool: Librados.Handle
    private let writes = PendingWrites()
    private let gathered = GatheredWrites()
    var versions: ObjectVersions { writes.versions }
    let meter = RequestMeter()
    let watches = Mutex<[Watch]>([])

    private static let connectSeconds = "15"

    /// The answer of a full cluster to a write.
    package enum WhenFull: Int32 {
        /// It answers ENOSPC, instead of holding the request: LIBRADOS_OPERATION_FULL_TRY.
        case refuse = 64
        /// It writes as long as its disks have any room, so that deleting works: LIBRADOS_OPERATION_FULL_FORCE.
        case force = 128
    }

    /// Connects as the environment tells: CEPH_CONF, CEPH_ARGS, /etc/ceph/ceph.conf. Throws ELIBACC if librados is not
    /// installed.
    ///
    /// - Parameter space: the namespace; empty for the pool's own.
    package init(pool name: String, namespace space: String) throws(Errno) {
        guard Librados.isInstalled else { throw Errno(ELIBACC) }
        var made: Librados.Handle?
        try check(Librados.create(&made, nil))
        guard let cluster = made else { throw .inputOutput }
        var opened: Librados.Handle?
        do throws(Errno) {
            try check(Librados.readConfiguration(cluster, nil))
            try check(Librados.readEnvironment(cluster, nil))
            for (key, value) in [("client_mount_timeout", Self.connectSeconds), ("admin_socket", "")] {
                try check(Librados.set(cluster, key, value))
            }
            try check(Librados.connect(cluster))
            try check(Librados.openPool(cluster, name, &opened))
        } catch {
            Librados.shutDown(cluster)
            throw error
        }
        guard let opened else { throw .inputOutput }
        Librados.setNamespace(opened, space)
        // Locks are renewed there as well.
        Librados.answerWhenFull(opened)
        (self.cluster, pool) = (cluster, opened)
    }

    /// Requests of this connection so far.
    package var counts: ClusterCounts { meter.counts }

    /// How long the oldest request waits for its answer.
    package var waitingMilliseconds: Int64 { meter.waitingMilliseconds }

    deinit {
        endWatches()
        // Writes that fail now have no owner any more: a vault settles before it gives up its lock.
        try? settle()
        Librados.closePool(pool)
        Librados.shutDown(cluster)
    }

    // MARK: Reading

    /// Reads all parts at once, after the writes to these objects. Returns for each how many bytes there were; nil if
    /// there is no such object.
    package func read(_ parts: [Read]) throws(Errno) -> [Int?] {
        try settle(Set(parts.map(\.object)))
        var completions: [Librados.Handle] = []
        defer { for completion in completions { Librados.release(completion) } }
        var requests: [RequestMeter.Request] = []
        var failure: Errno?
        for part in parts {
            requests.append(meter.begin(.read, bytes: part.bytes.count))
            var made: Librados.Handle?
            guard Librados.makeCompletion(nil, nil, &made) == 0, let completion = made else {
                failure = Errno(ENOMEM)
                break
            }
            let status =
                part.bytes.baseAddress.map {
                    Librados.startRead(pool, part.object, completion, $0, part.bytes.count, part.offset)
                } ?? -EINVAL
            guard status == 0 else {
                Librados.release(completion)
                failure = Errno(-status)
                break
            }
            completions.append(completion)
        }
        // The buffers belong to the requests until each is answered.
        for completion in completions { _ = Librados.wait(completion) }
        requests = []
        if let failure { throw failure }
        var counts: [Int?] = []
        for completion in completions {
            let result = Librados.result(completion)
            if result < 0, result != -ENOENT { throw Errno(-result) }
            counts.append(result < 0 ? nil : Int(result))
        }
        return counts
    }

    /// Begins to read a part of an object, not after the writes to it. Nil if that fails.
    func startReading(_ object: String, _ range: Range<UInt64>) -> StartedRead? {
        StartedRead(pool, object, range, meter)
    }

    /// False only if no write to an object is on its way. Never waits.
    func mayHaveWrites(to object: String) -> Bool {
        gathered.mayHave(object) || writes.has(object)
    }

    /// Reads the beginning of an array from an object. Returns how many bytes there were; 0 if there is no such object.
    package func read(_ object: String, at offset: UInt64, into bytes: inout [UInt8]) throws(Errno) -> Int {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { buffer.deallocate() }
        let count = try read([Read(object, at: offset, into: buffer)])[0] ?? 0
        bytes.replaceSubrange(0..<count, with: buffer.prefix(count))
        return count
    }

    /// The size of an object in bytes, after the writes to it; nil if there is none.
    package func size(of object: String) throws(Errno) -> UInt64? {
        try settle([object])
        var (size, time) = (UInt64(0), time_t(0))
        let status = asking { Librados.status(pool, object, &size, &time) }
        if status == -ENOENT { return nil }
        try check(status)
        return size
    }

    /// As `size(of:)`. Throws ETIMEDOUT if there is no answer within so long.
    package func size(of object: String, within milliseconds: Int64) throws(Errno) -> UInt64? {
        var made: Librados.Handle?
        try check(Librados.makeCompletion(nil, nil, &made))
        guard let completion = made else { throw Errno(ENOMEM) }
        defer { Librados.release(completion) }
        let size = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
        let time = UnsafeMutablePointer<time_t>.allocate(capacity: 1)
        let deadline = MonotonicClock.milliseconds + milliseconds
        let begun = asking { () -> Int32 in
            let begun = Librados.startStatus(pool, object, completion, size, time)
            while begun == 0, Librados.isComplete(completion) == 0, MonotonicClock.milliseconds < deadline {
                usleep(Self.answerPauseMicroseconds)
            }
            return begun
        }
        // They belong to a request that was not answered, until the process ends.
        if begun == 0, Librados.isComplete(completion) == 0 { throw Errno(ETIMEDOUT) }
        defer {
            size.deallocate()
            time.deallocate()
        }
        let status = begun == 0 ? Librados.result(completion) : begun
        if status == -ENOENT { return nil }
        try check(status)
        return size.pointee
    }

    private static let answerPauseMicroseconds: UInt32 = 500

    /// The names of all objects in the namespace that begin so.
    package func objects(prefix: String) throws(Errno) -> [String] {
        var made: Librados.Handle?
        try check(asking { Librados.beginList(pool, &made) })
        guard let list = made else { throw .inputOutput }
        defer { Librados.endList(list) }
        var names: [String] = []
        while true {
            var entry: UnsafePointer<CChar>?
            let status = Librados.nextInList(list, &entry, nil, nil)
            if status == -ENOENT { return names }
            try check(status)
            guard let entry else { continue }
            let name = String(cString: entry)
            if name.hasPrefix(prefix) { names.append(name) }
        }
    }

    /// Bytes of the cluster: in all, and available. Nil if it does not tell.
    package func room() throws(Errno) -> (total: UInt64, available: UInt64)? {
        var found = [UInt64](repeating: 0, count: 4)
        try check(Librados.statistics(cluster, &found))
        let (total, available) = (found[0] << 10, found[2] << 10)
        return total == 0 ? nil : (total, available)
    }

    // MARK: Writing

    /// A step of a write. All steps of one write happen, or none.
    package enum Step {
        case write(UnsafeRawBufferPointer, at: UInt64)
        case writeArray([UInt8], at: UInt64)
        case zeros(Range<UInt64>)
        case truncation(UInt64)
        case removal
        /// Fails if the object exists.
        case creation
        /// Takes the object's lock, or renews the own one. Fails with EBUSY if another client holds it.
        case lock(ClusterLock)
        /// Sets an attribute; an empty value removes it.
        case attribute(String, [UInt8])

        /// As this, with bytes of its own.
        var kept: Step {
            if case .write(let bytes, let offset) = self { return .writeArray(Array(bytes), at: offset) }
            return self
        }

        var byteCount: Int {
            switch self {
            case .write(let bytes, _): bytes.count
            case .writeArray(let bytes, _): bytes.count
            default: 0
            }
        }
    }

    /// Begins a write, and returns once the bytes are copied. Waits while too many bytes are on their way. A write of
    /// bytes that fails later is repeated by the next call, also on a full cluster; that throws the error if it fails
    /// again. Only once the lock is lost it is given up, and `settle` throws that.
    package func start(_ steps: [Step], on object: String, _ whenFull: WhenFull = .force) throws(Errno) {
        if whenFull == .refuse, writes.isFull {
            try apply(steps, on: object, .refuse)
            writes.isFull = false
            return
        }
        try gathered.flush([object], start: startBatch)
        try startNow(steps, on: object, whenFull)
    }

    /// As `start`, also on a full cluster. A small write waits for others to the same object, until the next `settle`
    /// at most.
    ///
    /// - Parameter lock: required for the write, in the same operation.
    package func gather(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, on object: String, lock: ClusterLock?
    ) throws(Errno) {
        guard bytes.count <= GatheredWrites.pieceBytesMax else {
            return try start((lock.map { [.lock($0)] } ?? []) + [.write(bytes, at: offset)], on: object)
        }
        try gathered.add(Array(bytes), at: offset, of: object, lock, start: startBatch)
    }

    private func startBatch(_ object: String, _ batch: GatheredWrites.Batch) throws(Errno) {
        try startNow(batch.steps, on: object, .force)
    }

    private func startNow(_ steps: [Step], on object: String, _ whenFull: WhenFull) throws(Errno) {
        try repeatFailed()
        let write = PendingWrites.Write(writes, object, steps)
        writes.begin(write)
        write.request = meter.begin(.write, bytes: write.bytes)
        write.turn = versions.begin(object)
        // Owned by its callback.
        let owner = Unmanaged.passRetained(write)
        var made: Librados.Handle?
        let status = begin(
            write.steps, on: object, write.turn, whenFull, owner.toOpaque(),
            {
                completion, owner in
                guard let completion, let owner else { return }
                let write = Unmanaged<PendingWrites.Write>.fromOpaque(owner).takeRetainedValue()
                write.owner.end(write, write.owner.versions.end(write.turn, completion))
            }, &made)
        if let made { Librados.release(made) }
        guard status != 0 else { return }
        owner.release()
        writes.end(write, versions.giveUp(write.turn, 0))
        throw Errno(-status)
    }

    /// Repeats the writes that failed, in order, before anything else is written or read.
    private func repeatFailed() throws(Errno) {
        while let write = writes.firstFailed {
            try check(self.write(write.steps, on: write.object, .force))
            writes.settle(write)
        }
    }

    /// Does all steps at once, and returns the answer: negative for an error.
    private func write(_ steps: [Step], on object: String, _ whenFull: WhenFull) -> Int32 {
        let turn = versions.begin(object)
        var made: Librados.Handle?
        let begun = begin(steps, on: object, turn, whenFull, nil, nil, &made)
        defer { if let made { Librados.release(made) } }
        guard begun == 0, let completion = made else { return versions.giveUp(turn, begun) }
        let request = meter.begin(.write, bytes: steps.reduce(0) { $0 + $1.byteCount })
        return withExtendedLifetime(request) {
            _ = Librados.wait(completion)
            return versions.end(turn, completion)
        }
    }

    /// - Parameters:
    ///   - turn: of `versions`.
    ///   - made: the request's completion, which belongs to the caller. Nil if there is none.
    func begin(
        _ steps: [Step], on object: String, _ turn: ObjectVersions.Turn?, _ whenFull: WhenFull,
        _ argument: Librados.Handle?,
        _ callback: Librados.Callback?, _ made: inout Librados.Handle?
    ) -> Int32 {
        guard let write = Librados.makeWrite() else { return -ENOMEM }
        defer { Librados.releaseWrite(write) }
        if let version = turn?.expected { Librados.addVersionCheck(write, version) }
        for step in steps { add(step, to: write) }
        let status = Librados.makeCompletion(argument, callback, &made)
        guard status == 0, let completion = made else { return status == 0 ? -ENOMEM : status }
        return Librados.startWrite(write, pool, completion, object, nil, whenFull.rawValue)
    }

    private func add(_ step: Step, to write: Librados.Handle) {
        switch step {
        case .write(let bytes, let offset):
            if let start = bytes.baseAddress { Librados.addWrite(write, start, bytes.count, offset) }
        case .writeArray(let bytes, let offset):
            bytes.withUnsafeBytes { add(.write($0, at: offset), to: write) }
        case .zeros(let range): Librados.addZeros(write, range.lowerBound, UInt64(range.count))
        case .truncation(let size): Librados.addTruncation(write, size)
        case .removal: Librados.addRemoval(write)
        case .creation: Librados.addCreation(write, 1, nil)
        case .attribute(let name, let value):
            if value.isEmpty { return Librados.addAttributeRemoval(write, name) }
            let bytes = value.map { CChar(bitPattern: $0) }
            Librados.addAttribute(write, name, bytes, bytes.count)
        case .lock(let lock):
            lock.request.withUnsafeBytes {
                guard let start = $0.baseAddress else { return }
                Librados.addCall(write, "lock", "lock", start, $0.count, nil)
            }
        }
    }

    /// Does all steps at once, after the writes to the object, and returns when they are durable.
    package func apply(
        _ steps: [Step], on object: String, _ whenFull: WhenFull = .force
    ) throws(Errno) {
        try settle([object])
        try check(write(steps, on: object, whenFull))
    }

    /// Waits until the writes to these objects are answered; of all if nil. Then all that were begun are durable.
    package func settle(_ objects: Set<String>? = nil) throws(Errno) {
        try gathered.flush(objects, start: startBatch)
        writes.drain(objects)
        try repeatFailed()
        if objects == nil, let failure = writes.takeFailure() { throw failure }
    }

    /// Runs a call that waits for the answer to a request.
    private func asking(_ call: () -> Int32) -> Int32 {
        withExtendedLifetime(meter.begin(.other)) { call() }
    }

    // MARK: Locks and fences

    /// Renews a lock without waiting for the answer, of which `ended` is told on a thread of librados. A write to a
    /// followed object that is on its way renews it.
    package func startRenewing(
        _ lock: ClusterLock, of object: String, _ ended: @escaping @Sendable (Errno?) -> Void
    ) {
        let (isFree, turn) = versions.beginAtOnce(object)
        guard isFree else { return ended(nil) }
        let renewal = Renewal(meter.begin(.other), versions, turn, ended)
        let owner = Unmanaged.passRetained(renewal)
        var made: Librados.Handle?
        let status = begin(
            [.lock(lock)], on: object, turn, .force, owner.toOpaque(),
            { completion, owner in
                guard let completion, let owner else { return }
                let renewal = Unmanaged<Renewal>.fromOpaque(owner).takeRetainedValue()
                renewal.end(completion)
            }, &made)
        if let made { Librados.release(made) }
        guard status != 0 else { return }
        owner.release()
        renewal.giveUp(status)
    }

    /// As `take`, of an object that only the lock's holder changes. From now on each write to it asserts that nobody
    /// else has changed it since the one before; one that finds otherwise fails with EBUSY. All have to take the lock
    /// as well.
    package func takeAndFollow(_ lock: ClusterLock, of object: String) throws(Errno) {
        versions.follow(object)
        do throws(Errno) { try apply([.lock(lock)], on: object) } catch {
            versions.unfollow(object)
            throw error
        }
    }

    /// Takes a lock, or renews the own one. Throws EBUSY if another client holds it.
    package func take(_ lock: ClusterLock, of object: String) throws(Errno) {
        var duration = timeval(tv_sec: Int(lock.seconds), tv_usec: 0)
        let mayRenew: UInt8 = 1
        try check(
            asking { Librados.lock(pool, object, ClusterLock.name, lock.cookie, "", &duration, mayRenew) })
    }

    /// Gives a lock up, if this client holds it.
    package func giveUp(_ lock: ClusterLock, of object: String) {
        _ = asking { Librados.unlock(pool, object, ClusterLock.name, lock.cookie) }
        versions.unfollow(object)
    }

    /// A number that grows with each change of an object, taking or renewing its lock included.
    package func version(of object: String) throws(Errno) -> UInt64 {
        guard try size(of: object) != nil else { throw .noEntry }
        return Librados.lastVersion(pool)
    }

    /// The value of an attribute; empty if there is none.
    package func attribute(_ name: String, of object: String) throws(Errno) -> [UInt8] {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = asking { Librados.attribute(pool, object, name, &bytes, bytes.count) }
        if count == -ENODATA { return [] }
        try check(count)
        return bytes.prefix(Int(count)).map { UInt8(bitPattern: $0) }
    }

    /// The addresses by which servers know this client.
    package func addresses() throws(Errno) -> String {
        var made: UnsafeMutablePointer<CChar>?
        try check(Librados.addresses(cluster, &made))
        guard let made else { return "" }
        defer { Librados.free(made) }
        return String(cString: made)
    }

    /// Shuts a client out for so long. It holds at each object once one request to it was answered.
    package func fence(_ address: String, seconds: UInt32) throws(Errno) {
        var text = Array(address.utf8CString)
        let status = text.withUnsafeMutableBufferPointer { text -> Int32 in
            guard let start = text.baseAddress else { return -EINVAL }
            return Librados.block(cluster, start, seconds)
        }
        try check(status)
        try check(Librados.waitForMap(cluster))
    }
}

/// A lock on an object that ends by itself unless it is renewed: Ceph's object class `lock`.
package struct ClusterLock: Sendable {
    static let name = "obscura"
    package let cookie: String
    package let seconds: Int64

    package init(cookie: String, seconds: Int64) { (self.cookie, self.seconds) = (cookie, seconds) }

    /// The argument of `lock`: cls_lock_lock_op of src/cls/lock/cls_lock_ops.h, version 1.
    var request: [UInt8] {
        func text(_ text: String) -> [UInt8] { number(UInt32(text.utf8.count)) + Array(text.utf8) }
        func number(_ value: UInt32) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
        }
        let exclusive: [UInt8] = [1]
        let mayRenew: [UInt8] = [1]
        let tag = text("")
        let description = text("")
        let duration = number(UInt32(seconds)) + number(0)
        let body = text(Self.name) + exclusive + text(cookie) + tag + description + duration + mayRenew
        return [1, 1] + number(UInt32(body.count)) + body
    }
}

/// A renewal on its way; owned by its callback.
private final class Renewal: Sendable {
    private let request: RequestMeter.Request
    private let versions: ObjectVersions
    private let turn: ObjectVersions.Turn?
    private let ended: @Sendable (Errno?) -> Void

    init(
        _ request: RequestMeter.Request, _ versions: ObjectVersions, _ turn: ObjectVersions.Turn?,
        _ ended: @escaping @Sendable (Errno?) -> Void
    ) {
        (self.request, self.versions, self.turn, self.ended) = (request, versions, turn, ended)
    }

    func end(_ completion: Librados.Handle) { tell(versions.end(turn, completion)) }

    /// Ends a renewal that could not be begun.
    func giveUp(_ error: Int32) { tell(versions.giveUp(turn, error)) }

    private func tell(_ result: Int32) { ended(result < 0 ? Errno(-result) : nil) }
}

/// Throws the error of a negative result.
private func check(_ result: Int32) throws(Errno) {
    if result < 0 { throw Errno(-result) }
}
