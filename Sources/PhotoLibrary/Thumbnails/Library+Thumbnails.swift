import LinuxIO
import PhotoImaging
import VaultCatalogue
import VaultFormat
import VaultStore

/// The properties of a photo that its pictures are made from.
struct ThumbnailSource {
    var ino: UInt64
    var version: UInt64
    var type: MediaType
    /// Size of the photo.
    var byteCount: UInt64
    /// As EXIF numbers it, 1–8.
    var orientation: Int64
    /// Kept pictures of its present version.
    var rows: [ThumbnailRow]

    /// Whether a worker has failed to decode it.
    var isUndecodable: Bool { rows.contains { $0.length < 0 } }

    func row(_ size: PictureSize, _ format: PictureFormat) -> ThumbnailRow? {
        rows.first { $0.size == size && $0.pictureFormat == format && $0.length >= 0 }
    }

    /// The smallest kept JPEG that has all the pixels of a picture of that size.
    func row(serving size: PictureSize) -> ThumbnailRow? {
        rows.filter { $0.pictureFormat == .jpeg && $0.length >= 0 && $0.size.serves(size) }
            .min { $0.width * $0.height < $1.width * $1.height }
    }

    /// Whether its picture may be transparent, which a JPEG made of it is not.
    var mayBeTransparent: Bool { type != .jpeg && !type.isRaw && !type.isVideo }
}

extension ThumbnailRow {
    var size: PictureSize {
        PictureSize(width: Int(width), height: Int(height), isFilled: isFilled)
    }

    var pictureFormat: PictureFormat { format == 0 ? .jpeg : .png }

    fileprivate init(_ original: ThumbnailSource, _ size: PictureSize, _ format: PictureFormat, length: Int) {
        self.init(
            ino: original.ino, width: Int64(size.width), height: Int64(size.height), isFilled: size.isFilled,
            format: format == .jpeg ? 0 : 1, content: 0, length: Int64(length), version: original.version)
    }
}

/// Finds or makes thumbnails of single photos.
extension Library {
    /// Limit of attempts if the photo changes while its picture is made.
    private static let attemptsMax = 4
    /// The part of a space that thumbnails leave free.
    private static let spareFraction: UInt64 = 32
    private static let spareBytesMax: UInt64 = 64 << 20

    /// Returns the photo's picture of that kind. Throws `.noEntry` if it cannot be decoded, or not now.
    func thumbnail(
        of photo: UInt64, _ kind: ThumbnailKind, _ format: PictureFormat = .jpeg,
        for priority: RequestPriority = .interactive(nil)
    ) throws(FileError) -> Thumbnail {
        guard let service = thumbnails else { throw .noEntry }
        for _ in 0..<Self.attemptsMax {
            let original = try original(photo)
            if case .sized(let size) = kind {
                if original.isUndecodable { throw .noEntry }
                if let row = original.row(size, format) { return Thumbnail(row) }
            }
            let key = PictureKey.photo(ino: photo, version: original.version, kind, format)
            do throws(FileError) {
                let found = try service.picture(key, for: priority) { [self] decoder throws(FileError) in
                    switch kind {
                    case .fast: .held(try cameraPreview(of: original))
                    case .sized(let size): try make(size, format, of: original, service, decoder)
                    }
                }
                // Without a preview the standard picture is the fastest.
                if kind == .fast, found.byteCount == 0 {
                    return try thumbnail(of: photo, .standard, for: priority)
                }
                return found
            } catch {
                guard error == .busy else { throw error }
            }
        }
        throw .noEntry
    }

    func bytes(of thumbnail: Thumbnail) throws(FileError) -> [UInt8] {
        switch thumbnail {
        case .held(let bytes): bytes
        case .kept(let content, let byteCount): try keptBytes(content, byteCount)
        }
    }

