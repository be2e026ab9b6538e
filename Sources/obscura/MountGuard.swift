import Glibc
import LinuxIO

/// The program that aborts the connection of this process to the kernel, should this process be killed: see there.
struct MountGuard {
    private let process: pid_t

    /// Starts it. To be called on the main thread: with that the program is told that this process died.
    ///
    /// Nil where this user may not abort it (without fusectl): the mount lives on without.
    ///
    /// - Parameter place: where it is mounted, a real path. Nobody may answer for it yet.
    init?(place: String) {
        guard let connection = mountEntry(at: place)?.fuseConnection else { return nil }
        // Opened now, it never is the connection of a later mount that has got the number.
        let abort = openAbort(ofConnection: connection)
        if abort < 0 { return nil }
        defer { close(abort) }
        guard let started = startBeside("obscura-guard", ["\(getpid())"], input: abort) else { return nil }
        process = started
    }

    /// Ends it, when nothing is mounted any more.
    func end() {
        kill(process, SIGKILL)
        _ = waitForEnd(of: process)
    }
}
