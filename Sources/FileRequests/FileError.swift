/// Reason for refusing a request. The bridge maps each case to an error number; the comments here name it.
public enum FileError: Error, Sendable, Equatable {
    /// No such file or directory (ENOENT).
    case noEntry
    /// EEXIST.
    case exists
    /// ENOTDIR.
    case notDirectory
    /// EISDIR.
    case isDirectory
    /// ENOTEMPTY.
    case notEmpty
    /// Not possible here for any user (EPERM).
    case notPermitted
    /// EACCES.
    case accessDenied
    /// The space or the host's disk is full (ENOSPC).
    case noRoom
    /// Bytes could not be read or authenticated (EIO).
    case damaged
    /// EROFS.
    case readOnly
    /// More than 255 bytes (ENAMETOOLONG).
    case nameTooLong
    /// EMLINK.
    case tooManyLinks
    /// No such extended attribute (ENODATA).
    case noData
    /// EOPNOTSUPP.
    case notSupported
    /// EINVAL.
    case invalid
    /// ERANGE.
    case range
    /// EFBIG.
    case fileTooBig
    /// EBADF.
    case badHandle
    /// The inode number is no longer valid (ESTALE).
    case stale
    /// No data or hole to seek to (ENXIO).
    case noSuchDeviceOrAddress
    /// An attribute's value exceeds the limit (E2BIG).
    case tooBig
    /// EBUSY.
    case busy
    /// The client no longer waits for the answer (EINTR).
    case interrupted
}
