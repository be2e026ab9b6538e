import FileRequests
import LinuxIO
import ReceiveProtocol

/// The files received in this session, for the terminal and for the devices that sent them.
final class ReceiveRecord: @unchecked Sendable {
    /// A copy of all counts.
    struct Counts: Equatable {
        var devices = 0
        var files = 0
        var known = 0
        var failures = 0
        var bytes: UInt64 = 0
        /// Files and bytes that devices have announced, including those already received.
        var filesExpected = 0
        var bytesExpected: UInt64 = 0
        /// The file that was begun last.
        var name = ""
        var nameBytes: UInt64 = 0
    }

    private struct Entry {
        var number: UInt32
        var device: [UInt8]
        var file: ReceivedFile
        var day: String?
    }

    private let limits: ReceiveLimits
    private let lock = Lock()
    private var current = Counts()
    private var entries: [Entry] = []
    private var nextNumber: UInt32 = 1
    private var isActive = false
    /// Lines for the terminal that were not shown yet, and those that were: a device that tries again fails again.
    private var problems: [String] = []
    private var knownProblems: Set<String> = []

    private static let knownProblemsMax = 100

    init(_ limits: ReceiveLimits) { self.limits = limits }

    var counts: Counts { lock.withLock { current } }

    /// Whether something came since the last call.
    func takeActivity() -> Bool {
        lock.withLock {
            defer { isActive = false }
            return isActive
        }
    }

    /// The failures since the last call, a line each.
    func takeProblems() -> [String] {
        lock.withLock {
            defer { problems = [] }
            return problems
        }
    }

    private func change(_ body: (inout Counts) -> Void) {
        lock.withLock {
            body(&current)
            isActive = true
        }
    }

    func noteDevice() { change { $0.devices += 1 } }
    func addBytes(_ count: Int) { change { $0.bytes += UInt64(count) } }

    /// Notes that a file was not stored, and why.
    func fail(_ head: UploadHead, _ reason: String) {
        change { $0.failures += 1 }
        let line = "\(String(decoding: head.path[head.path.count - 1], as: UTF8.self)): not stored: \(reason)"
        lock.withLock {
            guard knownProblems.count < Self.knownProblemsMax, knownProblems.insert(line).inserted else {
                return
            }
            problems.append(line)
        }
    }

    func begin(_ head: UploadHead) {
        change {
            $0.name = String(decoding: head.path[head.path.count - 1], as: UTF8.self)
            $0.nameBytes = head.total ?? 0
        }
    }

    /// Files that a device is about to send, by their sizes, and the number of those that it need not send.
    func expect(_ sizes: [UInt64], known: Int) {
        change {
            $0.filesExpected += sizes.count
            for size in sizes { $0.bytesExpected = sizeSum($0.bytesExpected, size) }
            $0.known += known
        }
    }

    func add(_ file: ReceivedFile, of device: [UInt8], day: String?) {
        change { if file.isKnown { $0.known += 1 } else { $0.files += 1 } }
        guard !device.isEmpty, day != nil else { return }
        lock.withLock {
            // Sent again, shown once.
            entries.removeAll {
                $0.device == device && $0.file.name == file.name && $0.file.directory == file.directory
            }
            entries.append(Entry(number: nextNumber, device: device, file: file, day: day))
            nextNumber &+= 1
            let own = entries.count { $0.device == device }
            if own > limits.recentFiles, let oldest = entries.firstIndex(where: { $0.device == device }) {
                entries.remove(at: oldest)
            }
        }
    }

    /// Photos that this device has sent, the newest first.
    func recent(of device: [UInt8]) -> [(number: UInt32, file: ReceivedFile, day: String?)] {
        lock.withLock {
            entries.filter { $0.device == device }.reversed().map { ($0.number, $0.file, $0.day) }
        }
    }

    func file(_ number: UInt32, of device: [UInt8]) -> ReceivedFile? {
        lock.withLock { entries.first { $0.number == number && $0.device == device }?.file }
    }
}
