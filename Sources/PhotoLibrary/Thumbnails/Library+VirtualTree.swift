import CatalogueRows
import FileRequests
import FileTree
import KernelNames
import LinuxIO
import PhotoImaging
import PhotoTree
import Thumbnails
import VaultCatalogue

/// `.thumbs` and `.sh_thumbnails`: names, attributes and bytes of virtual inodes.
extension Library {
    /// Looks up a name in a virtual directory, or `.thumbs` and `.sh_thumbnails` beside photos; returns nil for a real
    /// name.
    func lookupThumbnails(
        _ parent: UInt64, _ name: Name, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Entry? {
        guard let service = thumbnails else { return nil }
        let node: VirtualNode
        var shown: Attributes
        if VirtualInode.isVirtual(parent) {
            // Companions of a photo that moved to another day must be there before this lookup.
            try applyCompanionMoves()
            do throws(FileError) {
                node = try child(of: try service.nodes.node(parent), name.bytes, caller)
                shown = try attributes(of: node, caller, unless: cancellation)
            } catch {
                throw error == .stale ? .noEntry : error
            }
        } else {
            guard let found = try virtualChild(parent, name.bytes) else { return nil }
            node = found
            shown = try attributes(of: node, caller, unless: cancellation)
        }
        shown.ino = service.nodes.noteLookup(of: node)
        return Entry(
            attributes: shown, entryTimeout: KernelTimeout.none, attributeTimeout: KernelTimeout.none)
    }

    private func virtualChild(_ parent: UInt64, _ name: [UInt8]) throws(FileError) -> VirtualNode? {
        let isThumbs = name == thumbsName
        guard isThumbs || name == sharedName else { return nil }
        return try locked { tree throws(FileError) -> VirtualNode? in
            let directory = try tree.directory(parent)
            if isThumbs { return try tree.hasThumbs(directory) ? .thumbs(of: parent) : nil }
            guard try tree.showsPhotos(directory), try !tree.has(directory, name) else { return nil }
            return .repository(directory: parent)
        }
    }

    /// The node of a name in a virtual directory.
    private func child(
        of node: VirtualNode, _ name: [UInt8], _ caller: Caller?
    ) throws(FileError) -> VirtualNode {
        switch node {
        case .folder(let folder):
            let found = try locked { tree throws(FileError) in try tree.child(of: folder, name) }
            guard case .composition(let directory, let composition, _) = found else { return found }
            let hidden = try hiddenFiles(of: composition, directory, from: ReadPermission(caller))
            return .composition(directory: directory, composition, hidden: hidden)
        case .repository(let directory):
            guard let size = RepositorySize(named: name) else { throw .noEntry }
            return .sizeDirectory(directory: directory, size)
        case .sizeDirectory(let directory, let size):
            return .shared(directory: directory, name: try repositoryName(name, in: directory), size)
        case .picture, .composition, .shared:
            throw .notDirectory
        }
    }

    func virtualAttributes(
        _ ino: UInt64, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Attributes {
        guard let service = thumbnails else { throw .stale }
        var shown = try attributes(of: try service.nodes.node(ino), caller, unless: cancellation)
        shown.ino = ino
        return shown
    }

    /// The attributes of a virtual inode, except its number. Makes a picture to know its size.
    private func attributes(
        of node: VirtualNode, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Attributes {
        switch node {
        case .folder, .repository, .sizeDirectory:
            return try locked { tree throws(FileError) in
                tree.virtualDirectoryAttributes(try tree.directory(node.directory ?? WellKnownInode.root))
            }
        case .picture(let file, let kind):
            let byteCount = try thumbnail(of: photo(behind: file), kind, for: .interactive(cancellation))
                .byteCount
            return try locked { tree throws(FileError) in
                tree.pictureAttributes(tree.attributes(try tree.inode(file)), byteCount: byteCount)
            }
        case .composition(let directory, let composition, let hidden):
            let (bytes, modified) = try picture(
                of: composition, directory, hidden: hidden, ReadPermission(caller), unless: cancellation)
            return try locked { tree throws(FileError) in
                var like = tree.attributes(try tree.directory(directory))
                like.modified = modified
                return tree.pictureAttributes(like, byteCount: bytes.count)
            }
        case .shared(let directory, let name, let size):
            let (bytes, ino) = try sharedPicture(name, in: directory, size, unless: cancellation)
            return try locked { tree throws(FileError) in
                tree.pictureAttributes(tree.attributes(try tree.inode(ino)), byteCount: bytes.count)
            }
        }
    }

    /// The photo that a file is or stands for.
    private func photo(behind file: UInt64) throws(FileError) -> UInt64 {
        try locked { tree throws(FileError) in
            guard let photo = try tree.photo(representedBy: try tree.inode(file)) else { throw .noEntry }
            return photo.ino
        }
    }

    func openThumbnail(
        _ ino: UInt64, flags: Int32, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> FileHandle {
        guard let service = thumbnails else { throw .stale }
        let node = try service.nodes.node(ino)
        guard !node.isDirectory else { throw .isDirectory }
        guard flags & openForWriting == 0 else { throw .readOnly }
        return FileHandle(fixed: try contents(of: node, caller, unless: cancellation), ino: ino)
    }

    private func contents(
        of node: VirtualNode, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> [UInt8] {
        switch node {
        case .picture(let file, let kind):
            let photo = try photo(behind: file)
            do throws(FileError) {
                return try thumbnailBytes(of: photo, kind, for: .interactive(cancellation))
            } catch {
                // Replaced after its row was read and before its bytes were.
                guard error == .damaged else { throw error }
                return try thumbnailBytes(of: photo, kind, for: .interactive(cancellation))
            }
        case .composition(let directory, let composition, let hidden):
            return try picture(
                of: composition, directory, hidden: hidden, ReadPermission(caller), unless: cancellation
            ).bytes
        case .shared(let directory, let name, let size):
            return try sharedPicture(name, in: directory, size, unless: cancellation).bytes
        case .folder, .repository, .sizeDirectory: throw .isDirectory
        }
    }

    // MARK: Listing

    func openVirtualDirectory(_ ino: UInt64) throws(FileError) -> DirectoryHandle {
        guard let service = thumbnails else { throw .stale }
        guard try service.nodes.node(ino).isDirectory else { throw .notDirectory }
        return DirectoryHandle(ino, end: .max)
    }

    /// Lists the pictures that may exist, without decoding. Those that are already made come with their attributes.
    func listThumbnails(
        _ ino: UInt64, after cookie: UInt64, plus: Bool, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        guard let service = thumbnails else { throw .stale }
        let node = try service.nodes.node(ino)
        if cookie == 0 { try applyCompanionMoves() }
        let types = service.decodableTypes
        try locked { tree throws(FileError) in
            guard visitDots(ino, node.directory ?? WellKnownInode.root, after: cookie, visit) else { return }
            switch node {
            case .folder(let folder): try tree.list(folder, types, after: cookie, plus: plus, visit)
            case .repository(let directory):
                let mode = tree.virtualDirectoryAttributes(try tree.directory(directory)).mode
                for (index, size) in RepositorySize.allCases.enumerated() where cookie < UInt64(index + 3) {
                    let entry = DirectoryEntry(
                        name: Name(size.name), cookie: UInt64(index + 3), ino: VirtualInode.unknown,
                        mode: mode)
                    if !visit(entry) { return }
                }
            case .sizeDirectory(let directory, _):
                try tree.listPictures(of: types, in: directory, after: cookie) { dentry, file, _ in
                    let digest = repositoryDigests(of: dentry.name)[0]
                    return visit(
                        DirectoryEntry(
                            name: Name(repositoryFileName(digest)), cookie: dentry.id | pictureCookie,
                            ino: VirtualInode.unknown, mode: tree.pictureMode(tree.attributes(file))))
                }
            case .picture, .composition, .shared: throw .notDirectory
            }
        }
    }
}

extension PhotoTree {
    /// Whether the directory is an album or a day, and has photos.
    fileprivate func showsPhotos(_ directory: Inode) throws(FileError) -> Bool {
        guard directory.area == .album || directory.area == .day else { return false }
        return try sql(tables.hasPhotos(directory.ino))
    }

    /// Whether the directory has a virtual `.thumbs`.
    fileprivate func hasThumbs(_ directory: Inode) throws(FileError) -> Bool {
        if directory.ino == WellKnownInode.root { return true }
        guard try !has(directory, thumbsName) else { return false }
        return try showsPhotos(directory)
    }

    /// `.thumbs` as an entry of its directory, if the mount's options list it. After the dots, before all other
    /// entries.
    func thumbsEntry(_ directory: Inode, plus: Bool) throws(FileError) -> DirectoryEntry? {
        guard try hasThumbs(directory) else { return nil }
        var shown = virtualDirectoryAttributes(directory)
        shown.ino = VirtualInode.number(telling: .thumbs(of: directory.ino)) ?? VirtualInode.unknown
        let entry = Entry(
            attributes: shown, entryTimeout: KernelTimeout.none, attributeTimeout: KernelTimeout.none)
        return DirectoryEntry(
            name: Name(thumbsName), cookie: firstCookie, ino: shown.ino, mode: shown.mode,
            entry: plus ? entry : nil)
    }

    /// Attributes of a directory of thumbnails: with the owner and permissions of the real directory, so that it shows
    /// nobody more than that one does.
    fileprivate func virtualDirectoryAttributes(_ directory: Inode) -> Attributes {
        var shown = attributes(directory)
        shown.mode = directoryType | shown.mode & 0o555
        shown.nlink = 2
        shown.size = 0
        return shown
    }

    /// The mode of a picture of a file with these attributes: readable by all who may read the file, writable by
    /// nobody.
    fileprivate func pictureMode(_ pictured: Attributes) -> UInt32 { regularType | pictured.mode & 0o444 }

    /// Attributes of a picture of a file with these attributes. Times are whole seconds: some programs compare them so,
    /// others with fractions.
    fileprivate func pictureAttributes(_ pictured: Attributes, byteCount: Int) -> Attributes {
        var shown = pictured
        shown.mode = pictureMode(pictured)
        shown.nlink = 1
        shown.size = UInt64(byteCount)
        shown.blocks = (shown.size + 511) / 512
        shown.modified.nanoseconds = 0
        shown.accessed = shown.modified
        shown.changed = shown.modified
        return shown
    }

    /// The node of a name in a directory of thumbnails. Real names come first: of directories, then of photos.
    fileprivate func child(of folder: ThumbnailFolder, _ name: [UInt8]) throws(FileError) -> VirtualNode {
        let directory = try self.directory(folder.directory)
        if folder.isMirror, let found = try find(directory, name), found.inode.isDirectory {
            return .folder(
                ThumbnailFolder(directory: found.inode.ino, kind: folder.kind, isMirror: true))
        }
        if let file = try file(behind: name, in: directory) {
            return .picture(of: file, folder.kind ?? .standard)
        }
        guard folder.kind == nil else { throw .noEntry }
        if let composition = Composition(named: name) {
            return .composition(directory: folder.directory, composition, hidden: [])
        }
        guard let kind = ThumbnailKind(named: name) else { throw .noEntry }
        return .folder(
            ThumbnailFolder(directory: folder.directory, kind: kind, isMirror: folder.isMirror))
    }

    /// The photo or copy in a directory whose thumbnail has that name: one of the same name, or one of that name
    /// without `.jpg` whose own name does not end so.
    private func file(behind name: [UInt8], in directory: Inode) throws(FileError) -> UInt64? {
        guard hasJPEGExtension(name) else { return nil }
        if let found = try find(directory, name), try photo(representedBy: found.inode) != nil {
            return found.inode.ino
        }
        let bare = Array(name.dropLast(jpegExtension.count))
        guard hasSuffix(name, jpegExtension), !bare.isEmpty, !hasJPEGExtension(bare),
            let found = try find(directory, bare), try photo(representedBy: found.inode) != nil
        else { return nil }
        return found.inode.ino
    }

    // MARK: Listing

    fileprivate func list(
        _ folder: ThumbnailFolder, _ types: Set<MediaType>, after cookie: UInt64, plus: Bool,
        _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        let directory = try self.directory(folder.directory)
        if folder.kind == nil, cookie < firstCookie, try showsPhotos(directory) {
            let fast = DirectoryEntry(
                name: Name(ThumbnailKind.fastName), cookie: firstCookie, ino: VirtualInode.unknown,
                mode: virtualDirectoryAttributes(directory).mode)
            if !visit(fast) { return }
        }
        if folder.isMirror, try !listDirectories(in: directory, after: cookie, visit) { return }
        try listPictures(of: types, in: folder.directory, after: cookie) {
            dentry, file, kept throws(FileError) in
            guard let name = try pictureName(dentry, in: directory, folder) else { return true }
            var entry: Entry?
            if plus, folder.kind == nil, let kept {
                var shown = pictureAttributes(attributes(file), byteCount: Int(kept.length))
                shown.ino = pictureNumber(file)
                entry = Entry(
                    attributes: shown, entryTimeout: KernelTimeout.none, attributeTimeout: KernelTimeout.none)
            }
            return visit(
                DirectoryEntry(
                    name: Name(name), cookie: dentry.id | pictureCookie, ino: pictureNumber(file),
                    mode: pictureMode(attributes(file)), entry: entry))
        }
    }

    private func pictureNumber(_ file: Inode) -> UInt64 {
        VirtualInode.number(telling: .picture(of: file.ino, .standard)) ?? VirtualInode.unknown
    }

    /// Lists the directories in a directory, all of them before its pictures; false if the visitor stopped.
    private func listDirectories(
        in directory: Inode, after cookie: UInt64, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) -> Bool {
        guard cookie & pictureCookie == 0 else { return true }
        var isOver = false
        try list(directory, after: cookie, plus: false) { entry in
            guard entry.mode & fileTypeMask == directoryType else { return true }
            isOver = !visit(
                DirectoryEntry(
                    name: entry.name, cookie: entry.cookie, ino: VirtualInode.unknown,
                    mode: directoryType | entry.mode & 0o555))
            return !isOver
        }
        return !isOver
    }

    /// Visits the photos and copies of a directory that may have a picture, as far as is known without decoding, each
    /// with its standard picture if that is kept.
    ///
    /// - Parameter types: types that can be decoded. Photos of other types are visited if they have a picture.
    fileprivate func listPictures(
        of types: Set<MediaType>, in directory: UInt64, after cookie: UInt64,
        _ visit: (DentryRow, Inode, ThumbnailRow?) throws(FileError) -> Bool
    ) throws(FileError) {
        var failed: FileError?
        let last = cookie & pictureCookie == 0 ? 0 : cookie & ~pictureCookie
        try sql(
            tables.eachPhoto(in: directory, after: last) { dentry in
                do throws(FileError) {
                    let file = try inode(dentry.ino)
                    guard let photo = try photo(representedBy: file) else { return true }
                    let rows = try sql(tables.thumbnails(of: photo.ino))
                    let current = rows.filter { $0.version == photo.row.version }
                    if current.contains(where: { $0.length < 0 }), try still(of: photo) == nil { return true }
                    let kept = current.first { $0.size == .standard && $0.pictureFormat == .jpeg }
                    let isShown = kept == nil ? try isAmong(types, photo) : true
                    guard isShown else { return true }
                    return try visit(dentry, file, kept)
                } catch {
                    failed = error
                    return false
                }
            })
        if let failed { throw failed }
    }

    private func isAmong(_ types: Set<MediaType>, _ photo: Inode) throws(FileError) -> Bool {
        let type = UInt8(exactly: try self.photo(photo).media).flatMap { MediaType(rawValue: $0) }
        if type.map({ types.contains($0) }) ?? false { return true }
        // A video that no program can decode may have a still.
        guard let still = try still(of: photo) else { return false }
        return try isAmong(types, still)
    }

    /// The name of a photo's picture; nil if it would be too long, or is the name of another one.
    private func pictureName(
        _ dentry: DentryRow, in directory: Inode, _ folder: ThumbnailFolder
    ) throws(FileError) -> [UInt8]? {
        if hasJPEGExtension(dentry.name) { return dentry.name }
        let name = dentry.name + jpegExtension
        guard name.count <= nameBytesMax else { return nil }
        guard let other = try find(directory, name)?.inode else { return name }
        if folder.isMirror && other.isDirectory { return nil }
        return try photo(representedBy: other) == nil ? name : nil
    }
}

extension VirtualInode {
    /// Listed in place of a number that only a lookup gives out.
    static let unknown = counted(0)
}

/// Whether a name ends in `.jpg` or `.jpeg`, in any case.
private func hasJPEGExtension(_ name: [UInt8]) -> Bool {
    let lower = name.suffix(5).map { $0 >= 65 && $0 <= 90 ? $0 + 32 : $0 }
    return hasSuffix(lower, jpegExtension) || hasSuffix(lower, longJPEGExtension)
}

/// O_WRONLY, O_RDWR, O_TRUNC.
private let openForWriting: Int32 = 0o1 | 0o2 | 0o1000
private let thumbsName = Array(".thumbs".utf8)
private let sharedName = Array(".sh_thumbnails".utf8)
private let jpegExtension = Array(".jpg".utf8)
private let longJPEGExtension = Array(".jpeg".utf8)
/// Cookie of the first entry after the dots; IDs of dentries are higher.
let firstCookie: UInt64 = 3
/// In a cookie: pictures are being listed, which come after all directories.
private let pictureCookie: UInt64 = 1 << 62
