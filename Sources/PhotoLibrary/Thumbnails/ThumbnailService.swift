import LinuxIO
import PhotoImaging
import VaultFormat

/// Makes pictures: worker processes, or a stand-in in tests. Every call throws `cancelled` once `cancellation` is
/// cancelled.
protocol PictureMaking: Sendable {
    /// Types that can be decoded now. May read directories of the system: do not call it under the catalogue's lock.
    var decodableTypes: Set<MediaType> { get }

    func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// A JPEG of up to five tiles in a pile, the first on top.
    func composeStack(
        _ pictures: [[UInt8]], size: PictureSize, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// A JPEG of a grid with a label under each picture.
    func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// Releases resources that are only needed while pictures are made.
    func rest()

    /// Ends pictures that are being made: those calls throw `cancelled`.
    func shutDown()
}

extension ThumbnailWorkers: PictureMaking {
    func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        try makeThumbnail(of: source, type: type, size: size, format: format, unless: cancellation)
    }
}

/// Cache key of a picture: the source and its version.
enum PictureKey: Hashable, Sendable {
    case photo(ino: UInt64, version: UInt64, ThumbnailKind, PictureFormat)
    case composition(directory: UInt64, Composition, [CompositionTile])
}

/// A photo in a composition.
struct CompositionTile: Hashable, Sendable {
    var photo: UInt64
    var version: UInt64
    /// Its name in the directory.
    var name: [UInt8]
}

/// A finished thumbnail.
enum Thumbnail: Sendable {
    /// Sealed in the vault.
    case kept(content: UInt64, byteCount: Int)
    case held([UInt8])

    /// Its size in bytes.
    var byteCount: Int {
        switch self {
        case .kept(_, let count): count
        case .held(let bytes): bytes.count
        }
    }
}

/// The maker of a picture, and the cancellation of the request.
struct DecoderContext: Sendable {
    let maker: any PictureMaking
    /// Cancelled when no request wants the picture any more.
    let cancellation: Cancellation
}

/// The priority of a request for a picture.
enum RequestPriority: Sendable {
    /// A client request. `nil` cannot be cancelled.
    case interactive(Cancellation?)
    /// No client has requested it yet.
    case background
}

/// Makes pictures, each once for all simultaneous requests, and caches some that the vault does not keep.
final class ThumbnailService: @unchecked Sendable {
    private let limits: Limits
    private let maker: (any PictureMaking)?
    /// For background requests, so that client requests never wait behind them.
    private let backgroundMaker: (any PictureMaking)?
    let nodes = VirtualNodes()
    let repositoryNames = RepositoryNames()
    let background: BackgroundThumbnailer

    private let lock = Lock()
    private let finished = Condition()
    // All under `lock`.
    private var inFlight: [PictureKey: InFlightRequest] = [:]
    /// Requests that have not finished, cancelled or not.
    private var inFlightCount = 0
    private var held: HeldPictures
    private var impossible: Set<PictureKey> = []
    /// The sector after the last thumbnail that was written: consecutive ones lie together.
    private var nextSector: UInt64?

    /// A picture that is being made. All but the decoder is under the service's lock.
    private final class InFlightRequest {
        let decoder: DecoderContext
        let isBackground: Bool
        /// Callers that need the result.
        var waiters = 1
        var result: Result<Thumbnail, FileError>?

        init(_ decoder: DecoderContext, isBackground: Bool) {
            self.decoder = decoder
            self.isBackground = isBackground
        }
    }

    /// The number of callers that wait for pictures.
    var waiterCount: Int { lock.withLock { inFlight.values.reduce(0) { $0 + $1.waiters } } }

