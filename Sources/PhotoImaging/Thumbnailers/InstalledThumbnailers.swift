internal import Glibc
internal import LinuxIO

/// The thumbnailers that the user has installed, for pictures and videos that are not decoded here. What they make is
/// some program's word, to be decoded like any other hostile picture.
public final class InstalledThumbnailers: Sendable {
    /// How old the knowledge of what is installed may be.
    private static let lookMilliseconds: Int64 = 10_000
    /// How long a machine that refused a box is not asked again.
    private static let trialMilliseconds: Int64 = 60_000
    /// Thumbnailers run at the same time: each holds its picture in memory, and may use all cores.
    private static let runningMax = 2
    /// Thumbnailers that are tried for one picture.
    private static let attemptsMax = 3

    private let box: ThumbnailerBox
    private let lookMilliseconds: Int64
    private let isInBackground: Bool
    private let shared: Shared

    /// - Parameters:
    ///   - dataDirectories: those of the XDG Base Directory Specification, most important first.
    ///   - isInBackground: thumbnailers only get the time that nobody else wants. That one fails then, perhaps for
    ///     want of it, is no verdict.
    public convenience init(dataDirectories: [String], isInBackground: Bool = false) {
        self.init(
            dataDirectories: dataDirectories, box: ThumbnailerBox(), lookMilliseconds: Self.lookMilliseconds,
            isInBackground: isInBackground)
    }

    init(
        dataDirectories: [String], box: ThumbnailerBox, lookMilliseconds: Int64, isInBackground: Bool = false
    ) {
        self.isInBackground = isInBackground
        self.box = box
        self.lookMilliseconds = lookMilliseconds
        shared = Shared(ThumbnailerCatalogue(dataDirectories: dataDirectories))
    }

    /// What can be made pictures of now, of what is not decoded here.
    public var types: Set<MediaType> {
        lookAgain()
        return shared.lock.withLock { shared.isBoxUsable ? shared.catalogue.types : [] }
    }

    /// A PNG or a JPEG, as some thumbnailer made it, of about `side` pixels a side.
    func draw(
        _ source: some ByteSource, type: MediaType, side: Int,
        unless cancellation: Cancellation = Cancellation()
    ) throws(ThumbnailError) -> (bytes: [UInt8], type: MediaType) {
        guard types.contains(type) else { throw .unavailable }
        guard let alarm = Alarm() else { throw .workerFailed }
        let callOff: @Sendable () -> Void = { [shared] in shared.call(alarm) }
        return try cancellation.during(callOff) { () throws(ThumbnailError) in
            try draw(source, type: type, side: side, alarm)
        }
    }

    private func draw(
        _ source: some ByteSource, type: MediaType, side: Int, _ alarm: Alarm
    ) throws(ThumbnailError) -> (bytes: [UInt8], type: MediaType) {
        let thumbnailers = shared.lock.withLock { shared.catalogue.thumbnailers(for: type) }
        try shared.enter(countMax: Self.runningMax, alarm)
        defer { shared.leave(alarm) }
        guard let input = try excerpt(of: source, unless: alarm) else { throw .workerFailed }
        var isTried = false
        for thumbnailer in thumbnailers.prefix(Self.attemptsMax) {
            let command = box.command(thumbnailer, type: type, side: side)
            let outcome = runBoxed(
                command, input: input, box.limits, unless: alarm, isInBackground: isInBackground)
            switch outcome {
            case .picture(let bytes):
                if let found = Self.type(of: bytes) { return (bytes, found) }
                isTried = true
            case .failed: isTried = true
            case .notRun: continue
            case .cancelled: throw .cancelled
            }
        }
        guard isTried else { throw .unavailable }
        throw isInBackground ? .workerFailed : .undecodable
    }

    /// Ends all that are running, waits until they are gone, and makes every call of `draw`, running or to come,
    /// throw `cancelled`.
    func shutDown() { shared.close() }

    private static func type(of bytes: [UInt8]) -> MediaType? {
        let type = identifyMedia(MemoryByteSource(bytes))
        return type == .png || type == .jpeg ? type : nil
    }

    /// The picture in memory, which nobody can change any more: all of it, or the parts of a large one that
    /// thumbnailers want. Nil where it cannot be read, or there is no memory.
    private func excerpt(
        of source: some ByteSource, unless alarm: Alarm
    ) throws(ThumbnailError) -> MemoryFile? {
        guard let byteCount = Int(exactly: source.byteCount), byteCount > 0 else { throw .undecodable }
        let parts = excerptRanges(byteCount: byteCount, budget: box.limits.inputBytes)
        let input = MemoryFile.copy(of: source, byteCount: byteCount, parts: parts) { !alarm.isRung }
        if alarm.isRung { throw .cancelled }
        return input
    }

