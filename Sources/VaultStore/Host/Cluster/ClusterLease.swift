import ClusterIO
import Glibc
import LinuxIO
import VaultCrypto

/// The lock of a vault on a cluster, renewed until it is given up or lost.
///
/// A lock of Ceph's ends by itself, and keeps nobody from writing. So every write to a root takes or renews it, in the
/// same operation, and asserts that the object has the version that this client gave it last; and a client that takes
/// the lock of another one that did not give it up first shuts that one out. So a lock that ended while a server was
/// away is taken again, unless another client had it meanwhile.
final class ClusterLease: @unchecked Sendable {
    private let pool: ClusterPool
    private let address: ClusterAddress
    let clusterLock: ClusterLock
    private let lock = Lock()
    private let wake = Condition()
    /// Objects of which this client has the lock.
    private var objects: Set<String> = []
    private let renewals = ClusterRenewals()
    private var isLost: Bool { renewals.isLost }
    private var isEnding = false
    private var isRenewing = false

    /// A holder that is alive renews so often.
    private static let renewalMilliseconds: Int64 = 4000
    private static let stepMilliseconds: Int64 = 1000
    private static let threadName = "cluster lock"
    private static let seconds: Int64 = 20
    /// Longer than any program is stopped and continued.
    private static let fenceSeconds: UInt32 = 30 * 86_400
    /// The attribute of the header with the addresses of the client that has the lock.
    private static let holder = "obscura.holder"
    private static let requestsAtOnce = 64
    /// A lock that nobody renews has ended then.
    private static let endMilliseconds = (seconds + 2) * 1000
    private static let handoverMilliseconds: Int64 = 10_000
    /// Nobody is told that a lock is free, so it is tried again and again.
    private static let pollMicroseconds: UInt32 = 100_000

    init(_ pool: ClusterPool, _ address: ClusterAddress) {
        (self.pool, self.address) = (pool, address)
        clusterLock = ClusterLock(cookie: String(randomNumber(), radix: 16), seconds: Self.seconds)
    }

    // MARK: The vault

    /// Locks the vault. Throws EBUSY if another client holds it: one that is alive is found within two renewals; the
    /// lock of one that is gone is waited for, and then it is shut out.
    func begin() throws(Errno) {
        // The holder that is shut out would be this client.
        if lock.withLock({ !isLost && objects.contains(address.header) }) { return }
        try take(address.header, within: Self.endMilliseconds, unlessRenewed: true)
        try shutOutFormer()
    }

    /// As `begin`, without waiting. Returns false if another client holds the lock, alive or not.
    func beginAtOnce() throws(Errno) -> Bool {
        do throws(Errno) { try take(address.header, within: 0) } catch {
            guard error.rawValue == EBUSY else { throw error }
            return false
        }
        try shutOutFormer()
        return true
    }

    /// As `begin`, after asking the holder to hand the vault over.
    func beginAfterAsking() throws(Errno) {
        guard pool.ask(address.header) else { return try begin() }
        try take(address.header, within: Self.handoverMilliseconds)
        try shutOutFormer()
    }

    private func shutOutFormer() throws(Errno) {
        let former = try pool.attribute(Self.holder, of: address.header)
        if !former.isEmpty { try shutOut(String(decoding: former, as: UTF8.self)) }
        try setAttribute(Self.holder, to: Array(pool.addresses().utf8))
    }

    /// Takes an object's lock, trying for so long. Throws EBUSY if another client keeps it.
    ///
    /// - Parameters:
    ///   - unlessRenewed: throws that as soon as the other client renews it. Only before this client renews locks of
    ///     its own: their versions would be taken for that.
    ///   - follows: see `ClusterPool.takeAndFollow`.
    private func take(
        _ object: String, within milliseconds: Int64, unlessRenewed: Bool = false, follows: Bool = false
    ) throws(Errno) {
        let deadline = MonotonicClock.milliseconds + milliseconds
        var version: UInt64?
        while true {
            do throws(Errno) {
                if follows {
                    try pool.takeAndFollow(clusterLock, of: object)
                } else {
                    try pool.take(clusterLock, of: object)
                }
                return keep(object)
            } catch {
                guard error.rawValue == EBUSY, MonotonicClock.milliseconds < deadline else { throw error }
            }
            if unlessRenewed {
                let seen = try pool.version(of: object)
                if let version, version != seen { throw Errno(EBUSY) }
                version = seen
            }
            usleep(Self.pollMicroseconds)
        }
    }

