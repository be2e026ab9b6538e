import Foundation
import Glibc
import LinuxIO
import TestSupport
import Testing

@Suite("System calls: writes before a sync") struct WriteBeforeSyncTests {
    /// On the disk, where the kernel may drop the pages, and in memory, where it refuses to.
    @Test(arguments: ["/var/tmp", "/dev/shm"])
    func `overlapping writes at any offset leave the bytes that plain writes would`(parent: String) throws {
        var random = RandomSource(17)
        let path = "\(parent)/obscura-write-\(getpid())"
        let calls = LinuxCalls.shared
        let file = try calls.open(AT_FDCWD, path, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
        defer {
            calls.close(file)
            unlink(path)
        }
        var expected = [UInt8](repeating: 0, count: 1 << 20)
        for round in 0..<200 {
            // Within a page, up to the end of one, whole pages, and parts of pages at both ends.
            let count = [1, 511, 4095, 4096, 8192, 12_345, 131_584].randomElement(using: &random)!
            let offset = Int.random(in: 0..<(expected.count - count) / 512, using: &random) * 512
            let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 4096)
            defer { bytes.deallocate() }
            for index in 0..<count { bytes[index] = UInt8(round) }
            try calls.writeBeforeSync(file, UnsafeRawBufferPointer(bytes), at: UInt64(offset))
            expected.replaceSubrange(offset..<offset + count, with: bytes)
            if round % 10 == 0 { try calls.dataSync(file) }
        }
        var found = [UInt8](repeating: 0, count: expected.count)
        _ = try calls.readFully(file, at: 0, into: &found)
        #expect(found == expected)
    }
}
