internal import CFuse3
internal import Glibc
internal import LinuxIO

/// A thread of the operating system: libfuse's calls block, which Swift's own tasks must not.
struct WorkerThread: Sendable {
    private let thread: pthread_t

    /// Enough for SQLite and decoding; eight stacks of the default 8 MiB would count where memory is locked.
    private static let stackBytes = 1 << 20

    /// Starts `body`. No signal but `wakeSignal` is delivered to the thread.
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

    /// A signal nobody else uses, ignored by default: it only makes a blocked system call return EINTR.
    private static let wakeSignal = SIGURG

    /// Gives `wakeSignal` a handler that does nothing, without which it would not interrupt.
    static func prepareInterrupts() {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in }
        sigaction(wakeSignal, &action, nil)
    }

    /// Makes the system call the thread is blocked in, if any, return EINTR. After `prepareInterrupts`,
    /// before `join`.
    func interrupt() { pthread_kill(thread, Self.wakeSignal) }
}

private final class Box {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private func runBox(_ box: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    Unmanaged<Box>.fromOpaque(box!).takeRetainedValue().body()
    return nil
}
