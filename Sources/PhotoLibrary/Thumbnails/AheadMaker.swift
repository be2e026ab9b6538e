import Glibc
import LinuxIO
import Synchronization

/// Decides when users have been quiet for long enough. Times are of the monotonic clock, in milliseconds.
struct QuietClock {
    /// How long requests must have stopped.
    static let pauseMilliseconds: Int64 = 150

    private let settleMilliseconds: Int64
    private var lastRequests: UInt64?
    private var quietSince: Int64 = 0

    /// - Parameter settleMilliseconds: how long writes must have stopped.
    init(settleMilliseconds: Int64) { self.settleMilliseconds = settleMilliseconds }

    /// When it will be quiet enough if nothing more comes: not after `now` where it is already.
    ///
    /// - Parameter requests: how many there were so far; those of the first call were just now.
    mutating func due(lastWrite: Int64, requests: UInt64, now: Int64) -> Int64 {
        if requests != lastRequests { (lastRequests, quietSince) = (requests, now) }
        return max(lastWrite + settleMilliseconds, quietSince + Self.pauseMilliseconds)
    }
}

/// Makes standard thumbnails of new photos while nobody needs the machine: the newest first, one at a time, on a
/// thread that is there only once there was a new photo.
final class AheadMaker: @unchecked Sendable {
    /// How long writes must have stopped.
    static let settleMilliseconds: Int64 = 4000
    /// Photos that may wait; the oldest are forgotten, and made when they are asked for.
    private static let waitingMax = 100_000

    /// Set once, at the start. Makes the thumbnail of a photo.
    var make: @Sendable (UInt64) -> Void = { _ in }

    private let settleMilliseconds: Int64
    private let isOff: Bool
    /// Counts what users ask for; only ever compared with an earlier value.
    private let requests = Atomic<UInt64>(0)
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`. Times are of the monotonic clock, in milliseconds.
    private var waiting: [UInt64] = []
    private var lastWrite: Int64 = 0
    private var isRunning = false
    private var isStopping = false

    init(_ options: LibraryOptions) {
        settleMilliseconds = options.settleMilliseconds
        isOff = options.readOnly || (options.workerPath == nil && options.pictureMaker == nil)
    }

    /// Notes that a user asked for something.
    func noteRequest() { requests.wrappingAdd(1, ordering: .relaxed) }

    /// Notes that a file is being written.
    func noteWrite() {
        lock.withLock { lastWrite = MonotonicClock.milliseconds }
    }

    /// Notes a photo whose bytes are new.
    func noteNew(_ photo: UInt64) {
        lock.lock()
        defer { lock.unlock() }
        guard !isOff, !isStopping else { return }
        lastWrite = MonotonicClock.milliseconds
        if waiting.last != photo { waiting.append(photo) }
        if waiting.count > Self.waitingMax { waiting.removeFirst(Self.waitingMax / 2) }
        if !isRunning {
            isRunning = true
            startThread { [self] in run() }
        } else if waiting.count == 1 {
            change.signalAll()
        }
    }

    /// Lets the thread end after what it is at.
    func askToStop() {
        lock.withLock {
            isStopping = true
            waiting = []
            change.signalAll()
        }
    }

    /// Returns when the thread has ended.
    func awaitEnd() {
        lock.withLock {
            while isRunning { change.wait(lock) }
        }
    }

    private func run() {
        lock.lock()
        defer { lock.unlock() }
        var clock = QuietClock(settleMilliseconds: settleMilliseconds)
        while !isStopping {
            guard let photo = waiting.last else {
                change.wait(lock)
                continue
            }
            let now = MonotonicClock.milliseconds
            let due = clock.due(lastWrite: lastWrite, requests: requests.load(ordering: .relaxed), now: now)
            if now < due {
                change.wait(lock, untilMilliseconds: due)
                continue
            }
            waiting.removeLast()
            lock.unlock()
            make(photo)
            lock.lock()
        }
        isRunning = false
        change.signalAll()
    }
}
