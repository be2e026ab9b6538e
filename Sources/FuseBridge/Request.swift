internal import CFuse3
internal import FileRequests
internal import Glibc
internal import LinuxIO
internal import PhotoLibrary

/// One request of the kernel, answered exactly once.
///
/// It cannot be copied and each answer consumes it, so a second answer does not compile. A request that is dropped
/// without an answer answers EIO, so that no program waits for ever. When the kernel no longer wants the answer (the
/// caller was killed, see `RequestWatch`), sending fails: files that were opened are closed, lookups taken back.
struct Request: ~Copyable {
    private let pointer: fuse_req_t

    /// `isUse`: whether this request keeps an idle mount from being unmounted.
    init(_ pointer: fuse_req_t?, isUse: Bool = true) {
        self.pointer = pointer!
        if isUse { bridge.countUse() }
    }

    deinit { fuse_reply_err(pointer, EIO) }

    var bridge: Bridge { Bridge.from(fuse_req_userdata(pointer)) }
    var library: Library { bridge.library }

    /// The calling process. Zeros when the kernel writes back pages of a memory map.
    var caller: Caller {
        let context = fuse_req_ctx(pointer).pointee
        return Caller(uid: context.uid, gid: context.gid, pid: context.pid, umask: context.umask)
    }

    /// Runs `body` and sends its result, or its error's number.
    consuming func answer(_ body: (borrowing Request) throws(FileError) -> Answer) {
        var attempts = RequestAttempts(bridge)
        while true {
            do throws(FileError) {
                let answer = try body(self)
                return send(answer)
            } catch {
                if !attempts.mayRepeat(after: error) { return fail(error.errorNumber) }
            }
        }
    }

    /// Runs `body`, which sends nothing, again while that may help.
    borrowing func repeating<R>(_ body: (Library) throws(FileError) -> R) throws(FileError) -> R {
        var attempts = RequestAttempts(bridge)
        while true {
            do throws(FileError) { return try body(library) } catch {
                if !attempts.mayRepeat(after: error) { throw error }
            }
        }
    }

    /// Runs `body`. If requests for `node` may take long, `body` gets a cancellation, which is cancelled when the
    /// calling thread is being killed. It then answers EINTR at once, which lets that process end.
    borrowing func interruptible<R>(
        _ node: fuse_ino_t, _ body: (Cancellation?) throws(FileError) -> R
    ) throws(FileError) -> R {
        guard Library.mayTakeLong(node) else { return try body(nil) }
        return try pointer.interruptible(body)
    }

    /// This request, for work that may take long. Must not be used after the answer.
    var asLong: LongCall { LongCall(pointer: pointer, bridge: bridge) }

    /// Sends an error number of errno(3), or 0 for plain success.
    consuming func fail(_ errorNumber: Int32) { fuse_reply_err(release(), errorNumber) }

    /// Sends nothing: FORGET has no answer.
    consuming func finish() { fuse_reply_none(release()) }

    /// Sends bytes straight from the library's buffer; at most one copy, into the kernel. Returns false if the caller
    /// no longer waits for them.
    @discardableResult
    consuming func send(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        return fuse_reply_buf(release(), start, bytes.count) == 0
    }

    /// Sends an opened file or directory. Returns false if the caller no longer waits for it, so that RELEASE will
    /// never come.
    consuming func sendOpened(_ information: borrowing fuse_file_info) -> Bool {
        var information = copy information
        return fuse_reply_open(release(), &information) == 0
    }

    /// As `sendOpened`, for CREATE.
    consuming func sendCreated(_ entry: Entry, _ information: borrowing fuse_file_info) -> Bool {
        var (parameter, information) = (fuse_entry_param(entry, timeoutMax), copy information)
        return fuse_reply_create(release(), &parameter, &information) == 0
    }

