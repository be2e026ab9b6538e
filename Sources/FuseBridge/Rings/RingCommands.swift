internal import CUring
internal import Glibc

/// A completed command of a ring.
enum RingCompletion {
    /// The kernel has put a request into this entry.
    case request(entry: Int)
    /// The entry's command failed with this error number.
    case failure(entry: Int, Int32)
    /// `wake` was called.
    case wakeup
}

/// The commands by which a queue talks to the kernel; tests have a kernel of their own. Not thread-safe, except for
/// `wake` and `hasCompletions`.
protocol RingCommanding: AnyObject {
    /// Ends a wait. May be called by any thread at any time.
    func wake()
    /// Prepares to hand an entry to the kernel for the first time.
    func prepareRegister(_ entry: RingEntry)
    /// Prepares a REGISTER without buffers, which the kernel refuses: it then uses /dev/fuse for the connection.
    func prepareRefusal()
    /// Prepares to give an answered entry back, for the next request.
    func prepareCommit(_ entry: RingEntry)
    /// Prepares for the next `wake`.
    func prepareWakeup()
    /// Whether a completion can be taken without a system call.
    var hasCompletions: Bool { get }
    /// Whether a completion that is there is a failure. None is taken.
    var hasFailed: Bool { get }
    /// Submits what is prepared, if anything is.
    func submit()
    /// Submits what is prepared and waits until there is a completion, or a signal comes.
    func submitAndWait()
    /// Takes the completions that are there.
    func takeCompletions(_ body: (RingCompletion) -> Void)
}

/// One io_uring instance with commands for a FUSE connection. Its owner holds a lock for each call.
final class RingCommands: RingCommanding {
    private let ring: UnsafeMutablePointer<io_uring>
    private let connection: Int32
    private let queue: UInt16
    private let wakeups: Int32

    private static let wakeupMark = UInt64.max
    private static let batch = 64

    /// Offsets in `struct io_uring_sqe`, and the numbers of FUSE's commands (`enum fuse_uring_cmd`, linux/fuse.h),
    /// which the headers of Debian 12 lack. The command's own bytes are flags, commit ID (64 bits each) and queue (16
    /// bits).
    private enum Submission {
        static let bytes = 128
        static let operation = 0
        static let descriptor = 4
        static let command = 8
        static let address = 16
        static let count = 24
        static let mark = 32
        static let commit = 56
        static let queue = 64
        static let register: UInt32 = 1
        static let commitAndFetch: UInt32 = 2
    }

    /// Nil if the kernel refuses: no memory, or io_uring is forbidden, in part or as a whole.
    ///
    /// - Parameters:
    ///   - connection: the descriptor of /dev/fuse.
    ///   - depth: the number of entries.
    init?(connection: Int32, queue: Int, depth: Int) {
        self.connection = connection
        self.queue = UInt16(queue)
        ring = .allocate(capacity: 1)
        ring.initialize(to: io_uring())
        var parameters = io_uring_params()
        for flag in [IORING_SETUP_SQE128, IORING_SETUP_CQSIZE, IORING_SETUP_CLAMP] {
            parameters.flags |= UInt32(flag)
        }
        parameters.cq_entries = UInt32(4 * (depth + 2))
        wakeups = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard wakeups >= 0 else {
            ring.deallocate()
            return nil
        }
        guard io_uring_queue_init_params(UInt32(depth + 2), ring, &parameters) == 0 else {
            close(wakeups)
            ring.deallocate()
            return nil
        }
        // Once INIT's answer has announced the rings, the kernel waits for them: they must work before that.
        guard canSubmit else { return nil }
    }

    /// Whether the kernel takes and completes a command that does nothing.
    private var canSubmit: Bool {
        guard let place = io_uring_get_sqe(ring) else { return false }
        memset(UnsafeMutableRawPointer(place), 0, Submission.bytes)
        io_uring_prep_nop(place)
        guard io_uring_submit_and_wait(ring, 1) == 1, hasCompletions else { return false }
        io_uring_cq_advance(ring, 1)
        return true
    }

