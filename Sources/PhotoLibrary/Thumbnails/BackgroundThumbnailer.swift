import Glibc
import LinuxIO
import Synchronization

/// Decides when requests and writes have paused for long enough. Times are of the monotonic clock, in milliseconds.
struct QuietClock {
    /// How long requests must have stopped.
    package static let pauseMilliseconds: Int64 = 150

    private let settleMilliseconds: Int64
    private var lastRequests: UInt64?
    private var quietSince: Int64 = 0

    /// - Parameter settleMilliseconds: how long writes must have stopped.
    package init(settleMilliseconds: Int64) { self.settleMilliseconds = settleMilliseconds }

    /// Returns the time at which the pause is long enough if nothing more comes; not after `now` if it already is.
    ///
    /// - Parameter requests: the count of requests so far; at the first call they count as new.
    package mutating func due(lastWrite: Int64, requests: UInt64, now: Int64) -> Int64 {
        if requests != lastRequests { (lastRequests, quietSince) = (requests, now) }
        return max(lastWrite + settleMilliseconds, quietSince + Self.pauseMilliseconds)
    }
}

/// Photos that get their standard pictures in the background: the upper part of a range, the newest first.
package struct BackgroundBatch: Sendable, Equatable {
    package let range: Range<UInt64>
    /// Photos without a picture, those with the highest numbers in the range.
    package let photos: [UInt64]
    /// From this number on the range holds no others.
    package let floor: UInt64
    /// How many of them were handed out.
    private(set) var takenCount = 0

    package init(_ range: Range<UInt64>, photos: [UInt64], floor: UInt64) {
        (self.range, self.photos, self.floor) = (range, photos, floor)
    }

    package mutating func next() -> UInt64? {
        guard takenCount < photos.count else { return nil }
        takenCount += 1
        return photos[takenCount - 1]
    }

    /// The part of the range that is still to be examined.
    package var unexamined: Range<UInt64> {
        if takenCount == photos.count { return range.lowerBound..<floor }
        return range.lowerBound..<(takenCount == 0 ? range.upperBound : photos[takenCount - 1])
    }
}

/// Makes standard thumbnails of photos that have none while the mount is idle: the newest first, as many at a time as
/// there are workers, on threads that exist only while there is work.
///
/// While requests come in it begins no thumbnail. Those already begun continue at low priority: at most one per worker.
/// Pictures that use much processor time come last, one at a time.
package final class BackgroundThumbnailer: @unchecked Sendable {
    /// How long writes must have stopped.
    package static let settleMilliseconds: Int64 = 4000

    /// The photos and the maker of their pictures. Set once, at the start.
    package weak var thumbnails: PhotoThumbnails?

    private let threadsMax: Int
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
    /// Photos to be made last.
    private var postponed: [UInt64] = []
    /// Whether one of them is being made.
    private var isMakingPostponed = false
    /// Whether there may be photos without a picture.
    private var hasWork = false
    /// Whether there may be photos that no search has seen.
    private var hasNew = false
    private var threadCount = 0
    private var isStopping = false

    /// Further photos are only made on request.
    private static let postponedMax = 10_000

    package init(_ settings: ThumbnailSettings) {
        clock = QuietClock(settleMilliseconds: settings.settleMilliseconds)
        threadsMax = settings.workerCount
        isOff = settings.readOnly || (settings.workerPath == nil && settings.maker == nil)
    }

    /// Notes a client request.
    package func noteRequest() { requests.wrappingAdd(1, ordering: .relaxed) }

    /// Notes that a file is being written.
    package func noteWrite() {
        lock.withLock { lastWrite = MonotonicClock.milliseconds }
    }

    /// Notes that there may be photos without a picture.
    package func noteNew() {
        lock.lock()
        defer { lock.unlock() }
        guard !isOff, !isStopping else { return }
        lastWrite = MonotonicClock.milliseconds
        (hasWork, hasNew) = (true, true)
        while threadCount < threadsMax + (isMakingPostponed ? 1 : 0) {
            threadCount += 1
            guard !startThreadIfPossible({ [self] in run() }) else { continue }
            threadCount -= 1
            return
        }
    }

    /// Asks the threads to end after their current work.
    package func askToStop() {
        lock.withLock {
            isStopping = true
            change.signalAll()
        }
    }

    /// Waits until the threads have ended.
    package func awaitEnd() {
        lock.withLock {
            while threadCount > 0 { change.wait(lock) }
        }
    }

    private func run() {
        lock.lock()
        defer { lock.unlock() }
        while !isStopping && (hasWork || !postponed.isEmpty) {
            let now = MonotonicClock.milliseconds
            let due = clock.due(lastWrite: lastWrite, requests: requests.load(ordering: .relaxed), now: now)
            if now < due {
                change.wait(lock, untilMilliseconds: due)
            } else if !hasNew, let photo = batch?.next() {
                makeOne(photo)
            } else if makingCount > 0 || isSearching {
                change.wait(lock)
            } else if hasWork {
                search()
            } else if isMakingPostponed {
                change.wait(lock)
            } else {
                makePostponed()
            }
        }
        threadCount -= 1
        change.signalAll()
    }

    /// The caller holds `lock`, which is released meanwhile.
    private func makeOne(_ photo: UInt64) {
        makingCount += 1
        lock.unlock()
        let isDone = thumbnails?.makeInBackground(photo, isPostponed: false) ?? true
        lock.lock()
        makingCount -= 1
        if !isDone, postponed.count < Self.postponedMax { postponed.append(photo) }
        if makingCount == 0 { change.signalAll() }
    }

    /// Makes a picture that was postponed. The caller holds `lock`, which is released meanwhile.
    private func makePostponed() {
        let photo = postponed.removeFirst()
        isMakingPostponed = true
        lock.unlock()
        _ = thumbnails?.makeInBackground(photo, isPostponed: true)
        lock.lock()
        isMakingPostponed = false
        change.signalAll()
    }

    /// Searches for photos. No thumbnail is being made: every photo that was taken from the batch is done. The caller
    /// holds `lock`, which is released meanwhile.
    private func search() {
        let last = batch
        (batch, isSearching, hasNew) = (nil, true, false)
        lock.unlock()
        let found = thumbnails?.nextBackgroundBatch(last)
        if found == nil { thumbnails?.service.releaseIdleInBackground() }
        lock.lock()
        (batch, isSearching) = (found, false)
        if found == nil && !hasNew { hasWork = false }
        change.signalAll()
    }
}
