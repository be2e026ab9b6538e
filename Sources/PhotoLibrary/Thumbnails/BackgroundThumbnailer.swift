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

/// Makes standard thumbnails of photos that have none while nobody needs the machine: the newest first, as many at a
/// time as there are workers, on threads that are there only while there is something to do.
///
/// It begins none while somebody asks for anything. Those that are being made then go on, with what is left of the
/// processors: at most one a worker.
final class BackgroundThumbnailer: @unchecked Sendable {
    /// How long writes must have stopped.
    static let settleMilliseconds: Int64 = 4000

    // Set once, at the start.
    /// Makes the thumbnail of a photo.
    var make: @Sendable (UInt64) -> Void = { _ in }
    /// Notes how far the last batch has got, and returns the next; nil where there is none.
    var findMore: @Sendable (BackgroundBatch?) -> BackgroundBatch? = { _ in nil }
    /// Called when there is nothing more to do for now.
    var rest: @Sendable () -> Void = {}

    private let crewMax: Int
    private let isOff: Bool
    /// Counts what users ask for; only ever compared with an earlier value.
    private let requests = Atomic<UInt64>(0)
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`. Times are of the monotonic clock, in milliseconds.
    private var clock: QuietClock
    private var lastWrite: Int64 = 0
    private var batch: BackgroundBatch?
    /// Photos that are being made.
    private var makingCount = 0
    private var isSearching = false
    /// Whether there may be photos without a picture.
    private var hasWork = false
    /// Whether there are some that no search has seen.
    private var hasNew = false
    private var crew = 0
    private var isStopping = false

    init(_ options: LibraryOptions) {
        clock = QuietClock(settleMilliseconds: options.settleMilliseconds)
        crewMax = options.workerCount
        isOff = options.readOnly || (options.workerPath == nil && options.pictureMaker == nil)
    }

    /// Notes that a user asked for something.
    func noteRequest() { requests.wrappingAdd(1, ordering: .relaxed) }

    /// Notes that a file is being written.
    func noteWrite() {
        lock.withLock { lastWrite = MonotonicClock.milliseconds }
    }

    /// Notes that there may be photos without a picture.
    func noteNew() {
        lock.lock()
        defer { lock.unlock() }
        guard !isOff, !isStopping else { return }
        lastWrite = MonotonicClock.milliseconds
        (hasWork, hasNew) = (true, true)
        while crew < crewMax {
            crew += 1
            guard !startThreadIfPossible({ [self] in run() }) else { continue }
            crew -= 1
            return
        }
    }

    /// Lets the threads end after what they are at.
    func askToStop() {
        lock.withLock {
            isStopping = true
            change.signalAll()
        }
    }

    /// Returns when the threads have ended.
    func awaitEnd() {
        lock.withLock {
            while crew > 0 { change.wait(lock) }
        }
    }

    private func run() {
        lock.lock()
        defer { lock.unlock() }
        while !isStopping && hasWork {
            let now = MonotonicClock.milliseconds
            let due = clock.due(lastWrite: lastWrite, requests: requests.load(ordering: .relaxed), now: now)
            if now < due {
                change.wait(lock, untilMilliseconds: due)
            } else if !hasNew, let photo = batch?.next() {
                makeOne(photo)
            } else if makingCount > 0 || isSearching {
                change.wait(lock)
            } else {
                search()
            }
        }
        crew -= 1
        change.signalAll()
    }

    /// `lock` is held, and given up meanwhile.
    private func makeOne(_ photo: UInt64) {
        makingCount += 1
        lock.unlock()
        make(photo)
        lock.lock()
        makingCount -= 1
        if makingCount == 0 { change.signalAll() }
    }

    /// Looks for photos. Nothing is being made: all that were taken from the batch have had their turn. `lock` is held,
    /// and given up meanwhile.
    private func search() {
        let last = batch
        (batch, isSearching, hasNew) = (nil, true, false)
        lock.unlock()
        let found = findMore(last)
        if found == nil { rest() }
        lock.lock()
        (batch, isSearching) = (found, false)
        if found == nil && !hasNew { hasWork = false }
        change.signalAll()
    }
}
