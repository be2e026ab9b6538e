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

    /// A JPEG of up to five prints in a pile, the first on top.
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

/// What a picture is made with.
struct Workbench: Sendable {
    let maker: any PictureMaking
    /// Called off when nobody wants the picture any more.
    let cancellation: Cancellation
}

/// Who wants a picture.
enum Demand: Sendable {
    /// Some program; it ceases to when this is called off, and never where there is none.
    case asked(Cancellation?)
    /// Nobody yet.
    case ahead
}

/// Makes pictures, each once for all who ask for it at the same time, and holds some that the vault does not keep.
final class ThumbnailShop: @unchecked Sendable {
    private let limits: Limits
    private let maker: (any PictureMaking)?
    /// For what nobody waits for, so that those who wait never do so behind it.
    private let backgroundMaker: (any PictureMaking)?
    let nodes = VirtualNodes()
    let repositoryNames = RepositoryNames()
    let ahead: AheadMaker

    private let lock = Lock()
    private let landed = Condition()
    // All under `lock`.
    private var flights: [PictureKey: Flight] = [:]
    /// Flights that have not landed, called off or not.
    private var flightCount = 0
    private var held: HeldPictures
    private var impossible: Set<PictureKey> = []
    /// Behind the last thumbnail that was written: those made one after another lie together.
    private var nextSector: UInt64?

    /// A picture that is being made. All but the bench under the shop's lock.
    private final class Flight {
        let bench: Workbench
        let isAhead: Bool
        /// Who would miss it.
        var passengers = 1
        var result: Result<Thumbnail, FileError>?

        init(_ bench: Workbench, isAhead: Bool) {
            self.bench = bench
            self.isAhead = isAhead
        }
    }

    /// How many wait for pictures.
    var passengerCount: Int { lock.withLock { flights.values.reduce(0) { $0 + $1.passengers } } }

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
        ahead = AheadMaker(options)
        limits = options.limits
        held = HeldPictures(bytesMax: limits.heldPictureBytes)
    }

    /// The picture that is held, or that somebody makes just now, else what `make` returns. Throws `noEntry` where
    /// there can be none, and `interrupted` as soon as whoever asked does so no more; when nobody does, making it is
    /// called off.
    ///
    /// What is made ahead is made by somebody who gives way to all others. Who asks for it does not wait for that:
    /// it is called off, and made anew.
    func picture(
        _ key: PictureKey, for demand: Demand,
        _ make: @escaping @Sendable (Workbench) throws(FileError) -> Thumbnail
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
        switch (flights[key], demand) {
        case (.some, .ahead):
            lock.unlock()
            throw .busy
        case (let flight?, .asked(let asker)) where !flight.isAhead:
            flight.passengers += 1
            lock.unlock()
            return try wait(for: flight, key, asker)
        case (let known, _):
            let flight: Flight
            do throws(FileError) { flight = try begin(key, demand) } catch {
                lock.unlock()
                throw error
            }
            lock.unlock()
            known?.bench.cancellation.cancel()
            return try fly(flight, key, demand, make)
        }
    }

    /// What pictures can be made of now. May look into directories of the system.
    var picturedTypes: Set<MediaType> { maker?.picturedTypes ?? ThumbnailWorkers.decodedTypes }

    /// A new flight. `lock` is held.
    private func begin(_ key: PictureKey, _ demand: Demand) throws(FileError) -> Flight {
        var isAhead: Bool { if case .ahead = demand { true } else { false } }
        guard let maker = isAhead ? backgroundMaker : maker else { throw .noEntry }
        let flight = Flight(Workbench(maker: maker, cancellation: Cancellation()), isAhead: isAhead)
        flights[key] = flight
        flightCount += 1
        return flight
    }

    /// Makes the picture: on another thread where whoever asks may leave before it is there.
    private func fly(
        _ flight: Flight, _ key: PictureKey, _ demand: Demand,
        _ make: @escaping @Sendable (Workbench) throws(FileError) -> Thumbnail
    ) throws(FileError) -> Thumbnail {
        let bench = flight.bench
        let work: @Sendable () -> Result<Thumbnail, FileError> = {
            Result { () throws(FileError) in try make(bench) }
        }
        guard case .asked(let asker?) = demand else {
            land(flight, key, work())
            return try wait(for: flight, key, nil)
        }
        let box = Boarding(flight: flight)
        if !startThreadIfPossible({ [self] in land(box.flight, key, work()) }) { land(flight, key, work()) }
        return try wait(for: flight, key, asker)
    }

    /// Takes a flight to another thread. It is only touched under the shop's lock.
    private struct Boarding: @unchecked Sendable { let flight: Flight }

    private func land(_ flight: Flight, _ key: PictureKey, _ result: Result<Thumbnail, FileError>) {
        lock.withLock {
            if case .success(.held(let bytes)) = result { held.add(key, bytes) }
            flight.result = result
            if flights[key] === flight { flights[key] = nil }
            flightCount -= 1
            landed.signalAll()
        }
    }

    private func wait(
        for flight: Flight, _ key: PictureKey, _ asker: Cancellation?
    ) throws(FileError) -> Thumbnail {
        guard let asker else { return try waitToLand(flight, nil) }
        do throws(FileError) {
            return try asker.during(wakeAll) { () throws(FileError) in try waitToLand(flight, asker) }
        } catch {
            if error == .interrupted { leave(flight, key) }
            throw error
        }
    }

    private func wakeAll() { lock.withLock { landed.signalAll() } }

    private func waitToLand(_ flight: Flight, _ asker: Cancellation?) throws(FileError) -> Thumbnail {
        lock.lock()
        defer { lock.unlock() }
        while true {
            if let result = flight.result { return try result.get() }
            if asker?.isCancelled == true { throw .interrupted }
            landed.wait(lock)
        }
    }

    private func leave(_ flight: Flight, _ key: PictureKey) {
        let isEmpty = lock.withLock {
            flight.passengers -= 1
            guard flight.passengers == 0 else { return false }
            // Who asks from now on asks for another.
            if flights[key] === flight { flights[key] = nil }
            return true
        }
        if isEmpty { flight.bench.cancellation.cancel() }
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

    /// Lets go of what is only needed while pictures are made ahead.
    func restInBackground() { backgroundMaker?.rest() }

    /// Ends all that is being made: those who wait are told that there is nothing.
    func close() {
        ahead.askToStop()
        maker?.shutDown()
        backgroundMaker?.shutDown()
        ahead.awaitEnd()
        lock.withLock {
            while flightCount > 0 { landed.wait(lock) }
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
