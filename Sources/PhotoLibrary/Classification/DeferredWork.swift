import LinuxIO
import PhotoRules
import Synchronization
package import VaultFormat

/// Work that a mount begins once it is live, and work that requests defer: the classification of files too large to
/// wait for. Runs on its own thread, one task after another.
///
/// Unfinished work is recorded in the catalogue, so the next session takes it up.
package final class DeferredWork: @unchecked Sendable {
    private let ending = Atomic<Bool>(false)
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`.
    private var waiting: [UInt64] = []
    private var isRunning = false
    private var comparisons = 0
    /// When companions are moved, by the monotonic clock; nil if none waits.
    private var movesDue: Int64?

    /// How long companions wait for the program that moved their photo, and may be about to move them as well: see
    /// `Tree.applyCompanionMoves`. Nobody may look for them before a crash.
    private static let movesDelay = removalMillisecondsMax

    private let limits: Limits

    package init(_ limits: Limits) { self.limits = limits }

    /// Whether long tasks are to end. Takes no lock.
    package var isCancelled: Bool { ending.load(ordering: .relaxed) }

    /// Starts the thread, which takes up the work that an earlier session left, classifies each queued file, and moves
    /// companions when they are due, as long as there is the library. Call once. If no thread can be created, the next
    /// session takes up all of the work.
    package func start(for library: Library) {
        lock.withLock { isRunning = startThreadIfPossible { [self, weak library] in run { library } } }
    }

    /// Notes that companions wait to be moved, and that something was changed meanwhile.
    package func noteCompanionMoves() {
        lock.withLock {
            if movesDue == nil { change.signalAll() }
            movesDue = MonotonicClock.milliseconds + Self.movesDelay
        }
    }

    /// Queues a file for classification. The catalogue already lists it as pending.
    package func note(_ ino: UInt64) {
        lock.withLock {
            guard waiting.count < limits.waitingFiles, !waiting.contains(ino) else { return }
            waiting.append(ino)
            change.signalAll()
        }
    }

    /// Makes long tasks end, now and later.
    package func cancel() {
        ending.store(true, ordering: .relaxed)
        lock.withLock { change.signalAll() }
    }

    /// Waits for the thread to end, after `cancel`.
    package func awaitEnd() {
        lock.withLock {
            while isRunning { change.wait(lock) }
        }
    }

    /// Counts a request that makes a long comparison; false if too many are running.
    func beginComparison() -> Bool {
        lock.withLock {
            guard comparisons < limits.longComparisons else { return false }
            comparisons += 1
            return true
        }
    }

    func endComparison() { lock.withLock { comparisons -= 1 } }

    private func run(_ library: () -> Library?) {
        library()?.didGoLive()
        lock.lock()
        while !isCancelled {
            if let due = movesDue, due <= MonotonicClock.milliseconds {
                movesDue = nil
                lock.unlock()
                // Moves that fail are dropped: a companion then stays where it is, with its name.
                try? library()?.session.applyCompanionMoves()
                lock.lock()
                continue
            }
            if waiting.isEmpty {
                if let due = movesDue {
                    change.wait(lock, untilMilliseconds: due)
                } else {
                    change.wait(lock)
                }
                continue
            }
            let ino = waiting.removeFirst()
            lock.unlock()
            // A file that could not be classified stays listed as pending, for the next session.
            try? library()?.classifier.classifyPending(ino)
            lock.lock()
        }
        isRunning = false
        change.signalAll()
        lock.unlock()
    }
}
