import LinuxIO
import VaultCatalogue
import VaultStore

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

    init(_ error: CatalogueError) {
        switch error {
        case .damaged, .failed, .unsupportedVersion: self = .damaged
        case .noRoom: self = .noRoom
        }
    }

    init(_ error: StoreError) {
        switch error {
        case .noRoom: self = .noRoom
        case .damaged, .segmentMissing, .segmentShort: self = .damaged
        case .readOnly: self = .readOnly
        case .io(let number) where number.refusesWriting: self = .readOnly
        case .io(let number): self = number.meansNoRoom ? .noRoom : .damaged
        }
    }
}

/// Runs a query and converts its errors to `FileError`.
@inline(__always)
func sql<R>(_ body: @autoclosure () throws(CatalogueError) -> R) throws(FileError) -> R {
    do throws(CatalogueError) {
        return try body()
    } catch {
        throw FileError(error)
    }
}

/// Runs a call of the store and converts its errors to `FileError`.
@inline(__always)
func stored<R>(_ body: @autoclosure () throws(StoreError) -> R) throws(FileError) -> R {
    do throws(StoreError) {
        return try body()
    } catch {
        throw FileError(error)
    }
}
