import Glibc

/// An error number of the kernel, as listed in errno(3).
public struct Errno: Error, Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The number, e.g. 28 for ENOSPC.
    public var rawValue: Int32

    public init(_ rawValue: Int32) { self.rawValue = rawValue }

    /// The `errno` of the calling thread's last failed call.
    public static var last: Errno { Errno(Glibc.errno) }

    public static let noEntry = Errno(ENOENT)
    public static let exists = Errno(EEXIST)
    public static let notDirectory = Errno(ENOTDIR)
    public static let noSpace = Errno(ENOSPC)
    public static let quotaExceeded = Errno(EDQUOT)
    public static let inputOutput = Errno(EIO)
    public static let interrupted = Errno(EINTR)
    public static let wouldBlock = Errno(EWOULDBLOCK)
    public static let readOnlyFileSystem = Errno(EROFS)
    public static let notSupported = Errno(EOPNOTSUPP)
    public static let accessDenied = Errno(EACCES)
    public static let notPermitted = Errno(EPERM)
    public static let stale = Errno(ESTALE)
    public static let fileTooLarge = Errno(EFBIG)

    /// Whether the host has no room left: ENOSPC and EDQUOT.
    public var meansNoRoom: Bool { self == .noSpace || self == .quotaExceeded }

    /// Whether another process has the lock: EWOULDBLOCK of flock(2), and EACCES of a server whose locks also refuse
    /// reads, as SMB's do.
    public var meansLocked: Bool { self == .wouldBlock || self == .accessDenied }

    /// Whether the host refuses every write of this process there: EROFS, EACCES and EPERM.
    public var refusesWriting: Bool {
        self == .readOnlyFileSystem || self == .accessDenied || self == .notPermitted
    }

    /// The text of strerror(3).
    public var description: String { String(cString: strerror(rawValue)) }
}

/// Repeats `body` while signals interrupt it. Throws an `Errno` if it returns -1.
@inline(__always)
func retryingInterrupts<T: SignedInteger>(_ body: () -> T) throws(Errno) -> T {
    while true {
        let result = body()
        if result != -1 { return result }
        let error = Errno.last
        if error != .interrupted { throw error }
    }
}