    private func keptBytes(_ content: UInt64, _ byteCount: Int) throws(FileError) -> [UInt8] {
        let buffer = context.chunks.take()
        defer { context.chunks.give(buffer) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        let runs = try locked { tree throws(FileError) in try sql(tree.tables.extents(of: content)) }
        guard space.areValid(runs), runs.last?.end ?? 0 == byteCount else { throw .damaged }
        for run in runs {
            for number in 0..<run.chunkCount {
                bytes.append(
                    contentsOf: try stored(
                        space.read(
                            role: .thumbnail, content: content, run: run, chunk: number, into: buffer)))
            }
        }
        guard bytes.count == byteCount else { throw .damaged }
        return bytes
    }

    func original(_ photo: UInt64) throws(FileError) -> ThumbnailSource {
        try locked { tree throws(FileError) in
            let inode = try tree.inode(photo)
            guard inode.isPhoto else { throw .noEntry }
            let row = try tree.photo(inode)
            guard let raw = UInt8(exactly: row.media), let type = MediaType(rawValue: raw) else {
                throw .noEntry
            }
            let rows = try sql(tree.tables.thumbnails(of: photo))
            return ThumbnailSource(
                ino: photo, version: inode.row.version, type: type, byteCount: inode.row.size,
                orientation: row.orientation, rows: rows.filter { $0.version == inode.row.version })
        }
    }

    /// Whether a photo has no picture and never will.
    func hasNoPicture(_ photo: UInt64) -> Bool {
        guard let original = try? original(photo) else { return false }
        let key = PictureKey.photo(ino: photo, version: original.version, .standard, .jpeg)
        return original.isUndecodable || thumbnails?.isImpossible(key) == true
    }

    // MARK: Making

    /// Makes a picture, and keeps it if it may be kept. Throws `.busy` if the photo has changed meanwhile.
    private func make(
        _ size: PictureSize, _ format: PictureFormat, of original: ThumbnailSource,
        _ service: ThumbnailService,
        _ decoder: DecoderContext
    ) throws(FileError) -> Thumbnail {
        // Another request may have made it meanwhile.
        let original = try self.original(original.ino)
        if original.isUndecodable { throw .noEntry }
        if let row = original.row(size, format) { return Thumbnail(row) }
        let made: [UInt8]
        if let smaller = try reduce(to: size, format, original, service, decoder) {
            made = smaller
        } else {
            made = try decode(size, format, original, service, decoder)
        }
        let row = ThumbnailRow(original, size, format, length: made.count)
        guard !isReadOnly, hasRoomToSpare, try mayKeep(row, of: original) else { return .held(made) }
        do throws(FileError) {
            return Thumbnail(try keep(made, as: row, service))
        } catch {
            // A full or read-only space still shows the picture.
            guard error == .noRoom || error == .readOnly else { throw error }
            return .held(made)
        }
    }

    /// Whether there is room for thumbnails: they must not take the last room from photos.
    var hasRoomToSpare: Bool {
        let use = space.capacity
        return use.available >= min(use.total / Self.spareFraction, Self.spareBytesMax)
    }

    /// Makes a picture from a larger one; nil if there is none that serves.
    private func reduce(
        to size: PictureSize, _ format: PictureFormat, _ original: ThumbnailSource,
        _ service: ThumbnailService,
        _ decoder: DecoderContext
    ) throws(FileError) -> [UInt8]? {
        guard format == .jpeg || !original.mayBeTransparent else { return nil }
        var larger = service.heldPicture(of: original.ino, version: original.version, serving: size)
        if let row = original.row(serving: size) ?? (format == .png ? original.row(size, .jpeg) : nil) {
            // Instead of a damaged one the photo is decoded.
            larger = try? bytes(of: Thumbnail(row))
        }
        guard let larger else { return nil }
        return try? decoder.maker.makeThumbnail(
            of: MemoryByteSource(larger), .jpeg, size, format, unless: decoder.cancellation)
    }

    private func decode(
        _ size: PictureSize, _ format: PictureFormat, _ original: ThumbnailSource,
        _ service: ThumbnailService,
        _ decoder: DecoderContext
    ) throws(FileError) -> [UInt8] {
        let maker = decoder.maker
        guard ThumbnailWorkers.decodes(original.type) || maker.decodableTypes.contains(original.type)
        else { throw .noEntry }
        let made = try withState(of: original.ino) { file throws(FileError) -> [UInt8]? in
            let source = FileSource(file)
            do throws(ThumbnailError) {
                return try maker.makeThumbnail(
                    of: source, original.type, size, format, unless: decoder.cancellation)
            } catch {
                // A photo that could not be read may still be decodable.
                if source.hasFailed { throw .damaged }
                guard error == .undecodable else { throw .noEntry }
                return nil
            }
        }
        if let made { return made }
        // A HEIC's small pictures may come from the small copy in it; and failing at a larger one must not lose the
        // standard one.
        let hasOthers =
            original.type == .heic || original.type == .avif || original.row(.standard, .jpeg) != nil
        if isReadOnly || size != .standard && hasOthers {
            service.noteImpossible(.photo(ino: original.ino, version: original.version, .sized(size), format))
        } else {
            try noteUndecodable(original)
        }
        throw .noEntry
    }

    /// The preview that the camera embedded, marked with the photo's orientation; empty if there is none.
    private func cameraPreview(of original: ThumbnailSource) throws(FileError) -> [UInt8] {
        try withState(of: original.ino) { file throws(FileError) in
            let source = FileSource(file)
            let range = embeddedPreview(in: source)
            guard let range, range.count <= previewBytesMax else {
                if source.hasFailed { throw .damaged }
                return []
            }
            let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
                count = max(0, source.read(at: range.lowerBound, into: UnsafeMutableRawBufferPointer(buffer)))
            }
            if source.hasFailed { throw .damaged }
            return oriented(bytes, original.orientation)
        }
    }

