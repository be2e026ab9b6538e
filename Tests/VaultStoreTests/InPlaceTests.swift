import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import VaultStore

/// A host that takes files written once, from the beginning, as rclone without a cache.
private final class WholeFileHost: ForwardingCalls {
    enum Answer: CaseIterable {
        /// A write before the end fails.
        case refusedWrite
        /// It succeeds, and has no effect.
        case droppedWrite
        /// A file that is open for reading and writing cannot be read.
        case refusedRead
    }

    private let answer: Answer
    private let error: Errno
    private let ends = Mutex<[Int32: UInt64]>([:])

    init(_ answer: Answer, _ error: Errno = Errno(EPERM)) { (self.answer, self.error) = (answer, error) }

    func pwrite(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int {
        let isInPlace = ends.withLock { ends in
            defer { ends[descriptor] = max(ends[descriptor] ?? 0, offset + UInt64(bytes.count)) }
            return offset < ends[descriptor] ?? 0
        }
        guard isInPlace, answer != .refusedRead else { return try real.pwrite(descriptor, bytes, at: offset) }
        if answer == .refusedWrite { throw error }
        return bytes.count
    }

    func pread(
        _ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int {
        if answer == .refusedRead, fcntl(descriptor, F_GETFL) & O_ACCMODE == O_RDWR { throw error }
        return try real.pread(descriptor, bytes, at: offset)
    }

    func close(_ descriptor: Int32) {
        ends.withLock { $0[descriptor] = nil }
        real.close(descriptor)
    }
}

@Suite("Exit codes: hosts without changes in place") struct InPlaceTests {
    private let directory = TemporaryDirectory()

    @Test(arguments: [WholeFileHost.Answer.refusedWrite, .droppedWrite], [1, 2])
    fileprivate func `no vault is made, and nothing is left`(
        answer: WholeFileHost.Answer, spaces: Int
    ) throws {
        let bytes: UInt64? = spaces == 1 ? nil : 16 << 20
        #expect(throws: VaultError.unsuitableHost) {
            _ = try makeVault(directory, spaces: spaces, bytes: bytes, calls: WholeFileHost(answer))
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    }

    @Test(arguments: [EBADF, EPERM, EOPNOTSUPP])
    func `a header that may not be read is not called damaged`(error: Int32) throws {
        let path = try makeVault(directory)
        let calls = WholeFileHost(.refusedRead, Errno(error))
        #expect(throws: VaultError.unsuitableHost) {
            _ = try Vault.unlock(path, password: secret("one"), calls: calls)
        }
        #expect(throws: VaultError.system(Errno(ESTALE), "cannot read the header")) {
            _ = try Vault.unlock(
                path, password: secret("one"), calls: WholeFileHost(.refusedRead, Errno(ESTALE)))
        }
        #expect(throws: VaultError.headerDamaged) {
            _ = try Vault.unlock(
                path, password: secret("one"), calls: WholeFileHost(.refusedRead, .inputOutput))
        }
    }

    @Test func `where files can be changed the probe leaves nothing`() throws {
        let path = try makeVault(directory)
        #expect(try !FileManager.default.contentsOfDirectory(atPath: path).contains { $0.contains("probe") })
    }
}
