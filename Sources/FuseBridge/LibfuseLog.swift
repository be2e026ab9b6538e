internal import CFuse3
internal import Glibc
internal import LinuxIO

/// Keeps libfuse's last log line for the error that follows, instead of letting libfuse print it. Unchecked Sendable:
/// the lock guards `last`.
final class LibfuseLog: @unchecked Sendable {
    static let shared = LibfuseLog()
    private let lock = Lock()
    private var last = ""

    private init() {
        fuse_set_log_func { _, format, arguments in
            var line = [CChar](repeating: 0, count: 512)
            vsnprintf(&line, line.count, format!, arguments!)
            LibfuseLog.shared.keep(
                String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
    }

    private func keep(_ line: String) { lock.withLock { last = line } }

    /// Returns the last line without its prefix and newline, and clears it. Empty if libfuse logged nothing since the
    /// last call.
    func takeLast() -> String {
        lock.withLock {
            defer { last = "" }
            var line = last[...]
            if line.hasPrefix("fuse: ") { line = line.dropFirst(6) }
            while line.last?.isNewline == true { line.removeLast() }
            return String(line)
        }
    }
}
