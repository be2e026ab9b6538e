import CShims
import Glibc
import HostFiles
import LinuxIO
import VaultCrypto
import VaultStore

/// Runs a command, or a shell, in a session of its own, with the space at `Photos` in an empty home directory. Returns
/// the command's exit status.
///
/// There are three processes. This one enters user and mount namespaces while it holds no secret, asks for the
/// password, hides parts of the machine, and waits. The daemon, as for any mount, is in the same namespaces. The
/// session's first process (`runPrivateSession`) is process 1 of a PID namespace with everything that COMMAND starts:
/// when it ends, the kernel has ended them all. Only then is the space unmounted, with no user left.
func runPrivate(_ arguments: Arguments) throws(Failure) -> Int32 {
    let vault = arguments.operands[0]
    try requireVault(vault)
    try requireUnmounted(vault)
    let mounts = try SessionMounts(home: homeDirectory(), vault: realPath(vault))
    try enterNamespaces()
    let settings = SessionSettings(mounts, command: Array(arguments.operands.dropFirst()))
    let command: [String]
    let daemon: pid_t
    do {
        // Neither password nor key is left here after this block.
        let space = try unlock(vault, arguments)
        try mounts.make()
        command = try settings.commandWords()
        // The traces to sweep at the unmount are in the session's home directory. The user's bus does not belong to it.
        for name in [
            "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
            "DBUS_SESSION_BUS_ADDRESS",
        ] {
            unsetenv(name)
        }
        guard obscura_hand_on_admin() == 0 else {
            throw Failure("private", "keeping the right to mount", .last)
        }
        daemon = try Daemon(words: MountOptionParser(), vault: mounts.vault, directory: mounts.photos)
            .start(space, as: Daemon.sessionWord)
    }
    if isatty(STDERR_FILENO) == 1 {
        note(
            "obscura: private session: the photos are in \(mounts.photos); whatever else is written to the home "
                + "directory or /tmp is gone when it ends")
    }
    return try PrivateSession(daemon: daemon, directory: mounts.photos)
        .run(command, environment: settings.environment)
}

private func unlock(_ vault: String, _ arguments: Arguments) throws(Failure) -> UnlockedSpace {
    return try Passwords(arguments).opening(vault) { (password) throws(VaultError) in
        try unlockPatiently(vault, password)
    }
}

/// $HOME, else the home directory in the system's list of users.
private func homeDirectory() throws(Failure) -> String {
    let named = getenv("HOME").map { String(cString: $0) } ?? ""
    let home =
        named.hasPrefix("/") ? named : getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? ""
    var status = stat()
    guard home.hasPrefix("/"), realPath(home) != "/", stat(home, &status) == 0, status.isDirectory else {
        throw Failure(.failed, "HOME", "no home directory to hide: set it to one of yours")
    }
    return realPath(home)
}

// MARK: Namespaces

/// Enters user and mount namespaces, in which this process may mount. Root needs only the latter.
///
/// Mounts made outside later are visible inside, never the other way round.
private func enterNamespaces() throws(Failure) {
    let (user, group) = (geteuid(), getegid())
    let isDone = user == 0 && obscura_unshare(obscura_new_mounts) == 0
    if !isDone {
        guard obscura_unshare(obscura_new_mounts | obscura_new_users) == 0 else {
            throw namespaceFailure(.last)
        }
        try mapSelf(user, group)
    }
    guard mount(nil, "/", nil, UInt(MS_SLAVE | MS_REC), nil) == 0 else { throw namespaceFailure(.last) }
}

