import CShims
public import Glibc

/// Starts a program with the given descriptors and no others besides 0, 1 and 2.
///
/// It begins with no signal blocked or caught.
/// - Parameters:
///   - words: its path, or a name to be found in PATH, then its arguments.
///   - executable: the file to execute if it differs from the first word.
///   - environment: `NAME=value` each; nil for this process's own.
///   - descriptors: `from` of this process becomes `to` of the child.
///   - directory: its working directory; nil: this process's, or `/` for a session.
///   - asSession: leads a session of its own, without a terminal.
///   - asGroup: leads a process group of its own.
public func spawn(
    _ words: [String], executable: String? = nil, environment: [String]? = nil,
    descriptors: [(from: Int32, to: Int32)], directory: String? = nil, asSession: Bool = false,
    asGroup: Bool = false
) throws(Errno) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // Copied above every target first, so that no dup2 overwrites a source that is still needed.
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
    if let directory = directory ?? (asSession ? "/" : nil) {
        _ = directory.withPath { obscura_spawn_change_directory(&actions, $0) }
    }

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
            Processors.released {
                (executable ?? words[0]).withPath {
                    posix_spawnp(&process, $0, &actions, &attributes, arguments, variables)
                }
            }
        }
    }
    if code != 0 { throw Errno(code) }
    return process
}

/// `NAME=value` for every variable of this process.
public func currentEnvironment() -> [String] {
    var result: [String] = []
    guard var next = obscura_environment() else { return result }
    while let variable = next.pointee {
        result.append(pathText(variable))
        next += 1
    }
    return result
}

/// Runs `body` with the strings in the form of execve(2): a null-terminated array of C strings.
public func withCStrings<R>(_ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R) -> R {
    let pointers = strings.map { text in text.withPath { strdup($0) } }
    defer { for pointer in pointers { free(pointer) } }
    return body(pointers + [nil])
}