    // MARK: Keeping

    private func keep(
        _ made: [UInt8], as row: ThumbnailRow, _ service: ThumbnailService
    ) throws(FileError) -> ThumbnailRow {
        var row = row
        row.content = try changing { tree throws(FileError) in tree.makeContent() }
        let near = service.writingPlace
        let result = made.withUnsafeBytes { bytes in
            Result { () throws(StoreError) in
                try space.write(
                    role: .thumbnail, content: row.content, offset: 0, bytes, near: near, purpose: .user)
            }
        }
        let runs = try stored(result.get())
        service.writingPlace = runs.last.map { $0.sector + UInt64($0.sectorCount) }
        try store(row, runs)
        return row
    }

    /// Records that there is no picture. If there is no room for that, the next request tries again.
    private func noteUndecodable(_ original: ThumbnailSource) throws(FileError) {
        do throws(FileError) {
            try store(ThumbnailRow(original, .standard, .jpeg, length: -1), [])
        } catch {
            guard error == .noRoom || error == .readOnly else { throw error }
        }
    }

    private func store(_ row: ThumbnailRow, _ runs: [ExtentRun]) throws(FileError) {
        var isKept = false
        defer { if !isKept { space.abandon(runs) } }
        try changing { tree throws(FileError) in
            let inode = try tree.inode(row.ino)
            // The photo was deleted or written while the worker was busy: its picture is outdated.
            guard inode.isPhoto, inode.row.version == row.version else { throw .busy }
            let others = try sql(tree.tables.thumbnails(of: row.ino))
            if others.contains(where: { $0.version != row.version || $0.length < 0 || row.length < 0 }) {
                try tree.deleteThumbnails(inode, space)
            } else if others.contains(where: { $0.size == row.size && $0.format == row.format }) {
                throw .busy
            }
            for run in runs { try sql(tree.tables.insert(run, of: row.content)) }
            try sql(tree.tables.store(row))
            tree.counters.pictureBytes += row.cost
            space.adopt(runs)
            isKept = true
        }
    }
}

extension Thumbnail {
    fileprivate init(_ row: ThumbnailRow) {
        self = .kept(content: row.content, byteCount: Int(row.length))
    }
}

/// Adds an EXIF block with only the orientation tag (EXIF 2.32, 4.6.4) in front of all else.
private func oriented(_ jpeg: [UInt8], _ orientation: Int64) -> [UInt8] {
    guard (2...8).contains(orientation), jpeg.starts(with: [0xFF, 0xD8]) else { return jpeg }
    var segment: [UInt8] = [0xFF, 0xE1, 0, 34] + Array("Exif\0\0MM\0*".utf8) + [0, 0, 0, 8, 0, 1]
    segment += [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0, 0, 0, 0, 0]
    return jpeg[..<2] + segment + jpeg[2...]
}

/// Larger embedded pictures are no faster than the standard one.
private let previewBytesMax = 1 << 20
