import ClusterIO
import Glibc
import LinuxIO
import VaultCrypto

/// The lock of a vault on a cluster, renewed until it is given up or lost.
///
/// A lock of Ceph's ends by itself, and keeps nobody from writing. So every write to a root requires it, in the same
/// operation; and a client that takes the lock of another one that did not give it up first shuts that one out.
final class ClusterLease: @unchecked Sendable {
    private let pool: ClusterPool
    private let address: ClusterAddress
    let clusterLock: ClusterLock
    private let lock = Lock()
    private let wake = Condition()
    /// Objects of which this client has the lock.
    private var objects: Set<String> = []
    private var isLost = false
    private var isEnding = false
    private var isRenewing = false

    /// A holder that is alive renews so often.
    private static let renewalMilliseconds: Int64 = 4000
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
        try take(address.header, within: Self.endMilliseconds, unlessRenewed: true)
        try shutOutFormer()
    }

    /// As `begin`, after asking the holder to hand the vault over. Throws EBUSY if it does not.
    func beginAfterAsking() throws(Errno) {
        guard pool.ask(address.header) else { throw Errno(EBUSY) }
        try take(address.header, within: Self.handoverMilliseconds)
        try shutOutFormer()
    }

    private func shutOutFormer() throws(Errno) {
        let former = try pool.attribute(Self.holder, of: address.header)
        if !former.isEmpty { try shutOut(String(decoding: former, as: UTF8.self)) }
        try pool.setAttribute(Self.holder, of: address.header, to: Array(pool.addresses().utf8))
    }

    /// Takes an object's lock, trying for so long. Throws EBUSY if another client keeps it.
    ///
    /// - Parameter unlessRenewed: throws that as soon as the other client renews it. Only before this client renews
    ///   locks of its own: their versions would be taken for that.
    private func take(
        _ object: String, within milliseconds: Int64, unlessRenewed: Bool = false
    ) throws(Errno) {
        let deadline = MonotonicClock.milliseconds + milliseconds
        var version: UInt64?
        while true {
            do throws(Errno) {
                try pool.take(clusterLock, of: object)
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
        // A fence holds at a server that knows of it; each answers for the objects that it has.
        let objects = try pool.objects(prefix: address.name + "/")
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
                nameThread("cluster lock")
                renewUntilEnd()
            }
        }
    }

    private func renewUntilEnd() {
        while true {
            let deadline = MonotonicClock.milliseconds + Self.renewalMilliseconds
            let held = lock.withLock { () -> Set<String>? in
                while !isEnding, MonotonicClock.milliseconds < deadline {
                    wake.wait(lock, untilMilliseconds: deadline)
                }
                if isEnding || isLost {
                    isRenewing = false
                    wake.signalAll()
                    return nil
                }
                return objects
            }
            guard let held else { return }
            for object in held {
                do throws(Errno) { try pool.take(clusterLock, of: object) } catch { note(error) }
            }
        }
    }

    // MARK: Writing

    /// Called with each error of a request. Losing the lock, or being shut out, is final.
    func note(_ error: Errno) {
        guard error.rawValue == EBUSY || error.rawValue == ESHUTDOWN else { return }
        lock.withLock { isLost = true }
    }

    /// Throws ESHUTDOWN once the lock is lost.
    func requireHeld() throws(Errno) {
        if lock.withLock({ isLost }) { throw Errno(ESHUTDOWN) }
    }

    /// Takes the lock of an object that is written only with it, the first time.
    func requireLock(of object: String) throws(Errno) {
        try requireHeld()
        if lock.withLock({ objects.contains(object) }) { return }
        try take(object, within: Self.endMilliseconds)
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
        try? pool.setAttribute(Self.holder, of: address.header, to: [])
        for object in held { pool.giveUp(clusterLock, of: object) }
    }
}
