internal import CShims
internal import Glibc
internal import LinuxIO

/// Frees whoever waits for a mount whose process was killed, and cannot end.
///
/// That process tells the kernel of changed names, for which the kernel takes a directory's lock
/// (`fuse_reverse_inval_entry`), and nothing interrupts it there. Where a program holds that lock while it waits for an
/// answer of the killed process, both wait for ever: the connection to the kernel lasts until the last thread of the
/// process has ended. Aborted by somebody else it ends at once.
///
/// Started by the main thread of the process that serves the mount, with that process's id as argument; what is written
/// to standard input aborts the connection. Returns the exit status.
func runGuard(_ arguments: [String]) -> Int32 {
    guard arguments.count == 2, let daemon = pid_t(arguments[1]) else { return 2 }
    var death = sigset_t()
    sigemptyset(&death)
    sigaddset(&death, SIGUSR1)
    sigprocmask(SIG_BLOCK, &death, nil)
    guard obscura_signal_when_orphaned(SIGUSR1) == 0 else { return 1 }
    // It may have died before it was asked for.
    var isDead = getppid() != daemon || hasDied(daemon)
    while !isDead {
        var signal: Int32 = 0
        sigwait(&death, &signal)
        isDead = isDying(daemon)
    }
    return write(STDIN_FILENO, "1", 1) == 1 ? 0 : 1
}

/// The signal comes a moment before it can be seen of what; anybody may have sent it, too.
private func isDying(_ process: pid_t) -> Bool {
    for _ in 0..<200 {
        if hasDied(process) { return true }
        usleep(5000)
    }
    return false
}

/// Whether the main thread has ended; others may be waiting in the kernel still.
private func hasDied(_ process: pid_t) -> Bool {
    guard let text = contents(ofFile: "/proc/\(process)/stat") else { return true }
    // The name before it may hold anything.
    guard let end = text.lastIndex(of: UInt8(ascii: ")")), end + 2 < text.count else { return false }
    return [UInt8(ascii: "Z"), UInt8(ascii: "X")].contains(text[end + 2])
}
