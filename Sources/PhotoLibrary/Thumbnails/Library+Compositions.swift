import LinuxIO
import PhotoImaging
import VaultCatalogue

/// `stack.jpg` and `sheet.jpg`: pictures of a directory's newest photos.
extension Library {
    /// The photos taken last are searched among this many newest names of a directory.
    private static let namesMax = 4000

    /// For a caller who may not read all photos of a directory, this many times as many are examined.
    private static let hiddenFactor = 4

    /// The tiles of a composition, and the newest change of the directory or one of the photos.
    private struct Contents {
        var tiles: [CompositionTile]
        var modified: Timestamp
    }

    /// Returns the composition's JPEG, made again if the directory or its photos have changed, and the time of that
    /// change. Throws `.noEntry` if none of the photos can be decoded, `.stale` if the reader may not read one of them.
    ///
    /// - Parameter hidden: files to leave out; see `hiddenFiles`.
    func picture(
        of composition: Composition, _ directory: UInt64, hidden: [UInt64], _ reader: Reader,
        unless cancellation: Cancellation?
    ) throws(FileError) -> (bytes: [UInt8], modified: Timestamp) {
        guard let service = thumbnails else { throw .noEntry }
        let contents = try contents(of: composition, directory, hidden, reader)
        guard !contents.tiles.isEmpty else { throw .noEntry }
        let key = PictureKey.composition(directory: directory, composition, contents.tiles)
        let tiles = contents.tiles
        let picture = try service.picture(key, for: .interactive(cancellation)) {
            [self] decoder throws(FileError) in
            do throws(ThumbnailError) {
                return .held(try compose(composition, tiles, directory, decoder))
            } catch {
                if error == .undecodable { service.noteImpossible(key) }
                throw .noEntry
            }
        }
        return (try bytes(of: picture), contents.modified)
    }

    /// Returns the files of a composition's directory that the reader may not read, one for each name, as far as they
    /// would take the place of others.
    func hiddenFiles(
        of composition: Composition, _ directory: UInt64, from reader: Reader
    ) throws(FileError) -> [UInt64] {
        try locked { tree throws(FileError) in
            let newest = try sql(
                tree.tables.newestPhotos(
                    in: directory, among: Self.namesMax, limit: composition.photosMax * Self.hiddenFactor))
            var (hidden, shownCount) = ([UInt64](), 0)
            for placed in newest where shownCount < composition.photosMax {
                if reader.mayRead(tree.attributes(try tree.inode(placed.ino))) {
                    shownCount += 1
                } else {
                    hidden.append(placed.ino)
                }
            }
            return hidden
        }
    }

    private func contents(
        of composition: Composition, _ directory: UInt64, _ hidden: [UInt64], _ reader: Reader
    ) throws(FileError) -> Contents {
        try locked { tree throws(FileError) in
            let row = try tree.directory(directory).row
            var contents = Contents(tiles: [], modified: row.modified)
            let newest = try sql(
                tree.tables.newestPhotos(
                    in: directory, among: Self.namesMax, limit: composition.photosMax + hidden.count))
            let shown = newest.lazy.filter { !hidden.contains($0.ino) }.prefix(composition.photosMax)
            for placed in shown {
                // Permissions have changed since the lookup: the name must be looked up again.
                guard reader.mayRead(tree.attributes(try tree.inode(placed.ino))) else { throw .stale }
                let photo = try tree.inode(placed.photo)
                contents.modified = max(contents.modified, photo.row.modified)
                contents.tiles.append(
                    CompositionTile(photo: photo.ino, version: photo.row.version, name: placed.name))
            }
            return contents
        }
    }

    /// Throws `undecodable` only if none of the photos has a picture, or ever will.
    private func compose(
        _ composition: Composition, _ tiles: [CompositionTile], _ directory: UInt64, _ decoder: DecoderContext
    ) throws(ThumbnailError) -> [UInt8] {
        let made = standardPictures(of: tiles, decoder.cancellation)
        var pictures: [(jpeg: [UInt8], label: String)] = []
        for (print, jpeg) in zip(tiles, made) {
            guard let jpeg else { continue }
            pictures.append((jpeg, String(decoding: print.name, as: UTF8.self)))
        }
        guard !pictures.isEmpty else {
            throw tiles.allSatisfy { hasNoPicture($0.photo) } ? .undecodable : .workerFailed
        }
        switch composition {
        case .stack:
            return try decoder.maker.composeStack(
                pictures.map(\.jpeg), size: Composition.stackSize, unless: decoder.cancellation)
        case .sheet:
            return try decoder.maker.composeSheet(
                pictures, title: title(of: directory), unless: decoder.cancellation)
        }
    }

    /// Returns the standard picture of each, or nil; makes as many at a time as there are workers.
    private func standardPictures(of tiles: [CompositionTile], _ cancellation: Cancellation) -> [[UInt8]?] {
        let crew = min(options.workerCount, tiles.count)
        let gathering = ParallelPictures(count: tiles.count, crew: crew)
        let gather: @Sendable () -> Void = { [self] in
            while !cancellation.isCancelled, let index = gathering.next() {
                let picture = try? thumbnail(
                    of: tiles[index].photo, .standard, for: .interactive(cancellation))
                gathering.put(picture.flatMap { try? bytes(of: $0) }, at: index)
            }
            gathering.leave()
        }
        for _ in 1..<max(crew, 1) where !startThreadIfPossible(gather) { gathering.leave() }
        gather()
        return gathering.wait()
    }

    /// The directory's name; empty if it cannot be read.
    private func title(of directory: UInt64) -> String {
        let name = try? locked { tree throws(FileError) in
            try sql(tree.tables.dentries(of: directory)).first?.name
        }
        return String(decoding: name ?? [], as: UTF8.self)
    }
}

/// Collects pictures from several threads.
private final class ParallelPictures: @unchecked Sendable {
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`.
    private var pictures: [[UInt8]?]
    private var taken = 0
    private var crew: Int

    /// - Parameter crew: the number of threads that will call `leave`.
    init(count: Int, crew: Int) {
        pictures = [[UInt8]?](repeating: nil, count: count)
        self.crew = crew
    }

    /// The index of a picture that no thread has begun; nil if there is none.
    func next() -> Int? {
        lock.withLock {
            guard taken < pictures.count else { return nil }
            taken += 1
            return taken - 1
        }
    }

    func put(_ picture: [UInt8]?, at index: Int) { lock.withLock { pictures[index] = picture } }

    func leave() {
        lock.withLock {
            crew -= 1
            change.signalAll()
        }
    }

    /// Waits until all threads have left, then returns all pictures.
    func wait() -> [[UInt8]?] {
        lock.withLock {
            while crew > 0 { change.wait(lock) }
            return pictures
        }
    }
}
