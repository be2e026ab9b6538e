import CatalogueRows
import FileRequests
import LinuxIO
import PhotoImaging
import PhotoRules
import Synchronization
import VaultCatalogue
import VaultFormat
import VaultStore

/// A photo of the space whose pictures are requested: its bytes, and the place where its pictures are kept. Lives as
/// long as the request.
struct StoredPhoto: Sendable {
    private let thumbnails: PhotoThumbnails
    let ino: UInt64
    private var session: TreeSession { thumbnails.session }
    private var space: Space { session.space }

    init(_ thumbnails: PhotoThumbnails, _ ino: UInt64) { (self.thumbnails, self.ino) = (thumbnails, ino) }

    /// The photo in its present state. Throws `.noEntry` if the inode is not, or no longer, a photo.
    func photo() throws(FileError) -> PicturedPhoto {
        try session.locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            // A partly written file has no valid picture.
            guard inode.isPhoto, inode.row.size > 0, inode.state?.isBeingEdited != true else {
                throw .noEntry
            }
            let row = try tree.photos.photo(inode)
            guard let type = row.mediaType else { throw .noEntry }
            let rows = try tree.tables.thumbnails.rows(of: ino).filter { $0.revision == inode.row.revision }
            return PicturedPhoto(
                ino: ino, revision: inode.row.revision, type: type, byteCount: inode.row.size,
                orientation: row.orientation, kept: rows.filter { $0.length >= 0 }.map { KeptPicture($0) },
                isUndecodable: rows.contains { $0.length < 0 })
        }
    }

    /// Calls `body` with the photo's bytes.
    func read<R>(_ body: (FileSource) throws(FileError) -> R) throws(FileError) -> R {
        try session.withState(of: ino) { file throws(FileError) in try body(FileSource(file)) }
    }

    /// The bytes of a kept picture. Throws `.damaged` if they cannot be read, or if the picture was replaced.
    func bytes(of picture: KeptPicture) throws(FileError) -> [UInt8] {
        let (content, byteCount) = (picture.content, picture.byteCount)
        let buffer = unsafe session.context.chunks.take()
        defer { unsafe session.context.chunks.give(buffer) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        let runs = try session.locked { tree throws(FileError) in try tree.tables.extents.runs(of: content) }
        guard space.areValid(runs), runs.last?.end ?? 0 == byteCount else { throw .damaged }
        for run in runs {
            for number in 0..<run.chunkCount {
                unsafe bytes.append(
                    contentsOf: try stored(
                        space.read(
                            role: .thumbnail, content: content, run: run, chunk: number, into: buffer)))
            }
        }
        guard bytes.count == byteCount else { throw .damaged }
        return bytes
    }

    /// Keeps a picture of `photo`, if the budget and the room allow it; returns nil if not. Throws `.busy` if the photo
    /// has changed.
    func keep(
        _ bytes: [UInt8], _ size: PictureSize, _ format: PictureFormat, of photo: PicturedPhoto
    ) throws(FileError) -> KeptPicture? {
        var row = ThumbnailRow(photo, size, format, length: bytes.count)
        guard !session.isReadOnly, thumbnails.hasRoomToSpare, try thumbnails.mayKeep(row, of: photo) else {
            return nil
        }
        do throws(FileError) {
            row.content = try session.change { change throws(FileError) in change.tree.makeContent() }
            try store(row, write(bytes, row.content))
        } catch {
            // A full or read-only space still shows the picture.
            guard error == .noRoom || error == .readOnly else { throw error }
            return nil
        }
        return KeptPicture(row)
    }

    private func write(_ bytes: [UInt8], _ content: UInt64) throws(FileError) -> [ExtentRun] {
        let near = thumbnails.place.withLock { $0 }
        let result = unsafe bytes.withUnsafeBytes { bytes in
            Result { () throws(StoreError) in
                try unsafe space.write(
                    role: .thumbnail, content: content, offset: 0, bytes, near: near, purpose: .user)
            }
        }
        let runs = try stored(result.get())
        let end = runs.last.map { $0.sector + UInt64($0.sectorCount) }
        thumbnails.place.withLock { $0 = end }
        return runs
    }

    /// Records that no picture can be made of `photo`; false if the vault takes no writes. Throws `.busy` if the photo
    /// has changed.
    func noteUndecodable(_ photo: PicturedPhoto) throws(FileError) -> Bool {
        if session.isReadOnly { return false }
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
        try session.change { change throws(FileError) in
            let inode = try change.tree.inode(row.ino)
            // The photo was deleted or written while the worker was busy: its picture is outdated.
            guard inode.isPhoto, inode.row.revision == row.revision else { throw .busy }
            let others = try change.tree.tables.thumbnails.rows(of: row.ino)
            if others.contains(where: { $0.revision != row.revision || $0.length < 0 || row.length < 0 }) {
                try change.tree.photos.deleteThumbnails(inode, space)
            } else if others.contains(where: { $0.size == row.size && $0.format == row.format }) {
                throw .busy
            }
            for run in runs { try change.tree.tables.extents.insert(run, of: row.content) }
            try change.tree.tables.thumbnails.store(row)
            change.tree.counters.pictureBytes += row.cost
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
            format: format == .jpeg ? 0 : 1, content: 0, length: Int64(length), revision: photo.revision)
    }
}
