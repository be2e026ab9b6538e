import HostFiles
import LinuxIO
import PhotoImport

/// A thread that opens the files of a list in order and reads from them what an import asks first, so that this is
/// done, and the disk is at work, while other files are being encrypted.
///
/// `lock` guards the mutable properties. A file is handed over with its item: only one thread at a time has it.
final class SourceReader: @unchecked Sendable {
    /// A file that was opened, and its facts: nil if it is not a photo by its bytes, or could not be read.
    typealias Opened = (source: SourceFile, facts: SourceFacts?)

    /// Files open at a time: below half of it the thread opens more, so that it is seldom woken.
    private static let aheadMax = 16

    private let sources: SourceList
    private let lock = Lock()
    private let change = Condition()
    private var ready: [(item: SourceItem, opened: Result<Opened, Errno>)] = []
    private var isAtEnd = false
    private var isClosed = false

    init(_ sources: SourceList) {
        self.sources = sources
        startThread { [self] in run() }
    }

    /// The next file; nil at the end.
    func next() -> (item: SourceItem, opened: Result<Opened, Errno>)? {
        lock.lock()
        defer { lock.unlock() }
        while ready.isEmpty && !isAtEnd { change.wait(lock) }
        guard !ready.isEmpty else { return nil }
        if ready.count == Self.aheadMax / 2 { change.signal() }
        return ready.removeFirst()
    }

    /// Ends the thread, soon.
    func close() {
        lock.withLock { isClosed = true }
        change.signal()
    }

    private func run() {
        for item in sources.items {
            let opened = open(item)
            lock.lock()
            if ready.count >= Self.aheadMax {
                while ready.count >= Self.aheadMax / 2 && !isClosed { change.wait(lock) }
            }
            let isWanted = !isClosed
            if isWanted { ready.append((item, opened)) }
            lock.unlock()
            guard isWanted else { return }
            change.signal()
        }
        lock.withLock { isAtEnd = true }
        change.signal()
    }

    private func open(_ item: SourceItem) -> Result<Opened, Errno> {
        do throws(Errno) {
            let source = try SourceFile(sources.path(of: item))
            source.readAhead()
            return .success((source, SourceFacts(source)))
        } catch {
            return .failure(error)
        }
    }
}
