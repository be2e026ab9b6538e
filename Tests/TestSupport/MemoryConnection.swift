package import ClusterIO
import Glibc
package import LinuxIO

/// A client of a pool in memory.
///
/// Unchecked Sendable: everything mutable is used under the pool's lock.
final class MemoryConnection: PoolConnection, @unchecked Sendable {
    /// A write that is not answered.
    private struct Pending {
        let object: String
        /// Of the operation that is not durable; nil if there is none.
        var number: Int?
        let answer: PoolAnswer
        let request: MemoryRequest
        let ended: Answered?
    }

    let address = "memory/\(UInt64.random(in: 0..<UInt64.max))"
    // Keeps the pool.
    private let disk: MemoryDisk
    private let pool: MemoryPool
    private let fault: @Sendable () -> MemoryPool.Fault?
    private var pending: [Pending] = []
    /// Whether it is shut out, or its process gone.
    private(set) var isOver = false
    private var lastSeen: UInt64 = 0

    /// With more writes on their way, some are answered.
    private static let pendingMax = 24

    init(_ disk: MemoryDisk, _ pool: MemoryPool, _ fault: @escaping @Sendable () -> MemoryPool.Fault?) {
        (self.disk, self.pool, self.fault) = (disk, pool, fault)
    }

    /// Ends the connection: requests that have begun take effect, and nobody is told their answers.
    func end() {
        pool.locked { isOver = true }
        answer(until: { $0.isEmpty }, .init(-ESHUTDOWN))
    }

    /// Under the pool's lock: every request fails from now on.
    func fence() { isOver = true }

    /// The fault of the request that begins.
    private func nextFault() -> MemoryPool.Fault? {
        let fault = fault()
        if case .fenced = fault {
            answer(until: { $0.isEmpty })
            pool.locked { isOver = true }
        }
        return fault
    }

    /// Begins a request. Throws the error that the test has injected for it.
    private func request<R>(_ object: String?, _ body: () throws(Errno) -> R) throws(Errno) -> R {
        let fault = nextFault()
        if case .error(let error) = fault { throw error }
        let result = try pool.locked { () throws(Errno) in
            if isOver { throw Errno(ESHUTDOWN) }
            pool.willRequest(object)
            return try body()
        }
        if case .done(let error) = fault { throw error }
        return result
    }

    // MARK: Writes

    func startWrite(
        _ steps: [ClusterPool.Step], on object: String, version: UInt64?, _ whenFull: ClusterPool.WhenFull,
        _ ended: Answered?
    ) throws(Errno) -> any PoolRequest {
        let request = MemoryRequest(self)
        // Renewals come by the clock: they have no part in what a seed chooses.
        if let ended, steps.count == 1, case .lock(let lock) = steps[0],
            let answer = pool.locked({ renewed(lock, object, version) })
        {
            request.answer = answer
            ended(answer)
            return request
        }
        let fault = nextFault()
        pool.locked {
            var (number, answer): (Int?, PoolAnswer) = (nil, PoolAnswer(0))
            do throws(Errno) {
                if isOver { throw Errno(ESHUTDOWN) }
                if case .error(let error) = fault { throw error }
                pool.willRequest(object)
                number = try pool.begin(
                    steps, on: object, version: version, isForced: whenFull == .force, self)
                answer.version = pool.version(of: object)
                if case .done(let error) = fault { answer.result = -error.rawValue }
            } catch { answer.result = -error.rawValue }
            pending.append(
                Pending(object: object, number: number, answer: answer, request: request, ended: ended))
        }
        answerSome()
        return request
    }

    /// The answer to a renewal; nil if the lock is another one's, or nobody's.
    private func renewed(_ lock: ClusterLock, _ object: String, _ version: UInt64?) -> PoolAnswer? {
        let now = pool.version(of: object)
        guard !isOver, pool.has(lock, of: object, self), version ?? now == now else { return nil }
        try? pool.take(lock, of: object, self)
        return PoolAnswer(0, version: pool.version(of: object))
    }

    private func answerSome() {
        let left = pool.locked { () -> Int in
            let count = pending.count
            return count > Self.pendingMax || pool.chance(3) == 0 ? pool.chance(count + 1) : count
        }
        answer(until: { $0.count <= left })
    }

    /// Answers writes in an order that the seed chooses; writes to one object in the order in which they began.
    private func answer(until isEnough: ([Pending]) -> Bool, _ instead: PoolAnswer? = nil) {
        while true {
            let next = pool.locked { () -> Pending? in
                guard !pending.isEmpty, !isEnough(pending) else { return nil }
                let object = pending[pool.chance(pending.count)].object
                guard let index = pending.firstIndex(where: { $0.object == object }) else { return nil }
                let next = pending.remove(at: index)
                if let number = next.number { pool.answered(number) }
                next.request.answer = instead ?? next.answer
                return next
            }
            guard let next else { return }
            next.ended?(instead ?? next.answer)
        }
    }

