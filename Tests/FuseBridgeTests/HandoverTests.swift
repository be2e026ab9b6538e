import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@testable import FuseBridge

extension RealMounts {
    @Suite("Kernel: handing a vault over") struct HandoverTests {
        @Test func `readers and working directories do not keep a mount that is handed over`() throws {
            let mount = try MountedLibrary()
            // Larger than what the kernel reads ahead.
            let content = String(repeating: "0123456789abcdef", count: 1 << 19)
            try write(content, to: mount.path("file"))
            let file = open(mount.path("file"), O_RDONLY)
            let directory = open(mount.directory, O_RDONLY | O_DIRECTORY)
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
            // The kernel tells that the written file is closed some time after close() has returned.
            #expect(
                eventually {
                    mount.session.handOver()
                    return !mount.isMounted
                })
            #expect(try mount.waitForEnd() == .requested)
            var byte: UInt8 = 0
            let last = off_t(content.utf8.count - 1)
            let number = failure { pread(file, &byte, 1, last) }
            #expect([ENOTCONN, ECONNABORTED].contains(number))
            close(file)
            close(directory)
            try mount.finish()
        }

        @Test func `a file open for writing keeps the mount`() throws {
            let mount = try MountedLibrary()
            try write("before", to: mount.path("file"))
            let file = open(mount.path("file"), O_RDWR)
            mount.session.handOver()
            mount.session.handOver()
            // Once the second request has left its pipe, the first has been refused.
            #expect(
                eventually {
                    var unread: Int32 = 0
                    return ioctl(mount.session.signalDescriptor, UInt(FIONREAD), &unread) == 0 && unread == 0
                })
            #expect(mount.isMounted)
            #expect(pwrite(file, "later", 5, 0) == 5)
            // Not refused: nothing was handed over.
            try write("other", to: mount.path("other"))
            close(file)
            #expect(
                eventually {
                    mount.session.handOver()
                    return !mount.isMounted
                })
            #expect(try mount.waitForEnd() == .requested)
            try mount.finish()
        }

        @Test func `writers that come while a mount is handed over are refused`() throws {
            let mount = try MountedLibrary { $0.handoverGraceMilliseconds = 3_600_000 }
            try write("before", to: mount.path("file"))
            let directory = open(mount.directory, O_RDONLY | O_DIRECTORY)
            let reader = open(mount.path("file"), O_RDONLY)
            mount.session.handOver()
            #expect(eventually { !mount.isMounted })
            #expect(failure { Int(openat(directory, "file", O_WRONLY)) } == EROFS)
            #expect(failure { Int(openat(directory, "new", O_WRONLY | O_CREAT, 0o644)) } == EROFS)
            var bytes = [UInt8](repeating: 0, count: 6)
            #expect(pread(reader, &bytes, 6, 0) == 6)
            #expect(bytes == Array("before".utf8))
            close(reader)
            close(directory)
            #expect(try mount.waitForEnd() == .requested)
            try mount.finish()
        }
    }
}
