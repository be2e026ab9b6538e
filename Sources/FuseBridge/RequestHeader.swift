internal import CFuse3
internal import FileRequests
internal import Glibc

/// A request as the kernel sends it: `struct fuse_in_header` of linux/fuse.h, which is part of the kernel's stable
/// interface.
struct RequestHeader {
    let operation: UInt32
    /// The request's number. Never used again.
    let unique: UInt64
    let node: UInt64
    /// The thread that waits for the answer; 0 if no program's does, or one in a pid namespace whose IDs are not ours.
    let thread: Int32
    /// Whether it may change the tree, or promises something about changes.
    let changes: Bool

    /// Nil if the request has no whole header.
    init?(_ request: fuse_buf) {
        guard request.size >= Self.bytes, let start = request.mem else { return nil }
        let bytes = UnsafeRawBufferPointer(start: start, count: request.size)
        operation = bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
        unique = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        node = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        thread = bytes.loadUnaligned(fromByteOffset: 32, as: Int32.self)
        changes = Self.changes(operation, bytes)
    }

    var isForget: Bool { operation == Operation.forget || operation == Operation.batchForget }
    /// Whether a program's handle is given back. No program waits for it.
    var isRelease: Bool { operation == Operation.release || operation == Operation.releaseDirectory }
    var isFlush: Bool { operation == Operation.flush }

    private static let bytes = 40

    private static func changes(_ operation: UInt32, _ bytes: UnsafeRawBufferPointer) -> Bool {
        if operation == Operation.open {
            guard bytes.count >= Self.bytes + 4 else { return true }
            let flags = bytes.loadUnaligned(fromByteOffset: Self.bytes, as: Int32.self)
            return flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0
        }
        return !Operation.reading.contains(operation)
    }

    /// Inodes and names that a request may have changed, of which the kernel may have cached the state before.
    struct Effect: Equatable {
        /// Files whose attributes and bytes, directories whose attributes and listings.
        var inodes: [UInt64] = []
        var names: [Dentry] = []
    }

    struct Dentry: Equatable {
        var parent: UInt64
        var name: [UInt8]
    }

    /// - Parameter request: the request that has this header.
    func effect(_ request: fuse_buf) -> Effect {
        guard changes, let start = request.mem else { return Effect() }
        let body = UnsafeRawBufferPointer(start: start, count: request.size).dropFirst(Self.bytes)
        /// The NUL-terminated names behind so many bytes.
        func names(after count: Int) -> [[UInt8]] {
            body.dropFirst(count).split(separator: 0, omittingEmptySubsequences: true).map { Array($0) }
        }
        func number(at offset: Int) -> UInt64? {
            guard body.count >= offset + 8 else { return nil }
            return UnsafeRawBufferPointer(rebasing: body).loadUnaligned(
                fromByteOffset: offset, as: UInt64.self)
        }
        /// The name is in the request's directory.
        func entry(after count: Int) -> Effect {
            Effect(
                inodes: [node], names: names(after: count).prefix(1).map { Dentry(parent: node, name: $0) })
        }
        /// From the request's directory into another one.
        func renamed(after count: Int) -> Effect {
            guard let target = number(at: 0) else { return Effect(inodes: [node]) }
            let dentries = zip([node, target], names(after: count)).map { Dentry(parent: $0, name: $1) }
            return Effect(inodes: [node, target], names: dentries)
        }
        return switch operation {
        case Operation.symlink, Operation.unlink, Operation.removeDirectory: entry(after: 0)
        case Operation.makeDirectory: entry(after: 8)
        case Operation.makeNode, Operation.create: entry(after: 16)
        case Operation.rename: renamed(after: 8)
        case Operation.renameWithFlags: renamed(after: 16)
        case Operation.link:
            Effect(inodes: [node] + (number(at: 0).map { [$0] } ?? []), names: entry(after: 8).names)
        case Operation.copyRange: Effect(inodes: number(at: 16).map { [$0] } ?? [])
        default: Effect(inodes: [node])
        }
    }

    /// Numbers of `enum fuse_opcode`.
    private enum Operation {
        static let forget: UInt32 = 2
        static let symlink: UInt32 = 6
        static let makeNode: UInt32 = 8
        static let makeDirectory: UInt32 = 9
        static let unlink: UInt32 = 10
        static let removeDirectory: UInt32 = 11
        static let rename: UInt32 = 12
        static let link: UInt32 = 13
        static let open: UInt32 = 14
        static let release: UInt32 = 18
        static let flush: UInt32 = 25
        static let releaseDirectory: UInt32 = 29
        static let create: UInt32 = 35
        static let batchForget: UInt32 = 42
        static let renameWithFlags: UInt32 = 45
        static let copyRange: UInt32 = 47
        /// LOOKUP, FORGET, GETATTR, READLINK, READ, STATFS, GETXATTR, LISTXATTR, INIT, OPENDIR, READDIR, RELEASEDIR,
        /// ACCESS, INTERRUPT, DESTROY, IOCTL, BATCH_FORGET, READDIRPLUS, LSEEK, STATX. RELEASE waits by other rules.
        static let reading: Set<UInt32> = [
            1, 2, 3, 5, 15, 17, 18, 22, 23, 26, 27, 28, 29, 34, 36, 38, 39, 42, 44, 46, 52,
        ]
    }

    /// Whether a program may wait for the answer without end. INIT, INTERRUPT and DESTROY are the kernel's own.
    var hasCaller: Bool { thread > 0 && !isForget && !isRelease && !Self.kernels.contains(operation) }

    private static let kernels: Set<UInt32> = [26, 36, 38]
}
