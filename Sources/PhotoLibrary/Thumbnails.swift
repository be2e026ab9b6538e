import LinuxIO
import PhotoImaging
import VaultCatalogue
import VaultFormat
import VaultStore

/// Numbers of inodes that no table has: `.thumbs` of a directory, and the thumbnail of a photo.
enum VirtualInode {
    private static let directoryBit: UInt64 = 1 << 62
    private static let thumbnailBit: UInt64 = 1 << 63

    static func isVirtual(_ ino: UInt64) -> Bool { ino & (directoryBit | thumbnailBit) != 0 }
    static func isDirectory(_ ino: UInt64) -> Bool { ino & directoryBit != 0 }
    /// `.thumbs` of a directory.
    static func directory(of ino: UInt64) -> UInt64 { ino | directoryBit }
    /// The thumbnail of a photo.
    static func thumbnail(of ino: UInt64) -> UInt64 { ino | thumbnailBit }
    /// The directory or photo that a virtual inode belongs to.
    static func real(_ ino: UInt64) -> UInt64 { ino & ~(directoryBit | thumbnailBit) }
}

/// Who makes thumbnails, and who waits for them.
final class ThumbnailShop: @unchecked Sendable {
    /// The one kind there is: as large as fits in a square of so many pixels.
    static let box = 256
    private static let benchCount = 8

    private let workers: ThumbnailWorkers?
    /// Two who want the same thumbnail wait for each other; two who want others mostly do not.
    private let benches: [Lock]

    init(_ options: LibraryOptions) {
        workers = options.workerPath.map { ThumbnailWorkers(executable: $0, count: options.workerCount) }
        benches = (0..<Self.benchCount).map { _ in Lock() }
    }

    func bench(for ino: UInt64) -> Lock { benches[Int(ino % UInt64(Self.benchCount))] }

    /// The JPEG, or nil where the photo cannot be decoded. Throws where another try may succeed.
    func make(_ source: FileSource, _ type: MediaType) throws(ThumbnailError) -> [UInt8]? {
        guard let workers else { throw .unavailable }
        do throws(ThumbnailError) {
            return try workers.makeThumbnail(of: source, type: type, box: Self.box)
        } catch .undecodable {
            return nil
        } catch {
            throw error
        }
    }

    func close() { workers?.shutDown() }
}

extension Library {
    private static let directoryName = Array(".thumbs".utf8)

    /// `.thumbs`, or what lies in it; nil where the name means something real.
    func lookupThumbnails(_ parent: UInt64, _ name: Name) throws(FileError) -> Entry? {
        if VirtualInode.isVirtual(parent) {
            guard VirtualInode.isDirectory(parent) else { throw .notDirectory }
            let photo = try locked { tree throws(FileError) in
                try tree.photo(behind: name.bytes, in: VirtualInode.real(parent))
            }
            guard let photo else { throw .noEntry }
            return Entry(
                attributes: try thumbnailAttributes(try thumbnail(of: photo)), entryTimeout: Timeout.none,
                attributeTimeout: Timeout.none)
        }
        guard thumbnails != nil, name.bytes == Self.directoryName else { return nil }
        return try locked { tree throws(FileError) -> Entry? in
            let directory = try tree.directory(parent)
            guard directory.area == .album || directory.area == .day,
                try !tree.has(directory, name.bytes), try sql(tree.tables.hasPhotos(parent))
            else { return nil }
            return Entry(
                attributes: tree.thumbsAttributes(directory), entryTimeout: Timeout.none,
                attributeTimeout: Timeout.none)
        }
    }

    func virtualAttributes(_ ino: UInt64) throws(FileError) -> Attributes {
        let real = VirtualInode.real(ino)
        if VirtualInode.isDirectory(ino) {
            return try locked { tree throws(FileError) in tree.thumbsAttributes(try tree.directory(real)) }
        }
        return try thumbnailAttributes(try thumbnail(of: real))
    }

    private func thumbnailAttributes(_ row: ThumbnailRow) throws(FileError) -> Attributes {
        guard row.length >= 0 else { throw .noEntry }
        return try locked { tree throws(FileError) in
            tree.thumbnailAttributes(try tree.inode(row.ino), length: UInt64(row.length))
        }
    }

