public import LinuxIO
internal import Synchronization

/// Why there is no thumbnail.
public enum ThumbnailError: Error, Sendable, Equatable {
    /// Permanent for this picture: its type is not supported, it is damaged or exceeds the limits, or decoding it
    /// crashed the worker or took too long.
    case undecodable
    /// No worker can run: the executable is missing, or the sandbox does not work on this machine.
    case unavailable
    /// `shutDown()` was called, or the request was cancelled.
    case cancelled
    /// Not the picture's fault: its source could not be read, memory or descriptors were short, or the worker was
    /// killed.
    case workerFailed
}

/// Worker processes that decode pictures, so that no pixel is decoded in this one.
///
/// A worker forks for each picture. The fork has seen no other picture, can use no descriptor, has few system calls
/// besides those for memory, and ends when the thumbnail is done.
public final class ThumbnailWorkers: Sendable {
    private let executable: String
    private let arguments: [String]
    private let deadlineMilliseconds: Int
    /// Draws the types that the workers do not decode.
    private let installed: InstalledThumbnailers?
    private let isInBackground: Bool
    /// Fonts for labels.
    private let fonts: InstalledFonts
    /// The error for a picture that missed the deadline.
    private let stallError: ThumbnailError
    private let slots: [WorkerSlot]
    private let isShutDown = Atomic(false)
    private let pool: Mutex<Pool>

    private struct Pool {
        /// Free slots, most recently used last. Reusing that one keeps the number of workers low for a few callers.
        var idle: [WorkerSlot]
        /// A FIFO queue. Empty while a slot is idle.
        var waiting: [Waiter] = []
        /// Callers of `shutDown()`, woken when all slots are idle.
        var closing: [Waiter] = []
    }

    /// Largest side of a requested box, in pixels.
    public static let boxPixelsMax = WorkerProtocol.boxPixelsMax

    /// Wall-clock time for one picture. An endless computation is stopped long before, by the worker's own limit of
    /// processor time.
    private static let deadlineMilliseconds = 60_000
    /// The same for background workers, which may wait for the processor; their CPU limit stops a picture.
    private static let backgroundDeadlineMilliseconds = 120_000

    /// Up to `count` workers, started on demand.
    ///
    /// - Parameters:
    ///   - executable: the path of obscura-worker.
    ///   - isInBackground: the workers run only on idle processor time (SCHED_IDLE, sched(7)).
    ///   - installed: draws the types that workers do not decode.
    public convenience init(
        executable: String, count: Int, isInBackground: Bool = false, installed: InstalledThumbnailers? = nil
    ) {
        let deadline = isInBackground ? Self.backgroundDeadlineMilliseconds : Self.deadlineMilliseconds
        self.init(
            executable: executable, count: count, deadlineMilliseconds: deadline, arguments: [],
            // A background worker may simply not have been scheduled.
            isInBackground: isInBackground, stallError: isInBackground ? .workerFailed : .undecodable,
            installed: installed)
    }

    /// The same with test parameters. `deadlineMilliseconds`: time for one picture. `arguments`: see the worker's
    /// trials. `fonts`: fonts for labels.
    init(
        executable: String, count: Int, deadlineMilliseconds: Int, arguments: [String],
        isInBackground: Bool = false, stallError: ThumbnailError = .undecodable,
        installed: InstalledThumbnailers? = nil, fonts: InstalledFonts = .debian
    ) {
        precondition(count > 0)
        self.fonts = fonts
        self.installed = installed
        self.executable = executable
        self.arguments = arguments
        self.deadlineMilliseconds = deadlineMilliseconds
        self.isInBackground = isInBackground
        self.stallError = stallError
        slots = (0..<count).map { _ in WorkerSlot() }
        pool = Mutex(Pool(idle: slots))
    }

    deinit {
        shutDown()
    }

    /// Whether the workers themselves decode pictures of this type. Does no I/O.
    public static func decodes(_ type: MediaType) -> Bool {
        switch type {
        case .jpeg, .heic, .avif, .png, .webp, .tiff, .gif: true
        default: type.isRaw
        }
    }

