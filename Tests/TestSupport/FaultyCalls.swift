public import LinuxIO
import Synchronization

/// The real calls, of which chosen kinds fail for as long as a test wants.
public final class FaultyCalls: FileSystemCalls {
    private struct Faults {
        var write: Errno?
        var sync: Errno?
        /// Writes and syncs left until one fails, once.
        var countdown: Int?
    }
    private let faults = Mutex(Faults())
    private let reads = Atomic(0)
    private let bytesRead = Atomic(0)
    private let writes = Atomic(0)
    private let real = LinuxCalls.shared

    public init() {}

    /// Every write fails with this error; nil: none does.
    public func failWrites(_ error: Errno?) { faults.withLock { $0.write = error } }
    /// Every fdatasync and fsync fails with this error; nil: none does.
    public func failSyncs(_ error: Errno?) { faults.withLock { $0.sync = error } }
    /// The write or sync after so many fails once, with EIO; nil: none does.
    public func failOnce(after count: Int?) { faults.withLock { $0.countdown = count } }
    /// Whether the failure that `failOnce` promised is still to come.
    public var isFailureDue: Bool { faults.withLock { $0.countdown != nil } }

    /// Calls of pread, what they read in bytes, and calls of pwrite, so far.
    public var readCount: Int { reads.load(ordering: .relaxed) }
    public var readBytes: Int { bytesRead.load(ordering: .relaxed) }
    public var writeCount: Int { writes.load(ordering: .relaxed) }

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

    public func open(_ d: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        try real.open(d, path, flags: flags, mode: mode)
    }
    public func close(_ d: Int32) { real.close(d) }
    public func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        let count = try real.pread(d, bytes, at: offset)
        reads.add(1, ordering: .relaxed)
        bytesRead.add(count, ordering: .relaxed)
        return count
    }
    public func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try check(\.write)
        writes.add(1, ordering: .relaxed)
        return try real.pwrite(d, bytes, at: offset)
    }
    public func dataSync(_ d: Int32) throws(Errno) {
        try check(\.sync)
        // Nothing here outlives the process: the page cache is as good as the disk, and faster.
    }
    public func sync(_ d: Int32) throws(Errno) { try check(\.sync) }
    public func truncate(_ d: Int32, to size: UInt64) throws(Errno) { try real.truncate(d, to: size) }
    public func allocate(_ d: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        try real.allocate(d, offset: offset, length: length)
    }
    public func reserve(_ d: Int32, bytes: UInt64) throws(Errno) {
        try real.reserve(d, bytes: bytes)
    }
    public func status(_ d: Int32) throws(Errno) -> FileStatus { try real.status(d) }
    public func hostStatus(_ d: Int32) throws(Errno) -> HostStatus { try real.hostStatus(d) }
    public func setTimes(_ d: Int32, _ time: Timestamp) throws(Errno) { try real.setTimes(d, time) }
    public func makeDirectory(_ d: Int32, _ path: String, mode: UInt32) throws(Errno) {
        try real.makeDirectory(d, path, mode: mode)
    }
    public func unlink(_ d: Int32, _ path: String) throws(Errno) { try real.unlink(d, path) }
    public func list(_ d: Int32) throws(Errno) -> [String] { try real.list(d) }
    public func lock(_ d: Int32) throws(Errno) { try real.lock(d) }
}
