import CShims
import Glibc
import LinuxIO

/// How a process ended.
enum ProcessEnd: Equatable {
    case exited(Int32)
    case signalled(Int32)

    /// What waitpid(2) tells. WIFEXITED and its like are macros that Swift does not import.
    init(status: Int32) {
        let signal = status & 0x7F
        self = signal == 0 ? .exited(status >> 8 & 0xFF) : .signalled(signal)
    }
}

/// Starts a program with the given descriptors and no others beside 0, 1 and 2.
///
/// It begins with no signal blocked or caught.
/// - Parameters:
///   - words: its path, or a name to be looked for in PATH, then its arguments.
///   - executable: what is executed where that differs from the first word.
///   - environment: `NAME=value` each; nil for this process's own.
///   - descriptors: `from` of this process becomes `to` of the other.
///   - asSession: leads a session of its own, without a terminal, at `/`.
///   - asGroup: leads a process group of its own.
func spawn(
    _ words: [String], executable: String? = nil, environment: [String]? = nil,
    descriptors: [(from: Int32, to: Int32)], asSession: Bool = false, asGroup: Bool = false
) throws(Errno) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // Raised above every target first, so that no dup2 overwrites a source that is still needed.
    let targetMax = descriptors.map(\.to).max() ?? 0
    var raised: [Int32] = []
    defer { for descriptor in raised { close(descriptor) } }
    for (from, to) in descriptors {
        let copy = fcntl(from, F_DUPFD_CLOEXEC, targetMax + 1)
        if copy < 0 { throw .last }
        raised.append(copy)
        posix_spawn_file_actions_adddup2(&actions, copy, to)
    }
    _ = obscura_spawn_close_from(&actions, max(targetMax, STDERR_FILENO) + 1)
    if asSession { _ = obscura_spawn_change_directory(&actions, "/") }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    var flags = Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)
    if asSession { flags |= obscura_spawn_new_session() }
    if asGroup { flags |= Int16(POSIX_SPAWN_SETPGROUP) }
    posix_spawnattr_setflags(&attributes, flags)

    var process: pid_t = 0
    let code = withCStrings(words) { arguments in
        withCStrings(environment ?? currentEnvironment()) { variables in
            posix_spawnp(&process, executable ?? words[0], &actions, &attributes, arguments, variables)
        }
    }
    if code != 0 { throw Errno(code) }
    return process
}

/// Waits for a child of this process.
func waitForEnd(of process: pid_t) -> ProcessEnd {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
        if errno != EINTR { return .exited(-1) }
    }
    return ProcessEnd(status: status)
}

/// Runs a program to its end without output; what it wrote to standard error comes back, cut at 4 KiB.
func runQuietly(_ words: [String]) throws(Errno) -> (end: ProcessEnd, complaint: String) {
    let complaints = try makePipe()
    defer { close(complaints.read) }
    let process: pid_t
    do {
        defer { close(complaints.write) }
        process = try spawn(words, descriptors: [(complaints.write, STDERR_FILENO)])
    }
    let complaint = readAll(complaints.read, countMax: 4096)
    return (waitForEnd(of: process), String(decoding: complaint, as: UTF8.self))
}

/// A pipe whose ends no program started later inherits by accident.
func makePipe() throws(Errno) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw .last }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
}

/// `makePipe` with the user told what for.
func pipeEnds(for purpose: String) throws(Failure) -> (read: Int32, write: Int32) {
    do {
        return try makePipe()
    } catch {
        throw Failure(purpose, "making a pipe", error)
    }
}

/// What can be read up to the end; what goes beyond `countMax` bytes is dropped.
func readAll(_ descriptor: Int32, countMax: Int) -> [UInt8] {
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        if count <= 0 { return result }
        result += buffer[0..<min(count, countMax - result.count)]
    }
}

/// `NAME=value` for every variable of this process.
func currentEnvironment() -> [String] {
    var result: [String] = []
    guard var next = obscura_environment() else { return result }
    while let variable = next.pointee {
        result.append(String(cString: variable))
        next += 1
    }
    return result
}

/// Runs `body` with the strings as execve(2) wants them: a null-terminated array of C strings.
func withCStrings<R>(_ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R) -> R {
    let pointers = strings.map { strdup($0) }
    defer { for pointer in pointers { free(pointer) } }
    return body(pointers + [nil])
}