    deinit {
        io_uring_queue_exit(ring)
        close(wakeups)
        ring.deallocate()
    }

    func wake() { eventfd_write(wakeups, 1) }

    private func prepare(_ command: UInt32, mark: UInt64) -> UnsafeMutableRawPointer? {
        // There are as many places as entries, and each entry has one command at a time.
        guard let place = io_uring_get_sqe(ring).map({ UnsafeMutableRawPointer($0) }) else { return nil }
        memset(place, 0, Submission.bytes)
        place.storeBytes(
            of: UInt8(IORING_OP_URING_CMD.rawValue), toByteOffset: Submission.operation, as: UInt8.self)
        place.storeBytes(of: connection, toByteOffset: Submission.descriptor, as: Int32.self)
        place.storeBytes(of: command, toByteOffset: Submission.command, as: UInt32.self)
        place.storeBytes(of: mark, toByteOffset: Submission.mark, as: UInt64.self)
        place.storeBytes(of: queue, toByteOffset: Submission.queue, as: UInt16.self)
        return place
    }

    func prepareRegister(_ entry: RingEntry) {
        guard let place = prepare(Submission.register, mark: UInt64(entry.index)) else { return }
        place.storeBytes(
            of: UInt64(UInt(bitPattern: entry.places)), toByteOffset: Submission.address, as: UInt64.self)
        place.storeBytes(of: 2, toByteOffset: Submission.count, as: UInt32.self)
    }

    func prepareRefusal() { _ = prepare(Submission.register, mark: 0) }

    func prepareCommit(_ entry: RingEntry) {
        guard let place = prepare(Submission.commitAndFetch, mark: UInt64(entry.index)) else { return }
        place.storeBytes(of: entry.commit, toByteOffset: Submission.commit, as: UInt64.self)
    }

    func prepareWakeup() {
        guard let place = io_uring_get_sqe(ring) else { return }
        memset(UnsafeMutableRawPointer(place), 0, Submission.bytes)
        io_uring_prep_poll_add(place, wakeups, UInt32(POLLIN))
        io_uring_sqe_set_data64(place, Self.wakeupMark)
    }

    var hasCompletions: Bool { io_uring_cq_ready(ring) > 0 }

    var hasFailed: Bool {
        withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<io_uring_cqe>?.self, capacity: Self.batch) {
            list in
            let count = io_uring_peek_batch_cqe(ring, list.baseAddress, UInt32(Self.batch))
            return (0..<Int(count)).contains { (list[$0]?.pointee.res ?? 0) < 0 }
        }
    }

    func submit() {
        while io_uring_sq_ready(ring) > 0 {
            let result = io_uring_submit(ring)
            if result == -EAGAIN || result == -ENOMEM {
                // The kernel has no memory for it now.
                usleep(1_000)
            } else if result < 0 && result != -EINTR {
                // It stays prepared until completions have been taken.
                return
            }
        }
    }

    func submitAndWait() { io_uring_submit_and_wait(ring, 1) }

    func takeCompletions(_ body: (RingCompletion) -> Void) {
        withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<io_uring_cqe>?.self, capacity: Self.batch) {
            list in
            let count = io_uring_peek_batch_cqe(ring, list.baseAddress, UInt32(Self.batch))
            for index in 0..<Int(count) {
                guard let completion = list[index]?.pointee else { continue }
                if completion.user_data == Self.wakeupMark {
                    var count: eventfd_t = 0
                    eventfd_read(wakeups, &count)
                    body(.wakeup)
                } else if completion.res < 0 {
                    body(.failure(entry: Int(completion.user_data), -completion.res))
                } else {
                    body(.request(entry: Int(completion.user_data)))
                }
            }
            io_uring_cq_advance(ring, count)
        }
    }
}