    /// Packs as many of the listing's entries as fit into `byteCount` and sends them.
    ///
    /// `fill` gets the packer and returns when the packer is full. An entry that does not fit is not sent, so the
    /// kernel holds no reference to it.
    consuming func sendListing(
        byteCount: Int, plus: Bool, _ fill: (Library, inout ListingPacker) throws(FileError) -> Void
    ) {
        var attempts = RequestAttempts(bridge)
        while true {
            var packer = ListingPacker(byteCount: byteCount, plus: plus, request: pointer)
            packer.timeoutMax = timeoutMax
            defer { packer.free() }
            do throws(FileError) {
                let library = library
                try fill(library, &packer)
                let isSent = send(packer.packed)
                if !isSent { packer.lookups.forEach(library.takeBack) }
                return
            } catch {
                if !attempts.mayRepeat(after: error) { return fail(error.errorNumber) }
            }
        }
    }

    /// How long the kernel may use an answer at most, in seconds.
    private var timeoutMax: Double { bridge.followed == nil ? .infinity : FollowedLibrary.timeoutMax }

    private consuming func send(_ answer: Answer) {
        let timeoutMax = timeoutMax
        let pointer = release()
        switch answer {
        case .done: fuse_reply_err(pointer, 0)
        case .entry(let entry):
            var parameter = fuse_entry_param(entry, timeoutMax)
            let bridge = Bridge.from(fuse_req_userdata(pointer))
            if fuse_reply_entry(pointer, &parameter) != 0 { bridge.library.takeBack(parameter.ino) }
        case .attributes(let attributes, let timeout):
            var status = stat(attributes)
            fuse_reply_attr(pointer, &status, min(timeout, timeoutMax))
        case .target(let bytes):
            (bytes + [0]).withUnsafeBufferPointer { terminated in
                _ = terminated.withMemoryRebound(to: CChar.self) {
                    fuse_reply_readlink(pointer, $0.baseAddress)
                }
            }
        case .written(let count): fuse_reply_write(pointer, count)
        case .offset(let offset): fuse_reply_lseek(pointer, off_t(offset))
        case .statistics(let statistics):
            var status = statvfs(statistics)
            fuse_reply_statfs(pointer, &status)
        case .value(let bytes, let room): Self.sendValue(pointer, bytes, room: room)
        }
    }

    /// Sends an extended attribute, or the list of them, as getxattr(2) returns it: only the size if `room` is 0.
    private static func sendValue(_ pointer: fuse_req_t, _ bytes: [UInt8], room: Int) {
        if room == 0 {
            fuse_reply_xattr(pointer, bytes.count)
        } else if bytes.count > room {
            fuse_reply_err(pointer, ERANGE)
        } else {
            bytes.withUnsafeBytes { value in
                let start = value.baseAddress?.assumingMemoryBound(to: CChar.self)
                _ = fuse_reply_buf(pointer, start, value.count)
            }
        }
    }

    /// Returns the pointer, which must be answered now: `deinit` no longer does.
    private consuming func release() -> fuse_req_t {
        let pointer = pointer
        discard self
        return pointer
    }
}

extension fuse_req_t {
    /// Runs `body` with a cancellation, which is cancelled when the calling thread is being killed.
    fileprivate func interruptible<R, E: Error>(_ body: (Cancellation) throws(E) -> R) throws(E) -> R {
        let cancellation = InterruptibleCaller(thread: fuse_req_ctx(self).pointee.pid)
        let data = Unmanaged.passUnretained(cancellation).toOpaque()
        // Called at once if INTERRUPT came before this.
        fuse_req_interrupt_func(self, { _, data in InterruptibleCaller.from(data).noteSignal() }, data)
        // After this returns, the callback is not running either.
        defer { fuse_req_interrupt_func(self, nil, nil) }
        return try body(cancellation.cancellation)
    }
}

/// A request that may take long.
struct LongCall: LongRequest {
    fileprivate let pointer: fuse_req_t
    fileprivate let bridge: Bridge

    func lasting(_ work: (Cancellation) -> Void) {
        bridge.beginLasting()
        defer { bridge.endLasting() }
        pointer.interruptible(work)
    }
}

/// The result of a callback that succeeded.
enum Answer {
    case done
    case entry(Entry)
    case attributes(Attributes, timeout: Double)
    /// The target of a symbolic link.
    case target([UInt8])
    /// Bytes written or copied.
    case written(Int)
    /// The position of data or a hole, for lseek(2).
    case offset(UInt64)
    case statistics(FilesystemStatistics)
    /// Extended attributes, for a caller with a buffer of `room` bytes (0: it asks for the size).
    case value([UInt8], room: Int)
}