/// Maps this user to itself in the new namespace, where there is no other user.
///
/// The mapping files belong to this user only while the process may be dumped. It has no secret yet.
private func mapSelf(_ user: uid_t, _ group: gid_t) throws(Failure) {
    guard obscura_allow_dumps() == 0 else { throw Failure("private", "naming its user", .last) }
    defer { _ = obscura_forbid_dumps() }
    for (file, text) in [
        ("setgroups", "deny"), ("uid_map", "\(user) \(user) 1"), ("gid_map", "\(group) \(group) 1"),
    ] {
        let descriptor = open("/proc/self/\(file)", O_WRONLY | O_CLOEXEC)
        let count = descriptor < 0 ? -1 : write(descriptor, text, text.utf8.count)
        let error = Errno.last
        if descriptor >= 0 { close(descriptor) }
        if count != text.utf8.count { throw namespaceFailure(error) }
    }
}

private func namespaceFailure(_ error: Errno) -> Failure {
    Failure(
        .failed, "private",
        "this system does not let users make namespaces of their own (\(error)): ask the administrator to allow it "
            + "(sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, "
            + "kernel.apparmor_restrict_unprivileged_userns), or run it as root")
}

// MARK: Waiting

/// Waits for the session, and for the daemon that serves it.
private struct PrivateSession {
    let daemon: pid_t
    /// Where the photos are.
    let directory: String

    private static let signals = [SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT]

    /// Returns the session's exit status once both have ended. Whichever ends first ends the other.
    func run(_ command: [String], environment: [String]) throws(Failure) -> Int32 {
        var wanted = sigset_t()
        sigemptyset(&wanted)
        for signal in Self.signals { sigaddset(&wanted, signal) }
        sigprocmask(SIG_BLOCK, &wanted, nil)
        let session: pid_t
        do throws(Failure) {
            session = try start(command, environment)
        } catch {
            kill(daemon, SIGTERM)
            _ = waitForEnd(of: daemon)
            throw error
        }
        var sessionEnd: ProcessEnd?
        var daemonEnd: ProcessEnd?
        while true {
            while let (process, end) = nextEnd() {
                if process == session {
                    sessionEnd = end
                    takeTerminal()
                    if daemonEnd == nil { kill(daemon, SIGTERM) }
                } else if process == daemon {
                    daemonEnd = end
                    if sessionEnd == nil { kill(session, SIGTERM) }
                }
            }
            if sessionEnd != nil && daemonEnd != nil { break }
            var signal: Int32 = 0
            // The session first: the daemon gets its signal when nothing uses it any more.
            if sigwait(&wanted, &signal) == 0, signal != SIGCHLD, sessionEnd == nil { kill(session, SIGTERM) }
        }
        guard daemonEnd == .exited(0) else {
            throw Failure(
                .failed, directory,
                "some changes could not be written to the vault's disk: check it for free space and errors")
        }
        return sessionEnd.map(exitStatus) ?? ExitStatus.failed.rawValue
    }

    /// Starts the session as the first process of a new PID namespace. This process stays in its own.
    private func start(_ command: [String], _ environment: [String]) throws(Failure) -> pid_t {
        guard obscura_unshare(obscura_new_processes) == 0 else { throw namespaceFailure(.last) }
        let streams = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].filter { fcntl($0, F_GETFD) != -1 }
        do throws(Errno) {
            return try spawn(
                ["obscura", privateSessionWord, directory] + command, executable: "/proc/self/exe",
                environment: environment, descriptors: streams.map { ($0, $0) })
        } catch {
            throw Failure("private", "starting the session", error)
        }
    }

    /// A child that has ended, if there is one.
    private func nextEnd() -> (pid_t, ProcessEnd)? {
        var status: Int32 = 0
        let process = waitpid(-1, &status, WNOHANG)
        return process > 0 ? (process, ProcessEnd(status: status)) : nil
    }

    /// Takes the terminal back from the session's programs, for a script that runs this command.
    private func takeTerminal() {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        if terminal < 0 { return }
        defer { close(terminal) }
        signal(SIGTTOU, SIG_IGN)
        tcsetpgrp(terminal, getpgrp())
    }
}

/// The exit status as a shell reports it.
func exitStatus(_ end: ProcessEnd) -> Int32 {
    switch end {
    case .exited(let code): code
    case .signalled(let signal): 128 + signal
    }
}
