internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The INIT exchange with the kernel: negotiates capabilities and notices when the mount becomes live.
///
/// Unchecked Sendable: `rings` is set before the first request and after the last.
final class Initialisation: @unchecked Sendable {
    private let isLive = Atomic<Bool>(false)
    private let control: ControlPipe
    private let answered = Atomic<UInt64>(0)

    /// The flags of the answer to INIT, as in linux/fuse.h; 0 before it.
    var answeredFlags: UInt64 { answered.load(ordering: .relaxed) }

    /// Whether the kernel has the answer to INIT, so that programs can use the mount.
    var isAnswered: Bool { isLive.load(ordering: .relaxed) }

    /// Whether files that bypass the page cache can be memory-mapped: since Linux 6.6.
    let canMapDirectFiles = isKernelAtLeast(6, 6)

    /// Maximum bytes of one read or write.
    let transferBytesMax: UInt32
    /// The rings that are announced to the kernel, if it offers them.
    var rings: Rings?
    /// Whether the kernel offers FUSE over io_uring.
    private let isRingOffered = Atomic<Bool>(false)

    /// - Parameters:
    ///   - control: gets `.live` when the kernel has its answer.
    ///   - transferBytesMax: maximum bytes of one read or write.
    init(control: ControlPipe, transferBytesMax: UInt32 = transferBytesLimit) {
        self.control = control
        self.transferBytesMax = transferBytesMax
    }

    /// The capacity of libfuse's buffers, and the kernel's own limit.
    static let transferBytesLimit: UInt32 = 1 << 20

    /// Looks at the INIT request for flags that libfuse 3.14 does not pass on.
    func noteIfFirst(_ request: fuse_buf) {
        guard !isLive.load(ordering: .relaxed), let bytes = request.mem else {
            return
        }
        let buffer = UnsafeRawBufferPointer(start: bytes, count: request.size)
        isRingOffered.store(InitRequest.offersRings(buffer), ordering: .relaxed)
    }

    /// The INIT callback: chooses among the capabilities that the kernel offers.
    ///
    /// The kernel drops pages only when told to (EXPLICIT_INVAL_DATA): every change comes through the kernel or is
    /// announced by the notifier. With AUTO_INVAL_DATA each write, by moving the mtime, would throw away the pages it
    /// has just filled. Data is copied, not spliced: splicing costs more than it saves for bytes that come out of a
    /// decryption buffer. The write-back cache stays off: the vault must see writes in order, and their errors must
    /// reach the writer.
    func negotiate(_ connection: inout fuse_conn_info) {
        let wanted =
            FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ATOMIC_O_TRUNC
            | FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_READDIRPLUS
            | FUSE_CAP_READDIRPLUS_AUTO
        connection.want = connection.capable & UInt32(wanted)
        connection.max_read = transferBytesMax
        connection.max_write = transferBytesMax
    }

    /// Sends an answer. The first one answers INIT and gets further flags on its way.
    func send(_ descriptor: Int32, _ pieces: UnsafeMutablePointer<iovec>?, _ count: Int32) -> Int {
        if isLive.load(ordering: .relaxed) {
            // Only threads of rings serve an entry, and only they and INTERRUPT have an answer for them.
            if let sent = rings?.send(pieces, count) { return sent }
            return writev(descriptor, pieces, count)
        }
        return sendFirst(descriptor, pieces!, count)
    }

