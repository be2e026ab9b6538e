import Glibc
import Importing
import LinuxIO

extension TransferState {
    /// `412 of 1023 photos, 1.2 GiB of 3 GiB`.
    var text: String {
        "\(photos) of \(photosMax) \(photosMax == 1 ? "photo" : "photos"), \(sizeText(bytes)) of \(sizeText(bytesMax))"
    }

    /// The line for a terminal: as much as fits in `width` columns.
    ///
    /// - Parameter seconds: since the start.
    func line(_ label: String, seconds: Double, width: Int) -> String {
        var parts = ["\(label): \(share / 10) %", text]
        if seconds >= 1, bytes > 0 {
            parts.append("\(sizeText(UInt64(min(Double(bytes) / seconds, 0x1p62))))/s")
            if bytes < bytesMax { parts.append(timeLeft(seconds, done: bytes, of: bytesMax)) }
        }
        let text = fitting(parts, width: width)
        let room = min(width - text.count - 3, 30)
        guard room >= 5 else { return text }
        let done = share * room / 1000
        return "[" + String(repeating: "#", count: done) + String(repeating: " ", count: room - done) + "] "
            + text
    }
}

extension Arguments {
    /// Whether an import or export shows no progress: with `--json` standard error has errors only, and on a terminal
    /// the bar.
    var isQuiet: Bool { has(.quiet) || has(.json) && isatty(STDERR_FILENO) == 0 }
}

/// Shows the progress on standard error: a bar on a terminal, else a line at each tenth.
final class TransferProgress {
    private static let intervalNanoseconds: Int64 = 100_000_000

    private enum Form { case bar, lines, none }

    private let label: String
    private let form: Form
    private let begun = MonotonicClock.nanoseconds
    private var shownAt: Int64 = 0
    private var tenthsShown = 0
    var state: TransferState { didSet { show() } }

    init(_ label: String, _ state: TransferState, quiet: Bool) {
        self.label = label
        self.state = state
        form = quiet ? .none : canOverwriteLines() ? .bar : .lines
    }

    private func show() {
        switch form {
        case .none: return
        case .lines:
            // The report that follows announces the end.
            let tenths = state.share / 100
            guard tenths > tenthsShown, tenths < 10 else { return }
            tenthsShown = tenths
            note("\(label): \(tenths)0 %, \(state.text)")
        case .bar:
            let now = MonotonicClock.nanoseconds
            guard now - shownAt >= Self.intervalNanoseconds else { return }
            shownAt = now
            let line = state.line(label, seconds: Double(now - begun) / 1e9, width: terminalColumns() - 1)
            writeText("\r\(line)\u{1B}[K", to: STDERR_FILENO)
        }
    }

    /// Clears the bar, so that later output begins on a clean line.
    func end() {
        if form == .bar, shownAt > 0 { writeText("\r\u{1B}[K", to: STDERR_FILENO) }
    }
}

/// The width of the terminal on standard error; 80 if it is unknown.
func terminalColumns() -> Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
}
