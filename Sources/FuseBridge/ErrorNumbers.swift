internal import FileRequests
internal import Glibc
internal import PhotoLibrary

extension FileError {
    /// The errno(3) number of this error. This is the only place in Obscura that maps one to the other.
    ///
    /// There is no `default`: a new case without a number does not compile.
    var errorNumber: Int32 {
        switch self {
        case .noEntry: ENOENT
        case .exists: EEXIST
        case .notDirectory: ENOTDIR
        case .isDirectory: EISDIR
        case .notEmpty: ENOTEMPTY
        case .notPermitted: EPERM
        case .accessDenied: EACCES
        case .noRoom: ENOSPC
        case .damaged: EIO
        case .readOnly: EROFS
        case .nameTooLong: ENAMETOOLONG
        case .tooManyLinks: EMLINK
        case .noData: ENODATA
        case .notSupported: EOPNOTSUPP
        case .invalid: EINVAL
        case .range: ERANGE
        case .fileTooBig: EFBIG
        case .badHandle: EBADF
        case .stale: ESTALE
        case .noSuchDeviceOrAddress: ENXIO
        case .tooBig: E2BIG
        case .busy: EBUSY
        case .interrupted: EINTR
        }
    }
}