    /// Adds flags that libfuse 3.14 does not pass on. With FUSE_HANDLE_KILLPRIV_V2 the kernel leaves clearing the
    /// set-user-id bits to the library, and no longer asks for security.capability before every write; with
    /// FUSE_PARALLEL_DIROPS lookups and listings of one directory do not wait for each other.
    private func sendFirst(_ descriptor: Int32, _ pieces: UnsafeMutablePointer<iovec>, _ count: Int32) -> Int
    {
        let isAnswer = count == 2 && pieces[1].iov_len >= InitAnswer.bytesMin
        var rings: Rings?
        if isAnswer {
            if isRingOffered.load(ordering: .relaxed), pieces[1].iov_len >= InitAnswer.extendedBytesMin {
                rings = self.rings
            }
            if rings != nil { InitAnswer.addExtended(flag: InitAnswer.rings, to: pieces[1].iov_base) }
            InitAnswer.add(
                flag: InitAnswer.handleKillPrivilegesV2 | InitAnswer.parallelDirectories,
                to: pieces[1].iov_base)
            if canMapDirectFiles && pieces[1].iov_len >= InitAnswer.extendedBytesMin {
                InitAnswer.addExtended(flag: InitAnswer.mapDirectFiles, to: pieces[1].iov_base)
            }
        }
        let sent = writev(descriptor, pieces, count)
        if isAnswer && sent > 0 {
            let flags = InitAnswer.flags(
                UnsafeRawBufferPointer(start: pieces[1].iov_base, count: pieces[1].iov_len))
            answered.store(flags, ordering: .relaxed)
            isLive.store(true, ordering: .relaxed)
            // The kernel now holds all requests back until it has the entries.
            if let rings { rings.start() } else { self.rings?.giveUp() }
            control.send(.live)
        }
        return sent
    }
}

/// The needed part of an INIT request: `struct fuse_in_header`, then `struct fuse_init_in` of linux/fuse.h: major,
/// minor, max_readahead, flags, the second 32 flags.
private enum InitRequest {
    private static let operationOffset = 4
    private static let operation: UInt32 = 26
    private static let flagsOffset = 40 + 12
    private static let moreFlagsOffset = 40 + 16
    private static let initExtended: UInt32 = 1 << 30

    static func offersRings(_ request: UnsafeRawBufferPointer) -> Bool {
        func number(_ offset: Int) -> UInt32 {
            request.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        }
        return request.count >= moreFlagsOffset + 4 && number(operationOffset) == operation
            && number(flagsOffset) & initExtended != 0 && number(moreFlagsOffset) & InitAnswer.rings != 0
    }
}

/// The part of linux/fuse.h's `struct fuse_init_out` that is needed here: major, minor, max_readahead, flags, 32 bits
/// each. Part of the kernel's stable interface.
private enum InitAnswer {
    static let bytesMin = 24
    static let extendedBytesMin = 36
    /// FUSE_DIRECT_IO_ALLOW_MMAP: bit 36, which is bit 4 of the second 32 flags.
    static let mapDirectFiles: UInt32 = 1 << 4
    /// FUSE_OVER_IO_URING: bit 41.
    static let rings: UInt32 = 1 << 9
    private static let initExtended: UInt32 = 1 << 30
    private static let moreFlagsOffset = 32
    static let parallelDirectories: UInt32 = 1 << 18
    static let handleKillPrivilegesV2: UInt32 = 1 << 28
    private static let flagsOffset = 12

    static func add(flag: UInt32, to answer: UnsafeMutableRawPointer) {
        let flags = answer.load(fromByteOffset: flagsOffset, as: UInt32.self)
        answer.storeBytes(of: flags | flag, toByteOffset: flagsOffset, as: UInt32.self)
    }

    /// All flags, the second 32 above the first.
    static func flags(_ answer: UnsafeRawBufferPointer) -> UInt64 {
        let first = UInt64(answer.load(fromByteOffset: flagsOffset, as: UInt32.self))
        guard answer.count >= extendedBytesMin, first & UInt64(initExtended) != 0 else { return first }
        return UInt64(answer.load(fromByteOffset: moreFlagsOffset, as: UInt32.self)) << 32 | first
    }

    static func addExtended(flag: UInt32, to answer: UnsafeMutableRawPointer) {
        add(flag: initExtended, to: answer)
        let flags = answer.load(fromByteOffset: moreFlagsOffset, as: UInt32.self)
        answer.storeBytes(of: flags | flag, toByteOffset: moreFlagsOffset, as: UInt32.self)
    }
}
