internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// libfuse's session: the connection to the kernel, and the threads that serve it.
///
/// It does not use the threads of `fuse_session_loop_mt`, which ends them by pthread_cancel: that would unwind Swift
/// frames. Unchecked Sendable: libfuse's session may be used from any thread.
final class Session: @unchecked Sendable {
    /// For the notifier.
    let pointer: OpaquePointer
    /// Of the connection.
    var descriptor: Int32 { fuse_session_fd(pointer) }
    /// The callbacks' user data, which must outlive them.
    private let bridge: Bridge
    private let control: ControlPipe
    private let workers = Mutex<[WorkerThread]>([])
    private let running = Atomic<Int>(0)
    private let turn = ReadTurn()

    /// Each may hold a 1 MiB buffer. More workers than cores, because some requests wait (fsync, thumbnails).
    private static let workersAtFirst = 8
    /// Further workers are started so that this many are left for short requests: no number of slow thumbnails holds up
    /// anything else.
    private static let undetainedMin = 4
    private static let workersMax = 64

    /// Nil if libfuse rejects the mount options (its log says why).
    init?(options: String, bridge: Bridge, control: ControlPipe) {
        self.bridge = bridge
        self.control = control
        var table = operationTable()
        let words = ["obscura", "-o", options].map { (word: String) in strdup(word) }
        var pointers: [UnsafeMutablePointer<CChar>?] = words + [nil]
        defer { for word in words { free(word) } }
        let session = pointers.withUnsafeMutableBufferPointer { list in
            var arguments = fuse_args(argc: Int32(words.count), argv: list.baseAddress, allocated: 0)
            defer { fuse_opt_free_args(&arguments) }
            return fuse_session_new(
                &arguments, &table, MemoryLayout.size(ofValue: table),
                Unmanaged.passUnretained(bridge).toOpaque())
        }
        guard let session else { return nil }
        pointer = session
    }

    /// Closes the connection: requests that still wait for an answer fail with ENOTCONN. Does not unmount.
    deinit { fuse_session_destroy(pointer) }

    /// Mounts on `directory`. Returns false on failure (libfuse's log says why).
    func mount(at directory: String) -> Bool {
        guard directory.withPath({ fuse_session_mount(pointer, $0) }) == 0 else { return false }
        var calls = fuse_custom_io()
        let flags = fcntl(descriptor, F_GETFL)
        _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        calls.read = { descriptor, buffer, count, _ in readRequest(descriptor, buffer, count) }
        calls.writev = { descriptor, pieces, count, userData in
            Bridge.from(userData).initialisation.send(descriptor, pieces, count)
        }
        precondition(fuse_session_custom_io(pointer, &calls, descriptor) == 0)
        return true
    }

    /// Starts the workers. The last one to end sends `.ended` to the control pipe.
    func start() throws(Errno) {
        bridge.setWorkerMaker { [weak self] lasting in self?.makeWorkers(besides: lasting) }
        try startWorker()
        startWorkers()
    }

    /// Starts the first workers, as many as the system grants.
    private func startWorkers() {
        while running.load(ordering: .acquiring) < Self.workersAtFirst {
            do throws(Errno) { try startWorker() } catch { return }
        }
    }

    private func startWorker() throws(Errno) {
        running.wrappingAdd(1, ordering: .relaxed)
        do throws(Errno) {
            let worker = try WorkerThread { self.serve() }
            workers.withLock { $0.append(worker) }
        } catch {
            running.wrappingSubtract(1, ordering: .relaxed)
            throw error
        }
    }

    /// Starts another worker if `lasting` long requests leave too few.
    private func makeWorkers(besides lasting: Int) {
        let workerCount = running.load(ordering: .acquiring)
        guard workerCount - lasting < Self.undetainedMin, workerCount < Self.workersMax else { return }
        // If no thread can be started, other requests wait for the first worker that is done.
        try? startWorker()
    }

    /// Serves a request that may take long. Other requests are served meanwhile.
    private func processLasting(_ buffer: inout fuse_buf) {
        bridge.beginLasting()
        turn.pass()
        fuse_session_process_buf(pointer, &buffer)
        bridge.endLasting()
    }

    /// Body of a worker: receives and processes requests until the connection ends or `stop` is called.
    private func serve() {
        var buffer = fuse_buf()
        var number = turn.take()
        while fuse_session_exited(pointer) == 0 {
            if turn.isHeld(number) { turn.willRead() } else { number = turn.take() }
            if fuse_session_exited(pointer) != 0 { break }
            let received = fuse_session_receive_buf(pointer, &buffer)
            if received == -EINTR { continue }
            if received <= 0 { break }
            if let operation = RequestWeight.operation(of: buffer) { bridge.counts.count(operation) }
            let weight = RequestWeight(buffer)
            if weight == .lasting {
                processLasting(&buffer)
                continue
            }
            if isWorthAnotherWorker(weight) { turn.pass() } else { turn.keep() }
            fuse_session_process_buf(pointer, &buffer)
        }
        fuse_session_exit(pointer)
        free(buffer.mem)
        // The next worker to take the turn finds that the session has exited.
        turn.pass()
        if running.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
            control.send(.ended)
        }
    }

    private func isWorthAnotherWorker(_ weight: RequestWeight) -> Bool {
        switch weight {
        case .light: false
        case .heavy: isRequestWaiting
        case .large, .slow, .lasting: true
        }
    }

    private var isRequestWaiting: Bool {
        var connection = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&connection, 1, 0) == 1
    }

    /// Whether the kernel still has the mount, in any directory or for an open file.
    var isConnected: Bool {
        var connection = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&connection, 1, 0) == 0
    }

    /// Makes the workers end after their current requests, although the connection lives. Returns when they have ended.
    func stop() {
        WorkerThread.prepareInterrupts()
        fuse_session_exit(pointer)
        // A worker may have read the flag but not yet be in read(2), so it is interrupted until it has ended.
        while running.load(ordering: .acquiring) > 0 {
            workers.withLock { workers in for worker in workers { worker.interrupt() } }
            usleep(2_000)
        }
        join()
    }

    /// Waits for the workers, which have ended or are about to.
    func join() {
        while let worker = workers.withLock({ $0.popLast() }) { worker.join() }
    }
}
