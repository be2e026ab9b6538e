internal import Glibc
internal import Synchronization

/// A slot for one worker. Only the thread that has taken the slot from the pool may use the worker; others may only
/// `interrupt` it.
final class WorkerSlot: Sendable {
    /// Set and cleared only by the slot's holder. The lock makes `interrupt` safe: a process in here has not been
    /// reaped, so its PID has not been reused.
    private let process = Mutex<WorkerProcess?>(nil)

    /// The slot's worker, started now if there is none. `mayStart` is called under the lock. Nil if it returns false,
    /// the worker cannot be started, or no greeting arrives within `milliseconds`.
    func worker(
        executable: String, arguments: [String], isInBackground: Bool, helloWithin milliseconds: Int,
        mayStart: () -> Bool
    ) -> WorkerProcess? {
        let (worker, isNew) = process.withLock { process -> (WorkerProcess?, Bool) in
            if let process { return (process, false) }
            guard mayStart() else { return (nil, false) }
            process = WorkerProcess.spawn(
                executable: executable, arguments: arguments, isInBackground: isInBackground)
            return (process, true)
        }
        guard let worker, isNew else { return worker }
        if case .words([WorkerProtocol.greeting]) = worker.receive(within: milliseconds) { return worker }
        retire()
        return nil
    }

    /// Ends the worker, if there is one.
    func retire() {
        let worker = process.withLock { process in
            defer { process = nil }
            return process
        }
        worker?.end()
    }

    /// Kills the worker from another thread while the holder uses it. The holder finds the socket closed.
    func interrupt() {
        process.withLock { $0?.kill() }
    }
}

/// A thread waiting for its turn.
final class Waiter: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    /// Written before `wake`, read after `wait`: the semaphore orders the two.
    private var slot: WorkerSlot?

    init() {
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Makes `wait` return `slot`. Call once.
    func wake(with slot: WorkerSlot?) {
        self.slot = slot
        sem_post(semaphore)
    }

    /// Blocks until `wake`.
    func wait() -> WorkerSlot? {
        while sem_wait(semaphore) != 0 {}
        return slot
    }
}
