internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The turn to wait for the kernel's next request, held by one worker at a time (leader/follower pattern: the holder
/// is the leader, the follower the first follower).
///
/// If all workers waited in read(2), each request would wake another thread, on another core, with cold caches: for
/// small requests that costs more than serving them. Copying 3,000 files of 4 KB took 1.30 times as long then, reading
/// the start of each 1.20, renaming 1,500 of them 1.12, removing all 1.27 (medians of five rounds on two cores).
///
/// So a worker keeps the turn while it serves a quick request, and passes it on before a request that may block, or
/// when more requests are waiting already. A worker that keeps the turn too long loses it to the follower, the first
/// worker that waits for the turn.
/// Unchecked Sendable: `lock` guards the fields that are not atomic.
final class ReadTurn: @unchecked Sendable {
    /// Longest time that a worker may keep the turn without reading.
    private static let keptMillisecondsMax: Int64 = 2
    /// Time without a request after which the follower stops polling and sleeps until it is woken.
    private static let idleMilliseconds: Int64 = 100

    private let lock = Lock()
    private let isFollowersTurn = Condition()
    private let isFollowerNeeded = Condition()
    private var isTaken = false
    private var hasFollower = false
    /// Workers that are neither the leader nor the follower, and have nothing to do.
    private var waiting = 0
    /// Number of the current turn. The holder of another number has lost its turn.
    private let current = Atomic<UInt64>(0)
    /// Start of the request that the holder serves, in monotonic milliseconds; 0 while it reads.
    private let busySince = Atomic<Int64>(0)
    private let lastRequest = Atomic<Int64>(0)
    /// Whether the holder must wake a worker before it serves a request: the follower sleeps, or is to be chosen.
    private let isUnwatched = Atomic<Bool>(false)

    /// Waits for the turn and returns its number.
    func take() -> UInt64 {
        lock.lock()
        defer { lock.unlock() }
        while isTaken {
            if hasFollower {
                waiting += 1
                isFollowerNeeded.wait(lock)
                waiting -= 1
            } else if awaitAsFollower() {
                break
            }
        }
        isTaken = true
        busySince.store(0, ordering: .relaxed)
        return current.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    }

    /// The follower's wait. Returns true if the turn must be taken from its holder. The caller holds `lock`.
    private func awaitAsFollower() -> Bool {
        hasFollower = true
        isUnwatched.store(false, ordering: .relaxed)
        defer {
            hasFollower = false
            // The next one is chosen when it is needed: mostly another worker has come by itself until then.
            isUnwatched.store(waiting > 0, ordering: .relaxed)
        }
        while isTaken {
            let now = MonotonicClock.milliseconds
            let since = busySince.load(ordering: .acquiring)
            if since != 0 && now - since > Self.keptMillisecondsMax { return true }
            if since != 0 || now - lastRequest.load(ordering: .relaxed) < Self.idleMilliseconds {
                isFollowersTurn.wait(lock, untilMilliseconds: now + Self.keptMillisecondsMax)
            } else {
                isUnwatched.store(true, ordering: .sequentiallyConsistent)
                // Checked again: the holder may have become busy before it could see that the follower sleeps.
                if busySince.load(ordering: .sequentiallyConsistent) == 0 { isFollowersTurn.wait(lock) }
                isUnwatched.store(false, ordering: .relaxed)
            }
        }
        return false
    }

    /// Whether turn `number` is still current, neither taken away nor passed on.
    func isHeld(_ number: UInt64) -> Bool { current.load(ordering: .acquiring) == number }

    /// Records that the holder goes back to reading.
    func willRead() { busySince.store(0, ordering: .releasing) }

    /// Records that the holder keeps the turn while it serves a request.
    func keep() {
        let now = MonotonicClock.milliseconds
        lastRequest.store(now, ordering: .relaxed)
        busySince.store(max(1, now), ordering: .sequentiallyConsistent)
        if isUnwatched.load(ordering: .sequentiallyConsistent) { lock.withLock { wakeOne() } }
    }

    /// Passes the turn on to a waiting worker.
    func pass() {
        lock.withLock {
            lastRequest.store(MonotonicClock.milliseconds, ordering: .relaxed)
            isTaken = false
            // The former holder must take a new turn like any other worker.
            current.wrappingAdd(1, ordering: .releasing)
            wakeOne()
        }
    }

