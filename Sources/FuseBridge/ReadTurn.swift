internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Whose turn it is to wait for the kernel's next request: one worker at a time.
///
/// If all workers waited in read(2), each request would wake another thread, on another core, with cold caches: for
/// small requests that costs more than serving them. So a worker keeps the turn while it serves a request that is
/// quick, and gives it up before one that may wait, or when more requests are waiting already. Whoever keeps it for
/// longer than expected loses it to the deputy, the first of those that wait for the turn.
/// Unchecked Sendable: `lock` guards what is not atomic.
final class ReadTurn: @unchecked Sendable {
    /// How long a worker may keep the turn without reading.
    private static let keptMillisecondsMax: Int64 = 2
    /// After so long without a request the deputy sleeps until it is woken.
    private static let idleMilliseconds: Int64 = 100

    private let lock = Lock()
    private let change = Condition()
    private var isTaken = false
    private var hasDeputy = false
    /// Number of the turn that counts; another's holder has lost it.
    private let current = Atomic<UInt64>(0)
    /// When the holder began to serve a request, in monotonic milliseconds; 0 while it reads.
    private let busySince = Atomic<Int64>(0)
    private let lastRequest = Atomic<Int64>(0)
    private let isDeputyAsleep = Atomic<Bool>(false)

    /// Waits for the turn; returns its number.
    func take() -> UInt64 {
        lock.lock()
        defer { lock.unlock() }
        while isTaken {
            if hasDeputy {
                change.wait(lock)
            } else if awaitAsDeputy() {
                break
            }
        }
        isTaken = true
        busySince.store(0, ordering: .relaxed)
        return current.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    }

    /// The deputy's wait: true when the turn is to be taken from its holder. `lock` is held.
    private func awaitAsDeputy() -> Bool {
        hasDeputy = true
        defer { hasDeputy = false }
        while isTaken {
            let now = MonotonicClock.milliseconds
            let since = busySince.load(ordering: .acquiring)
            if since != 0 && now - since > Self.keptMillisecondsMax { return true }
            if since != 0 || now - lastRequest.load(ordering: .relaxed) < Self.idleMilliseconds {
                change.wait(lock, untilMilliseconds: now + Self.keptMillisecondsMax)
            } else {
                isDeputyAsleep.store(true, ordering: .sequentiallyConsistent)
                // Looked at once more, as the holder may just not have seen that we sleep.
                if busySince.load(ordering: .sequentiallyConsistent) == 0 { change.wait(lock) }
                isDeputyAsleep.store(false, ordering: .relaxed)
            }
        }
        return false
    }

    /// Whether the turn of that number has not been taken away.
    func isHeld(_ number: UInt64) -> Bool { current.load(ordering: .acquiring) == number }

    /// The holder goes back to reading.
    func willRead() { busySince.store(0, ordering: .releasing) }

    /// The holder keeps the turn while it serves a request.
    func keep() {
        let now = MonotonicClock.milliseconds
        lastRequest.store(now, ordering: .relaxed)
        busySince.store(max(1, now), ordering: .sequentiallyConsistent)
        if isDeputyAsleep.load(ordering: .sequentiallyConsistent) { lock.withLock { change.signalAll() } }
    }

    /// The holder gives the turn to whoever waits for it.
    func pass() {
        lock.withLock {
            lastRequest.store(MonotonicClock.milliseconds, ordering: .relaxed)
            isTaken = false
            // Whoever gave it up has to take it like anybody else.
            current.wrappingAdd(1, ordering: .releasing)
            change.signalAll()
        }
    }
}

/// How much work a request is, as far as its header tells.
enum RequestWeight {
    /// Served sooner than another worker would be awake.
    case light
    /// Worth another worker when more requests wait.
    case heavy
    /// May wait for the disk, or is worth a core of its own.
    case slow
    /// May wait for another process, for seconds.
    case lasting

    init(_ request: fuse_buf) {
        guard request.size >= Header.bytes, let bytes = request.mem else {
            self = .slow
            return
        }
        let operation = bytes.load(fromByteOffset: Header.operationOffset, as: UInt32.self)
        let node = bytes.load(fromByteOffset: Header.nodeOffset, as: UInt64.self)
        // Virtual inodes have high numbers: what is asked of them may have to be made first. Attributes of the root are
        // how `obscura check` and `obscura unmount` ask for their work.
        if node >= 1 << 60 || node == Header.rootNode && operation == Header.getAttribute {
            self = .lasting
        } else if Header.slowOperations.contains(operation) {
            self = .slow
        } else {
            self = Header.heavyOperations.contains(operation) ? .heavy : .light
        }
    }

    /// `struct fuse_in_header` of linux/fuse.h, as far as it is needed here. Part of the kernel's stable interface.
    private enum Header {
        static let bytes = 40
        static let operationOffset = 4
        static let nodeOffset = 16
        static let rootNode: UInt64 = 1
        /// GETXATTR.
        static let getAttribute: UInt32 = 22
        /// READ, FSYNC, FSYNCDIR, FALLOCATE, COPY_FILE_RANGE.
        static let slowOperations: [UInt32] = [15, 20, 30, 43, 47]
        /// SETATTR, UNLINK, RENAME, WRITE, FLUSH, READDIR, READDIRPLUS, RENAME2.
        static let heavyOperations: [UInt32] = [4, 10, 12, 16, 25, 28, 44, 45]
    }
}

/// How long the holder of the turn asks again and again before it sleeps.
///
/// A program that works through small files sends its next request within microseconds; waking a sleeping thread on an
/// idle core takes longer than serving it. Whoever else wants the core gets it at each turn of the loop.
private let spinNanoseconds: Int64 = 150_000

/// read(2) on the connection, which does not block: waits for a request, awake at first.
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
