internal import Glibc
internal import LinuxIO

/// One running worker: the leader of its own process group, and the socket to it. Its owner must call `end` once.
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

    /// Starts `executable` with no descriptors but one socket and /dev/null, and no environment but the variable that
    /// keeps Swift's crash reporter from printing memory. Nil if it cannot be started.
    ///
    /// - Parameter isInBackground: runs only on idle processor time.
    static func spawn(
        executable: String, arguments: [String], isInBackground: Bool = false
    ) -> WorkerProcess? {
        // Above 2, so that the worker's /dev/null on 0 to 2 cannot replace them.
        guard let pair = try? makeSocketPair(SOCK_SEQPACKET, above: STDERR_FILENO) else { return nil }
        defer { close(pair.theirs) }
        let processID = spawnAlone(
            [executable] + arguments, environment: ["SWIFT_BACKTRACE=enable=no"], descriptor: pair.theirs,
            isInBackground: isInBackground)
        guard let processID else {
            close(pair.ours)
            return nil
        }
        return WorkerProcess(processID: processID, socket: PacketSocket(descriptor: pair.ours))
    }

    /// Receives the next packet of the worker. Blocks for at most `milliseconds`.
    func receive(within milliseconds: Int) -> Answer {
        let deadline = MonotonicClock.milliseconds + Int64(milliseconds)
        while true {
            var entry = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&entry, 1, Int32(clamping: max(deadline - MonotonicClock.milliseconds, 0)))
            if ready < 0 && errno == EINTR { continue }
            if ready == 0 { return .stalled }
            guard ready > 0, let packet = socket.receive() else { return .lost }
            for descriptor in packet.descriptors { close(descriptor) }
            return .words(packet.words)
        }
    }

    /// Lets other processes go first from now on; the fork that decodes has been told so by the worker. An ordinary
    /// user cannot undo it.
    func giveWay() { lowerSession(of: processID, to: WorkerProtocol.slowNiceness) }

    /// Kills the worker and its forks without reaping it: `end` must follow.
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
}
