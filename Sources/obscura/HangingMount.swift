import CShims
import Glibc
import HostFiles
import LinuxIO

/// A living mount answers within this time, unless its disk is very slow.
private let answerMilliseconds: Int32 = 10_000

/// Aborts the connection to the kernel of a mount whose process was killed and cannot end. Normally `obscura-guard`
/// does so, and explains why. If it was killed as well, requests to that mount wait for ever.
func freeHangingMount(_ directory: String) throws(Failure) {
    let place = realPath(directory)
    guard let entry = mountEntry(at: place), entry.isObscura, let connection = entry.fuseConnection
    else { return }
    let answer = ask(place)
    guard answer != .success else { return }
    if let daemon = findDaemon(of: place) {
        close(daemon)
        return
    }
    // Where processes are hidden (proc(5), hidepid), not finding it proves nothing: a slow mount must not be cut off.
    guard contents(ofFile: "/proc/1/cmdline") != nil else { return }
    let abort = openAbort(ofConnection: connection)
    guard abort >= 0 else {
        if answer == .error { return }
        throw Failure(.failed, directory, "the mount here is dead and hangs: as root, run obscura unmount")
    }
    defer { close(abort) }
    guard write(abort, "1", 1) == 1 || answer == .error else {
        throw Failure(directory, "ending the dead mount here", .last)
    }
}

/// Throws if the mount at `directory` does not answer in time: nothing ends a process that waits for it.
func requireAnswer(_ directory: String) throws(Failure) {
    if ask(realPath(directory)) == .none { throw hangingFailure(directory) }
}

/// The message about a mount that does not answer.
func hangingFailure(_ directory: String) -> Failure {
    Failure(
        .failed, directory,
        "the mount does not answer: its process, or the disk of its vault, hangs; obscura unmount ends it")
}

private enum MountAnswer { case success, error, none }

/// The mount's answer to statvfs(3). A child process asks, because nothing ends a process that waits.
private func ask(_ place: String) -> MountAnswer {
    let process = shim_fork()
    if process == 0 {
        // A program that reads this one's output must not wait for a hanging child.
        for descriptor in STDIN_FILENO...STDERR_FILENO { Glibc.close(descriptor) }
        var usage = statvfs()
        _exit(place.withPath { statvfs($0, &usage) } == 0 ? 0 : 1)
    }
    // If that cannot be found out, it is assumed to be well.
    let end = process > 0 ? obscura_pidfd_open(process) : -1
    if end < 0 { return .success }
    defer { close(end) }
    var wanted = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
    guard poll(&wanted, 1, answerMilliseconds) > 0 else { return .none }
    return waitForEnd(of: process) == .exited(0) ? .success : .error
}

/// A descriptor of the process that serves the mount at `place`; nil if it is gone already.
func findDaemon(of place: String) -> Int32? {
    runningDaemon(of: place).flatMap { $0.open() }
}
