internal import CShims
internal import Glibc
internal import LinuxIO

/// The end of a sandboxed program.
enum SandboxOutcome: Equatable {
    /// Its output.
    case picture([UInt8])
    /// It failed, or wrote more than allowed.
    case failed
    /// It did not finish in time.
    case outOfTime
    /// It could not be run, which says nothing about the picture.
    case notRun
    case cancelled
}

/// Runs a command to its end, with `input` as its descriptor 3 and nothing else but its output. In every case all of
/// its processes are gone when this returns.
///
/// - Parameters:
///   - alarm: kills the command when it rings.
///   - isInBackground: the command only gets idle time.
func runSandboxed(
    _ command: [String], input: borrowing MemoryFile, _ limits: ThumbnailerLimits, unless alarm: Alarm,
    isInBackground: Bool = false
) -> SandboxOutcome {
    guard let output = try? makePipe(above: ThumbnailerSandbox.inputDescriptor) else { return .notRun }
    defer { close(output.read) }
    let process = spawnAlone(
        command, environment: ThumbnailerSandbox.environment, output: output.write,
        descriptor: input.descriptor,
        isInBackground: isInBackground)
    close(output.write)
    guard let process else { return .notRun }
    let written = readAll(output.read, limits, unless: alarm)
    let status = endSandbox(process)
    guard case .picture(let bytes) = written else { return written }
    // WEXITSTATUS; the shell's statuses for a program that it could not execute (sh(1), "EXIT STATUS").
    let isNotFound = status == 126 << 8 || status == 127 << 8
    if isNotFound { return .notRun }
    return status == 0 && !bytes.isEmpty ? .picture(bytes) : .failed
}

/// Reads everything up to the end, within the limits on size and time.
private func readAll(_ descriptor: Int32, _ limits: ThumbnailerLimits, unless alarm: Alarm) -> SandboxOutcome
{
    let deadline = MonotonicClock.milliseconds + Int64(limits.milliseconds)
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while true {
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: alarm.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        let ready = poll(&entries, 2, Int32(clamping: max(deadline - MonotonicClock.milliseconds, 0)))
        if ready < 0, errno == EINTR { continue }
        if ready == 0 { return .outOfTime }
        if ready < 0 { return .failed }
        if entries[1].revents != 0 { return .cancelled }
        let count = read(descriptor, &piece, piece.count)
        if count < 0, errno == EINTR { continue }
        if count < 0 || bytes.count + count > limits.outputBytes { return .failed }
        if count == 0 { return .picture(bytes) }
        bytes += piece[..<count]
    }
}

/// Kills the rest of a sandbox and waits until all of it is gone. Returns the status of waitpid(2).
///
/// The process that was started is outside. When it is killed, the first one inside dies with it. That is the first of
/// a PID namespace, so all others die too; it ends after them, and is waited for.
private func endSandbox(_ process: pid_t) -> Int32 {
    // While it runs it may yet make the first one inside.
    kill(process, SIGSTOP)
    var stop = siginfo_t()
    while waitid(P_PID, id_t(process), &stop, WSTOPPED | WEXITED | WNOWAIT) < 0, errno == EINTR {}
    let inside = children(of: process).compactMap { child in
        let descriptor = shim_pidfd_open(child)
        return descriptor < 0 ? nil : descriptor
    }
    // The group too: the first process inside is in it before it has asked to die with its parent. If the sandbox has
    // ended by itself, there is nothing to kill, and its status stays.
    kill(-process, SIGKILL)
    kill(process, SIGKILL)
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    for descriptor in inside {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // A process in an uninterruptible system call is not waited for without limit.
        while poll(&entry, 1, 5000) < 0, errno == EINTR {}
        close(descriptor)
    }
    return status
}

/// The children of a process that has one thread.
private func children(of process: pid_t) -> [pid_t] {
    let list = contents(ofFile: "/proc/\(process)/task/\(process)/children") ?? []
    return String(decoding: list, as: UTF8.self).split(separator: " ").compactMap { pid_t($0) }
}

/// Tells a thread that waits in poll(2) to stop. Cannot be undone.
final class Alarm: Sendable {
    /// Readable after `ring`.
    let descriptor: Int32
    private let bell: Int32

    /// Nil if there is no descriptor left.
    init?() {
        guard let ends = try? makePipe(above: STDERR_FILENO) else { return nil }
        (descriptor, bell) = ends
    }

    deinit {
        close(descriptor)
        close(bell)
    }

    func ring() {
        var byte: UInt8 = 0
        _ = write(bell, &byte, 1)
    }

    var isRung: Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 1
    }
}
