internal import CShims
internal import Glibc
internal import LinuxIO

/// Starts a program that is given nothing of this process: no environment but `environment`, no signal blocked or
/// ignored, no descriptor but `descriptor` as number 3, `output` as standard output where there is one, and /dev/null.
///
/// It leads a session of its own: the terminal's ^C does not reach it, and one kill of its group ends it with what it
/// has forked. Nil when it cannot be started.
///
/// - Parameters:
///   - command: the program's path, then its arguments.
///   - isInBackground: it only gets the time that nobody else wants.
func spawnAlone(
    _ command: [String], environment: [String], output: Int32? = nil, descriptor: Int32,
    isInBackground: Bool = false
) -> pid_t? {
    let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard nothing >= 0 else { return nil }
    defer { close(nothing) }
    let descriptors = [(nothing, 0), (output ?? nothing, 1), (nothing, 2), (descriptor, Int32(3))]
    guard
        let processID = try? spawn(
            command, environment: environment, descriptors: descriptors, asSession: true)
    else { return nil }
    if isInBackground { moveToBackground(processID) }
    return processID
}

/// Lets a process, and what it forks, have only the time that nobody else wants (sched(7)).
///
/// posix_spawn(3) knows nothing of SCHED_IDLE. Where the kernel divides its time among sessions first, that counts only
/// within one: the session of its own that the process has must come last too (*The autogroup feature*). Where there
/// is no such file it need not.
private func moveToBackground(_ processID: pid_t) {
    var parameters = sched_param()
    _ = sched_setscheduler(processID, shim_SCHED_IDLE, &parameters)
    let file = open("/proc/\(processID)/autogroup", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    defer { close(file) }
    _ = write(file, "19", 2)
}
