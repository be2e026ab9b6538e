import Glibc
package import LinuxIO
import Synchronization

/// A pool of a Ceph cluster, or a namespace in it, with a connection of its own: keeps requests in order, and repeats
/// writes that failed.
///
/// Calls come from several threads at once.
package final class ClusterPool: @unchecked Sendable {
    private let connection: any PoolConnection
    private let writes = PendingWrites()
    private let gathered = GatheredWrites()
    private var versions: ObjectVersions { writes.versions }
    private let meter = RequestMeter()
    let budget = ReadBudget()

    /// The answer of a full cluster to a write.
    package enum WhenFull: Int32 {
        /// It answers ENOSPC, instead of holding the request: LIBRADOS_OPERATION_FULL_TRY.
        case refuse = 64
        /// It writes as long as its disks have any room, so that deleting works: LIBRADOS_OPERATION_FULL_FORCE.
        case force = 128
    }

    package init(_ connection: any PoolConnection) { self.connection = connection }

    /// Requests of this connection so far.
    package var counts: ClusterCounts { meter.counts }

    /// How long the oldest request waits for its answer.
    package var waitingMilliseconds: Int64 { meter.waitingMilliseconds }

    deinit {
        connection.endWatches()
        // Writes that fail now have no owner any more: a vault settles before it gives up its lock.
        try? settle()
    }

    // MARK: Reading

    /// Reads all parts at once, after the writes to these objects. Returns for each how many bytes there were; nil if
    /// there is no such object. Waits while too many bytes are being read.
    package func read(_ parts: [Read]) throws(Errno) -> [Int?] {
        try settle(Set(parts.map(\.object)))
        let bytes = parts.reduce(0) { $0 + $1.bytes.count }
        budget.take(bytes)
        defer { budget.giveBack(bytes) }
        var begun: [any PoolRequest] = []
        var requests: [RequestMeter.Request] = []
        var failure: Errno?
        for part in parts {
            requests.append(meter.begin(.read, bytes: part.bytes.count))
            do throws(Errno) {
                begun.append(try connection.startRead(part.object, at: part.offset, into: part.bytes, nil))
            } catch {
                failure = error
                break
            }
        }
        // The buffers belong to the requests until each is answered.
        let results = begun.map { $0.wait().result }
        requests = []
        if let failure { throw failure }
        var counts: [Int?] = []
        for result in results {
            if result < 0, result != -ENOENT { throw Errno(-result) }
            counts.append(result < 0 ? nil : Int(result))
        }
        return counts
    }

    /// Begins to read a part of an object, not after the writes to it. Nil if that fails, or if too many bytes are
    /// being read.
    func startReading(_ object: String, _ range: Range<UInt64>) -> StartedRead? {
        StartedRead(connection, object, range, meter, budget)
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
        return try asking(orNilFor: ENOENT) { () throws(Errno) in try connection.size(of: object) }
    }

    /// As `size(of:)` of some objects, asked for at once.
    package func sizes(of objects: [String]) throws(Errno) -> [UInt64?] {
        try settle(Set(objects))
        let requests = objects.map { _ in meter.begin(.other) }
        defer { withExtendedLifetime(requests) {} }
        return try connection.sizes(of: objects)
    }

    /// As `size(of:)`. Throws ETIMEDOUT if there is no answer within so long.
    package func size(of object: String, within milliseconds: Int64) throws(Errno) -> UInt64? {
        try asking(orNilFor: ENOENT) { () throws(Errno) in
            try connection.size(of: object, within: milliseconds)
        }
    }

    /// The names of all objects in the namespace that begin so.
    package func objects(prefix: String) throws(Errno) -> [String] {
        try asking { () throws(Errno) in try connection.objects() }.filter { $0.hasPrefix(prefix) }
    }

    /// Bytes of the cluster: in all, and available. Nil if it does not tell.
    package func room() throws(Errno) -> (total: UInt64, available: UInt64)? {
        let room = try connection.room()
        return room.total == 0 ? nil : room
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

        /// The bytes of the object that it writes; nil for steps of other kinds.
        var range: Range<UInt64>? {
            switch self {
            case .write(let bytes, let offset): offset..<offset + UInt64(bytes.count)
            case .writeArray(let bytes, let offset): offset..<offset + UInt64(bytes.count)
            default: nil
            }
        }

        var byteCount: Int { range?.count ?? 0 }
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
        let write = PendingWrites.Write(object, steps)
        while writes.mustFollow(write) {
            connection.willWait(for: [object])
            writes.drain([object], upTo: writes.newest)
            try repeatFailed()
        }
        if writes.isFull(for: write) { connection.willWait(for: nil) }
        writes.begin(write)
        write.request = meter.begin(.write, bytes: write.bytes)
        do throws(Errno) {
            // Its callback shares these, and not the pool, which must not end in one.
            try begin(write.steps, on: object, turn(of: object), whenFull) { [writes] result in
                writes.end(write, result)
            }
        } catch {
            writes.end(write, 0)
            throw error
        }
    }

    /// Repeats the writes that failed, in order, before anything else is written or read.
    private func repeatFailed() throws(Errno) {
        while let write = writes.beginRepeating() {
            try writes.endRepeating(write, self.write(write.steps, on: write.object, .force))
        }
    }

    /// Does all steps at once, and returns the answer: negative for an error.
    private func write(_ steps: [Step], on object: String, _ whenFull: WhenFull) -> Int32 {
        let request = meter.begin(.write, bytes: steps.reduce(0) { $0 + $1.byteCount })
        return withExtendedLifetime(request) {
            do throws(Errno) {
                return try begin(steps, on: object, turn(of: object), whenFull).wait()
            } catch { return -error.rawValue }
        }
    }

    /// Waits until it is the turn of a write to an object; nil if that is not followed.
    private func turn(of object: String) -> ObjectVersions.Turn? {
        if !versions.isFree(object) { connection.willWait(for: [object]) }
        return versions.begin(object)
    }

    /// Begins a write that has its turn. If that fails, the turn is given up.
    ///
    /// - Parameter ended: called with the result, once, on any thread; not if this throws. Without it the caller waits.
    @discardableResult
    private func begin(
        _ steps: [Step], on object: String, _ turn: ObjectVersions.Turn?, _ whenFull: WhenFull,
        _ ended: (@Sendable (Int32) -> Void)? = nil
    ) throws(Errno) -> BegunWrite {
        var answered: PoolConnection.Answered?
        if let ended { answered = { [versions] in ended(versions.end(turn, $0)) } }
        do throws(Errno) {
            let request = try connection.startWrite(
                steps, on: object, version: turn?.expected, whenFull, answered)
            return BegunWrite(request: request, versions: versions, turn: turn)
        } catch {
            versions.giveUp(turn)
            throw error
        }
    }

    /// A write that has begun. A caller that gave it no callback waits for it.
    private struct BegunWrite {
        let request: any PoolRequest
        let versions: ObjectVersions
        let turn: ObjectVersions.Turn?

        func wait() -> Int32 { versions.end(turn, request.wait()) }
    }

    /// Does all steps of writes to different objects, and returns when all are durable or have failed. No other write
    /// to these objects is on its way. Throws the first error, except for one kind of it.
    package func applyAll(
        _ writes: [(object: String, steps: [Step])], _ whenFull: WhenFull = .force, except ignored: Errno
    ) throws(Errno) {
        var begun: [BegunWrite] = []
        var requests: [RequestMeter.Request] = []
        var failure: Errno?
        for write in writes {
            requests.append(meter.begin(.write, bytes: write.steps.reduce(0) { $0 + $1.byteCount }))
            do throws(Errno) {
                begun.append(try begin(write.steps, on: write.object, turn(of: write.object), whenFull))
            } catch {
                failure = error
                break
            }
        }
        for write in begun {
            let result = write.wait()
            guard result < 0, Errno(-result) != ignored else { continue }
            failure = failure ?? Errno(-result)
        }
        withExtendedLifetime(requests) {}
        if let failure { throw failure }
    }

    /// Removes objects, as far as they exist.
    package func remove(_ objects: [String]) throws(Errno) {
        for start in stride(from: 0, to: objects.count, by: Self.removedAtOnce) {
            let some = objects[start...].prefix(Self.removedAtOnce)
            try applyAll(some.map { ($0, [.removal]) }, except: .noEntry)
        }
    }

    private static let removedAtOnce = 64

    /// Does all steps at once, after the writes to the object, and returns when they are durable.
    package func apply(
        _ steps: [Step], on object: String, _ whenFull: WhenFull = .force
    ) throws(Errno) {
        try settle([object])
        try check(write(steps, on: object, whenFull))
    }

    /// Waits until the writes to these objects that have begun are answered; of all if nil. Then these are durable.
    /// Once the lock was lost, throws that error for all.
    package func settle(_ objects: Set<String>? = nil) throws(Errno) {
        try gathered.flush(objects, start: startBatch)
        connection.willWait(for: objects)
        writes.drain(objects, upTo: writes.newest)
        try repeatFailed()
        if objects == nil, let failure = writes.lossOfLock { throw failure }
    }

    /// Runs a call that waits for the answer to a request.
    private func asking<R>(_ call: () throws(Errno) -> R) throws(Errno) -> R {
        let request = meter.begin(.other)
        defer { withExtendedLifetime(request) {} }
        return try call()
    }

    /// As `asking`; nil for one kind of error.
    private func asking<R>(orNilFor number: Int32, _ call: () throws(Errno) -> R) throws(Errno) -> R? {
        do throws(Errno) { return try asking(call) } catch {
            if error.rawValue == number { return nil }
            throw error
        }
    }

    // MARK: Locks and fences

    /// Renews a lock without waiting for the answer, of which `ended` is told on a thread of librados. A write to a
    /// followed object that is on its way renews it.
    package func startRenewing(
        _ lock: ClusterLock, of object: String, _ ended: @escaping @Sendable (Errno?) -> Void
    ) {
        let (isFree, turn) = versions.beginAtOnce(object)
        guard isFree else { return ended(nil) }
        let request = meter.begin(.other)
        do throws(Errno) {
            try begin([.lock(lock)], on: object, turn, .force) { result in
                withExtendedLifetime(request) {}
                ended(result < 0 ? Errno(-result) : nil)
            }
        } catch { ended(error) }
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
        try asking { () throws(Errno) in try connection.take(lock, of: object) }
    }

    /// Gives a lock up, if this client holds it.
    package func giveUp(_ lock: ClusterLock, of object: String) {
        let request = meter.begin(.other)
        connection.giveUp(lock, of: object)
        withExtendedLifetime(request) {}
        versions.unfollow(object)
    }

    /// A number that grows with each change of an object, taking or renewing its lock included.
    package func version(of object: String) throws(Errno) -> UInt64 {
        guard try size(of: object) != nil else { throw .noEntry }
        return connection.lastVersion
    }

    /// The value of an attribute; empty if there is none.
    package func attribute(_ name: String, of object: String) throws(Errno) -> [UInt8] {
        try asking(orNilFor: ENODATA) { () throws(Errno) in
            try connection.attribute(name, of: object)
        } ?? []
    }

    /// The addresses by which servers know this client.
    package func addresses() throws(Errno) -> String { try connection.addresses() }

    /// See `PoolConnection.fence`.
    package func fence(_ address: String, seconds: UInt32) throws(Errno) {
        try connection.fence(address, seconds: seconds)
    }

    /// See `PoolConnection.namesInAllGroups`.
    package func namesInAllGroups(prefix: String) throws(Errno) -> [String]? {
        try asking { () throws(Errno) in try connection.namesInAllGroups(prefix: prefix) }
    }

    // MARK: Messages between clients, by way of an object

    /// See `PoolConnection.watch`.
    package func watch(_ object: String, isGranted: @escaping @Sendable () -> Bool) throws(Errno) {
        try connection.watch(object, isGranted: isGranted)
    }

    /// See `PoolConnection.mendWatches`.
    package func mendWatches() { connection.mendWatches() }

    /// See `PoolConnection.noteSecond`.
    package func noteSecond() { connection.noteSecond() }

    /// See `PoolConnection.endWatches`.
    package func endWatches() { connection.endWatches() }

    /// Asks the clients that watch an object. Returns whether one of these grants it.
    package func ask(_ object: String) -> Bool { connection.ask(object) }
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
