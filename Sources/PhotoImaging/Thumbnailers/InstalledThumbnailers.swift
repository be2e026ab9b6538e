internal import Glibc
internal import LinuxIO

/// The thumbnailers that the user has installed, for pictures and videos that are not decoded here. Their output is
/// untrusted, and decoded like any other hostile picture.
public final class InstalledThumbnailers: Sendable {
    /// Maximum age of the list of installed thumbnailers.
    private static let lookMilliseconds: Int64 = 10_000
    /// How long to wait after the machine refused a sandbox before trying again.
    private static let trialMilliseconds: Int64 = 60_000
    /// Maximum number of thumbnailers running at the same time: each holds its picture in memory, and may use all
    /// cores.
    private static let runningMax = 2
    /// Maximum number of installed thumbnailers tried for one picture.
    private static let attemptsMax = 3

    private let sandbox: ThumbnailerSandbox
    private let lookMilliseconds: Int64
    private let isInBackground: Bool
    private let shared: Shared

    /// - Parameters:
    ///   - dataDirectories: those of the XDG Base Directory Specification, most important first.
    ///   - isInBackground: thumbnailers only get idle time. A failure then, perhaps for lack of time, does not count
    ///     as undecodable.
    public convenience init(dataDirectories: [String], isInBackground: Bool = false) {
        self.init(
            dataDirectories: dataDirectories, sandbox: ThumbnailerSandbox(),
            lookMilliseconds: Self.lookMilliseconds,
            isInBackground: isInBackground)
    }

    init(
        dataDirectories: [String], sandbox: ThumbnailerSandbox, lookMilliseconds: Int64,
        isInBackground: Bool = false
    ) {
        self.isInBackground = isInBackground
        self.sandbox = sandbox
        self.lookMilliseconds = lookMilliseconds
        shared = Shared(ThumbnailerCatalogue(dataDirectories: dataDirectories))
    }

    /// The types, of those not decoded here, for which pictures can be made now.
    public var types: Set<MediaType> {
        lookAgain()
        return shared.lock.withLock { shared.isBoxUsable ? shared.catalogue.types : [] }
    }

    /// A PNG or a JPEG of about `side` pixels a side, as some thumbnailer made it.
    func draw(
        _ source: some ByteSource, type: MediaType, side: Int,
        unless cancellation: Cancellation = Cancellation()
    ) throws(ThumbnailError) -> (bytes: [UInt8], type: MediaType) {
        guard types.contains(type) else { throw .unavailable }
        guard let alarm = Alarm() else { throw .workerFailed }
        let cancel: @Sendable () -> Void = { [shared] in shared.call(alarm) }
        return try cancellation.during(cancel) { () throws(ThumbnailError) in
            try draw(source, type: type, side: side, alarm)
        }
    }

    private func draw(
        _ source: some ByteSource, type: MediaType, side: Int, _ alarm: Alarm
    ) throws(ThumbnailError) -> (bytes: [UInt8], type: MediaType) {
        let installed = shared.lock.withLock { shared.catalogue.thumbnailers(for: type) }
        let thumbnailers = FrameExtraction.thumbnailers(
            Array(installed.prefix(Self.attemptsMax)), for: type.isVideo ? readFacts(source) : nil)
        try shared.enter(countMax: Self.runningMax, alarm)
        defer { shared.leave(alarm) }
        guard let input = try excerpt(of: source, unless: alarm) else { throw .workerFailed }
        var (isTried, isOutOfTime) = (false, false)
        for thumbnailer in thumbnailers {
            let command = sandbox.command(thumbnailer, type: type, side: side)
            let outcome = runSandboxed(
                command, input: input, sandbox.limits, unless: alarm, isInBackground: isInBackground)
            switch outcome {
            case .picture(let bytes):
                if let found = Self.type(of: bytes) { return (bytes, found) }
                isTried = true
            case .failed: isTried = true
            case .outOfTime: (isTried, isOutOfTime) = (true, true)
            case .notRun: continue
            case .cancelled: throw .cancelled
            }
        }
        guard isTried else { throw .unavailable }
        throw isInBackground ? .workerFailed : isOutOfTime ? .outOfTime : .undecodable
    }

