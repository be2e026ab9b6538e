import Glibc
import Testing

@testable import LinuxIO

@Suite("Space: sizes that a host tells") struct HostStatusTests {
    private func available(_ path: String) throws -> UInt64 {
        let descriptor = try LinuxCalls.shared.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0)
        defer { LinuxCalls.shared.close(descriptor) }
        return try LinuxCalls.shared.hostStatus(descriptor).availableBytes
    }

    @Test func `a host that does not tell its size is not a full one`() throws {
        // It has no blocks.
        #expect(try available("/proc") == HostStatus.untoldBytes)
        #expect(try available("/tmp") < HostStatus.untoldBytes)
    }
}

/// Numbers that no disk has, from a host that makes them up.
@Suite("Space: numbers that a host tells") struct HostNumberTests {
    @Test func `a product of blocks that is too large is the most there is`() {
        var status = statvfs()
        for (size, count) in [(UInt.max, UInt.max), (1 << 32, 1 << 32), (4096, UInt.max), (2, 1 << 63)]
            as [(UInt, UInt)]
        {
            (status.f_frsize, status.f_blocks, status.f_bavail) = (size, fsblkcnt_t(count), fsblkcnt_t(count))
            let host = HostStatus(status, typeMagic: 1)
            #expect(host.totalBytes == 1 << 62 && host.availableBytes == 1 << 62)
        }
        (status.f_frsize, status.f_blocks, status.f_bavail) = (4096, 100, 7)
        #expect(
            HostStatus(status, typeMagic: 1)
                == HostStatus(totalBytes: 409_600, availableBytes: 28_672, typeMagic: 1))
    }

    @Test func `a file of no size has none, and its time is one`() {
        var status = stat()
        status.st_size = -1
        status.st_blocks = .min
        status.st_mtim = timespec(tv_sec: .min, tv_nsec: -1)
        let file = FileStatus(status)
        #expect(file.size == 0 && file.blocks == 0)
        #expect(file.modified == Timestamp(seconds: .min, nanoseconds: 0))
        status.st_size = .max
        status.st_mtim = timespec(tv_sec: 5, tv_nsec: .max)
        #expect(FileStatus(status).size == 1 << 62)
        #expect(FileStatus(status).modified == Timestamp(seconds: 5, nanoseconds: 999_999_999))
    }
}
