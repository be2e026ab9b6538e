import Glibc
package import LinuxIO
import Synchronization

/// A connection to a Ceph cluster, by librados.
///
/// A request to a server that is down waits until it is up again, as one to a disk would. The connection does not
/// survive fork(2): connect in the process that uses it.
package final class RadosConnection: PoolConnection, @unchecked Sendable {
    private let handles: RadosHandles
    var cluster: Librados.Handle { handles.cluster }
    var pool: Librados.Handle { handles.pool }
    let watches = Mutex<[Watch]>([])
    private let memory: KeptMemory
    private let place: RadosHandles.Place
    /// Whether anything was written or locked, or is still on its way.
    private let isUsed = Atomic<Bool>(false)

    /// Connects as the environment tells: CEPH_CONF, CEPH_ARGS, /etc/ceph/ceph.conf. Throws ELIBACC if librados is not
    /// installed.
    ///
    /// - Parameter space: the namespace; empty for the pool's own.
    package init(pool name: String, namespace space: String) throws(Errno) {
        // Before librados begins threads.
        memory = .shared
        place = RadosHandles.Place(pool: name, namespace: space)
        handles = try RestingConnections.shared.take(place)
    }

    deinit {
        endWatches()
        RestingConnections.shared.giveBack(
            handles, of: place, isUnused: !isUsed.load(ordering: .sequentiallyConsistent))
    }

    private func noteUse() { isUsed.store(true, ordering: .sequentiallyConsistent) }

    // MARK: Requests that run beside others

    package func startWrite(
        _ steps: [ClusterPool.Step], on object: String, version: UInt64?, _ whenFull: ClusterPool.WhenFull,
        _ ended: Answered?
    ) throws(Errno) -> any PoolRequest {
        noteUse()
        memory.noteRequest(bytes: steps.reduce(0) { $0 + $1.byteCount })
        guard let write = Librados.makeWrite() else { throw Errno(ENOMEM) }
        defer { Librados.releaseWrite(write) }
        if let version { Librados.addVersionCheck(write, version) }
        for step in steps { add(step, to: write) }
        return try RadosRequest.begin(pool, ended) {
            Librados.startWrite(write, pool, $0, object, nil, whenFull.rawValue)
        }
    }

    private func add(_ step: ClusterPool.Step, to write: Librados.Handle) {
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

    package func startRead(
        _ object: String, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer, _ ended: Answered?
    ) throws(Errno) -> any PoolRequest {
        guard let start = bytes.baseAddress else { throw Errno(EINVAL) }
        memory.noteRequest(bytes: bytes.count)
        return try RadosRequest.begin(pool, ended) {
            Librados.startRead(pool, object, $0, start, bytes.count, offset)
        }
    }

    package func willWait(for objects: Set<String>?) {}

    package func noteSecond() { memory.noteSecond() }

    // MARK: An object

    package func size(of object: String) throws(Errno) -> UInt64 {
        var (size, time) = (UInt64(0), time_t(0))
        try check(Librados.status(pool, object, &size, &time))
        return size
    }

    package func sizes(of objects: [String]) throws(Errno) -> [UInt64?] {
        let count = objects.count
        let sizes = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
        let times = UnsafeMutablePointer<time_t>.allocate(capacity: count)
        var begun: [Librados.Handle] = []
        defer {
            sizes.deallocate()
            times.deallocate()
            for completion in begun { Librados.release(completion) }
        }
        var failure: Int32 = 0
        for (index, object) in objects.enumerated() {
            var made: Librados.Handle?
            failure = Librados.makeCompletion(nil, nil, &made)
            guard failure == 0, let completion = made else { break }
            failure = Librados.startStatus(pool, object, completion, sizes + index, times + index)
            if failure != 0 {
                Librados.release(completion)
                break
            }
            begun.append(completion)
        }
        // The memory belongs to the requests until each is answered.
        let results = begun.map { completion in
            _ = Librados.wait(completion)
            return Librados.result(completion)
        }
        try check(failure)
        guard results.count == count else { throw Errno(ENOMEM) }
        var found: [UInt64?] = []
        for (index, result) in results.enumerated() {
            if result != -ENOENT { try check(result) }
            found.append(result == -ENOENT ? nil : sizes[index])
        }
        return found
    }

    package func size(of object: String, within milliseconds: Int64) throws(Errno) -> UInt64 {
        var made: Librados.Handle?
        try check(Librados.makeCompletion(nil, nil, &made))
        guard let completion = made else { throw Errno(ENOMEM) }
        defer { Librados.release(completion) }
        let size = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
        let time = UnsafeMutablePointer<time_t>.allocate(capacity: 1)
        let deadline = MonotonicClock.milliseconds + milliseconds
        let begun = Librados.startStatus(pool, object, completion, size, time)
        while begun == 0, Librados.isComplete(completion) == 0, MonotonicClock.milliseconds < deadline {
            usleep(Self.answerPauseMicroseconds)
        }
        // They belong to a request that was not answered, until the process ends.
        if begun == 0, Librados.isComplete(completion) == 0 {
            noteUse()
            throw Errno(ETIMEDOUT)
        }
        defer {
            size.deallocate()
            time.deallocate()
        }
        try check(begun == 0 ? Librados.result(completion) : begun)
        return size.pointee
    }

    private static let answerPauseMicroseconds: UInt32 = 500

    package var lastVersion: UInt64 { Librados.lastVersion(pool) }

    package func attribute(_ name: String, of object: String) throws(Errno) -> [UInt8] {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = Librados.attribute(pool, object, name, &bytes, bytes.count)
        try check(count)
        return bytes.prefix(Int(count)).map { UInt8(bitPattern: $0) }
    }

    package func take(_ lock: ClusterLock, of object: String) throws(Errno) {
        noteUse()
        var duration = timeval(tv_sec: Int(lock.seconds), tv_usec: 0)
        let mayRenew: UInt8 = 1
        try check(Librados.lock(pool, object, ClusterLock.name, lock.cookie, "", &duration, mayRenew))
    }

    package func giveUp(_ lock: ClusterLock, of object: String) {
        _ = Librados.unlock(pool, object, ClusterLock.name, lock.cookie)
    }

    // MARK: The pool and its cluster

    package func objects() throws(Errno) -> [String] {
        var made: Librados.Handle?
        try check(Librados.beginList(pool, &made))
        guard let list = made else { throw .inputOutput }
        defer { Librados.endList(list) }
        var names: [String] = []
        while true {
            var entry: UnsafePointer<CChar>?
            let status = Librados.nextInList(list, &entry, nil, nil)
            if status == -ENOENT { return names }
            try check(status)
            if let entry { names.append(String(cString: entry)) }
        }
    }

    package func room() throws(Errno) -> (total: UInt64, available: UInt64) {
        var found = [UInt64](repeating: 0, count: 4)
        try check(Librados.statistics(cluster, &found))
        return (found[0] << 10, found[2] << 10)
    }

    package func addresses() throws(Errno) -> String {
        var made: UnsafeMutablePointer<CChar>?
        try check(Librados.addresses(cluster, &made))
        guard let made else { return "" }
        defer { Librados.free(made) }
        return String(cString: made)
    }

    package func fence(_ address: String, seconds: UInt32) throws(Errno) {
        var text = Array(address.utf8CString)
        let status = text.withUnsafeMutableBufferPointer { text -> Int32 in
            guard let start = text.baseAddress else { return -EINVAL }
            return Librados.block(cluster, start, seconds)
        }
        try check(status)
        try check(Librados.waitForMap(cluster))
    }

    package func namesInAllGroups(prefix: String) throws(Errno) -> [String]? {
        guard let text = answer(to: #"{"prefix": "osd pool ls", "detail": "detail"}"#),
            let count = PlacementGroups.count(ofPool: Librados.poolNumber(pool), place.pool, in: text)
        else { return nil }
        // Requests from now on have a map that is no older than the monitor's answer.
        try check(Librados.waitForMap(cluster))
        return PlacementGroups.names(prefix, namespace: place.namespace, groups: count)
    }

    /// A monitor's answer to a command; nil if it refuses that.
    private func answer(to command: String) -> String? {
        var made: UnsafeMutablePointer<CChar>?
        var count = 0
        let status = command.withCString { text in
            var commands: [UnsafePointer<CChar>?] = [text]
            return Librados.command(cluster, &commands, 1, nil, 0, &made, &count, nil, nil)
        }
        guard let made else { return nil }
        defer { Librados.free(made) }
        guard status >= 0 else { return nil }
        return String(decoding: UnsafeRawBufferPointer(start: made, count: count), as: UTF8.self)
    }
}

/// A request to a cluster. It does not keep the connection, which must not end in a callback.
private final class RadosRequest: PoolRequest, @unchecked Sendable {
    private let pool: Librados.Handle
    private let completion: Librados.Handle

    /// The function that is told the answer. The completion's callback owns this object.
    private final class Callback: Sendable {
        let ended: PoolConnection.Answered
        init(_ ended: @escaping PoolConnection.Answered) { self.ended = ended }
    }

    private init(_ pool: Librados.Handle, _ completion: Librados.Handle) {
        (self.pool, self.completion) = (pool, completion)
    }

    deinit { Librados.release(completion) }

    /// - Parameter start: begins it, and returns a negative number if it fails.
    static func begin(
        _ pool: Librados.Handle, _ ended: PoolConnection.Answered?, _ start: (Librados.Handle) -> Int32
    ) throws(Errno) -> RadosRequest {
        let owner = ended.map { Unmanaged.passRetained(Callback($0)) }
        var made: Librados.Handle?
        let status = Librados.makeCompletion(
            owner?.toOpaque(),
            owner == nil
                ? nil
                : { completion, owner in
                    guard let completion, let owner else { return }
                    let callback = Unmanaged<Callback>.fromOpaque(owner).takeRetainedValue()
                    callback.ended(RadosRequest.answer(completion))
                }, &made)
        guard status == 0, let completion = made else {
            owner?.release()
            throw Errno(status == 0 ? ENOMEM : -status)
        }
        let request = RadosRequest(pool, completion)
        let begun = start(completion)
        if begun != 0 {
            owner?.release()
            throw Errno(-begun)
        }
        return request
    }

    private static func answer(_ completion: Librados.Handle) -> PoolAnswer {
        PoolAnswer(Librados.result(completion), version: Librados.version(completion))
    }

    func wait() -> PoolAnswer {
        _ = Librados.wait(completion)
        return Self.answer(completion)
    }

    func cancel() { _ = Librados.cancel(pool, completion) }
}

/// Throws the error of a negative result.
func check(_ result: Int32) throws(Errno) {
    if result < 0 { throw Errno(-result) }
}
