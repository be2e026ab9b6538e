internal import CFuse3
internal import Glibc
internal import LinuxIO

/// The last line libfuse had to say, for the error that follows. It is never printed: what a user sees is
/// ours to word. Unchecked Sendable: the lock guards `last`.
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

    /// The last line, without its prefix and newline; empty when nothing was said since the last call.
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