    func openThumbnail(_ ino: UInt64, flags: Int32) throws(FileError) -> FileHandle {
        guard !VirtualInode.isDirectory(ino) else { throw .isDirectory }
        guard flags & openForWriting == 0 else { throw .readOnly }
        let row = try thumbnail(of: VirtualInode.real(ino))
        guard row.length >= 0 else { throw .noEntry }
        let buffer = commons.chunks.take()
        defer { commons.chunks.give(buffer) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(row.length))
        let runs = try locked { tree throws(FileError) in try sql(tree.tables.extents(of: row.content)) }
        for run in runs {
            for number in 0..<Int((run.length + Chunk.bytes - 1) / Chunk.bytes) {
                bytes.append(
                    contentsOf: try stored(
                        space.read(
                            role: .thumbnail, content: row.content, run: run, chunk: number, into: buffer)))
            }
        }
        guard bytes.count == Int(row.length) else { throw .damaged }
        return FileHandle(fixed: bytes, ino: ino)
    }

    /// Lists what may be had, without decoding. Those that are made already come with their attributes.
    func listThumbnails(
        _ ino: UInt64, after cookie: UInt64, plus: Bool, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        let real = VirtualInode.real(ino)
        try locked { tree throws(FileError) in
            guard visitDots(ino, real, after: cookie, visit) else { return }
            var failed: FileError?
            try sql(
                tree.tables.eachPhoto(in: real, after: cookie) { dentry in
                    do throws(FileError) {
                        guard let entry = try tree.thumbnailEntry(dentry, plus: plus) else { return true }
                        return visit(entry)
                    } catch {
                        failed = error
                        return false
                    }
                })
            if let failed { throw failed }
        }
    }

    /// The photo's thumbnail as it is kept, made if there is none of its present bytes.
    private func thumbnail(of ino: UInt64) throws(FileError) -> ThumbnailRow {
        guard let shop = thumbnails else { throw .noEntry }
        if let kept = try keptThumbnail(ino) { return kept }
        let bench = shop.bench(for: ino)
        bench.lock()
        defer { bench.unlock() }
        if let kept = try keptThumbnail(ino) { return kept }
        return try withState(of: ino) { file throws(FileError) in try makeThumbnail(file, shop) }
    }

    private func keptThumbnail(_ ino: UInt64) throws(FileError) -> ThumbnailRow? {
        try locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.isPhoto else { throw .noEntry }
            guard let row = try sql(tree.tables.thumbnail(ino, box: Int64(ThumbnailShop.box))),
                row.version == inode.row.version
            else { return nil }
            return row
        }
    }

    /// Makes a thumbnail of an open photo and keeps it.
    private func makeThumbnail(_ file: FileState, _ shop: ThumbnailShop) throws(FileError) -> ThumbnailRow {
        let (version, media) = try locked { tree throws(FileError) in
            (file.inode.row.version, try tree.photo(file.inode).media)
        }
        guard let raw = UInt8(exactly: media), let type = MediaType(rawValue: raw) else { throw .noEntry }
        let source = FileSource(file)
        let made: [UInt8]?
        do throws(ThumbnailError) {
            made = try shop.make(source, type)
        } catch {
            throw .noEntry
        }
        // A photo that could not be read is not one that cannot be decoded.
        if source.hasFailed { throw .damaged }
        var row = ThumbnailRow(
            ino: file.ino, box: Int64(ThumbnailShop.box), content: 0, length: Int64(made?.count ?? -1),
            version: version)
        if options.readOnly { throw .noEntry }
        let content = try changing { tree throws(FileError) in tree.makeContent() }
        var runs: [ExtentRun] = []
        if let made {
            row.content = content
            do throws(StoreError) {
                runs = try made.withUnsafeBytes { bytes in
                    Result { () throws(StoreError) in
                        try space.write(
                            role: .thumbnail, content: content, offset: 0, bytes, near: nil, purpose: .user)
                    }
                }.get()
            } catch {
                throw FileError(error)
            }
        }
        return try keep(row, runs, of: file)
    }

    private func keep(
        _ row: ThumbnailRow, _ runs: [ExtentRun], of file: FileState
    ) throws(FileError) -> ThumbnailRow {
        var isKept = false
        defer { if !isKept { space.abandon(runs) } }
        return try changing { tree throws(FileError) in
            // Gone, or written, while the worker was busy: what it made is of a photo that is no more.
            guard file.inode.isPhoto, file.inode.row.version == row.version else { throw .noEntry }
            try tree.deleteThumbnails(file.inode, space)
            for run in runs { try sql(tree.tables.insert(run, of: row.content)) }
            try sql(tree.tables.store(row))
            space.adopt(runs)
            isKept = true
            return row
        }
    }
}

