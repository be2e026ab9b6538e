import LinuxIO
import PhotoImaging

/// Who makes pictures of pictures: worker processes, or a stand-in in tests.
protocol PictureMaking: Sendable {
    /// What pictures can be made of now. May look into directories of the system: not under the catalogue's lock.
    var picturedTypes: Set<MediaType> { get }

    func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat
    ) throws(ThumbnailError) -> [UInt8]

    /// A JPEG of up to five prints in a pile, the first on top.
    func composeStack(_ pictures: [[UInt8]], size: PictureSize) throws(ThumbnailError) -> [UInt8]

    /// A JPEG of a grid with a label under each.
    func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String
    ) throws(ThumbnailError) -> [UInt8]

    /// Ends what is being made: that throws `cancelled`.
    func shutDown()
}

extension ThumbnailWorkers: PictureMaking {
    func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat
    ) throws(ThumbnailError) -> [UInt8] {
        try makeThumbnail(of: source, type: type, size: size, format: format)
    }
}

/// What a picture is of, and made from: where one of these is another, the picture is.
enum PictureKey: Hashable, Sendable {
    case photo(ino: UInt64, version: UInt64, ThumbnailKind, PictureFormat)
    case composition(directory: UInt64, Composition, [Print])
}

/// A photo in a composition.
struct Print: Hashable, Sendable {
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

/// Makes pictures, each once for all who ask for it at the same time, and holds some that the vault does not keep.
final class ThumbnailShop: @unchecked Sendable {
    /// What is held in memory: a screen full of pictures larger than the standard one.
    static let heldBytesMax = 16 << 20

    let maker: (any PictureMaking)?
    let nodes = VirtualNodes()
    let repositoryNames = RepositoryNames()
    let ahead: AheadMaker

    private let lock = Lock()
    private let landed = Condition()
    // All under `lock`.
    private var flights: [PictureKey: Flight] = [:]
    private var held = HeldPictures(bytesMax: heldBytesMax)
    /// Behind the last thumbnail that was written: those made one after another lie together.
    private var nextSector: UInt64?

    /// A picture that is being made.
    private final class Flight {
        var result: Result<Thumbnail, FileError>?
    }

    init(_ options: LibraryOptions) {
        maker =
            options.pictureMaker
            ?? options.workerPath.map {
                ThumbnailWorkers(
                    executable: $0, count: options.workerCount,
                    installed: InstalledThumbnailers(dataDirectories: options.dataDirectories))
            }
        ahead = AheadMaker(options)
    }

    /// The picture that is held, or that somebody makes just now, else what `make` returns.
    func picture(
        _ key: PictureKey, _ make: () throws(FileError) -> Thumbnail
    ) throws(FileError) -> Thumbnail {
        lock.lock()
        if let bytes = held.find(key) {
            lock.unlock()
            return .held(bytes)
        }
        if let flight = flights[key] {
            defer { lock.unlock() }
            while true {
                if let result = flight.result { return try result.get() }
                landed.wait(lock)
            }
        }
        let flight = Flight()
        flights[key] = flight
        lock.unlock()
        let result = Result { () throws(FileError) in try make() }
        lock.lock()
        defer { lock.unlock() }
        if case .success(.held(let bytes)) = result { held.add(key, bytes) }
        flight.result = result
        flights[key] = nil
        landed.signalAll()
        return try result.get()
    }

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

    /// Ends all that is being made: those who wait are told that there is nothing.
    func close() {
        ahead.askToStop()
        maker?.shutDown()
        ahead.awaitEnd()
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
