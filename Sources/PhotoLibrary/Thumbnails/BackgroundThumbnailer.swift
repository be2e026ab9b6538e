import Glibc
import LinuxIO
import Synchronization

/// Decides when requests and writes have paused for long enough. Times are of the monotonic clock, in milliseconds.
struct QuietClock {
    /// How long requests must have stopped.
    static let pauseMilliseconds: Int64 = 150

    private let settleMilliseconds: Int64
    private var lastRequests: UInt64?
    private var quietSince: Int64 = 0

    /// - Parameter settleMilliseconds: how long writes must have stopped.
    init(settleMilliseconds: Int64) { self.settleMilliseconds = settleMilliseconds }

    /// Returns the time at which the pause is long enough if nothing more comes; not after `now` if it already is.
    ///
    /// - Parameter requests: the count of requests so far; at the first call they count as new.
    mutating func due(lastWrite: Int64, requests: UInt64, now: Int64) -> Int64 {
        if requests != lastRequests { (lastRequests, quietSince) = (requests, now) }
        return max(lastWrite + settleMilliseconds, quietSince + Self.pauseMilliseconds)
    }
}

/// Makes standard thumbnails of photos that have none while the mount is idle: the newest first, as many at a time as
/// there are workers, on threads that exist only while there is work.
///
/// While requests come in it begins no thumbnail. Those already begun continue at low priority: at most one per worker.
final class BackgroundThumbnailer: @unchecked Sendable {
    /// How long writes must have stopped.
    static let settleMilliseconds: Int64 = 4000

    // Set once, at the start.
    /// Makes the thumbnail of a photo.
    var make: @Sendable (UInt64) -> Void = { _ in }
    /// Stores the progress of the last batch, and returns the next; nil if there is none.
    var findMore: @Sendable (BackgroundBatch?) -> BackgroundBatch? = { _ in nil }
    /// Called when there is nothing more to do for now.
    var rest: @Sendable () -> Void = {}

    private let crewMax: Int
    private let isOff: Bool
    /// Counts client requests; only ever compared with an earlier value.
    private let requests = Atomic<UInt64>(0)
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`. Times are of the monotonic clock, in milliseconds.
    private var clock: QuietClock
    private var lastWrite: Int64 = 0
    private var batch: BackgroundBatch?
    /// Thumbnails that are being made.
    private var makingCount = 0
    private var isSearching = false
    /// Whether there may be photos without a picture.
    private var hasWork = false
    /// Whether there may be photos that no search has seen.
    private var hasNew = false
    private var crew = 0
    private var isStopping = false

    init(_ options: LibraryOptions) {
        clock = QuietClock(settleMilliseconds: options.settleMilliseconds)
        crewMax = options.workerCount
        isOff = options.readOnly || (options.workerPath == nil && options.pictureMaker == nil)
    }

    /// Notes a client request.
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

    /// Asks the threads to end after their current work.
    func askToStop() {
        lock.withLock {
            isStopping = true
            change.signalAll()
        }
    }

    /// Waits until the threads have ended.
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

    /// The caller holds `lock`, which is released meanwhile.
    private func makeOne(_ photo: UInt64) {
        makingCount += 1
        lock.unlock()
        make(photo)
        lock.lock()
        makingCount -= 1
        if makingCount == 0 { change.signalAll() }
    }

    /// Searches for photos. No thumbnail is being made: every photo that was taken from the batch is done. The caller
    /// holds `lock`, which is released meanwhile.
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
