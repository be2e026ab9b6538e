import Foundation
public import LinuxIO
import Synchronization

/// Calls, real ones unless others are given, of which chosen ones fail.
public final class FaultyCalls: ForwardingCalls, @unchecked Sendable {
    /// The faults of one call.
    public enum Fault: Sendable, Equatable {
        case error(Errno)
        /// A read or write of part of the bytes.
        case short
        /// A request to a cluster that takes effect, and answers an error all the same.
        case done(Errno)
        /// From now on the cluster refuses every request of this client.
        case fenced
    }

    private struct Faults {
        var write: Errno?
        var sync: Errno?
        /// Writes and syncs left until one fails, once.
        var countdown: Int?
        /// Calls of any kind left until this happens, once.
        var next: (fault: Fault, left: Int)?
        var callCount = 0
        /// Descriptors that belong to no disk, and always can be read.
        var ofNoDisk: Set<Int32> = []
    }
    private let faults = Mutex(Faults())
    private let reads = Atomic(0)
    private let bytesRead = Atomic(0)
    private let writes = Atomic(0)
    private let soon = Atomic(0)
    public let real: any FileSystemCalls

    public init(_ real: any FileSystemCalls = LinuxCalls.shared) { self.real = real }

    /// Every write fails with this error; nil: none does.
    public func failWrites(_ error: Errno?) { faults.withLock { $0.write = error } }
    /// Every fdatasync and fsync fails with this error; nil: none does.
    public func failSyncs(_ error: Errno?) { faults.withLock { $0.sync = error } }
    /// The write or sync after so many fails once, with EIO; nil: none does.
    public func failOnce(after count: Int?) { faults.withLock { $0.countdown = count } }
    /// Whether the failure that `failOnce` promised is still to come.
    public var isFailureDue: Bool { faults.withLock { $0.countdown != nil } }

    /// Calls of pread, their bytes, and calls of pwrite, so far.
    public var readCount: Int { reads.load(ordering: .relaxed) }
    public var readBytes: Int { bytesRead.load(ordering: .relaxed) }
    public var writeCount: Int { writes.load(ordering: .relaxed) }
    /// Requests that bytes be written to the disk soon.
    public var soonCount: Int { soon.load(ordering: .relaxed) }

    public func writeSoon(_ descriptor: Int32, offset: UInt64, length: UInt64) {
        soon.wrappingAdd(1, ordering: .relaxed)
        real.writeSoon(descriptor, offset: offset, length: length)
    }

    // MARK: Waiting

    private let gate = NSCondition()
    // All under `gate`.
    private var heldFrom: Int?
    private var readsBeforeHeld = 0
    private var readsOf: [pthread_t: Int] = [:]
    private var held = 0
    private var passes = 0

    /// Reads of at least so many bytes at once wait, as on a dead disk, once a thread has done some of them; nil: none
    /// does, nor any that waits.
    public func holdReads(of count: Int?, after free: Int = 0) {
        gate.withLock {
            (heldFrom, readsBeforeHeld) = (count, free)
            if count == nil { readsOf = [:] }
            passes = 0
            gate.broadcast()
        }
    }

    /// Lets one read go on that waits.
    public func passRead() {
        gate.withLock {
            passes += 1
            gate.broadcast()
        }
    }

    /// Threads whose reads wait now.
    public var heldReads: Int { gate.withLock { held } }

    private func waitIfHeld(_ count: Int) {
        gate.withLock {
            guard let from = heldFrom, count >= from else { return }
            readsOf[pthread_self(), default: 0] += 1
            guard readsOf[pthread_self(), default: 0] > readsBeforeHeld else { return }
            held += 1
            while let heldFrom, count >= heldFrom, passes == 0 { gate.wait() }
            passes = max(0, passes - 1)
            held -= 1
        }
    }