    /// Wakes the follower, or a worker that becomes it or takes the turn. To wake all would cost each of them two
    /// changes of the running thread for nothing. The caller holds `lock`.
    private func wakeOne() {
        if hasFollower { isFollowersTurn.signal() } else { isFollowerNeeded.signal() }
    }
}

/// The cost of a request, estimated from its header.
enum RequestWeight {
    /// Served faster than another worker wakes up.
    case light
    /// Worth waking another worker if more requests wait.
    case heavy
    /// A WRITE whose bytes are sealed after its answer, while the program goes on.
    case large
    /// May wait for the disk, or is worth a core of its own.
    case slow
    /// May wait for another process, for seconds.
    case lasting

    /// The number of a request's operation; nil if it has no header.
    static func operation(of request: fuse_buf) -> UInt32? {
        guard request.size >= Header.bytes, let bytes = request.mem else { return nil }
        return bytes.loadUnaligned(fromByteOffset: Header.operationOffset, as: UInt32.self)
    }

    /// Least bytes of a large WRITE: a chunk.
    static let largeWriteBytes = 128 << 10

    init(_ request: fuse_buf) {
        guard let operation = Self.operation(of: request), let bytes = request.mem else {
            self = .slow
            return
        }
        let node = bytes.loadUnaligned(fromByteOffset: Header.nodeOffset, as: UInt64.self)
        // Virtual inodes have high numbers; their content may have to be made first. `obscura check` and
        // `obscura unmount` request their work by GETXATTR on the root.
        if node >= 1 << 60 || node == Header.rootNode && operation == Header.getAttribute {
            self = .lasting
        } else if operation == Header.read, request.size >= Header.readBytes {
            let count = bytes.loadUnaligned(fromByteOffset: Header.readCountOffset, as: UInt32.self)
            self = count > Header.briefReadBytes ? .slow : .heavy
        } else if operation == Header.write {
            self = request.size >= Header.writeBytes + Self.largeWriteBytes ? .large : .heavy
        } else if Header.slowOperations.contains(operation) {
            self = .slow
        } else {
            self = Header.heavyOperations.contains(operation) ? .heavy : .light
        }
    }

    /// The needed part of `struct fuse_in_header` of linux/fuse.h, which is part of the kernel's stable interface.
    private enum Header {
        static let bytes = 40
        static let operationOffset = 4
        static let nodeOffset = 16
        static let rootNode: UInt64 = 1
        /// GETXATTR.
        static let getAttribute: UInt32 = 22
        /// READ, and the end of its `struct fuse_read_in`, whose count follows handle and offset.
        static let read: UInt32 = 15
        static let readBytes = bytes + 40
        static let readCountOffset = bytes + 16
        /// WRITE, and the end of its `struct fuse_write_in`, before the bytes.
        static let write: UInt32 = 16
        static let writeBytes = bytes + 40
        /// A READ of at most this many bytes is one chunk, which takes less time than waking a thread.
        static let briefReadBytes: UInt32 = 128 << 10
        /// FSYNC, FSYNCDIR, FALLOCATE, COPY_FILE_RANGE; a READ that is not brief is slow as well.
        static let slowOperations: [UInt32] = [20, 30, 43, 47]
        /// SETATTR, UNLINK, RENAME, FLUSH, READDIR, READDIRPLUS, RENAME2.
        static let heavyOperations: [UInt32] = [4, 10, 12, 25, 28, 44, 45]
    }
}

/// Time that the holder of the turn spins before it sleeps.
///
/// A program that works through small files sends its next request within microseconds; waking a sleeping thread on an
/// idle core takes longer than serving it. Each iteration yields the core to other threads.
private let spinNanoseconds: Int64 = 150_000

/// read(2) on the non-blocking connection. Waits for a request: spins at first, then sleeps in poll(2).
func readRequest(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    var deadline: Int64 = 0
    while true {
        let received = read(descriptor, buffer, count)
        if received >= 0 || errno != EAGAIN { return received }
        let now = MonotonicClock.nanoseconds
        if deadline == 0 { deadline = now + spinNanoseconds }
        if now < deadline {
            sched_yield()
            continue
        }
        var connection = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if poll(&connection, 1, -1) < 0 { return -1 }
        deadline = 1
    }
}
