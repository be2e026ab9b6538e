internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// FUSE over io_uring: requests by rings of shared memory instead of read(2) and write(2) on /dev/fuse, where only
/// FORGET, INTERRUPT, INIT and notifications stay. libfuse 3.14 does not know of it; it gets each request as if it had
/// read it, and its answers come back by the custom I/O.
///
/// Unchecked Sendable: the queues are; the rest is immutable or atomic.
final class Rings: @unchecked Sendable {
    let plan: RingPlan
    private let memory: UnsafeMutableRawPointer
    private var queues: [RingQueue] = []
    private let didRefuse: @Sendable () -> Void
    private let process: @Sendable (inout fuse_buf) -> Void
    private let refused = Atomic<Bool>(false)
    private let started = Atomic<Bool>(false)
    /// Requests whose INTERRUPT came before libfuse knew them.
    private let early = Mutex<Set<UInt64>>([])
    private let earlyCount = Atomic<Int>(0)
    private static let earlyMax = 1024

    /// Whether requests come by the rings.
    var areUsed: Bool { started.load(ordering: .relaxed) && !refused.load(ordering: .relaxed) }

    /// Makes the rings. Nil if the kernel refuses. Nothing is sent before `start`.
    ///
    /// - Parameters:
    ///   - connection: the descriptor of /dev/fuse.
    ///   - didRefuse: called if the kernel uses /dev/fuse nevertheless.
    ///   - process: has libfuse process a request. Both are called until `stop` returns.
    init?(
        _ plan: RingPlan, connection: Int32, didRefuse: @escaping @Sendable () -> Void,
        process: @escaping @Sendable (inout fuse_buf) -> Void
    ) {
        self.plan = plan
        self.didRefuse = didRefuse
        self.process = process
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let memory = mmap(nil, plan.bytes, PROT_READ | PROT_WRITE, flags, -1, 0)
        guard let memory, memory != MAP_FAILED else { return nil }
        self.memory = memory
        for number in 0..<plan.queues {
            guard let commands = RingCommands(connection: connection, queue: number, depth: plan.depth) else {
                return nil
            }
            let entries = (0..<plan.depth).map { index in
                RingEntry(
                    index: index, at: memory + (number * plan.depth + index) * plan.entryBytes,
                    payloadBytes: plan.payloadBytes)
            }
            queues.append(
                RingQueue(
                    commands, entries, processor: number,
                    didRegister: { [unowned self] in noteRegistered($0) }
                ) {
                    [unowned self] entry, request in
                    entry.serving {
                        repeatInterrupt(of: entry.request)
                        process(&request)
                    }
                })
        }
    }

    deinit {
        // The kernel writes to no entry after its ring is gone.
        queues = []
        munmap(memory, plan.bytes)
    }

    private func noteRegistered(_ isAccepted: Bool) {
        guard !isAccepted, !refused.exchange(true, ordering: .acquiringAndReleasing) else { return }
        didRefuse()
    }

    /// Call it instead of `start` if the kernel does not offer FUSE over io_uring.
    func giveUp() { noteRegistered(false) }

    /// Hands the entries to the kernel, once it has the answer to INIT that announced them. From then on it waits for
    /// all of them; if there are none, it must be told.
    func start() {
        started.store(true, ordering: .relaxed)
        for queue in queues {
            do throws(Errno) { try queue.start() } catch {
                queue.refuse()
                noteRegistered(false)
            }
        }
    }

    /// Ends all threads after their current requests.
    func stop() { for queue in queues { queue.stop() } }

    // MARK: Answers

    /// Takes an answer of libfuse. Returns its bytes, or nil if it belongs on /dev/fuse.
    func send(_ pieces: UnsafeMutablePointer<iovec>?, _ count: Int32) -> Int? {
        let pieces = UnsafeBufferPointer(start: pieces, count: Int(count))
        guard let header = pieces.first?.iov_base, pieces[0].iov_len >= AnswerHeader.bytes else { return nil }
        let number = header.loadUnaligned(fromByteOffset: AnswerHeader.number, as: UInt64.self)
        if let entry = RingEntry.served, entry.request == number {
            entry.answer(pieces)
        } else if number & AnswerHeader.interruptMark != 0 && areUsed {
            // libfuse asks the kernel to repeat an INTERRUPT. It cannot, for a request of a ring.
            noteEarly(number & ~AnswerHeader.interruptMark)
        } else {
            return nil
        }
        return pieces.reduce(0) { $0 + $1.iov_len }
    }

    private enum AnswerHeader {
        static let bytes = 16
        static let number = 8
        /// FUSE_INT_REQ_BIT: the number of an INTERRUPT is that of its request, and this.
        static let interruptMark: UInt64 = 1
    }

    private func noteEarly(_ request: UInt64) {
        early.withLock { early in
            // Most are of requests that have been answered meanwhile.
            if early.count >= Self.earlyMax { early = [] }
            early.insert(request)
            earlyCount.store(early.count, ordering: .sequentiallyConsistent)
        }
        // Its thread may have looked for it just before.
        if queues.contains(where: { $0.serves(request) }) { repeatInterrupt(of: request) }
    }

    /// Tells libfuse of an INTERRUPT that came before its request.
    private func repeatInterrupt(of request: UInt64) {
        guard earlyCount.load(ordering: .sequentiallyConsistent) > 0 else { return }
        let isEarly = early.withLock { early in
            defer { earlyCount.store(early.count, ordering: .sequentiallyConsistent) }
            return early.remove(request) != nil
        }
        guard isEarly else { return }
        // A `struct fuse_in_header` and a `struct fuse_interrupt_in`.
        withUnsafeTemporaryAllocation(byteCount: Interrupt.bytes, alignment: 8) { bytes in
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            bytes.storeBytes(of: UInt32(Interrupt.bytes), as: UInt32.self)
            bytes.storeBytes(of: Interrupt.operation, toByteOffset: 4, as: UInt32.self)
            bytes.storeBytes(
                of: request | AnswerHeader.interruptMark, toByteOffset: AnswerHeader.number, as: UInt64.self)
            bytes.storeBytes(of: request, toByteOffset: 40, as: UInt64.self)
            var buffer = fuse_buf()
            (buffer.size, buffer.mem) = (Interrupt.bytes, bytes.baseAddress)
            process(&buffer)
        }
    }

    private enum Interrupt {
        static let bytes = 48
        static let operation: UInt32 = 36
    }
}