    /// Looks what is installed, unless that was done just now. Whoever asks meanwhile waits.
    private func lookAgain() {
        shared.looking.lock()
        defer { shared.looking.unlock() }
        let now = MonotonicClock.milliseconds
        if let last = shared.lastLook, now - last < lookMilliseconds { return }
        var catalogue = shared.lock.withLock { shared.catalogue }
        catalogue.refresh()
        let isBoxUsable = catalogue.types.isEmpty ? false : tryBox(now)
        shared.lastLook = MonotonicClock.milliseconds
        shared.lock.withLock { (shared.catalogue, shared.isBoxUsable) = (catalogue, isBoxUsable) }
    }

    /// Whether boxes can be made. Found out once; where they cannot, again after a while. `looking` is held.
    private func tryBox(_ now: Int64) -> Bool {
        guard isProgram(box.bubblewrap) else { return false }
        if shared.isBoxProven { return true }
        if let last = shared.lastTrial, now - last < Self.trialMilliseconds { return false }
        shared.isBoxProven = box.isUsable()
        shared.lastTrial = MonotonicClock.milliseconds
        return shared.isBoxProven
    }
}

/// What the thumbnailers of a mount share.
private final class Shared: @unchecked Sendable {
    /// Held while looking what is installed; taken before `lock`.
    let looking = Lock()
    // Under `looking`. In monotonic milliseconds.
    var lastLook: Int64?
    var lastTrial: Int64?
    var isBoxProven = false

    let lock = Lock()
    private let change = Condition()
    // Under `lock`.
    var catalogue: ThumbnailerCatalogue
    var isBoxUsable = false
    private var running: [ObjectIdentifier: Alarm] = [:]
    private var isClosing = false

    init(_ catalogue: ThumbnailerCatalogue) { self.catalogue = catalogue }

    /// Waits for one's turn to run a program, which is to end when the alarm is rung. `leave` must follow.
    func enter(countMax: Int, _ alarm: Alarm) throws(ThumbnailError) {
        lock.lock()
        defer { lock.unlock() }
        while running.count >= countMax, !isClosing, !alarm.isRung { change.wait(lock) }
        if isClosing || alarm.isRung { throw .cancelled }
        running[ObjectIdentifier(alarm)] = alarm
    }

    /// Rings the alarm of somebody who runs a program or waits for his turn.
    func call(_ alarm: Alarm) {
        lock.withLock {
            alarm.ring()
            change.signalAll()
        }
    }

    func leave(_ alarm: Alarm) {
        lock.withLock {
            running[ObjectIdentifier(alarm)] = nil
            change.signalAll()
        }
    }

    /// Ends what runs and waits for it. May be called more than once.
    func close() {
        lock.lock()
        defer { lock.unlock() }
        isClosing = true
        for alarm in running.values { alarm.ring() }
        change.signalAll()
        while !running.isEmpty { change.wait(lock) }
    }
}

/// The parts of a picture or video that are copied for a thumbnailer: all of it where that is within the budget. Of
/// what is larger, which is a video, both ends, where indexes lie (`moov` is at either), and what surrounds the two
/// places at which thumbnailers look for a frame: a tenth of it (ffmpegthumbnailer) and a third (totem). Time and
/// place differ by a few percent in most videos, so each place's share is wide. Between the parts there are zeros.
///
/// Offsets are multiples of 64 KiB, parts in order and apart.
func excerptRanges(byteCount: Int, budget: Int) -> [Range<Int>] {
    guard byteCount > budget else { return [0..<byteCount] }
    let share = budget / 8
    let wanted = [
        0..<share, around(byteCount / 10, share * 4, byteCount), around(byteCount / 3, share * 2, byteCount),
        byteCount - share..<byteCount,
    ]
    var parts: [Range<Int>] = []
    for part in wanted {
        let start = part.lowerBound & ~0xFFFF
        if let last = parts.last, start <= last.upperBound {
            parts[parts.count - 1] = last.lowerBound..<max(last.upperBound, part.upperBound)
        } else {
            parts.append(start..<part.upperBound)
        }
    }
    return parts
}

private func around(_ place: Int, _ count: Int, _ byteCount: Int) -> Range<Int> {
    let start = max(0, place - count / 2)
    return start..<min(byteCount, start + count)
}
