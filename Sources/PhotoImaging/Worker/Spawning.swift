internal import CShims
internal import Glibc
internal import LinuxIO

/// Starts a program that inherits nothing from this process: no environment but `environment`, no blocked or ignored
/// signals, no descriptors but `descriptor` as number 3, `output` (if any) as standard output, and /dev/null.
///
/// The program leads its own session: the terminal's ^C does not reach it, and killing its process group also ends its
/// forks. Nil if it cannot be started.
///
/// - Parameters:
///   - command: the program's path, then its arguments.
///   - isInBackground: runs only on idle processor time (SCHED_IDLE).
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

/// Restricts a process and its forks to idle processor time (SCHED_IDLE, sched(7)), which posix_spawn(3) cannot.
private func moveToBackground(_ processID: pid_t) {
    var parameters = sched_param()
    _ = sched_setscheduler(processID, shim_SCHED_IDLE, &parameters)
    lowerSession(of: processID, to: 19)
}

/// Gives a session less processor time than others, as nice(1) does for a process.
///
/// With autogrouping the kernel divides time among sessions first, and the priority of a process counts only within its
/// session (sched(7), *The autogroup feature*). Without the autogroup file this is not needed.
func lowerSession(of processID: pid_t, to niceness: Int32) {
    let file = open("/proc/\(processID)/autogroup", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    defer { close(file) }
    let text = Array("\(niceness)".utf8)
    _ = write(file, text, text.count)
}
