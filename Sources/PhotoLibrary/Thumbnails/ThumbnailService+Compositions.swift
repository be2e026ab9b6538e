import FileRequests
import LinuxIO
import PhotoImaging

/// `stack.jpg` and `sheet.jpg`: pictures of several photos.
extension ThumbnailService {
    /// Returns the JPEG of a composition of these photos, the first on top. Throws `.noEntry` if none of them can be
    /// decoded.
    ///
    /// - Parameters:
    ///   - source: the photo of a tile.
    ///   - title: the name of the directory, for a sheet; called when the picture is made.
    func request(
        _ composition: Composition, of directory: UInt64, _ tiles: [CompositionTile],
        _ source: @escaping @Sendable (CompositionTile) -> StoredPhoto,
        title: @escaping @Sendable () -> String, for priority: RequestPriority
    ) throws(FileError) -> [UInt8] {
        guard !tiles.isEmpty else { throw .noEntry }
        let key = PictureKey.composition(directory: directory, composition, tiles)
        let made = try picture(key, for: priority) { [self] decoder throws(FileError) in
            do throws(ThumbnailError) {
                return .held(try compose(composition, tiles, source, title, decoder))
            } catch {
                if error == .undecodable { noteImpossible(key) }
                throw .noEntry
            }
        }
        // No composition is kept.
        guard case .held(let bytes) = made else { throw .noEntry }
        return bytes
    }

    /// Throws `undecodable` only if none of the photos has a picture, or ever will.
    private func compose(
        _ composition: Composition, _ tiles: [CompositionTile],
        _ source: @escaping @Sendable (CompositionTile) -> StoredPhoto, _ title: () -> String,
        _ decoder: DecoderContext
    ) throws(ThumbnailError) -> [UInt8] {
        let made = standardPictures(of: tiles, source, decoder.cancellation)
        var pictures: [(jpeg: [UInt8], label: String)] = []
        for (tile, jpeg) in zip(tiles, made) {
            guard let jpeg else { continue }
            pictures.append((jpeg, String(decoding: tile.name, as: UTF8.self)))
        }
        guard !pictures.isEmpty else {
            throw tiles.allSatisfy { hasNoPicture(source($0)) } ? .undecodable : .workerFailed
        }
        switch composition {
        case .stack:
            return try decoder.maker.composeStack(
                pictures.map(\.jpeg), size: Composition.stackSize, unless: decoder.cancellation)
        case .sheet:
            return try decoder.maker.composeSheet(pictures, title: title(), unless: decoder.cancellation)
        }
    }

    /// Returns the standard picture of each, or nil; makes as many at a time as there are workers.
    private func standardPictures(
        of tiles: [CompositionTile], _ source: @escaping @Sendable (CompositionTile) -> StoredPhoto,
        _ cancellation: Cancellation
    ) -> [[UInt8]?] {
        let threadCount = min(settings.workerCount, tiles.count)
        let gathering = ParallelPictures(count: tiles.count, threadCount: threadCount)
        let gather: @Sendable () -> Void = { [self] in
            while !cancellation.isCancelled, let index = gathering.next() {
                let source = source(tiles[index])
                let picture = try? request(source, .standard, for: .interactive(cancellation))
                gathering.put(picture.flatMap { try? $0.bytes(source) }, at: index)
            }
            gathering.leave()
        }
        for _ in 1..<max(threadCount, 1) where !startThreadIfPossible(gather) { gathering.leave() }
        gather()
        return gathering.wait()
    }
}

/// Collects pictures from several threads.
private final class ParallelPictures: @unchecked Sendable {
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`.
    private var pictures: [[UInt8]?]
    private var taken = 0
    private var threadCount: Int

    /// - Parameter threadCount: the number of threads that will call `leave`.
    package init(count: Int, threadCount: Int) {
        pictures = [[UInt8]?](repeating: nil, count: count)
        self.threadCount = threadCount
    }

    /// The index of a picture that no thread has begun; nil if there is none.
    package func next() -> Int? {
        lock.withLock {
            guard taken < pictures.count else { return nil }
            taken += 1
            return taken - 1
        }
    }

    package func put(_ picture: [UInt8]?, at index: Int) { lock.withLock { pictures[index] = picture } }

    package func leave() {
        lock.withLock {
            threadCount -= 1
            change.signalAll()
        }
    }

    /// Waits until all threads have left, then returns all pictures.
    package func wait() -> [[UInt8]?] {
        lock.withLock {
            while threadCount > 0 { change.wait(lock) }
            return pictures
        }
    }
}
