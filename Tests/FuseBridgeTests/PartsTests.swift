import CFuse3
import Glibc
import LinuxIO
import PhotoLibrary
import Testing

@testable import FileRequests
@testable import FuseBridge

@Suite("Permissions, times, names: changes of attributes") struct AttributeChangesTests {
    @Test func `only fields that the mask names are taken`() {
        var status = stat()
        status.st_mode = 0o100644
        status.st_uid = 7
        status.st_size = 5
        status.st_mtim = timespec(tv_sec: 3, tv_nsec: 4)
        #expect(AttributeChanges(status, mask: 0) == AttributeChanges())
        let changes = AttributeChanges(
            status, mask: FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME)
        #expect(changes.mode == 0o644)
        #expect(changes.size == 5)
        #expect(changes.modified == .set(Timestamp(seconds: 3, nanoseconds: 4)))
        #expect(changes.changed == Timestamp(seconds: 0))
        #expect(changes.uid == nil && changes.accessed == nil)
    }

    @Test func `now wins over a time that comes with it`() {
        let both = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW
        #expect(AttributeChanges(stat(), mask: both).accessed == .now)
    }
}

@Suite("Mount options: idle") struct IdleClockTests {
    /// The answers of a clock to a series of observations.
    private func verdicts(seconds: Int?, _ seen: [(uses: UInt64, open: Int, now: Int64)]) -> [Bool] {
        var clock = IdleClock(seconds: seconds)
        var result: [Bool] = []
        for item in seen { result.append(clock.isOver(uses: item.uses, open: item.open, now: item.now)) }
        return result
    }

    @Test func `without a limit the time is never over`() {
        #expect(IdleClock(seconds: nil).checkMilliseconds == nil)
        #expect(verdicts(seconds: nil, [(0, 0, 0), (0, 0, 1 << 40)]) == [false, false])
    }

    @Test func `use and open files start the time again`() {
        #expect(
            verdicts(seconds: 2, [(5, 0, 9000), (5, 0, 10_999), (5, 0, 11_000)]) == [false, false, true])
        #expect(
            verdicts(seconds: 2, [(5, 0, 9000), (6, 0, 11_000), (6, 0, 12_999)]) == [false, false, false])
        #expect(
            verdicts(seconds: 2, [(5, 1, 9000), (5, 1, 99_000), (5, 0, 99_001)]) == [false, false, false])
    }

    @Test(arguments: [(1, 250), (60, 7500), (3600, 30_000)]) func `the clock is read often enough`(
        limit: Int, wait: Int32
    ) {
        #expect(IdleClock(seconds: limit).checkMilliseconds == wait)
    }
}

@Suite("Mount options: fuse.conf and commas") struct OptionTests {
    @Test(arguments: [
        ("", false), ("user_allow_other", true), ("# c\n\t user_allow_other  # ours\nmount_max = 5\n", true),
        ("#user_allow_other\n", false), ("user_allow_others\n", false), ("user allow_other\n", false),
    ])
    func `fuse.conf is read as fusermount3 reads it`(text: String, isPermitted: Bool) {
        #expect(permitsAllowOther(Array(text.utf8)) == isPermitted)
    }

    @Test func `commas in names do not become options`() {
        var options = MountOptions()
        options.subtype = "a,ro\\"
        #expect(options.libfuseWords(transferBytesMax: 1).hasSuffix(",subtype=a\\,ro\\\\"))
        options.readOnly = true
        #expect(options.libfuseWords(transferBytesMax: 1).hasSuffix(",ro"))
    }

    @Test(arguments: [
        (operation: 15, count: 4096, weight: RequestWeight.heavy), (15, 131_072, .heavy),
        (15, 131_073, .slow),
        (15, 1 << 20, .slow), (16, 1 << 20, .heavy), (1, 0, .light), (20, 0, .slow),
    ])
    func `a read of one chunk is no reason to wake a thread, a larger one is`(
        operation: UInt32, count: UInt32, weight: RequestWeight
    ) {
        // `struct fuse_in_header` and `struct fuse_read_in` of linux/fuse.h.
        var bytes = [UInt8](repeating: 0, count: 80)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: operation, toByteOffset: 4, as: UInt32.self)
            bytes.storeBytes(of: 5, toByteOffset: 16, as: UInt64.self)
            bytes.storeBytes(of: count, toByteOffset: 56, as: UInt32.self)
            var request = fuse_buf()
            (request.mem, request.size) = (bytes.baseAddress, bytes.count)
            #expect(RequestWeight(request) == weight)
        }
    }

    @Test(arguments: [
        (count: 0, weight: RequestWeight.heavy), (131_071, .heavy), (131_072, .large), (1 << 20, .large),
    ])
    func `a write of a chunk is worth another worker`(count: Int, weight: RequestWeight) {
        // `struct fuse_in_header` and `struct fuse_write_in` of linux/fuse.h.
        var bytes = [UInt8](repeating: 0, count: 80 + count)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: 16, toByteOffset: 4, as: UInt32.self)
            bytes.storeBytes(of: 5, toByteOffset: 16, as: UInt64.self)
            var request = fuse_buf()
            (request.mem, request.size) = (bytes.baseAddress, bytes.count)
            #expect(RequestWeight(request) == weight)
        }
    }
}
