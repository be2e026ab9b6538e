internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The INIT exchange with the kernel: negotiates capabilities and notices when the mount becomes live.
final class Initialisation: Sendable {
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

    /// - Parameters:
    ///   - control: gets `.live` when the kernel has its answer.
    ///   - transferBytesMax: maximum bytes of one read or write.
    init(control: ControlPipe, transferBytesMax: UInt32 = transferBytesLimit) {
        self.control = control
        self.transferBytesMax = transferBytesMax
    }

    /// The capacity of libfuse's buffers, and the kernel's own limit.
    static let transferBytesLimit: UInt32 = 1 << 20

    /// The INIT callback: chooses among the capabilities that the kernel offers.
    ///
    /// The kernel drops pages only when told to (EXPLICIT_INVAL_DATA): every change comes through the kernel or is
    /// announced by the notifier. With AUTO_INVAL_DATA each write, by moving the mtime, would throw away the pages it
    /// has just filled. Data is copied, not spliced: splicing costs more than it saves for bytes that come out of a
    /// decryption buffer. The write-back cache stays off: the vault must see writes in order, and their errors must
    /// reach the writer.
    ///
    /// Every listing has attributes with it, not only those of a program that has looked up a name meanwhile
    /// (READDIRPLUS_AUTO): Thunar reads all names first, and each of them would be a LOOKUP afterwards, which takes ten
    /// times as long as its attributes in the listing.
    func negotiate(_ connection: inout fuse_conn_info) {
        let wanted =
            FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ATOMIC_O_TRUNC
            | FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_READDIRPLUS
        connection.want = connection.capable & UInt32(wanted)
        connection.max_read = transferBytesMax
        connection.max_write = transferBytesMax
    }

    /// Sends an answer. The first one answers INIT and gets further flags on its way.
    func send(_ descriptor: Int32, _ pieces: UnsafeMutablePointer<iovec>?, _ count: Int32) -> Int {
        if isLive.load(ordering: .relaxed) { return writev(descriptor, pieces, count) }
        return sendFirst(descriptor, pieces!, count)
    }

    /// Adds flags that libfuse 3.14 does not pass on. With FUSE_HANDLE_KILLPRIV_V2 the kernel leaves clearing the
    /// set-user-id bits to the library, and no longer asks for security.capability before every write; with
    /// FUSE_PARALLEL_DIROPS lookups and listings of one directory do not wait for each other.
    private func sendFirst(_ descriptor: Int32, _ pieces: UnsafeMutablePointer<iovec>, _ count: Int32) -> Int
    {
        let isAnswer = count == 2 && pieces[1].iov_len >= InitAnswer.bytesMin
        if isAnswer {
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
            control.send(.live)
        }
        return sent
    }
}

/// The part of linux/fuse.h's `struct fuse_init_out` that is needed here: major, minor, max_readahead, flags, 32 bits
/// each. Part of the kernel's stable interface.
private enum InitAnswer {
    static let bytesMin = 24
    static let extendedBytesMin = 36
    /// FUSE_DIRECT_IO_ALLOW_MMAP: bit 36, which is bit 4 of the second 32 flags.
    static let mapDirectFiles: UInt32 = 1 << 4
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
