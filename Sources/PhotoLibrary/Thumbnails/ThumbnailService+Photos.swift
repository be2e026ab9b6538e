import FileRequests
import LinuxIO
import PhotoImaging
import VaultCatalogue

/// Pictures of single photos: kept ones, smaller forms of larger ones, and decoded ones.
extension ThumbnailService {
    /// Limit of attempts if the photo changes while its picture is made.
    private static let attemptsMax = 4

    /// Returns the photo's picture of that kind. Throws `.noEntry` if it cannot be decoded, or not now.
    func request(
        _ source: StoredPhoto, _ kind: ThumbnailKind, _ format: PictureFormat = .jpeg,
        for priority: RequestPriority
    ) throws(FileError) -> Thumbnail {
        for _ in 0..<Self.attemptsMax {
            let photo = try source.photo()
            if case .sized(let size) = kind {
                if photo.isUndecodable { throw .noEntry }
                if let kept = photo.picture(size, format) { return .kept(kept) }
            }
            let key = PictureKey.photo(ino: source.ino, revision: photo.revision, kind, format)
            do throws(FileError) {
                let found = try picture(key, for: priority) { [self] decoder throws(FileError) in
                    switch kind {
                    case .fast: .held(try cameraPreview(of: photo, source))
                    case .sized(let size): try make(size, format, source, decoder)
                    }
                }
                // Without a preview the standard picture is the fastest.
                if kind == .fast, found.byteCount == 0 {
                    return try request(source, .standard, for: priority)
                }
                return found
            } catch {
                guard error == .busy else { throw error }
            }
        }
        throw .noEntry
    }

    /// The likeness of a standard picture; nil if it cannot be told now.
    func likenessHash(of jpeg: [UInt8]) throws(FileError) -> Likeness? {
        guard let maker = backgroundMaker else { return nil }
        do throws(ThumbnailError) {
            return try maker.likenessHash(of: jpeg, unless: Cancellation()).map { .hash($0) } ?? .absent
        } catch {
            // A picture that was made here can be decoded, but for a fault of ours, which would recur.
            return error == .undecodable ? Likeness.absent : nil
        }
    }

    /// Whether a photo has no picture and never will.
    func hasNoPicture(_ source: StoredPhoto) -> Bool {
        guard let photo = try? source.photo() else { return false }
        return photo.isUndecodable
            || hasFailed(.photo(ino: source.ino, revision: photo.revision, .standard, .jpeg))
    }

    /// Makes a picture, and keeps it if it may be kept. Throws `.busy` if the photo has changed meanwhile.
    private func make(
        _ size: PictureSize, _ format: PictureFormat, _ source: StoredPhoto, _ decoder: DecoderContext
    ) throws(FileError) -> Thumbnail {
        // Another request may have made it meanwhile.
        let photo = try source.photo()
        if photo.isUndecodable { throw .noEntry }
        if let kept = photo.picture(size, format) { return .kept(kept) }
        let made: [UInt8]
        if let smaller = reduce(to: size, format, photo, source, decoder) {
            made = smaller
        } else {
            made = try decode(size, format, photo, source, decoder)
        }
        return try source.keep(made, size, format, of: photo).map { .kept($0) } ?? .held(made)
    }

    /// Makes a picture from a larger one; nil if there is none that serves.
    private func reduce(
        to size: PictureSize, _ format: PictureFormat, _ photo: PicturedPhoto, _ source: StoredPhoto,
        _ decoder: DecoderContext
    ) -> [UInt8]? {
        guard format == .jpeg || !photo.mayBeTransparent else { return nil }
        var larger = heldPicture(of: photo.ino, revision: photo.revision, serving: size)
        if let kept = photo.picture(serving: size) ?? (format == .png ? photo.picture(size, .jpeg) : nil) {
            // Instead of a damaged one the photo is decoded.
            larger = try? source.bytes(of: kept)
        }
        guard let larger else { return nil }
        return try? decoder.maker.makeThumbnail(
            of: MemoryByteSource(larger), .jpeg, size, format, unless: decoder.cancellation)
    }

    private func decode(
        _ size: PictureSize, _ format: PictureFormat, _ photo: PicturedPhoto, _ source: StoredPhoto,
        _ decoder: DecoderContext
    ) throws(FileError) -> [UInt8] {
        let maker = decoder.maker
        guard ThumbnailWorkers.decodes(photo.type) || maker.decodableTypes.contains(photo.type)
        else { throw .noEntry }
        let key = PictureKey.photo(ino: photo.ino, revision: photo.revision, .sized(size), format)
        let made = try source.read { bytes throws(FileError) -> [UInt8]? in
            do throws(ThumbnailError) {
                return try maker.makeThumbnail(
                    of: bytes, photo.type, size, format, unless: decoder.cancellation)
            } catch {
                // A photo that could not be read may still be decodable.
                if bytes.hasFailed { throw .damaged }
                switch error {
                case .undecodable: return nil
                case .slow: notePostponed(photo.ino)
                // Another mount tries again.
                case .outOfTime: noteImpossible(key)
                case .unavailable, .cancelled, .workerFailed: break
                }
                throw .noEntry
            }
        }
        if let made { return made }
        // A HEIC's small pictures may come from the small copy in it; and failing at a larger one must not lose the
        // standard one.
        let hasOthers =
            photo.type == .heic || photo.type == .avif || photo.picture(.standard, .jpeg) != nil
        var isNoted = false
        if size == .standard || !hasOthers { isNoted = try source.noteUndecodable(photo) }
        if !isNoted { noteImpossible(key) }
        throw .noEntry
    }

    /// The preview that the camera embedded, marked with the photo's orientation; empty if there is none.
    private func cameraPreview(
        of photo: PicturedPhoto, _ source: StoredPhoto
    ) throws(FileError) -> [UInt8] {
        try source.read { bytes throws(FileError) -> [UInt8] in
            let range = embeddedPreview(in: bytes)
            guard let range, range.count <= previewBytesMax else {
                if bytes.hasFailed { throw .damaged }
                return []
            }
            let preview = unsafe [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
                count = unsafe max(
                    0, bytes.read(at: range.lowerBound, into: UnsafeMutableRawBufferPointer(buffer)))
            }
            if bytes.hasFailed { throw .damaged }
            return oriented(preview, photo.orientation)
        }
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
