public import LinuxIO
internal import Synchronization

/// Why there is no thumbnail.
public enum ThumbnailError: Error, Sendable, Equatable {
    /// Permanent for this picture: its type is not supported, it is damaged or exceeds the limits, or decoding it
    /// crashed the worker or used too much processor time.
    case undecodable
    /// No worker can run: the executable is missing, or the sandbox does not work on this machine.
    case unavailable
    /// `shutDown()` was called, or the request was cancelled.
    case cancelled
    /// Not the picture's fault: its source could not be read, memory or descriptors were short, the worker was killed
    /// or did not get its turn in time, or too many slow pictures are being made.
    case workerFailed
    /// The picture uses much processor time, and these workers only make quick ones.
    case slow
    /// An installed program did not finish in time: it hangs on this picture, or the machine was too busy.
    case outOfTime
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
    /// The lines in which pictures are made, one after the other.
    private let lines: [WorkerPool.Line]
    /// Fonts for labels.
    private let fonts: InstalledFonts
    /// Processor time after which a picture is in the slow line.
    private let quickMilliseconds: Int
    private let isShutDown = Atomic(false)
    private let pool: WorkerPool

    /// Largest side of a requested box, in pixels.
    public static let boxPixelsMax = WorkerProtocol.boxPixelsMax

    /// Wall-clock time for one picture. An endless computation is stopped long before, by the worker's own limit of
    /// processor time.
    private static let deadlineMilliseconds = 60_000
    /// The same for background workers, which may wait for the processor; their CPU limit stops a picture.
    private static let backgroundDeadlineMilliseconds = 120_000
    /// Wall-clock time for a worker's start, which may have to wait for the processor.
    private static let greetingMilliseconds = 120_000
    /// Processor time of a picture that is quick, about that of a JPEG of 100 megapixels. A picture that has used more
    /// goes behind all others.
    private static let quickMilliseconds = 1000

    /// Up to `count` workers, started on demand, and further ones for slow pictures (see `WorkerPool`).
    ///
    /// - Parameters:
    ///   - executable: the path of obscura-worker.
    ///   - isInBackground: the workers run only on idle processor time (SCHED_IDLE, sched(7)).
    ///   - pictures: those that are made.
    ///   - installed: draws the types that workers do not decode.
    public convenience init(
        executable: String, count: Int, isInBackground: Bool = false, pictures: Pictures = .all,
        installed: InstalledThumbnailers? = nil
    ) {
        let deadline = isInBackground ? Self.backgroundDeadlineMilliseconds : Self.deadlineMilliseconds
        self.init(
            executable: executable, count: count, deadlineMilliseconds: deadline, arguments: [],
            isInBackground: isInBackground, pictures: pictures, installed: installed)
    }

    /// The pictures that workers make.
    public enum Pictures: Sendable {
        /// All: those that use much processor time after all others.
        case all
        /// Throws `slow` for the others.
        case quick
        /// All, one at a time.
        case slow
    }

    /// The same with test parameters. `deadlineMilliseconds`: time for one picture. `arguments`: see the worker's
    /// trials. `quickMilliseconds`: processor time of a quick picture. `fonts`: fonts for labels.
    init(
        executable: String, count: Int, deadlineMilliseconds: Int, arguments: [String],
        isInBackground: Bool = false, quickMilliseconds: Int = quickMilliseconds,
        pictures: Pictures = .all, installed: InstalledThumbnailers? = nil, fonts: InstalledFonts = .debian
    ) {
        precondition(count > 0)
        switch pictures {
        case .all: lines = [.quick, .slow]
        case .quick: lines = [.quick]
        case .slow: lines = [.slow]
        }
        self.fonts = fonts
        self.installed = installed
        self.executable = executable
        self.arguments = arguments
        self.deadlineMilliseconds = deadlineMilliseconds
        self.isInBackground = isInBackground
        self.quickMilliseconds = quickMilliseconds
        pool = WorkerPool(count: count)
    }

    deinit {
        shutDown()
    }

