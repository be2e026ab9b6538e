import Foundation
import Glibc
import Synchronization

/// Root's switch of FUSE over io_uring. It is the whole machine's: on only while a test needs it.
public enum RingSwitch {
    private static let path = "/sys/module/fuse/parameters/enable_uring"
    /// Tests that need it now, and the value before them.
    private static let users = Mutex((count: 0, before: ""))

    /// Whether this process may set it, in a kernel that has it, and is to: `scripts/test --io_uring`. A ring that
    /// hangs holds up every process that is started meanwhile.
    public static var isAvailable: Bool {
        ProcessInfo.processInfo.environment["OBSCURA_IO_URING"] == "on" && access(path, W_OK) == 0
    }

    /// Switches it on until `release`.
    public static func acquire() throws {
        try users.withLock { users in
            if users.count == 0 {
                users.before = try String(contentsOfFile: path, encoding: .utf8)
                try set("Y")
            }
            users.count += 1
        }
    }

    public static func release() {
        users.withLock { users in
            users.count -= 1
            if users.count == 0 { try? set(users.before) }
        }
    }

    /// Runs `body` with it on.
    public static func on<R>(_ body: () throws -> R) throws -> R {
        try acquire()
        defer { release() }
        return try body()
    }

    private static func set(_ value: String) throws {
        try Data(value.utf8).write(to: URL(fileURLWithPath: path))
    }
}
