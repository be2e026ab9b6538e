internal import Glibc
internal import Synchronization

/// The pipe the signal handler writes to, or -1. A process has one set of signal handlers, hence a global.
private let signalDescriptor = Atomic<Int32>(-1)

/// While an instance exists, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPWR (the machine is about to sleep) and SIGUSR1
/// (unwritten data is given up) become control events, and signals that mean nothing to a mount are ignored.
///
/// Uses handlers rather than blocked signals: the library's own threads, started before, would take an unblocked
/// signal, which would end the process.
final class SignalWatch {
    private static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPWR, SIGUSR1]
    /// Whether this process had a terminal when it was first asked for. Then SIGHUP says that it was closed.
    static let hasTerminal = {
        let terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
        if terminal >= 0 { close(terminal) }
        return terminal >= 0
    }()
    private var previous: [(number: Int32, action: sigaction)] = []

    init(_ control: ControlPipe) {
        _ = Self.hasTerminal
        signalDescriptor.store(control.writeEnd, ordering: .sequentiallyConsistent)
        for number in Self.numbers { install(number, sendToPipe) }
        for number in [SIGPIPE, SIGALRM, SIGUSR2] { install(number, SIG_IGN) }
    }

    private func install(_ number: Int32, _ handler: __sighandler_t?) {
        var (action, old) = (sigaction(), sigaction())
        action.__sigaction_handler.sa_handler = handler
        action.sa_flags = SA_RESTART
        sigaction(number, &action, &old)
        previous.append((number, old))
    }

    deinit {
        for (number, action) in previous {
            var action = action
            sigaction(number, &action, nil)
        }
        signalDescriptor.store(-1, ordering: .sequentiallyConsistent)
    }
}

/// Runs in a signal handler: makes one write(2) and preserves errno.
private func sendToPipe(_ number: Int32) {
    let saved = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(signalDescriptor.load(ordering: .relaxed), &byte, 1)
    errno = saved
}
