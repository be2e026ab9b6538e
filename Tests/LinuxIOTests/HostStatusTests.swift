import Glibc
import Testing

@testable import LinuxIO

@Suite struct HostStatusTests {
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
