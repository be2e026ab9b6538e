import CatalogueRows
import FileRequests
import FileTree
import LinuxIO
import PhotoImaging
import PhotoTree
import Recovery
import Synchronization
import Thumbnails
import VaultCatalogue
import VaultFormat
import VaultStore

/// Thumbnails of single photos: how a photo is read, and where its pictures are kept.
extension Library {
    /// The part of a space that thumbnails leave free.
    private static let spareFraction: UInt64 = 32
    private static let spareBytesMax: UInt64 = 64 << 20

    /// Returns the photo's picture of that kind. Throws `.noEntry` if it cannot be decoded, or not now. The picture of a
    /// Live Photo's video is that of its still, unless that one cannot be decoded.
    func thumbnail(
        of photo: UInt64, _ kind: ThumbnailKind, _ format: PictureFormat = .jpeg,
        for priority: RequestPriority = .interactive(nil)
    ) throws(FileError) -> Thumbnail {
        guard let service = thumbnails else { throw .noEntry }
        if let still = try still(of: photo) {
            do throws(FileError) {
                return try service.request(StoredPhoto(self, still), kind, format, for: priority)
            } catch {
                guard error == .noEntry else { throw error }
            }
        }
        return try service.request(StoredPhoto(self, photo), kind, format, for: priority)
    }

    /// The photo whose picture is also that of a Live Photo's video; nil for all other photos.
    private func still(of photo: UInt64) throws(FileError) -> UInt64? {
        try locked { tree throws(FileError) in
            let inode = try tree.inode(photo)
            return inode.isPhoto ? try tree.still(of: inode)?.ino : nil
        }
    }

    /// Returns the bytes of the photo's picture; see `thumbnail`.
    func thumbnailBytes(
        of photo: UInt64, _ kind: ThumbnailKind, _ format: PictureFormat = .jpeg,
        for priority: RequestPriority = .interactive(nil)
    ) throws(FileError) -> [UInt8] {
        try thumbnail(of: photo, kind, format, for: priority).bytes(StoredPhoto(self, photo))
    }

    /// Whether there is room for thumbnails: they must not take the last room from photos.
    var hasRoomToSpare: Bool {
        let use = space.capacity
        return use.available >= min(use.total / Self.spareFraction, Self.spareBytesMax)
    }
}

/// A photo of the library, for the thumbnail service.
struct StoredPhoto: PictureSource {
    let library: Library
    let ino: UInt64
    private var space: Space { library.space }

    init(_ library: Library, _ ino: UInt64) { (self.library, self.ino) = (library, ino) }

    func photo() throws(FileError) -> PicturedPhoto {
        try library.locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.isPhoto else { throw .noEntry }
            let row = try tree.photo(inode)
            guard let raw = UInt8(exactly: row.media), let type = MediaType(rawValue: raw) else {
                throw .noEntry
            }
            let rows = try sql(tree.tables.thumbnails(of: ino)).filter { $0.version == inode.row.version }
            return PicturedPhoto(
                ino: ino, version: inode.row.version, type: type, byteCount: inode.row.size,
                orientation: row.orientation, kept: rows.filter { $0.length >= 0 }.map { KeptPicture($0) },
                isUndecodable: rows.contains { $0.length < 0 })
        }
    }

    func read<R>(_ body: (any PhotoBytes) throws(FileError) -> R) throws(FileError) -> R {
        try library.withState(of: ino) { file throws(FileError) in try body(FileSource(file)) }
    }

    func bytes(of picture: KeptPicture) throws(FileError) -> [UInt8] {
        let (content, byteCount) = (picture.content, picture.byteCount)
        let buffer = library.context.chunks.take()
        defer { library.context.chunks.give(buffer) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        let runs = try library.locked { tree throws(FileError) in try sql(tree.tables.extents(of: content)) }
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

    func keep(
        _ bytes: [UInt8], _ size: PictureSize, _ format: PictureFormat, of photo: PicturedPhoto
    ) throws(FileError) -> KeptPicture? {
        var row = ThumbnailRow(photo, size, format, length: bytes.count)
        guard !library.isReadOnly, library.hasRoomToSpare, try library.mayKeep(row, of: photo) else {
            return nil
        }
        do throws(FileError) {
            row.content = try library.changing { tree throws(FileError) in tree.makeContent() }
            try store(row, write(bytes, row.content))
        } catch {
            // A full or read-only space still shows the picture.
            guard error == .noRoom || error == .readOnly else { throw error }
            return nil
        }
        return KeptPicture(row)
    }

    private func write(_ bytes: [UInt8], _ content: UInt64) throws(FileError) -> [ExtentRun] {
        let near = library.thumbnailPlace.withLock { $0 }
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(StoreError) in
                try space.write(
                    role: .thumbnail, content: content, offset: 0, bytes, near: near, purpose: .user)
            }
        }
        let runs = try stored(result.get())
        let end = runs.last.map { $0.sector + UInt64($0.sectorCount) }
        library.thumbnailPlace.withLock { $0 = end }
        return runs
    }

    func noteUndecodable(_ photo: PicturedPhoto) throws(FileError) -> Bool {
        if library.isReadOnly { return false }
        do throws(FileError) {
            try store(ThumbnailRow(photo, .standard, .jpeg, length: -1), [])
        } catch {
            // The next request tries again.
            guard error == .noRoom || error == .readOnly else { throw error }
        }
        return true
    }

    private func store(_ row: ThumbnailRow, _ runs: [ExtentRun]) throws(FileError) {
        var isKept = false
        defer { if !isKept { space.abandon(runs) } }
        try library.changing { tree throws(FileError) in
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

extension KeptPicture {
    init(_ row: ThumbnailRow) {
        self.init(row.size, row.pictureFormat, byteCount: Int(row.length), content: row.content)
    }
}

extension ThumbnailRow {
    var size: PictureSize {
        PictureSize(width: Int(width), height: Int(height), isFilled: isFilled)
    }

    var pictureFormat: PictureFormat { format == 0 ? .jpeg : .png }

    fileprivate init(_ photo: PicturedPhoto, _ size: PictureSize, _ format: PictureFormat, length: Int) {
        self.init(
            ino: photo.ino, width: Int64(size.width), height: Int64(size.height), isFilled: size.isFilled,
            format: format == .jpeg ? 0 : 1, content: 0, length: Int64(length), version: photo.version)
    }
}
