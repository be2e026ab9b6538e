import FileRequests
import LinuxIO
import ReceiveProtocol

/// The files received in this session, for the terminal and for the devices that sent them.
final class ReceiveRecord: @unchecked Sendable {
    private struct Entry {
        var number: UInt32
        var device: [UInt8]
        var file: ReceivedFile
        var day: String?
    }

    private let limits: ReceiveLimits
    private let lock = Lock()
    private var counter: ReceiveCounter
    private var entries: [Entry] = []
    private var nextNumber: UInt32 = 1
    private var isActive = false
    /// Lines for the terminal that were not shown yet, and those that were: a device that tries again fails again.
    private var problems: [String] = []
    private var knownProblems: Set<String> = []

    private static let knownProblemsMax = 100

    init(_ limits: ReceiveLimits) {
        self.limits = limits
        counter = ReceiveCounter(filesMax: limits.countedFiles)
    }

    var counts: ReceiveCounter.Counts { lock.withLock { counter.counts } }

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

    private func change(_ body: (inout ReceiveCounter) -> Void) {
        lock.withLock {
            body(&counter)
            isActive = true
        }
    }

    func noteDevice() { change { $0.counts.devices += 1 } }

    /// Notes bytes of an upload that were just written.
    func addBytes(_ count: Int, to upload: Upload) {
        change { $0.addBytes(count, to: upload.workingName, end: upload.position) }
    }

    /// Notes that a file was not stored, and why.
    func fail(_ head: UploadHead, _ reason: String) {
        change { $0.fail(Upload.workingName(head), size: head.total) }
        let line = "\(name(head)): not stored: \(reason)"
        lock.withLock {
            guard knownProblems.count < Self.knownProblemsMax, knownProblems.insert(line).inserted else {
                return
            }
            problems.append(line)
        }
    }

    func begin(_ head: UploadHead) {
        change {
            ($0.counts.name, $0.counts.nameBytes) = (name(head), head.total ?? 0)
            // A client of WebDAV only takes the name.
            if head.door == .webdav, head.total == 0 { return }
            $0.begin(Upload.workingName(head), size: head.total, offset: head.offset)
        }
    }

    private func name(_ head: UploadHead) -> String {
        String(decoding: head.path[head.path.count - 1], as: UTF8.self)
    }

    /// Files that a device is about to send, and whether each is known, so that it need not.
    func announce(_ queries: [KnownQuery], _ known: [Bool], of device: [UInt8]) {
        change {
            for (query, isKnown) in zip(queries, known) {
                $0.announce(Upload.workingName(query, of: device), size: query.size, isKnown: isKnown)
            }
        }
    }

    func add(_ file: ReceivedFile, _ head: UploadHead, day: String?) {
        change { $0.finish(Upload.workingName(head), isKnown: file.isKnown) }
        let device = head.device
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