    /// Keeps all requests of a former holder from having any effect, those on their way included.
    private func shutOut(_ former: String) throws(Errno) {
        for client in former.split(separator: ",") {
            try pool.fence(String(client), seconds: Self.fenceSeconds)
        }
        // A fence holds in a placement group once the group's server has answered somebody who knows of it.
        let names = try pool.namesInAllGroups(prefix: address.name + "/group-")
        let objects = if let names { names } else { try pool.objects(prefix: address.name + "/") }
        let pool = pool
        for start in stride(from: 0, to: objects.count, by: Self.requestsAtOnce) {
            let some = objects[start..<min(objects.count, start + Self.requestsAtOnce)]
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: some.count, alignment: 1)
            defer { buffer.deallocate() }
            _ = try pool.read(
                some.enumerated().map { index, object in
                    ClusterPool.Read(
                        object, at: 0, into: UnsafeMutableRawBufferPointer(rebasing: buffer[index...index]))
                })
        }
    }

    private func keep(_ object: String) {
        let starts = lock.withLock { () -> Bool in
            objects.insert(object)
            defer { isRenewing = true }
            return !isRenewing
        }
        if starts {
            startThread { [self] in
                nameThread(Self.threadName)
                renewUntilEnd()
            }
        }
    }

    private func renewUntilEnd() {
        var deadline = MonotonicClock.milliseconds + Self.renewalMilliseconds
        var name = Self.threadName
        while !isOver(at: min(deadline, MonotonicClock.milliseconds + Self.stepMilliseconds)) {
            let shown = ClusterWait.threadName(milliseconds: pool.waitingMilliseconds) ?? Self.threadName
            if shown != name { nameThread(shown) }
            name = shown
            pool.mendWatches()
            pool.noteSecond()
            guard MonotonicClock.milliseconds >= deadline else { continue }
            deadline = MonotonicClock.milliseconds + Self.renewalMilliseconds
            renew()
        }
    }

    /// Waits until a time. Returns whether the lock is given up or lost.
    private func isOver(at end: Int64) -> Bool {
        lock.withLock {
            while !isEnding, MonotonicClock.milliseconds < end { wake.wait(lock, untilMilliseconds: end) }
            guard isEnding || isLost else { return false }
            isRenewing = false
            wake.signalAll()
            return true
        }
    }

    /// Renews all locks. One whose server is away must not hold up the others.
    private func renew() {
        let renewals = renewals
        for object in renewals.begin(lock.withLock { objects }) {
            pool.startRenewing(clusterLock, of: object) { renewals.end(object, $0) }
        }
    }

    // MARK: Writing

    /// Sets an attribute of the header; an empty value removes it. Throws EBUSY if another client has the vault: else a
    /// client that was stopped just before could take the place of its successor.
    func setAttribute(_ name: String, to value: [UInt8]) throws(Errno) {
        try pool.apply([.lock(clusterLock), .attribute(name, value)], on: address.header)
    }

    /// Called with each error of a request. Losing the lock, or being shut out, is final.
    func note(_ error: Errno) { renewals.note(error) }

    /// Makes every write fail as if the lock were lost. Nothing is locked.
    func forbid() { renewals.note(Errno(ESHUTDOWN)) }

    /// Throws ESHUTDOWN once the lock is lost.
    func requireHeld() throws(Errno) {
        if lock.withLock({ isLost }) { throw Errno(ESHUTDOWN) }
    }

    /// Takes the lock of an object that is written only with it, the first time.
    func requireLock(of object: String) throws(Errno) {
        try requireHeld()
        if lock.withLock({ objects.contains(object) }) { return }
        try take(object, within: Self.endMilliseconds, follows: true)
    }

    /// Gives everything up. The pool's writes have ended.
    func end() {
        let held = lock.withLock { () -> Set<String> in
            isEnding = true
            wake.signalAll()
            while isRenewing { wake.wait(lock) }
            defer { objects = [] }
            return isLost ? [] : objects
        }
        guard held.contains(address.header) else { return }
        // The next holder replaces it.
        try? setAttribute(Self.holder, to: [])
        for object in held { pool.giveUp(clusterLock, of: object) }
    }
}