    /// Ends all running thumbnailers, waits until they are gone, and makes every call of `draw`, running or to come,
    /// throw `cancelled`.
    func shutDown() { shared.close() }

    private static func type(of bytes: [UInt8]) -> MediaType? {
        let type = identifyMedia(MemoryByteSource(bytes))
        return type == .png || type == .jpeg ? type : nil
    }

    /// A copy of the picture in memory, which nobody else can change: all of it, or the parts of a large one that
    /// thumbnailers need. Nil if it cannot be read, or there is no memory.
    private func excerpt(
        of source: some ByteSource, unless alarm: Alarm
    ) throws(ThumbnailError) -> MemoryFile? {
        guard let byteCount = Int(exactly: source.byteCount), byteCount > 0 else { throw .undecodable }
        let parts = excerptRanges(byteCount: byteCount, budget: sandbox.limits.inputBytes)
        let input = MemoryFile.copy(of: source, byteCount: byteCount, parts: parts) { !alarm.isRung }
        if alarm.isRung { throw .cancelled }
        return input
    }

    /// Updates the list of installed thumbnailers, unless that was done just now. Other callers wait meanwhile.
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

    /// Whether sandboxes can be made. Success is remembered; a failure is tried again after a while. `looking` is held.
    private func tryBox(_ now: Int64) -> Bool {
        guard isProgram(sandbox.bubblewrap) else { return false }
        if shared.isSandboxProven { return true }
        if let last = shared.lastTrial, now - last < Self.trialMilliseconds { return false }
        shared.isSandboxProven = sandbox.isUsable()
        shared.lastTrial = MonotonicClock.milliseconds
        return shared.isSandboxProven
    }
}

/// State that the thumbnailers of a mount share.
private final class Shared: @unchecked Sendable {
    /// Held while the list of installed thumbnailers is updated; taken before `lock`.
    let looking = Lock()
    // Under `looking`. Times in monotonic milliseconds.
    var lastLook: Int64?
    var lastTrial: Int64?
    var isSandboxProven = false

    let lock = Lock()
    private let change = Condition()
    // Under `lock`.
    var catalogue: ThumbnailerCatalogue
    var isBoxUsable = false
    private var running: [ObjectIdentifier: Alarm] = [:]
    private var isClosing = false

    init(_ catalogue: ThumbnailerCatalogue) { self.catalogue = catalogue }

    /// Waits for a free slot to run a program, which must end when the alarm rings. `leave` must follow.
    func enter(countMax: Int, _ alarm: Alarm) throws(ThumbnailError) {
        lock.lock()
        defer { lock.unlock() }
        while running.count >= countMax, !isClosing, !alarm.isRung { change.wait(lock) }
        if isClosing || alarm.isRung { throw .cancelled }
        running[ObjectIdentifier(alarm)] = alarm
    }

    /// Rings the alarm of a caller that runs a program or waits for a slot.
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

    /// Ends the running programs and waits for them. May be called more than once.
    func close() {
        lock.lock()
        defer { lock.unlock() }
        isClosing = true
        for alarm in running.values { alarm.ring() }
        change.signalAll()
        while !running.isEmpty { change.wait(lock) }
    }
}

/// The parts of a picture or video that are copied for a thumbnailer: all of it if it is within the budget. Of a larger
/// file, which is a video, both ends, where indexes lie (`moov` is at either), and the surroundings of the two places
/// where thumbnailers look for a frame: a tenth of it (ffmpegthumbnailer) and a third (totem). Position in time and in
/// the file differ by a few percent in most videos, so each place's share is wide. Between the parts there are zeros.
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
