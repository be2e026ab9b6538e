public import LinuxIO
import Synchronization
import VaultFormat

/// What a mount takes up once it is live, and what requests leave for later: files to be classified that are too large
/// for anybody to wait for. On a thread of its own, one thing after another.
///
/// Whatever is left undone is in the catalogue, and so taken up by the next session.
final class DeferredWork: @unchecked Sendable {
    /// Set once, at the start.
    weak var library: Library?

    private let ending = Atomic<Bool>(false)
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`.
    private var waiting: [UInt64] = []
    private var isRunning = false
    private var comparisons = 0

    private let limits: Limits

    init(_ limits: Limits) { self.limits = limits }

    /// Whether what takes long is to end. Takes no lock.
    var isCalledOff: Bool { ending.load(ordering: .relaxed) }

    /// Starts the thread. To be called once; where there can be no more threads, the next session takes up all.
    func start() {
        lock.withLock { isRunning = startThreadIfPossible { [self] in run() } }
    }

    /// Leaves a file to be classified, which the catalogue knows to be waiting for that.
    func note(_ ino: UInt64) {
        lock.withLock {
            guard waiting.count < limits.waitingFiles, !waiting.contains(ino) else { return }
            waiting.append(ino)
            change.signalAll()
        }
    }

    /// Lets what takes long end, now and from now on.
    func callOff() {
        ending.store(true, ordering: .relaxed)
        lock.withLock { change.signalAll() }
    }

    /// Returns when the thread has ended, after `callOff`.
    func awaitEnd() {
        lock.withLock {
            while isRunning { change.wait(lock) }
        }
    }

    /// Counts a request that compares photos at length; false where there are too many.
    func beginComparison() -> Bool {
        lock.withLock {
            guard comparisons < limits.longComparisons else { return false }
            comparisons += 1
            return true
        }
    }

    func endComparison() { lock.withLock { comparisons -= 1 } }

    private func run() {
        library?.didGoLive()
        lock.lock()
        while !isCalledOff {
            if waiting.isEmpty {
                change.wait(lock)
                continue
            }
            let ino = waiting.removeFirst()
            lock.unlock()
            try? library?.classifyPending(ino)
            lock.lock()
        }
        isRunning = false
        change.signalAll()
        lock.unlock()
    }
}

/// A client's request, where it may turn out to take long.
public protocol LongRequest {
    /// Runs `work`, which takes long: others are served meanwhile. It ends soon once it is cancelled.
    func lasting(_ work: (Cancellation) -> Void)
}
