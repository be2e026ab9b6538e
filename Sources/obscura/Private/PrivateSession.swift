import CShims
import Glibc
import LinuxIO

/// Private first word of the command line of a session's first process. The directory to start in and the command
/// follow.
let privateSessionWord = "--private-session"

/// Signals that the first process waits for. All but the first ask it to end.
private let sessionSignals = [SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT]
/// How long programs may take to end after being asked to.
private let endingMilliseconds: Int64 = 3000

/// Process 1 of a private session: runs the command, and ends all other processes when it has ended. Returns its exit
/// status.
///
/// It has no key. Its parent unmounts the space once this process has ended, and with it, by the kernel, the whole
/// namespace.
func runPrivateSession(_ words: [String]) throws(Failure) -> Int32 {
    // kill(-1) means every process of the namespace; outside one, of the user.
    guard words.count >= 2, getpid() == 1 else {
        throw Failure(.usage, privateSessionWord, "not for users: obscura private runs it")
    }
    var wanted = sigset_t()
    sigemptyset(&wanted)
    for signal in sessionSignals { sigaddset(&wanted, signal) }
    sigprocmask(SIG_BLOCK, &wanted, nil)
    _ = obscura_signal_when_orphaned(SIGTERM)
    // Refused where parts of /proc are masked, as in some containers: then the outer one stays.
    _ = mount("proc", "/proc", "proc", UInt(MS_NOSUID | MS_NODEV | MS_NOEXEC), nil)
    _ = obscura_hand_on_nothing()
    guard chdir(words[0]) == 0 else { throw Failure(words[0], "entering it", .last) }

    let environment = currentEnvironment()
    let bus = startBus(environment).map { ["DBUS_SESSION_BUS_ADDRESS=\($0)"] } ?? []
    let terminal = foregroundTerminal()
    let command = Array(words.dropFirst())
    let process: pid_t
    do throws(Errno) {
        process = try spawn(
            command, environment: environment + bus,
            descriptors: [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].map { ($0, $0) },
            asGroup: terminal != nil)
    } catch {
        throw Failure(command[0], "running it", error)
    }
    if let terminal {
        signal(SIGTTOU, SIG_IGN)
        tcsetpgrp(terminal, process)
    }
    let status = waitForCommand(process, &wanted)
    endOthers(&wanted)
    return status
}

/// Starts a message bus for this session and returns its address; nil if it cannot be started.
///
/// Its messages, and those of the services that it starts, are not shown to the user.
private func startBus(_ environment: [String]) -> String? {
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard null >= 0, let address = try? makePipe() else { return nil }
    defer { for descriptor in [null, address.read] { close(descriptor) } }
    let words = ["dbus-daemon", "--session", "--nofork", "--nosyslog", "--print-address=3"]
    let streams = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].map { (null, $0) }
    let bus = try? spawn(words, environment: environment, descriptors: streams + [(address.write, 3)])
    close(address.write)
    guard bus != nil else { return nil }
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(address.read, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
    return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
}

/// The terminal, if this process is in its foreground.
private func foregroundTerminal() -> Int32? {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    if terminal < 0 { return nil }
    // The group's leader is outside the namespace: both are 0 here.
    if tcgetpgrp(terminal) == getpgrp() { return terminal }
    close(terminal)
    return nil
}

/// Waits for the command, and meanwhile reaps orphaned processes. Returns early when a signal asks this process to end.
private func waitForCommand(_ command: pid_t, _ wanted: inout sigset_t) -> Int32 {
    while true {
        var signal: Int32 = 0
        guard sigwait(&wanted, &signal) == 0 else { continue }
        if signal != SIGCHLD { return 128 + signal }
        var status: Int32 = 0
        while case let process = waitpid(-1, &status, WNOHANG | WUNTRACED), process > 0 {
            if status & 0xFF == 0x7F {
                // Nobody outside could continue it.
                if process == command { kill(-command, SIGCONT) }
            } else if process == command {
                return exitStatus(ProcessEnd(status: status))
            }
        }
    }
}

/// Asks every other process to end and waits for `endingMilliseconds`. The kernel kills the rest when this process has
/// ended.
private func endOthers(_ wanted: inout sigset_t) {
    kill(-1, SIGTERM)
    kill(-1, SIGHUP)
    kill(-1, SIGCONT)
    let deadline = MonotonicClock.milliseconds + endingMilliseconds
    while MonotonicClock.milliseconds < deadline {
        var status: Int32 = 0
        while waitpid(-1, &status, WNOHANG) > 0 {}
        if errno == ECHILD { return }
        var pause = timespec(tv_sec: 0, tv_nsec: 100_000_000)
        sigtimedwait(&wanted, nil, &pause)
    }
}
