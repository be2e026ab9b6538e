import LinuxIO
import PhotoLibrary
import TestSupport

/// Threads that take turns at a clock of their own: one runs, and at its system calls and waits another may go on, or
/// it is stopped for a while, as by SIGSTOP. All by chance, the same for the same seed.
final class Turns: @unchecked Sendable {
    private let lock = Lock()
    private let turn = Condition()
    // All under `lock`.
    private var random: RandomSource
    private var current = -1
    /// Of each thread, from when on it may run; nil: it has ended.
    private var wakes: [Int64?] = []
    private var clock: Int64 = 1_000_000
    /// One in so many system calls finds its thread stopped.
    private let stopShare: Int
    private let stopMilliseconds: ClosedRange<Int64>

    init(seed: UInt64, stopShare: Int, stopMilliseconds: ClosedRange<Int64>) {
        random = RandomSource(seed)
        self.stopShare = stopShare
        self.stopMilliseconds = stopMilliseconds
    }

    var now: Int64 { lock.withLock { clock } }

    /// Runs all bodies to their ends, each on a thread of its own.
    func run(_ bodies: [@Sendable () -> Void]) {
        lock.withLock {
            wakes = bodies.map { _ in 0 }
            current = 0
        }
        for (number, body) in bodies.enumerated() {
            startThread { [self] in
                lock.lock()
                while current != number { turn.wait(lock) }
                lock.unlock()
                body()
                lock.lock()
                wakes[number] = nil
                choose()
                lock.unlock()
            }
        }
        lock.lock()
        while current >= 0 { turn.wait(lock) }
        lock.unlock()
    }

    /// A system call: takes a moment, and others may run meanwhile, for long now and then.
    func pause() {
        lock.lock()
        defer { lock.unlock() }
        guard current >= 0 else { return }
        // Most calls are quick: the threads change places seldom enough that something is done.
        clock += Int64.random(in: 0..<4, using: &random) / 3
        guard Int.random(in: 0..<8, using: &random) == 0 else { return }
        let isStopped = Int.random(in: 0..<max(1, stopShare / 8), using: &random) == 0
        sleep(isStopped ? Int64.random(in: stopMilliseconds, using: &random) : 0)
    }

    /// Lets others run for so long.
    func wait(milliseconds: Int64) {
        lock.lock()
        defer { lock.unlock() }
        if current >= 0 { sleep(milliseconds) } else { clock += milliseconds }
    }

    private func sleep(_ milliseconds: Int64) {
        let number = current
        wakes[number] = clock + milliseconds
        choose()
        while current != number { turn.wait(lock) }
    }

    /// Chooses the next thread to run; if there is none, time passes.
    private func choose() {
        let left = wakes.indices.filter { wakes[$0] != nil }
        defer { turn.signalAll() }
        guard let first = left.compactMap({ wakes[$0] }).min() else {
            current = -1
            return
        }
        clock = max(clock, first)
        current = left.filter { wakes[$0] ?? .max <= clock }.randomElement(using: &random) ?? left[0]
    }
}