    /// The types that workers decode.
    public static let decodedTypes = Set(MediaType.allCases.filter(decodes))

    /// The types that can have a thumbnail now: those that workers decode and those of installed thumbnailers. May
    /// read system directories.
    public var decodableTypes: Set<MediaType> { Self.decodedTypes.union(installed?.types ?? []) }

    /// Makes a thumbnail: upright, aspect ratio kept, fitting inside `size` or filling it, never enlarged, with the
    /// picture's colour profile. Blocks until it is made, also while all workers are busy (callers are served in
    /// order). Throws `.cancelled` once `cancellation` is cancelled; the worker slot is then free for the next caller.
    public func makeThumbnail(
        of source: some ByteSource, type: MediaType, size: PictureSize, format: PictureFormat = .jpeg,
        unless cancellation: Cancellation = Cancellation()
    ) throws(ThumbnailError) -> [UInt8] {
        guard Self.decodes(type) else {
            guard let installed else { throw .undecodable }
            // Many programs enlarge a picture that is smaller than the given size.
            let side = min(size.drawnSide, readFacts(source).flatMap(\.longestSide) ?? .max)
            let drawn = try installed.draw(source, type: type, side: side, unless: cancellation)
            return try serve(
                .thumbnail, MemoryByteSource(drawn.bytes), size: size, format: format, type: drawn.type,
                unless: cancellation)
        }
        return try serve(
            .thumbnail, source, size: size, format: format, type: type, unless: cancellation)
    }

    /// Makes a JPEG thumbnail that fits inside `box` by `box` pixels.
    public func makeThumbnail(
        of source: some ByteSource, type: MediaType, box: Int
    ) throws(ThumbnailError) -> [UInt8] {
        try makeThumbnail(of: source, type: type, size: PictureSize(fitting: box))
    }

    /// Makes a JPEG of a stack of up to ``CompositionRequest/stackTilesMax`` tiles, newest first, on white, of exactly
    /// `size`. `pictures` are existing JPEGs of 256 pixels or more; undecodable ones are left out.
    public func composeStack(
        _ pictures: [[UInt8]], size: PictureSize, unless cancellation: Cancellation = Cancellation()
    ) throws(ThumbnailError) -> [UInt8] {
        let composition = CompositionRequest(
            title: "",
            tiles: pictures.prefix(CompositionRequest.stackTilesMax).map {
                CompositionRequest.Tile(jpeg: $0, label: "")
            })
        return try serve(.stack, MemoryByteSource(composition.bytes), size: size, unless: cancellation)
    }

