internal import CShims
internal import Glibc

/// Starts a program that is given nothing of this process: no environment but `environment`, no signal blocked or
/// ignored, no descriptor but `descriptor` as number 3, `output` as standard output where there is one, and /dev/null.
///
/// It leads a session of its own: the terminal's ^C does not reach it, and one kill of its group ends it with what it
/// has forked. Nil when it cannot be started. `output` must be above 3.
///
/// - Parameters:
///   - command: the program's path, then its arguments.
///   - isInBackground: it only gets the time that nobody else wants.
func spawnAlone(
    _ command: [String], environment: [String], output: Int32? = nil, descriptor: Int32,
    isInBackground: Bool = false
) -> pid_t? {
    var actions = posix_spawn_file_actions_t()
    guard posix_spawn_file_actions_init(&actions) == 0 else { return nil }
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, descriptor, 3)
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0)
    posix_spawn_file_actions_adddup2(&actions, output ?? 0, 1)
    posix_spawn_file_actions_adddup2(&actions, 0, 2)
    guard shim_posix_spawn_file_actions_addclosefrom_np(&actions, 4) == 0 else { return nil }

    var attributes = posix_spawnattr_t()
    guard posix_spawnattr_init(&attributes) == 0 else { return nil }
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    let flags = Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | shim_POSIX_SPAWN_SETSID
    posix_spawnattr_setflags(&attributes, flags)

    var processID: pid_t = 0
    let result = withStrings(command) { arguments in
        withStrings(environment) { variables in
            posix_spawn(&processID, command[0], &actions, &attributes, arguments, variables)
        }
    }
    guard result == 0 else { return nil }
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

/// Calls `body` with `strings` as C strings and a closing nil, as execve(2) wants them.
private func withStrings<R>(_ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R) -> R {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
}
