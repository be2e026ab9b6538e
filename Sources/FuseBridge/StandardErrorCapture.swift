internal import Glibc
internal import LinuxIO

/// Captures standard error while it exists. libfuse runs fusermount3 for users other than root, and fusermount3 gives
/// its reason for a refusal only there.
///
/// Standard error belongs to the whole process, so an instance exists only during one mount(2).
final class StandardErrorCapture {
    private let readEnd: Int32
    /// A copy of the original standard error; -1 after `end`.
    private var previous: Int32

    /// Nil for root, for whom libfuse runs no program, and when no descriptors are left.
    init?() {
        // A full pipe must not block a writer.
        guard geteuid() != 0, let ends = try? makePipe(isBlocking: false) else { return nil }
        let copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
        (readEnd, previous) = (ends.read, copy)
        if copy >= 0 { dup2(ends.write, STDERR_FILENO) }
        close(ends.write)
    }

    deinit {
        restore()
        close(readEnd)
    }

    /// Restores standard error. Returns the last line that was written, without the program's name.
    func end() -> String {
        restore()
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = max(0, read(readEnd, &bytes, bytes.count))
        let last = bytes[..<count].split(separator: UInt8(ascii: "\n")).last ?? []
        let line = String(decoding: last, as: UTF8.self)
        return line.hasPrefix("fusermount3: ") ? String(line.dropFirst(13)) : line
    }

    private func restore() {
        guard previous >= 0 else { return }
        dup2(previous, STDERR_FILENO)
        close(previous)
        previous = -1
    }
}
