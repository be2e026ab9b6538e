import Glibc
public import LinuxIO

/// A system call, as far as tests tell them apart.
public enum SystemCall: Sendable {
    case open(path: String, flags: Int32)
    /// fdatasync(2) and fsync(2).
    case sync
    /// fstat(2) and fstatfs(2).
    case status
    /// fallocate(2), whether or not it changes the size.
    case allocate
    case read, write, truncate, touch, makeDirectory, unlink, rename, list, lock
    /// faccessat(2).
    case access

    /// Whether it may change the disk, or makes sure of a change.
    public var isChange: Bool {
        switch self {
        case .open(_, let flags): flags & (O_CREAT | O_TRUNC) != 0
        case .sync, .allocate, .write, .truncate, .touch, .makeDirectory, .unlink, .rename: true
        case .status, .read, .list, .lock, .access: false
        }
    }
}

/// Calls that a test replaces in part: all others are passed on.
public protocol ForwardingCalls: FileSystemCalls {
    /// The target of the calls; the kernel unless told.
    var real: any FileSystemCalls { get }
    /// Comes before every call that is passed on but `close`; its error is the call's. `descriptor` is that
    /// of the file or of the directory. A method that a test writes itself calls it if it likes.
    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno)
}

extension ForwardingCalls {
    public var real: any FileSystemCalls { LinuxCalls.shared }
    public func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {}

    public func open(_ d: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        try willCall(.open(path: path, flags: flags), d)
        return try real.open(d, path, flags: flags, mode: mode)
    }
    public func close(_ d: Int32) { real.close(d) }
    public func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        try willCall(.read, d)
        return try real.pread(d, bytes, at: offset)
    }
    public func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try willCall(.write, d)
        return try real.pwrite(d, bytes, at: offset)
    }
    public func dataSync(_ d: Int32) throws(Errno) {
        try willCall(.sync, d)
        try real.dataSync(d)
    }
    public func sync(_ d: Int32) throws(Errno) {
        try willCall(.sync, d)
        try real.sync(d)
    }
    public func truncate(_ d: Int32, to size: UInt64) throws(Errno) {
        try willCall(.truncate, d)
        try real.truncate(d, to: size)
    }
    public func allocate(_ d: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        try willCall(.allocate, d)
        try real.allocate(d, offset: offset, length: length)
    }
    public func reserve(_ d: Int32, bytes: UInt64) throws(Errno) {
        try willCall(.allocate, d)
        try real.reserve(d, bytes: bytes)
    }
    public func punchHole(_ d: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        try willCall(.allocate, d)
        try real.punchHole(d, offset: offset, length: length)
    }
    public func seek(_ d: Int32, from offset: UInt64, hole: Bool) throws(Errno) -> UInt64 {
        try willCall(.status, d)
        return try real.seek(d, from: offset, hole: hole)
    }
    public func status(_ d: Int32) throws(Errno) -> FileStatus {
        try willCall(.status, d)
        return try real.status(d)
    }
    public func hostStatus(_ d: Int32) throws(Errno) -> HostStatus {
        try willCall(.status, d)
        return try real.hostStatus(d)
    }
    public func touch(_ d: Int32, _ path: String, count: Int) throws(Errno) {
        try willCall(.touch, d)
        try real.touch(d, path, count: count)
    }
    public func makeDirectory(_ d: Int32, _ path: String, mode: UInt32) throws(Errno) {
        try willCall(.makeDirectory, d)
        try real.makeDirectory(d, path, mode: mode)
    }
    public func unlink(_ d: Int32, _ path: String) throws(Errno) {
        try willCall(.unlink, d)
        try real.unlink(d, path)
    }
    public func rename(_ d: Int32, _ from: String, _ to: String, isExchange: Bool) throws(Errno) {
        try willCall(.rename, d)
        try real.rename(d, from, to, isExchange: isExchange)
    }
    public func checkWritable(_ d: Int32) throws(Errno) {
        try willCall(.access, d)
        try real.checkWritable(d)
    }
    public func list(_ d: Int32) throws(Errno) -> [String] {
        try willCall(.list, d)
        return try real.list(d)
    }
    public func lock(_ d: Int32) throws(Errno) {
        try willCall(.lock, d)
        try real.lock(d)
    }
    public func readSoon(_ d: Int32, offset: UInt64, length: UInt64) {
        real.readSoon(d, offset: offset, length: length)
    }
    public func writeSoon(_ d: Int32, offset: UInt64, length: UInt64) {
        real.writeSoon(d, offset: offset, length: length)
    }
    public func forget(_ d: Int32, offset: UInt64, length: UInt64) {
        real.forget(d, offset: offset, length: length)
    }
    public func cachedPages(_ d: Int32) -> Int { real.cachedPages(d) }
}
