import CShims
package import Glibc

/// Runs a program to its end without output. Returns its end and its standard error, cut at 4 KiB.
package func runQuietly(_ words: [String]) throws(Errno) -> (end: ProcessEnd, complaint: String) {
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

/// Starts a program of ours from this program's directory, in a session of its own, with no environment variables but
/// the given ones. Nil if it cannot be started: nothing depends on it.
///
/// - Parameters:
///   - output: its standard output; nil: the output is discarded.
///   - directory: becomes its descriptor 3.
package func startBeside(
    _ name: String, _ words: [String] = [], environment: [String] = [], input: Int32, output: Int32? = nil,
    directory: Int32? = nil
) -> pid_t? {
    guard let program = programBeside(name) else { return nil }
    // Swift 6.3 refuses the public import of PathCalls.swift if another file of this module calls open(2).
    let null = obscura_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0)
    if null < 0 { return nil }
    defer { close(null) }
    var descriptors: [(from: Int32, to: Int32)] = [
        (input, STDIN_FILENO), (output ?? null, STDOUT_FILENO), (null, STDERR_FILENO),
    ]
    if let directory { descriptors.append((directory, 3)) }
    return try? spawn(
        [program] + words, environment: [backtracerOff] + environment, descriptors: descriptors,
        asSession: true)
}

/// Turns off Swift's crash reporter, on by default, which prints registers and the memory they point at.
package let backtracerOff = "SWIFT_BACKTRACE=enable=no"

/// The path of a program of ours in this program's directory; nil if there is none.
///
/// A package that was upgraded meanwhile has put another file in the place of this program's: the kernel marks the
/// name of the old one.
package func programBeside(_ name: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0 else { return nil }
    var own = String(decoding: buffer[..<count], as: UTF8.self)
    let mark = " (deleted)"
    if own.hasSuffix(mark) { own.removeLast(mark.count) }
    let directory = own.split(separator: "/").dropLast().joined(separator: "/")
    let path = "/" + directory + "/" + name
    return access(path, X_OK) == 0 ? path : nil
}

/// The path of a program, as execvp(3) finds it; nil if no directory of PATH has it.
package func programInPath(_ name: String) -> String? {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
}

/// Reads up to the end. Bytes beyond `countMax` are dropped.
package func readAll(_ descriptor: Int32, countMax: Int) -> [UInt8] {
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        if count <= 0 { return result }
        result += buffer[0..<min(count, countMax - result.count)]
    }
}

/// Writes all bytes, unless the reader goes away.
package func writeAll(_ bytes: [UInt8], to descriptor: Int32) {
    bytes.withUnsafeBytes { all in
        var rest = all[...]
        while !rest.isEmpty {
            let count = write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// Whether a descriptor becomes readable within a time, as that of a process does when it ends; -1: no limit.
package func hasEnded(_ descriptor: Int32, within milliseconds: Int32) -> Bool {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
        let count = poll(&wanted, 1, milliseconds)
        if count < 0, errno == EINTR { continue }
        return count != 0
    }
}
