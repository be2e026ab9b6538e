import Glibc
import HostFiles
import LinuxIO
import Receiving

/// The progress line on a terminal; prints nothing elsewhere.
final class ReceiveProgress {
    private let session: ReceiveSession
    private let isShown = canOverwriteLines()
    /// When and with how many bytes the rate's window began.
    private var window: (at: Int64, bytes: UInt64) = (MonotonicClock.milliseconds, 0)
    private var rate: UInt64 = 0
    private var shown = ""

    private static let windowMilliseconds: Int64 = 1000

    init(_ session: ReceiveSession) { self.session = session }

    func show() {
        guard isShown else { return }
        let (counts, now) = (session.counts, MonotonicClock.milliseconds)
        let passed = now - window.at
        if passed >= Self.windowMilliseconds {
            rate = UInt64(Double(counts.traffic - window.bytes) * 1000 / Double(passed))
            window = (now, counts.traffic)
        }
        let line = receiveLine(counts, rate: rate, width: terminalColumns() - 1)
        guard line != shown else { return }
        shown = line
        writeText("\r\(line)\u{1B}[K", to: STDERR_FILENO)
    }

    /// Clears the line, so that later output begins on a clean one.
    func end() {
        if !shown.isEmpty { writeText("\r\u{1B}[K", to: STDERR_FILENO) }
        shown = ""
    }
}

/// `IMG.HEIC  3.1 MiB  ████ 12 of 240, 38 MiB/s, 25 s left`: as much as fits in `width` columns, numbers first.
///
/// - Parameter rate: bytes a second, lately.
func receiveLine(_ counts: ReceiveCounter.Counts, rate: UInt64, width: Int) -> String {
    guard !counts.name.isEmpty else {
        return counts.devices == 0 ? "" : String("a device is connected".prefix(max(width, 0)))
    }
    var text = "\(counts.filesDone) of \(counts.filesExpected)"
    if rate > 0 {
        text += ", \(sizeText(rate))/s"
        if counts.bytesLeft > 0 {
            let left = counts.bytesLeft / rate + 1
            text += left < 120 ? ", \(left) s left" : ", \((left + 59) / 60) min left"
        }
    }
    let name = shortened(printable(counts.name), min(40, width - text.count - 1))
    var parts = name.isEmpty ? [] : [name]
    func room() -> Int { width - (parts + [text]).joined(separator: "  ").count }
    let size = counts.nameBytes > 0 ? sizeText(counts.nameBytes) : ""
    if !size.isEmpty, room() >= size.count + 2 { parts.append(size) }
    let columns = min(room() - 2, 20)
    if columns >= 4 {
        let done = counts.filesExpected > 0 ? counts.filesDone * columns / counts.filesExpected : 0
        parts.append(String(repeating: "█", count: done) + String(repeating: "░", count: columns - done))
    }
    return String((parts.joined(separator: "  ") + (parts.isEmpty ? "" : " ") + text).prefix(max(width, 0)))
}

/// The first characters of a name, with an ellipsis for the rest; empty if there is no room for two.
private func shortened(_ name: String, _ countMax: Int) -> String {
    if name.count <= countMax { return name }
    return countMax < 2 ? "" : name.prefix(countMax - 1) + "…"
}