extension Tree {
    /// `.thumbs` of a directory.
    func thumbsAttributes(_ directory: Inode) -> Attributes {
        var shown = attributes(directory)
        shown.ino = VirtualInode.directory(of: directory.ino)
        shown.mode = directoryType | 0o555
        shown.nlink = 2
        shown.size = 0
        return shown
    }

    func thumbnailAttributes(_ photo: Inode, length: UInt64) -> Attributes {
        var shown = attributes(photo)
        shown.ino = VirtualInode.thumbnail(of: photo.ino)
        shown.mode = regularType | 0o444
        shown.nlink = 1
        shown.size = length
        shown.blocks = (length + 511) / 512
        // Whole seconds: some programs compare them so, others as fractions.
        shown.modified.nanoseconds = 0
        shown.accessed = shown.modified
        shown.changed = shown.modified
        return shown
    }

    /// The photo whose thumbnail has that name, in a directory: one of that very name, or of that name
    /// without `.jpg`, where its own does not end so.
    func photo(behind name: [UInt8], in directory: UInt64) throws(FileError) -> UInt64? {
        let directory = try self.directory(directory)
        guard hasJPEGExtension(name) else { return nil }
        if let found = try find(directory, name), let photo = try photoStanding(for: found.inode) {
            return photo.ino
        }
        let bare = Array(name.dropLast(jpegExtension.count))
        guard hasSuffix(name, jpegExtension), !bare.isEmpty, !hasJPEGExtension(bare),
            let found = try find(directory, bare), let photo = try photoStanding(for: found.inode)
        else { return nil }
        return photo.ino
    }

    /// A line of `.thumbs`; nil where the photo has no thumbnail, or one whose name would be too long.
    func thumbnailEntry(_ dentry: DentryRow, plus: Bool) throws(FileError) -> DirectoryEntry? {
        let name = hasJPEGExtension(dentry.name) ? dentry.name : dentry.name + jpegExtension
        guard name.count <= nameBytesMax else { return nil }
        guard let photo = try photoStanding(for: try inode(dentry.ino)) else { return nil }
        let kept = try sql(tables.thumbnail(photo.ino, box: Int64(ThumbnailShop.box)))
        let isCurrent = kept?.version == photo.row.version
        if isCurrent, let kept, kept.length < 0 { return nil }
        var entry: Entry?
        if plus, isCurrent, let kept {
            entry = Entry(
                attributes: thumbnailAttributes(photo, length: UInt64(kept.length)),
                entryTimeout: Timeout.none,
                attributeTimeout: Timeout.none)
        }
        return DirectoryEntry(
            name: Name(name), cookie: dentry.id, ino: VirtualInode.thumbnail(of: photo.ino),
            mode: regularType | 0o444, entry: entry)
    }
}

/// Whether a name ends in `.jpg` or `.jpeg`, in any case.
private func hasJPEGExtension(_ name: [UInt8]) -> Bool {
    let lower = name.suffix(5).map { $0 >= 65 && $0 <= 90 ? $0 + 32 : $0 }
    return hasSuffix(lower, jpegExtension) || hasSuffix(lower, longJPEGExtension)
}

/// O_WRONLY, O_RDWR, O_TRUNC.
private let openForWriting: Int32 = 0o1 | 0o2 | 0o1000
private let jpegExtension = Array(".jpg".utf8)
private let longJPEGExtension = Array(".jpeg".utf8)