    func willWait(for objects: Set<String>?) {
        if objects == nil { pool.willSync() }
        answer(until: { pending in
            objects.map { objects in !pending.contains { objects.contains($0.object) } } ?? pending.isEmpty
        })
    }

    fileprivate func wait(for request: MemoryRequest) -> PoolAnswer {
        answer(until: { _ in request.answer != nil })
        return pool.locked { request.answer } ?? PoolAnswer(-ESHUTDOWN)
    }

    // MARK: Reads

    func startRead(
        _ object: String, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer, _ ended: Answered?
    ) throws(Errno) -> any PoolRequest {
        let request = MemoryRequest(self)
        var answer = PoolAnswer(0)
        do throws(Errno) {
            let note = pool.locked { pool.noteRead }
            if let error = note?(object, offset..<offset + UInt64(bytes.count)) { throw error }
            answer.result = try self.request(object) { () throws(Errno) in
                // It comes after the writes to the object, which are durable then.
                for index in pending.indices where pending[index].object == object {
                    if let number = pending[index].number { pool.answered(number) }
                    pending[index].number = nil
                }
                return Int32(try pool.file(object).read(at: offset, into: bytes))
            }
        } catch { answer.result = -error.rawValue }
        request.answer = answer
        ended?(answer)
        return request
    }

    func size(of object: String) throws(Errno) -> UInt64 {
        pool.noteSizeWait()
        return try answeredSize(of: object)
    }

    private func answeredSize(of object: String) throws(Errno) -> UInt64 {
        try request(object) { () throws(Errno) in
            lastSeen = pool.version(of: object)
            return try pool.file(object).size
        }
    }

    func sizes(of objects: [String]) throws(Errno) -> [UInt64?] {
        pool.noteSizeWait()
        var sizes: [UInt64?] = []
        for object in objects {
            do throws(Errno) { sizes.append(try answeredSize(of: object)) } catch {
                guard error == .noEntry else { throw error }
                sizes.append(nil)
            }
        }
        return sizes
    }

    func size(of object: String, within milliseconds: Int64) throws(Errno) -> UInt64 {
        try size(of: object)
    }

    var lastVersion: UInt64 { pool.locked { lastSeen } }

    func attribute(_ name: String, of object: String) throws(Errno) -> [UInt8] {
        try request(object) { () throws(Errno) in
            guard let value = try pool.file(object).attributes[name] else { throw Errno(ENODATA) }
            return value
        }
    }

    // MARK: Locks

    func take(_ lock: ClusterLock, of object: String) throws(Errno) {
        try request(object) { () throws(Errno) in
            guard pool.inode(object) != nil else { throw .noEntry }
            try pool.take(lock, of: object, self)
        }
    }

    func giveUp(_ lock: ClusterLock, of object: String) {
        try? request(object) { pool.giveUp(lock, of: object, self) }
    }

    func addresses() throws(Errno) -> String { address }

    func fence(_ address: String, seconds: UInt32) throws(Errno) {
        try request(nil) { pool.fence(address) }
    }

    func namesInAllGroups(prefix: String) throws(Errno) -> [String]? {
        try request(nil) { pool.namesInAllGroups(prefix) }
    }

    // MARK: The pool

    func objects() throws(Errno) -> [String] { try request(nil) { pool.objects } }

    func room() throws(Errno) -> (total: UInt64, available: UInt64) { try request(nil) { pool.room } }

    // MARK: Messages: nobody asks

    func watch(_ object: String, isGranted: @escaping @Sendable () -> Bool) throws(Errno) {}
    func mendWatches() {}
    func noteSecond() {}
    func endWatches() {}
    func ask(_ object: String) -> Bool { false }
}

/// A request to a pool in memory.
private final class MemoryRequest: PoolRequest, @unchecked Sendable {
    private let connection: MemoryConnection
    /// Under the pool's lock.
    fileprivate var answer: PoolAnswer?

    init(_ connection: MemoryConnection) { self.connection = connection }

    func wait() -> PoolAnswer { connection.wait(for: self) }
    func cancel() {}
}

extension MemoryDisk: ClusterCalls {
    package func connect(pool: String, namespace: String) throws(Errno) -> any PoolConnection {
        self.pool.connect { nil }
    }
}

extension FaultyCalls: ClusterCalls {
    package func connect(pool: String, namespace: String) throws(Errno) -> any PoolConnection {
        guard let disk = real as? MemoryDisk else { throw Errno(ELIBACC) }
        return disk.pool.connect { [weak self] in self?.faultOfRequest() }
    }
}
