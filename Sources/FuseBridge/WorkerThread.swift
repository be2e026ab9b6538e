internal import CFuse3
internal import Glibc
internal import LinuxIO

/// A POSIX thread. libfuse's calls block, which Swift's tasks must not.
struct WorkerThread: Sendable {
    private let thread: pthread_t

    /// Enough for SQLite and decoding. Eight stacks of the default 8 MiB would count where memory is locked.
    private static let stackBytes = 1 << 20

    /// Starts `body`. Only `wakeSignal` is delivered to the thread.
    init(_ body: @escaping @Sendable () -> Void) throws(Errno) {
        var (all, previous) = (sigset_t(), sigset_t())
        sigfillset(&all)
        sigdelset(&all, Self.wakeSignal)
        pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, Self.stackBytes)
        var thread = pthread_t()
        let box = Unmanaged.passRetained(Box(body))
        let result = pthread_create(&thread, &attributes, runBox, box.toOpaque())
        guard result == 0 else {
            box.release()
            throw Errno(result)
        }
        self.thread = thread
    }

    func join() { pthread_join(thread, nil) }

    /// Whether this is the calling thread.
    var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// In place of `join`.
    func detach() { pthread_detach(thread) }

    /// A signal without any other use here, ignored by default. It only makes a blocked system call return EINTR.
    private static let wakeSignal = SIGURG

    /// Installs an empty handler for `wakeSignal`; without a handler the signal would not interrupt.
    static func prepareInterrupts() {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in }
        sigaction(wakeSignal, &action, nil)
    }

    /// Makes the system call in which the thread is blocked, if any, return EINTR. Call it after `prepareInterrupts`
    /// and before `join`.
    func interrupt() { pthread_kill(thread, Self.wakeSignal) }
}

private final class Box {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private func runBox(_ box: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    Processors.releaseThread()
    Unmanaged<Box>.fromOpaque(box!).takeRetainedValue().body()
    return nil
}