    init(_ options: LibraryOptions) {
        func makeMaker(isInBackground: Bool) -> (any PictureMaking)? {
            options.pictureMaker
                ?? options.workerPath.map {
                    ThumbnailWorkers(
                        executable: $0, count: options.workerCount, isInBackground: isInBackground,
                        installed: InstalledThumbnailers(
                            dataDirectories: options.dataDirectories, isInBackground: isInBackground))
                }
        }
        maker = makeMaker(isInBackground: false)
        backgroundMaker = makeMaker(isInBackground: true)
        background = BackgroundThumbnailer(options)
        limits = options.limits
        held = HeldPictures(bytesMax: limits.heldPictureBytes)
    }

    /// Returns the cached picture or the result of an in-flight request, else that of `make`. Throws `.noEntry` if
    /// there can be no picture, and `.interrupted` as soon as the caller is cancelled. When all waiters are, the
    /// request is cancelled.
    ///
    /// A background request gives way to all others. A client request does not wait for it: it cancels it, and makes
    /// the picture anew.
    func picture(
        _ key: PictureKey, for priority: RequestPriority,
        _ make: @escaping @Sendable (DecoderContext) throws(FileError) -> Thumbnail
    ) throws(FileError) -> Thumbnail {
        lock.lock()
        if let bytes = held.find(key) {
            lock.unlock()
            return .held(bytes)
        }
        if impossible.contains(key) {
            lock.unlock()
            throw .noEntry
        }
        switch (inFlight[key], priority) {
        case (.some, .background):
            lock.unlock()
            throw .busy
        case (let request?, .interactive(let cancellation)) where !request.isBackground:
            request.waiters += 1
            lock.unlock()
            return try wait(for: request, key, cancellation)
        case (let known, _):
            let request: InFlightRequest
            do throws(FileError) { request = try begin(key, priority) } catch {
                lock.unlock()
                throw error
            }
            lock.unlock()
            known?.decoder.cancellation.cancel()
            return try run(request, key, priority, make)
        }
    }

    /// Types that can be decoded now. May read directories of the system.
    var decodableTypes: Set<MediaType> { maker?.decodableTypes ?? ThumbnailWorkers.decodedTypes }

    /// Begins a request. The caller holds `lock`.
    private func begin(_ key: PictureKey, _ priority: RequestPriority) throws(FileError) -> InFlightRequest {
        var isBackground: Bool { if case .background = priority { true } else { false } }
        guard let maker = isBackground ? backgroundMaker : maker else { throw .noEntry }
        let request = InFlightRequest(
            DecoderContext(maker: maker, cancellation: Cancellation()), isBackground: isBackground)
        inFlight[key] = request
        inFlightCount += 1
        return request
    }

    /// Makes the picture: on another thread if the caller may be cancelled before it is finished.
    private func run(
        _ request: InFlightRequest, _ key: PictureKey, _ priority: RequestPriority,
        _ make: @escaping @Sendable (DecoderContext) throws(FileError) -> Thumbnail
    ) throws(FileError) -> Thumbnail {
        let decoder = request.decoder
        let work: @Sendable () -> Result<Thumbnail, FileError> = {
            Result { () throws(FileError) in try make(decoder) }
        }
        guard case .interactive(let cancellation?) = priority else {
            finish(request, key, work())
            return try wait(for: request, key, nil)
        }
        let box = RequestBox(request: request)
        if !startThreadIfPossible({ [self] in finish(box.request, key, work()) }) {
            finish(request, key, work())
        }
        return try wait(for: request, key, cancellation)
    }

    /// Takes a request to another thread. The request is only touched under the service's lock.
    private struct RequestBox: @unchecked Sendable { let request: InFlightRequest }

    private func finish(_ request: InFlightRequest, _ key: PictureKey, _ result: Result<Thumbnail, FileError>)
    {
        lock.withLock {
            if case .success(.held(let bytes)) = result { held.add(key, bytes) }
            request.result = result
            if inFlight[key] === request { inFlight[key] = nil }
            inFlightCount -= 1
            finished.signalAll()
        }
    }

