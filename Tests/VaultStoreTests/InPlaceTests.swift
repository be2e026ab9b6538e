import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultStore

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
    /// Of statfs(2); nil: that of the disk below.
    private let magic: UInt64?
    private let ends = Mutex<[Int32: UInt64]>([:])
    private let opened = Mutex<Set<String>>([])

    init(_ answer: Answer, _ error: Errno = Errno(EPERM), magic: UInt64? = nil) {
        (self.answer, self.error, self.magic) = (answer, error, magic)
    }

    var names: Set<String> { opened.withLock { $0 } }

    func open(_ directory: Int32, _ path: String, flags: Int32, mode: mode_t) throws(Errno) -> Int32 {
        opened.withLock { _ = $0.insert(path) }
        return try real.open(directory, path, flags: flags, mode: mode)
    }

    func hostStatus(_ descriptor: Int32) throws(Errno) -> HostStatus {
        var status = try real.hostStatus(descriptor)
        status.typeMagic = magic ?? status.typeMagic
        return status
    }

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

    private static let fuse: UInt64 = 0x6573_5546

    @Test(arguments: [WholeFileHost.Answer.refusedWrite, .droppedWrite])
    fileprivate func `a vault that is there already can only be read`(answer: WholeFileHost.Answer) throws {
        let path = try makeVault(directory)
        let calls = WholeFileHost(answer, magic: Self.fuse)
        let unlocked = try Vault.unlock(path, password: secret("one"), calls: calls)
        #expect(throws: VaultError.notWritable(.notInPlace)) { _ = try unlocked.openSpace(.writing) }
        #expect(try unlocked.openSpace(.writingIfPossible).writeStop == .notInPlace)
        #expect(try unlocked.openSpace(.reading).writeStop == nil)
        #expect(try !FileManager.default.contentsOfDirectory(atPath: path).contains { $0.contains("probe") })
    }

    @Test func `only a file server is asked, for a vault of one space that is to be written`() throws {
        func isAsked(_ path: String, _ magic: UInt64, _ access: SpaceAccess) throws -> Bool {
            let calls = WholeFileHost(.droppedWrite, magic: magic)
            let unlocked = try Vault.unlock(
                path, password: secret("one"), readOnly: access == .reading, calls: calls)
            _ = try? unlocked.openSpace(access)
            return calls.names.contains { $0.contains("probe") }
        }
        let path = try makeVault(directory)
        let other = TemporaryDirectory()
        let shared = try makeVault(other, spaces: 2, bytes: 16 << 20)
        let ext4: UInt64 = 0xEF53
        #expect(try isAsked(path, Self.fuse, .writing))
        #expect(try !isAsked(path, Self.fuse, .reading))
        #expect(try !isAsked(path, ext4, .writing))
        #expect(try !isAsked(shared, Self.fuse, .writing))
    }

    @Test func `where files can be changed the probe leaves nothing`() throws {
        let path = try makeVault(directory)
        #expect(try !FileManager.default.contentsOfDirectory(atPath: path).contains { $0.contains("probe") })
    }
}