    /// Makes a JPEG of up to ``CompositionRequest/sheetTilesMax`` pictures in an even grid, each above its label, below
    /// a title. If no font is installed, labels and title are left out. `pictures` are existing JPEGs of 256 pixels or
    /// more.
    public func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String,
        unless cancellation: Cancellation = Cancellation()
    ) throws(ThumbnailError) -> [UInt8] {
        let composition = CompositionRequest(
            title: title,
            tiles: pictures.prefix(CompositionRequest.sheetTilesMax).map {
                CompositionRequest.Tile(jpeg: $0.jpeg, label: $0.label)
            })
        let size = SheetLayout(count: composition.tiles.count).size
        return try fonts.withDescriptors { (fonts) throws(ThumbnailError) in
            try serve(
                .sheet, MemoryByteSource(composition.bytes),
                size: PictureSize(width: size.width, height: size.height), fonts: fonts, unless: cancellation)
        }
    }

    private func serve(
        _ job: WorkerRequest.Job, _ source: some ByteSource, size: PictureSize, format: PictureFormat = .jpeg,
        type: MediaType = .jpeg, fonts: [Int32] = [], unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        let sides = 1...WorkerProtocol.boxPixelsMax
        guard sides.contains(size.width), sides.contains(size.height),
            (1...UInt64(WorkerProtocol.pictureBytesMax)).contains(source.byteCount)
        else { throw .undecodable }
        let slot = try takeSlot(unless: cancellation)
        defer { giveBack(slot) }
        let request = WorkerRequest(
            job, pictureBytes: Int(source.byteCount), size: size, format: format, type: type)
        guard let result = MemoryFile.forResult(byteCount: request.resultBytes) else { throw .workerFailed }
        try cancellation.during(slot.interrupt) { () throws(ThumbnailError) in
            try decode(request, source, fonts, into: result, with: slot, unless: cancellation)
        }
        return try Self.thumbnail(in: result, format)
    }

    /// Ends all workers and waits until they are gone. Running and future requests throw `.cancelled`. May be called
    /// more than once and from any thread.
    public func shutDown() {
        isShutDown.store(true, ordering: .sequentiallyConsistent)
        installed?.shutDown()
        let (waiting, closing) = pool.withLock { pool -> ([Waiter], Waiter) in
            let closing = Waiter()
            pool.closing.append(closing)
            wakeClosing(&pool)
            defer { pool.waiting = [] }
            return (pool.waiting, closing)
        }
        for waiter in waiting { waiter.wake(with: nil) }
        for slot in slots { slot.interrupt() }
        _ = closing.wait()
        for slot in slots { slot.retire() }
    }

    /// Ends idle workers. The next picture starts a new one.
    public func releaseIdle() {
        let idle = pool.withLock { pool in
            defer { pool.idle = [] }
            return pool.idle
        }
        for slot in idle {
            slot.retire()
            giveBack(slot)
        }
    }

    /// Callers that wait for a worker.
    var waitingCount: Int { pool.withLock { $0.waiting.count } }

    private func takeSlot(unless cancellation: Cancellation) throws(ThumbnailError) -> WorkerSlot {
        enum Turn {
            case now(WorkerSlot)
            case later(Waiter)
            case never
        }
        let turn = pool.withLock { pool -> Turn in
            if isShutDown.load(ordering: .sequentiallyConsistent) { return .never }
            if let slot = pool.idle.popLast() { return .now(slot) }
            let waiter = Waiter()
            pool.waiting.append(waiter)
            return .later(waiter)
        }
        switch turn {
        case .now(let slot):
            return slot
        case .later(let waiter):
            let leaveLine: @Sendable () -> Void = { [self] in leave(waiter) }
            let slot = cancellation.during(leaveLine) { waiter.wait() }
            guard let slot else { throw .cancelled }
            return slot
        case .never:
            throw .cancelled
        }
    }

    /// Removes the waiter of a cancelled request from the queue. It may have received a slot already.
    private func leave(_ waiter: Waiter) {
        let isWaiting = pool.withLock { pool in
            let index = pool.waiting.firstIndex { $0 === waiter }
            if let index { pool.waiting.remove(at: index) }
            return index != nil
        }
        if isWaiting { waiter.wake(with: nil) }
    }

    private func giveBack(_ slot: WorkerSlot) {
        let next = pool.withLock { pool -> Waiter? in
            if !pool.waiting.isEmpty { return pool.waiting.removeFirst() }
            pool.idle.append(slot)
            wakeClosing(&pool)
            return nil
        }
        next?.wake(with: slot)
    }

    private func wakeClosing(_ pool: inout Pool) {
        guard pool.idle.count == slots.count else { return }
        for waiter in pool.closing { waiter.wake(with: nil) }
        pool.closing = []
    }

    /// Lets the slot's worker write `result` while this thread reads `source` for it. A dead worker is not the
    /// picture's fault (only its fork decodes), so a new worker gets a second try.
    private func decode(
        _ request: WorkerRequest, _ source: some ByteSource, _ fonts: [Int32],
        into result: borrowing MemoryFile,
        with slot: WorkerSlot, unless cancellation: Cancellation
    ) throws(ThumbnailError) {
        func isCancelled() -> Bool {
            isShutDown.load(ordering: .sequentiallyConsistent) || cancellation.isCancelled
        }
        func failure(otherwise error: ThumbnailError) -> ThumbnailError { isCancelled() ? .cancelled : error }
        for _ in 1...2 {
            let worker = slot.worker(
                executable: executable, arguments: arguments, isInBackground: isInBackground,
                helloWithin: deadlineMilliseconds, mayStart: { !isCancelled() })
            guard let worker else { throw failure(otherwise: .unavailable) }
            let sending = try Self.send(
                request, source, fonts, into: result, to: worker, while: { !isCancelled() })
            if sending == .lost {
                slot.retire()
                continue
            }
            let answer = worker.receive(within: deadlineMilliseconds)
            if sending == .givenUp, case .words = answer { throw failure(otherwise: .workerFailed) }
            switch answer {
            case .words([WorkerOutcome.done.rawValue]):
                return
            case .words([WorkerOutcome.refused.rawValue]):
                throw .undecodable
            case .words([WorkerOutcome.crashed.rawValue]):
                // The next fork would have the address layout of the crashed one, which an attacker could learn.
                slot.retire()
                throw failure(otherwise: .undecodable)
            case .stalled:
                slot.retire()
                throw failure(otherwise: stallError)
            case .words([WorkerOutcome.unconfined.rawValue]):
                slot.retire()
                throw failure(otherwise: .unavailable)
            case .words, .lost:
                slot.retire()
            }
        }
        throw failure(otherwise: .workerFailed)
    }

    private enum Sending {
        case sent
        /// The worker is gone.
        case lost
        /// The picture cannot be read or is no longer wanted. The worker's answer is meaningless.
        case givenUp
    }

    /// Sends the request and then the picture. Frees the mapping and descriptor on return: the worker has its own.
    private static func send(
        _ request: WorkerRequest, _ source: some ByteSource, _ fonts: [Int32],
        into result: borrowing MemoryFile,
        to worker: WorkerProcess, while isWanted: () -> Bool
    ) throws(ThumbnailError) -> Sending {
        guard let picture = PictureFile.make(byteCount: request.pictureBytes) else { throw .workerFailed }
        let descriptors = [picture.descriptor, result.descriptor] + fonts
        guard worker.socket.send(request.words, descriptors: descriptors) else { return .lost }
        return picture.fill(from: source, while: isWanted) ? .sent : .givenUp
    }

    /// Copies and checks the thumbnail in `result`. Its writer has ended, but may have written anything.
    private static func thumbnail(
        in result: borrowing MemoryFile, _ format: PictureFormat
    ) throws(ThumbnailError) -> [UInt8] {
        var length: UInt64 = 0
        guard withUnsafeMutableBytes(of: &length, { result.read(at: 0, into: $0) }),
            (4...UInt64(result.byteCount - WorkerProtocol.resultHeaderBytes)).contains(length)
        else { throw .undecodable }
        var isRead = false
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
            isRead = result.read(
                at: WorkerProtocol.resultHeaderBytes, into: UnsafeMutableRawBufferPointer(buffer))
            count = isRead ? buffer.count : 0
        }
        guard isRead, bytes.starts(with: format.firstBytes),
            bytes.suffix(format.lastBytes.count) == format.lastBytes
        else { throw .undecodable }
        return bytes
    }
}

extension MediaFacts {
    /// The longest side of the stored picture, in pixels. Nil if unknown.
    fileprivate var longestSide: Int? {
        let side = max(width, height)
        return side > 0 ? side : nil
    }
}

extension PictureSize {
    /// Side, in pixels, of the square in which a picture must be drawn to be large enough for this size, for any
    /// reasonable aspect ratio.
    var drawnSide: Int {
        let side = max(width, height, 128)
        return isFilled ? min(side * 3, WorkerProtocol.boxPixelsMax) : side
    }
}

extension PictureFormat {
    /// The first bytes of every file of this format.
    fileprivate var firstBytes: [UInt8] {
        switch self {
        case .jpeg: [0xFF, 0xD8, 0xFF]
        case .png: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        }
    }

    /// The last bytes of every file of this format: EOI; the IEND chunk's name and checksum.
    fileprivate var lastBytes: ArraySlice<UInt8> {
        switch self {
        case .jpeg: [0xFF, 0xD9]
        case .png: [0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]
        }
    }
}
