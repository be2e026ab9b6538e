internal import Synchronization

/// Requests that a mount has received so far, by operation. For `obscura status --json` and `scripts/requests`.
///
/// Unchecked Sendable: every counter is atomic.
final class RequestCounts: @unchecked Sendable {
    private let counters: UnsafeMutablePointer<Atomic<UInt64>>
    /// One counter for each number of `enum fuse_opcode`, linux/fuse.h; the last also counts all that are higher.
    private static let countersMax = 64

    init() {
        counters = .allocate(capacity: Self.countersMax)
        for index in 0..<Self.countersMax { (counters + index).initialize(to: Atomic(0)) }
    }

    deinit {
        counters.deinitialize(count: Self.countersMax)
        counters.deallocate()
    }

    func count(_ operation: UInt32) {
        counters[min(Int(operation), Self.countersMax - 1)].wrappingAdd(1, ordering: .relaxed)
    }

    /// `NAME:COUNT` of every operation that was requested, separated by spaces.
    var text: String {
        (0..<Self.countersMax).compactMap { index in
            let count = counters[index].load(ordering: .relaxed)
            return count > 0 ? "\(Self.names[index] ?? "other-\(index)"):\(count)" : nil
        }.joined(separator: " ")
    }

    private static let names: [Int: String] = [
        1: "lookup", 2: "forget", 3: "getattr", 4: "setattr", 5: "readlink", 6: "symlink", 8: "mknod",
        9: "mkdir", 10: "unlink", 11: "rmdir", 12: "rename", 13: "link", 14: "open", 15: "read", 16: "write",
        17: "statfs", 18: "release", 20: "fsync", 21: "setxattr", 22: "getxattr", 23: "listxattr",
        24: "removexattr", 25: "flush", 26: "init", 27: "opendir", 28: "readdir", 29: "releasedir",
        30: "fsyncdir", 34: "access", 35: "create", 36: "interrupt", 38: "destroy", 39: "ioctl",
        42: "batch_forget", 43: "fallocate", 44: "readdirplus", 45: "rename2", 46: "lseek",
        47: "copy_file_range", 52: "statx",
    ]
}