    /// Whether the workers themselves decode pictures of this type. Does no I/O.
    public static func decodes(_ type: MediaType) -> Bool {
        switch type {
        case .jpeg, .heic, .avif, .png, .webp, .tiff, .gif, .jxl: true
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

    /// Hashes a JPEG thumbnail: of similar pictures the hashes differ in few bits. Nil if it has next to no contrast.
    public func likenessHash(
        of jpeg: [UInt8], unless cancellation: Cancellation = Cancellation()
    ) throws(ThumbnailError) -> UInt64? {
        let bytes = try serve(
            .likeness, MemoryByteSource(jpeg), size: PictureSize(fitting: WorkerProtocol.hashedSide),
            unless: cancellation)
        let hash = bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        return hash > 1 ? hash : nil
    }

    private func serve(
        _ job: WorkerRequest.Job, _ source: some ByteSource, size: PictureSize, format: PictureFormat = .jpeg,
        type: MediaType = .jpeg, fonts: [Int32] = [], unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        let sides = 1...WorkerProtocol.boxPixelsMax
        guard sides.contains(size.width), sides.contains(size.height),
            (1...UInt64(WorkerProtocol.pictureBytesMax)).contains(source.byteCount)
        else { throw .undecodable }
        var request = WorkerRequest(
            job, pictureBytes: Int(source.byteCount), size: size, format: format, type: type)
        for line in lines {
            request.quickMilliseconds = line == .quick ? quickMilliseconds : 0
            if let made = try serve(request, source, fonts, in: line, unless: cancellation) { return made }
        }
        throw .slow
    }

    /// Makes the thumbnail in that line. Nil if the picture was quick no more and the slow line was busy.
    private func serve(
        _ request: WorkerRequest, _ source: some ByteSource, _ fonts: [Int32], in line: WorkerPool.Line,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]? {
        let slot = try pool.take(line, unless: cancellation)
        var line = line
        defer { pool.giveBack(slot, line) }
        guard let result = MemoryFile.forResult(byteCount: request.resultBytes) else { throw .workerFailed }
        let isMade = try cancellation.during(slot.interrupt) { () throws(ThumbnailError) in
            try decode(request, source, fonts, into: result, with: slot, &line, unless: cancellation)
        }
        guard isMade else { return nil }
        guard request.job == .likeness else { return try Self.thumbnail(in: result, request.format) }
        var hash = [UInt8](repeating: 0, count: WorkerProtocol.hashBytes)
        let isRead = hash.withUnsafeMutableBytes {
            result.read(at: WorkerProtocol.resultHeaderBytes, into: $0)
        }
        guard isRead else { throw .undecodable }
        return hash
    }

    /// Ends all workers and waits until they are gone. Running and future requests throw `.cancelled`. May be called
    /// more than once and from any thread.
    public func shutDown() {
        isShutDown.store(true, ordering: .sequentiallyConsistent)
        installed?.shutDown()
        pool.close()
    }

    /// Ends idle workers. The next picture starts a new one.
    public func releaseIdle() { pool.releaseIdle() }

    /// Callers that wait for a worker, but for those in the slow line.
    var waitingCount: Int { pool.waitingCount(.quick) }
    /// Callers that wait in the slow line.
    var slowWaitingCount: Int { pool.waitingCount(.slow) }

    /// Lets the slot's worker write `result` while this thread reads `source` for it. A dead worker is not the
    /// picture's fault (only its fork decodes), so a new worker gets a second try. False if the picture used more
    /// processor time than a quick one and could not move to the slow line.
    private func decode(
        _ request: WorkerRequest, _ source: some ByteSource, _ fonts: [Int32],
        into result: borrowing MemoryFile, with slot: WorkerSlot, _ line: inout WorkerPool.Line,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> Bool {
        func isCancelled() -> Bool {
            isShutDown.load(ordering: .sequentiallyConsistent) || cancellation.isCancelled
        }
        func failure(otherwise error: ThumbnailError) -> ThumbnailError { isCancelled() ? .cancelled : error }
        // The next picture gets a process that does not give way.
        defer { if line == .slow { slot.retire() } }
        for _ in 1...2 {
            let worker = slot.worker(
                executable: executable, arguments: arguments, isInBackground: isInBackground,
                helloWithin: Self.greetingMilliseconds, mayStart: { !isCancelled() })
            guard let worker else { throw failure(otherwise: .unavailable) }
            if line == .slow { worker.giveWay() }
            let sending = try Self.send(
                request, source, fonts, into: result, to: worker, while: { !isCancelled() })
            if sending == .lost {
                slot.retire()
                continue
            }
            var answer = worker.receive(within: deadlineMilliseconds(in: line))
            if case .words([WorkerProtocol.slowNotice]) = answer {
                guard line == .slow || lines.contains(.slow) && pool.moveToSlow() else {
                    slot.retire()
                    return false
                }
                line = .slow
                worker.giveWay()
                answer = worker.receive(within: deadlineMilliseconds(in: line))
            }
            if sending == .givenUp, case .words = answer { throw failure(otherwise: .workerFailed) }
            switch answer {
            case .words([WorkerOutcome.done.rawValue]):
                return true
            case .words([WorkerOutcome.refused.rawValue]):
                throw .undecodable
            case .words([WorkerOutcome.crashed.rawValue]):
                // The next fork would have the address layout of the crashed one, which an attacker could learn.
                slot.retire()
                throw failure(otherwise: .undecodable)
            case .stalled:
                slot.retire()
                // It did not get its turn, or all was frozen: its own limit ends one that only computes.
                throw failure(otherwise: .workerFailed)
            case .words([WorkerOutcome.unconfined.rawValue]):
                slot.retire()
                throw failure(otherwise: .unavailable)
            case .words, .lost:
                slot.retire()
            }
        }
        throw failure(otherwise: .workerFailed)
    }

    /// A picture in the slow line gets less processor time.
    private func deadlineMilliseconds(in line: WorkerPool.Line) -> Int {
        line == .quick ? deadlineMilliseconds : deadlineMilliseconds * 2
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
