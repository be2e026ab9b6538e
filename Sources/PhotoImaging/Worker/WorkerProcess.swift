internal import CShims
internal import Glibc

/// One running worker: a process group of its own, and the socket to it. Who starts it must `end` it, once.
struct WorkerProcess: Sendable {
    let processID: pid_t
    let socket: PacketSocket

    /// How waiting for a packet ended.
    enum Answer {
        case words([UInt64])
        /// Nothing came before the deadline.
        case stalled
        /// The worker is gone.
        case lost
    }

    /// Starts `executable` with one socket as its only descriptor but /dev/null, and no environment but the
    /// word that keeps Swift's crash reporter from printing memory. Nil when it cannot be started.
    static func spawn(executable: String, arguments: [String]) -> WorkerProcess? {
        guard let pair = makeSocketPair() else { return nil }
        defer { close(pair.theirs) }
        let processID = withStrings([executable] + arguments) { arguments in
            withStrings(["SWIFT_BACKTRACE=enable=no"]) { environment in
                spawn(
                    executable: executable, arguments: arguments, environment: environment,
                    socket: pair.theirs)
            }
        }
        guard let processID else {
            close(pair.ours)
            return nil
        }
        return WorkerProcess(processID: processID, socket: PacketSocket(descriptor: pair.ours))
    }

    /// The next packet of the worker, waited for at most `milliseconds`.
    func receive(within milliseconds: Int) -> Answer {
        let deadline = monotonicMilliseconds() + milliseconds
        while true {
            var entry = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&entry, 1, Int32(clamping: max(deadline - monotonicMilliseconds(), 0)))
            if ready < 0 && errno == EINTR { continue }
            if ready == 0 { return .stalled }
            guard ready > 0, let packet = socket.receive() else { return .lost }
            for descriptor in packet.descriptors { close(descriptor) }
            return .words(packet.words)
        }
    }

    /// Kills the worker and whatever it has forked. It is not reaped: `end` must follow.
    func kill() {
        Glibc.kill(-processID, SIGKILL)
        Glibc.kill(processID, SIGKILL)
    }

    /// Kills the worker, reaps it and closes the socket.
    func end() {
        kill()
        var status: Int32 = 0
        while waitpid(processID, &status, 0) < 0 && errno == EINTR {}
        close(socket.descriptor)
    }

    /// Both ends are closed on exec, and above 2 so that giving the worker its /dev/null cannot hit them.
    private static func makeSocketPair() -> (ours: Int32, theirs: Int32)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        let moved = ends.map { end in end > 2 ? end : fcntl(end, F_DUPFD_CLOEXEC, 3) }
        for (old, new) in zip(ends, moved) where old != new { close(old) }
        guard moved[0] >= 0 && moved[1] >= 0 else {
            for end in moved where end >= 0 { close(end) }
            return nil
        }
        return (moved[0], moved[1])
    }

    private static func spawn(
        executable: String, arguments: [UnsafeMutablePointer<CChar>?],
        environment: [UnsafeMutablePointer<CChar>?],
        socket: Int32
    ) -> pid_t? {
        var actions = posix_spawn_file_actions_t()
        guard posix_spawn_file_actions_init(&actions) == 0 else { return nil }
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, socket, WorkerProtocol.socketDescriptor)
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, 0, 1)
        posix_spawn_file_actions_adddup2(&actions, 0, 2)
        guard
            shim_posix_spawn_file_actions_addclosefrom_np(&actions, WorkerProtocol.socketDescriptor + 1) == 0
        else { return nil }

        var attributes = posix_spawnattr_t()
        guard posix_spawnattr_init(&attributes) == 0 else { return nil }
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        // A session of its own: the terminal's ^C does not reach it, and one kill ends it with what it
        // forked.
        let flags = Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | shim_POSIX_SPAWN_SETSID
        posix_spawnattr_setflags(&attributes, flags)

        var processID: pid_t = 0
        let result = posix_spawn(&processID, executable, &actions, &attributes, arguments, environment)
        return result == 0 ? processID : nil
    }
}

/// Calls `body` with `strings` as C strings and a closing nil, as execve(2) wants them.
private func withStrings<R>(_ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R) -> R {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
}

private func monotonicMilliseconds() -> Int {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
