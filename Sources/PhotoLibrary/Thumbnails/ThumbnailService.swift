import LinuxIO
import PhotoImaging
import VaultFormat

/// Who makes pictures of pictures: worker processes, or a stand-in in tests. Every call throws `cancelled` once
/// `cancellation` is called off.
protocol PictureMaking: Sendable {
    /// What pictures can be made of now. May look into directories of the system: not under the catalogue's lock.
    var picturedTypes: Set<MediaType> { get }

    func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// A JPEG of up to five tiles in a pile, the first on top.
    func composeStack(
        _ pictures: [[UInt8]], size: PictureSize, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// A JPEG of a grid with a label under each.
    func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// Lets go of what is only needed while pictures are made.
    func rest()

    /// Ends what is being made: that throws `cancelled`.
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

/// What a picture is of, and made from: where one of these is another, the picture is.
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

/// A thumbnail that is there.
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

/// What a picture is made with.
struct DecoderContext: Sendable {
    let maker: any PictureMaking
    /// Called off when nobody wants the picture any more.
    let cancellation: Cancellation
}

/// Who wants a picture.
enum RequestPriority: Sendable {
    /// Some program; it ceases to when this is called off, and never where there is none.
    case interactive(Cancellation?)
    /// Nobody yet.
    case background
}

/// Makes pictures, each once for all who ask for it at the same time, and holds some that the vault does not keep.
final class ThumbnailService: @unchecked Sendable {
    private let limits: Limits
    private let maker: (any PictureMaking)?
    /// For what nobody waits for, so that those who wait never do so behind it.
    private let backgroundMaker: (any PictureMaking)?
    let nodes = VirtualNodes()
    let repositoryNames = RepositoryNames()
    let background: BackgroundThumbnailer

    private let lock = Lock()
    private let finished = Condition()
    // All under `lock`.
    private var inFlight: [PictureKey: InFlightRequest] = [:]
    /// Flights that have not finished, called off or not.
    private var inFlightCount = 0
    private var held: HeldPictures
    private var impossible: Set<PictureKey> = []
    /// Behind the last thumbnail that was written: those made one after another lie together.
    private var nextSector: UInt64?

    /// A picture that is being made. All but the decoder under the service's lock.
    private final class InFlightRequest {
        let decoder: DecoderContext
        let isBackground: Bool
        /// Who would miss it.
        var waiters = 1
        var result: Result<Thumbnail, FileError>?

        init(_ decoder: DecoderContext, isBackground: Bool) {
            self.decoder = decoder
            self.isBackground = isBackground
        }
    }

    /// How many wait for pictures.
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

    /// The picture that is held, or that somebody makes just now, else what `make` returns. Throws `noEntry` where
    /// there can be none, and `interrupted` as soon as whoever asked does so no more; when nobody does, making it is
    /// called off.
    ///
    /// What is made background is made by somebody who gives way to all others. Who asks for it does not wait for that:
    /// it is called off, and made anew.
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

    /// What pictures can be made of now. May look into directories of the system.
    var picturedTypes: Set<MediaType> { maker?.picturedTypes ?? ThumbnailWorkers.decodedTypes }

    /// A new request. `lock` is held.
    private func begin(_ key: PictureKey, _ priority: RequestPriority) throws(FileError) -> InFlightRequest {
        var isBackground: Bool { if case .background = priority { true } else { false } }
        guard let maker = isBackground ? backgroundMaker : maker else { throw .noEntry }
        let request = InFlightRequest(
            DecoderContext(maker: maker, cancellation: Cancellation()), isBackground: isBackground)
        inFlight[key] = request
        inFlightCount += 1
        return request
    }

    /// Makes the picture: on another thread where whoever asks may leave before it is there.
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

    /// Takes a request to another thread. It is only touched under the service's lock.
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
            // Who asks from now on asks for another.
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

    /// A JPEG that is held of the same photo and serves to make one of that size.
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

    /// Lets go of what is only needed while pictures are made background.
    func restInBackground() { backgroundMaker?.rest() }

    /// Ends all that is being made: those who wait are told that there is nothing.
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

/// Pictures in memory, those that were used last.
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

    /// Adds a picture, in place of those that nobody has used for longest. One that would fill half of all the
    /// room is not held.
    mutating func add(_ key: PictureKey, _ bytes: [UInt8]) {
        guard bytes.count <= bytesMax / 2 else { return }
        if let old = pictures.removeValue(forKey: key) { byteCount -= old.bytes.count + Self.overhead }
        useCount += 1
        pictures[key] = (bytes, useCount)
        byteCount += bytes.count + Self.overhead
        if byteCount > bytesMax { dropOldest() }
    }

    /// What a picture costs beside its bytes; bounds the number of small ones.
    private static let overhead = 512

    /// Drops until a quarter is free, so that this sorts but now and then.
    private mutating func dropOldest() {
        for (key, picture) in pictures.sorted(by: { $0.value.use < $1.value.use }) {
            guard byteCount > bytesMax / 4 * 3 else { return }
            pictures[key] = nil
            byteCount -= picture.bytes.count + Self.overhead
        }
    }
}
