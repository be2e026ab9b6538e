import Glibc
import LinuxIO

/// The progress line on a terminal; prints nothing elsewhere.
final class ReceiveProgress {
    private let record: ReceiveRecord
    private let isShown = isatty(STDERR_FILENO) == 1
    /// When and with how many bytes the rate's window began.
    private var window: (at: Int64, bytes: UInt64) = (MonotonicClock.milliseconds, 0)
    private var rate: UInt64 = 0
    private var shown = ""

    private static let windowMilliseconds: Int64 = 1000

    init(_ record: ReceiveRecord) { self.record = record }

    func show() {
        guard isShown else { return }
        let (counts, now) = (record.counts, MonotonicClock.milliseconds)
        let passed = now - window.at
        if passed >= Self.windowMilliseconds {
            rate = UInt64(Double(counts.bytes - window.bytes) * 1000 / Double(passed))
            window = (now, counts.bytes)
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

/// `IMG.HEIC  3.1 MiB  ████ 12 of 240, 38 MiB/s, 25 s left`: as much as fits in `width` columns.
///
/// - Parameter rate: bytes a second, lately.
private func receiveLine(_ counts: ReceiveRecord.Counts, rate: UInt64, width: Int) -> String {
    guard !counts.name.isEmpty else {
        return counts.devices == 0 ? "" : String("a device is connected".prefix(max(width, 0)))
    }
    let name = printable(counts.name)
    var parts = [name.count > 40 ? name.prefix(39) + "…" : name]
    if counts.nameBytes > 0 { parts.append(sizeText(counts.nameBytes)) }
    let expected = max(counts.filesExpected, counts.files)
    var text = "\(counts.files) of \(expected)"
    if rate > 0 {
        text += ", \(sizeText(rate))/s"
        if counts.bytesExpected > counts.bytes {
            let left = (counts.bytesExpected - counts.bytes) / rate + 1
            text += left < 120 ? ", \(left) s left" : ", \((left + 59) / 60) min left"
        }
    }
    let room = min(width - parts.joined(separator: "  ").count - text.count - 4, 20)
    if room >= 4 {
        let done = expected > 0 ? counts.files * room / expected : 0
        parts.append(String(repeating: "█", count: done) + String(repeating: "░", count: room - done))
    }
    return String((parts.joined(separator: "  ") + " " + text).prefix(max(width, 0)))
}