    private func wait(
        for request: InFlightRequest, _ key: PictureKey, _ cancellation: Cancellation?
    ) throws(FileError) -> Thumbnail {
        guard let cancellation else { return try waitForResult(request, nil) }
        do throws(FileError) {
            return try cancellation.during(wakeAll) { () throws(FileError) in
                try waitForResult(request, cancellation)
            }
        } catch {
            if error == .interrupted { leave(request, key) }
            throw error
        }
    }

    private func wakeAll() { lock.withLock { finished.signalAll() } }

    private func waitForResult(_ request: InFlightRequest, _ cancellation: Cancellation?) throws(FileError)
        -> Thumbnail
    {
        lock.lock()
        defer { lock.unlock() }
        while true {
            if let result = request.result { return try result.get() }
            if cancellation?.isCancelled == true { throw .interrupted }
            finished.wait(lock)
        }
    }

    private func leave(_ request: InFlightRequest, _ key: PictureKey) {
        let isEmpty = lock.withLock {
            request.waiters -= 1
            guard request.waiters == 0 else { return false }
            // Later callers begin another request.
            if inFlight[key] === request { inFlight[key] = nil }
            return true
        }
        if isEmpty { request.decoder.cancellation.cancel() }
    }

    /// Remembers, for as long as this library is open, that there is no such picture.
    func noteImpossible(_ key: PictureKey) {
        lock.withLock {
            if impossible.count >= limits.impossiblePictures { impossible = [] }
            impossible.insert(key)
        }
    }

    func isImpossible(_ key: PictureKey) -> Bool { lock.withLock { impossible.contains(key) } }

    /// A cached JPEG of the same photo that has enough pixels for one of that size.
    func heldPicture(of photo: UInt64, version: UInt64, serving size: PictureSize) -> [UInt8]? {
        lock.withLock {
            held.first { key in
                guard case .photo(photo, version, .sized(let box), .jpeg) = key else { return false }
                return box.serves(size)
            }
        }
    }

    var writingPlace: UInt64? {
        get { lock.withLock { nextSector } }
        set { lock.withLock { nextSector = newValue } }
    }

    /// Releases resources that are only needed while pictures are made in the background.
    func restInBackground() { backgroundMaker?.rest() }

    /// Ends all in-flight requests: their waiters get no picture.
    func close() {
        background.askToStop()
        maker?.shutDown()
        backgroundMaker?.shutDown()
        background.awaitEnd()
        lock.withLock {
            while inFlightCount > 0 { finished.wait(lock) }
        }
    }
}

/// LRU cache of pictures in memory.
private struct HeldPictures {
    let bytesMax: Int
    private var pictures: [PictureKey: (bytes: [UInt8], use: UInt64)] = [:]
    private var byteCount = 0
    private var useCount: UInt64 = 0

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    mutating func find(_ key: PictureKey) -> [UInt8]? {
        guard let found = pictures[key] else { return nil }
        useCount += 1
        pictures[key]?.use = useCount
        return found.bytes
    }

    func first(where isSuitable: (PictureKey) -> Bool) -> [UInt8]? {
        pictures.first { isSuitable($0.key) }?.value.bytes
    }

    /// Adds a picture, in place of the least recently used ones. A picture larger than half of the cache is not added.
    mutating func add(_ key: PictureKey, _ bytes: [UInt8]) {
        guard bytes.count <= bytesMax / 2 else { return }
        if let old = pictures.removeValue(forKey: key) { byteCount -= old.bytes.count + Self.overhead }
        useCount += 1
        pictures[key] = (bytes, useCount)
        byteCount += bytes.count + Self.overhead
        if byteCount > bytesMax { dropOldest() }
    }

    /// Bytes that a picture costs beside its own; bounds the number of small ones.
    private static let overhead = 512

    /// Evicts until a quarter is free, so that sorting is rare.
    private mutating func dropOldest() {
        for (key, picture) in pictures.sorted(by: { $0.value.use < $1.value.use }) {
            guard byteCount > bytesMax / 4 * 3 else { return }
            pictures[key] = nil
            byteCount -= picture.bytes.count + Self.overhead
        }
    }
}
