internal import CFuse3
internal import FileRequests
internal import Glibc
internal import LinuxIO
internal import PhotoLibrary
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
    /// Nil if the vault's host always answers.
    private(set) var watch: RequestWatch?
    /// Is told of changes by requests whose answers the kernel did not take.
    private weak var observer: (any TreeObserver)?

    /// Each may hold a 1 MiB buffer. More workers than cores, because some requests wait (fsync, thumbnails).
    private static let workersAtFirst = 8
    /// Further workers are started so that this many are left for short requests: no number of slow thumbnails holds up
    /// anything else.
    private static let undetainedMin = 4
    private static let workersMax = 64
    /// The same while the vault's host does not answer. Requests that nobody reads end with their callers, so that this
    /// bounds only those that could be served meanwhile.
    private static let workersMaxWaiting = 256

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

    /// Lets programs end that are killed while the vault's host does not answer. Call before `start`.
    func watchRequests(telling observer: any TreeObserver) {
        self.observer = observer
        watch = RequestWatch(descriptor: descriptor)
    }

    /// Starts the workers. The last one to end sends `.ended` to the control pipe.
    func start() throws(Errno) {
        try watch?.start { [weak self] in self?.replaceDetained($0) }
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

    /// Starts workers in the place of so many that are detained.
    private func replaceDetained(_ detained: Int) {
        while fuse_session_exited(pointer) == 0 {
            let workerCount = running.load(ordering: .acquiring)
            guard workerCount - detained < Self.undetainedMin, workerCount < Self.workersMaxWaiting else {
                return
            }
            do throws(Errno) { try startWorker() } catch { return }
        }
    }

    /// Serves a request that may take long. Other requests are served meanwhile.
    private func processLasting(_ buffer: inout fuse_buf) {
        bridge.beginLasting()
        turn.pass()
        serve(&buffer)
        bridge.endLasting()
    }

    /// Body of a worker: receives and processes requests until the connection ends or `stop` is called.
    private func serve() {
        var buffer = fuse_buf()
        defer { free(buffer.mem) }
        let place = watch?.enter()
        defer { if let watch, let place { watch.leave(place) } }
        var number = turn.take()
        while fuse_session_exited(pointer) == 0 {
            if turn.isHeld(number) { turn.willRead() } else { number = turn.take() }
            if fuse_session_exited(pointer) != 0 { break }
            let received = fuse_session_receive_buf(pointer, &buffer)
            if received == -EINTR { continue }
            if received <= 0 { break }
            if let operation = RequestWeight.operation(of: buffer) { bridge.counts.count(operation) }
            guard let watch, let place else {
                process(&buffer)
                continue
            }
            processWatched(&buffer, watch, place)
            if !turn.isHeld(number), retireIfSurplus() { return }
        }
        fuse_session_exit(pointer)
        // The next worker to take the turn finds that the session has exited.
        turn.pass()
        if running.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
            control.send(.ended)
        }
    }

    private func process(_ buffer: inout fuse_buf) {
        let weight = RequestWeight(buffer)
        if weight == .lasting { return processLasting(&buffer) }
        if isWorthAnotherWorker(weight) { turn.pass() } else { turn.keep() }
        serve(&buffer)
    }

    @inline(__always)
    private func serve(_ buffer: inout fuse_buf) {
        #if DEBUG
            watch?.waitIfHeld(buffer)
        #endif
        fuse_session_process_buf(pointer, &buffer)
    }

    /// As `process`, where the host may not answer.
    private func processWatched(_ buffer: inout fuse_buf, _ watch: RequestWatch, _ place: RequestWatch.Place)
    {
        switch watch.begin(buffer, by: place) {
        case .kept: return
        case .now: process(&buffer)
        case .after(let number):
            turn.pass()
            if watch.awaitTurn(after: number, by: place) { serve(&buffer) }
        }
        guard let abandoned = watch.end(place) else { return }
        refreshKernel(after: abandoned.request, buffer)
        watch.finish(abandoned)
        watch.serveKept(by: place) { serve(&$0) }
    }

    /// Drops from the kernel's caches what a request may have changed whose answer came too late.
    private func refreshKernel(after request: RequestHeader, _ buffer: fuse_buf) {
        guard request.changes, let observer else { return }
        let effect = request.effect(buffer)
        for dentry in effect.names {
            observer.invalidateEntry(parent: dentry.parent, name: Name(dentry.name), isInDay: true)
        }
        for ino in effect.inodes { observer.invalidateInode(ino) }
        // A name that is gone was one of several, maybe.
        if !effect.names.isEmpty { bridge.library.announceUnwritten() }
    }

    /// Returns whether the calling worker is one too many, and must return.
    private func retireIfSurplus() -> Bool {
        var workerCount = running.load(ordering: .relaxed)
        while workerCount > Self.workersMax {
            let (isExchanged, seen) = running.compareExchange(
                expected: workerCount, desired: workerCount - 1, ordering: .acquiringAndReleasing)
            if isExchanged {
                workers.withLock { workers in
                    // One that is not in the list yet is joined at the end.
                    guard let index = workers.firstIndex(where: \.isCurrent) else { return }
                    workers.remove(at: index).detach()
                }
                return true
            }
            workerCount = seen
        }
        return false
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

    /// The number of workers.
    var workerCount: Int { running.load(ordering: .relaxed) }

    /// Whether the kernel still has the mount, in any directory or for an open file.
    var isConnected: Bool {
        var connection = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&connection, 1, 0) == 0
    }

    /// Makes the workers end after their current requests, although the connection lives. Returns when they have ended.
    func stop() {
        WorkerThread.prepareInterrupts()
        fuse_session_exit(pointer)
        interruptWorkers()
        watch?.stop()
        // The watch may have started one more.
        interruptWorkers()
        join()
    }

    /// Returns when no worker is left. One may have read the flag but not yet be in read(2), so it is interrupted until
    /// it has ended.
    private func interruptWorkers() {
        while running.load(ordering: .acquiring) > 0 {
            workers.withLock { workers in for worker in workers { worker.interrupt() } }
            usleep(2_000)
        }
    }

    /// Waits for the workers, which have ended or are about to.
    func join() {
        while let worker = workers.withLock({ $0.popLast() }) { worker.join() }
    }
}
