import Encodings
import Glibc
import HostFiles
import LinuxIO
import Synchronization

/// Writes all of `text` to `descriptor`. Returns the error, or nil.
@discardableResult func writeText(_ text: String, to descriptor: Int32) -> Errno? {
    var text = text
    return text.withUTF8 { bytes in
        var rest = UnsafeRawBufferPointer(bytes)
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { return .last }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return nil
    }
}

/// The first error of `say`; 0 if there was none.
private let sayingError = Atomic<Int32>(0)

/// Throws if a result could not be written. A reader that has read enough is no failure.
func requireSaid() throws(Failure) {
    let error = sayingError.load(ordering: .relaxed)
    if error != 0, error != EPIPE {
        throw Failure(.failed, "standard output", "writing the result: \(Errno(error))")
    }
}

/// Prints the result of a command, a line or several, on standard output. Paths in it may contain anything: characters
/// that would move a terminal's cursor, or set its title, become `?`.
func say(_ line: String) {
    guard let error = writeText(withoutEscapes(line) + "\n", to: STDOUT_FILENO) else { return }
    _ = sayingError.compareExchange(expected: 0, desired: error.rawValue, ordering: .relaxed)
}

/// Prints further information that a user must have: as above, on standard error.
func note(_ line: String) { writeText(withoutEscapes(line) + "\n", to: STDERR_FILENO) }

private func withoutEscapes(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { printable(String($0)) }
        .joined(separator: "\n")
}

/// A line on a terminal that shows the progress of a long operation; nothing if stderr is not a terminal.
final class ProgressLine {
    private static let intervalNanoseconds: Int64 = 100_000_000
    private let label: String
    private let isShown: Bool
    private let begun = MonotonicClock.nanoseconds
    private var shownAt: Int64 = 0

    init(_ label: String, quiet: Bool = false) {
        self.label = label
        isShown = !quiet && canOverwriteLines()
    }

    /// May be called at any rate: it writes at most ten times a second. Both values are in bytes.
    func show(done: UInt64, total: UInt64) {
        let now = MonotonicClock.nanoseconds
        guard isShown, total > 0, now - shownAt >= Self.intervalNanoseconds || done == total else { return }
        shownAt = now
        var parts = [
            "\(label): \(UInt64(Double(min(done, total)) / Double(total) * 100)) %",
            "\(sizeText(done)) of \(sizeText(total))",
        ]
        let seconds = Double(now - begun) / 1e9
        if seconds >= 2, done > 0, done < total {
            parts.append(timeLeft(seconds, done: done, of: total))
        }
        writeText("\r\(fitting(parts, width: terminalColumns() - 1))\u{1B}[K", to: STDERR_FILENO)
    }

    /// Clears the line, so that later output begins on a clean one.
    func end() {
        if isShown, shownAt > 0 { writeText("\r\u{1B}[K", to: STDERR_FILENO) }
    }
}

/// Whether standard error is a terminal on which a line can be overwritten: Emacs' shell and the like cannot do that.
func canOverwriteLines() -> Bool {
    isatty(STDERR_FILENO) == 1 && getenv("TERM").map { String(cString: $0) } != "dumb"
}

/// As many of these parts of a line as fit in so many columns, at least the first or its beginning: a longer line would
/// be broken, and never be overwritten.
func fitting(_ parts: [String], width: Int) -> String {
    var parts = parts
    while parts.count > 1, parts.joined(separator: ", ").count > width { parts.removeLast() }
    return String(parts.joined(separator: ", ").prefix(max(width, 0)))
}

/// `about 12 s left`, or minutes, if `done` bytes of `total` took `seconds`.
func timeLeft(_ seconds: Double, done: UInt64, of total: UInt64) -> String {
    let left = secondsLeft(seconds, done: done, of: total)
    return left < 120 ? "about \(left) s left" : "about \((left + 59) / 60) min left"
}

/// Estimated seconds left, at least one, if `done` bytes of `total` took `seconds`.
func secondsLeft(_ seconds: Double, done: UInt64, of total: UInt64) -> UInt64 {
    let left = seconds * Double(total - min(done, total)) / Double(max(done, 1))
    // Sparse files may claim any size.
    return UInt64(min(left, 1e15)) + 1
}

extension JSON {
    /// A path of a command line, see `pathText`.
    static func path(_ path: String) -> JSON { .path(pathBytes(path)) }
}
