import Glibc
import LinuxIO

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
