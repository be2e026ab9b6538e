internal import CShims
internal import Glibc

/// Aborts the connection of a mount whose process was killed and cannot end.
///
/// That process tells the kernel of changed names, for which the kernel takes a directory's lock
/// (`fuse_reverse_inval_entry`) without being interruptible. If a program holds that lock while it waits for an answer
/// of the killed process, both wait for ever: the connection to the kernel lasts until the last thread of the process
/// has ended. Aborted from outside it ends at once.
///
/// The main thread of the process that serves the mount starts the guard, with that process's ID as argument. A byte
/// written to standard input aborts the connection. Returns the exit status.
func runGuard(_ arguments: [String]) -> Int32 {
    guard arguments.count == 2, let daemon = pid_t(arguments[1]) else { return 2 }
    var death = sigset_t()
    sigemptyset(&death)
    sigaddset(&death, SIGUSR1)
    sigprocmask(SIG_BLOCK, &death, nil)
    guard obscura_signal_when_orphaned(SIGUSR1) == 0 else { return 1 }
    // The process may have died before the signal was requested.
    var isRetired = getppid() != daemon
    while !isRetired {
        // The dying thread itself sends the signal. Its state could be read in /proc, but /proc may hide it from users.
        var info = siginfo_t()
        isRetired = sigwaitinfo(&death, &info) == SIGUSR1 && info._sifields._kill.si_pid == daemon
    }
    return write(STDIN_FILENO, "1", 1) == 1 ? 0 : 1
}
