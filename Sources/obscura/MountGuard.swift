import Glibc
import LinuxIO

/// The program that aborts this process's connection to the kernel if this process is killed: see `obscura-guard`.
struct MountGuard {
    private let process: pid_t

    /// Starts it. Must be called on the main thread, whose death signals the program that this process died.
    ///
    /// Nil if this user may not abort the connection (without fusectl): the mount works without.
    ///
    /// - Parameter place: the mount point, a resolved path. Nothing may answer for it yet.
    init?(place: String) {
        guard let connection = mountEntry(at: place)?.fuseConnection else { return nil }
        // Opened now, so that it is never the connection of a later mount with the same number.
        let abort = openAbort(ofConnection: connection)
        if abort < 0 { return nil }
        defer { close(abort) }
        guard let started = startBeside("obscura-guard", ["\(getpid())"], input: abort) else { return nil }
        process = started
    }

    /// Ends the program, when nothing is mounted any more.
    func end() {
        kill(process, SIGKILL)
        _ = waitForEnd(of: process)
    }
}
