import CShims
import Glibc

/// Runs `body` on a new detached thread.
package func startThread(_ body: @escaping @Sendable () -> Void) {
    precondition(startThreadIfPossible(body), "no thread could be started")
}

/// As `startThread`; false if no thread can be created.
package func startThreadIfPossible(_ body: @escaping @Sendable () -> Void) -> Bool {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(body))
    let status = pthread_create(
        &thread, nil,
        { argument in
            guard let argument else { return nil }
            Processors.releaseThread()
            Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, box.toOpaque())
    guard status == 0 else {
        box.release()
        return false
    }
    pthread_detach(thread)
    return true
}

/// Names the calling thread in /proc/PID/task/TID/comm, which every user may read: at most 15 bytes.
public func nameThread(_ name: String) { _ = obscura_set_process_name(name) }

/// Runs `body` while the signals by which users end a program are held back from this thread; they come afterwards.
public func withoutInterruption<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    var (held, previous) = (sigset_t(), sigset_t())
    sigemptyset(&held)
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] { sigaddset(&held, signal) }
    pthread_sigmask(SIG_BLOCK, &held, &previous)
    defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
    return try body()
}