    /// The call after so many suffers this, once; a short one waits for the next read or write.
    public func inject(_ fault: Fault, after count: Int) { faults.withLock { $0.next = (fault, count) } }
    public func injectNothing() { faults.withLock { $0.next = nil } }
    /// Calls `body`, whose calls do not suffer the fault that is to come, nor count for it.
    public func withoutFaults<R>(_ body: () throws -> R) rethrows -> R {
        let next = faults.withLock { faults in
            defer { faults.next = nil }
            return faults.next
        }
        defer { faults.withLock { $0.next = next } }
        return try body()
    }
    /// Whether an injected fault is still to come.
    public var isFaultDue: Bool { faults.withLock { $0.next != nil } }
    /// Calls so far that could have suffered something.
    public var callCount: Int { faults.withLock { $0.callCount } }

    /// Counts a call; throws the error that is due, and tells whether it is to be a short one.
    @discardableResult
    private func count(canBeShort: Bool = false) throws(Errno) -> Bool {
        let due = faults.withLock { faults -> Fault? in
            faults.callCount += 1
            guard let next = faults.next else { return nil }
            if next.left > 0 {
                faults.next?.left -= 1
                return nil
            }
            if next.fault == .short && !canBeShort { return nil }
            faults.next = nil
            return next.fault
        }
        if case .error(let error) = due { throw error }
        return due != nil
    }

    /// The fault of a request to a cluster, which counts as a call.
    func faultOfRequest() -> MemoryPool.Fault? {
        let due = faults.withLock { faults -> Fault? in
            faults.callCount += 1
            guard let next = faults.next, next.fault != .short else { return nil }
            if next.left > 0 {
                faults.next?.left -= 1
                return nil
            }
            faults.next = nil
            return next.fault
        }
        switch due {
        case .error(let error): return .error(error)
        case .done(let error): return .done(error)
        case .fenced: return .fenced
        case .short, nil: return nil
        }
    }

    private func check(_ kind: KeyPath<Faults, Errno?>) throws(Errno) {
        let error = faults.withLock { faults -> Errno? in
            if let left = faults.countdown {
                faults.countdown = left > 0 ? left - 1 : nil
                if left == 0 { return .inputOutput }
            }
            return faults[keyPath: kind]
        }
        if let error { throw error }
    }

    public func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        if case .open(let path, _) = call, path.hasPrefix(Self.kernelsPrefix) { return }
        try count()
    }

    private static let kernelsPrefix = "/proc/"

    public func open(_ d: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        try willCall(.open(path: path, flags: flags), d)
        let opened = try real.open(d, path, flags: flags, mode: mode)
        faults.withLock { faults in
            faults.ofNoDisk.remove(opened)
            if path.hasPrefix(Self.kernelsPrefix) { faults.ofNoDisk.insert(opened) }
        }
        return opened
    }

    public func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        if faults.withLock({ $0.ofNoDisk.contains(d) }) { return try real.pread(d, bytes, at: offset) }
        waitIfHeld(bytes.count)
        let isShort = try count(canBeShort: true)
        let part = UnsafeMutableRawBufferPointer(
            rebasing: bytes.prefix(isShort ? (bytes.count + 1) / 2 : bytes.count))
        let count = try real.pread(d, part, at: offset)
        reads.add(1, ordering: .relaxed)
        bytesRead.add(count, ordering: .relaxed)
        return count
    }
    public func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try check(\.write)
        let isShort = try count(canBeShort: true)
        let part = UnsafeRawBufferPointer(
            rebasing: bytes.prefix(isShort ? (bytes.count + 1) / 2 : bytes.count))
        writes.add(1, ordering: .relaxed)
        return try real.pwrite(d, part, at: offset)
    }
    public func dataSync(_ d: Int32) throws(Errno) { try sync(d) }

    /// In a failed sync a disk in memory loses the unsynced writes. On real disks nothing is synced: nothing here
    /// outlives the process, and the page cache is as good as the disk, and faster.
    public func sync(_ d: Int32) throws(Errno) {
        try check(\.sync)
        let disk = real as? MemoryDisk
        do throws(Errno) { try count() } catch {
            disk?.failSync(after: 0)
            try? disk?.sync(d)
            disk?.failSync(after: nil)
            throw error
        }
        try disk?.sync(d)
    }
}
