import Glibc
import PhotoLibrary
import Testing

@testable import FileRequests
@testable import FuseBridge

@Suite("Kernel: error numbers") struct ErrorNumberTests {
    static let table: [(FileError, Int32)] = [
        (.noEntry, ENOENT), (.exists, EEXIST), (.notDirectory, ENOTDIR), (.isDirectory, EISDIR),
        (.notEmpty, ENOTEMPTY), (.notPermitted, EPERM), (.accessDenied, EACCES), (.noRoom, ENOSPC),
        (.damaged, EIO), (.readOnly, EROFS), (.nameTooLong, ENAMETOOLONG), (.tooManyLinks, EMLINK),
        (.noData, ENODATA), (.notSupported, EOPNOTSUPP), (.invalid, EINVAL), (.range, ERANGE),
        (.fileTooBig, EFBIG), (.badHandle, EBADF), (.stale, ESTALE), (.noSuchDeviceOrAddress, ENXIO),
        (.tooBig, E2BIG), (.busy, EBUSY), (.interrupted, EINTR),
    ]

    @Test(arguments: table) func `each meaning has its number`(error: FileError, number: Int32) {
        #expect(error.errorNumber == number)
    }

    @Test func `no two meanings share a number`() {
        #expect(Set(Self.table.map(\.1)).count == Self.table.count)
    }
}
