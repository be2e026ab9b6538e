import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoImaging
import PhotoRules
import VaultCatalogue

/// Names and attributes of the virtual entries of a directory.
package final class PictureNames {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// Whether the directory is an album or a day, and has photos.
    func showsPhotos(_ directory: Inode) throws(FileError) -> Bool {
        guard directory.area == .album || directory.area == .day else { return false }
        return try tree.tables.dentries.hasPhotos(directory.ino)
    }

    /// Whether the directory has a virtual `.thumbs`.
    func hasThumbs(_ directory: Inode) throws(FileError) -> Bool {
        if directory.ino == WellKnownInode.root { return true }
        guard try !tree.has(directory, thumbsName) else { return false }
        return try showsPhotos(directory)
    }

    /// `.thumbs` as an entry of its directory, if the mount's options list it. After the dots, before all other
    /// entries.
    package func thumbsEntry(_ directory: Inode, plus: Bool) throws(FileError) -> DirectoryEntry? {
        guard try hasThumbs(directory) else { return nil }
        var shown = virtualDirectoryAttributes(tree.attributes(directory))
        shown.ino = VirtualInode.number(encoding: .thumbs(of: directory.ino)) ?? VirtualInode.unknown
        let entry = Entry(
            attributes: shown, entryTimeout: KernelTimeout.none, attributeTimeout: KernelTimeout.none)
        return DirectoryEntry(
            name: Name(thumbsName), cookie: DirectoryEntry.firstCookie, ino: shown.ino, mode: shown.mode,
            entry: plus ? entry : nil)
    }

    /// The mode of a picture of a file with these attributes: readable by all who may read the file, writable by
    /// nobody.
    func pictureMode(_ pictured: Attributes) -> UInt32 { regularType | pictured.mode & 0o444 }

    /// Attributes of a picture of a file with these attributes. Times are whole seconds: some programs compare them so,
    /// others with fractions.
    func pictureAttributes(_ pictured: Attributes, byteCount: Int) -> Attributes {
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
    func child(of folder: ThumbnailFolder, _ name: [UInt8]) throws(FileError) -> VirtualNode {
        let directory = try tree.directory(folder.directory)
        if folder.isMirror, let found = try tree.find(directory, name), found.inode.isDirectory {
            return .folder(
                ThumbnailFolder(directory: found.inode.ino, kind: folder.kind, isMirror: true))
        }
        let file = try file(behind: name) { name throws(FileError) in try tree.find(directory, name)?.inode }
        if let file { return .picture(of: file.ino, folder.kind ?? .standard, try pictureVersion(of: file)) }
        guard folder.kind == nil else { throw .noEntry }
        if let composition = Composition(named: name) {
            return .composition(directory: folder.directory, composition, hidden: [], PictureVersion(of: []))
        }
        guard let kind = ThumbnailKind(named: name) else { throw .noEntry }
        return .folder(
            ThumbnailFolder(directory: folder.directory, kind: kind, isMirror: folder.isMirror))
    }

    /// The photo or copy in a directory whose thumbnail has that name: the one with the same name, else the
    /// one with that name without `.jpg`, unless its own name has a JPEG extension.
    ///
    /// - Parameter find: finds a name in the directory.
    func file(
        behind name: [UInt8], _ find: ([UInt8]) throws(FileError) -> Inode?
    ) throws(FileError) -> Inode? {
        guard hasJPEGExtension(name) else { return nil }
        if let found = try find(name), try tree.copies.photo(representedBy: found) != nil {
            return found
        }
        let bare = Array(name.dropLast(jpegExtension.count))
        guard hasSuffix(name, jpegExtension), !bare.isEmpty, !hasJPEGExtension(bare),
            let found = try find(bare), try tree.copies.photo(representedBy: found) != nil
        else { return nil }
        return found
    }

    /// The version of a file's picture; see `revisions`.
    func pictureVersion(of file: Inode) throws(FileError) -> PictureVersion {
        PictureVersion(of: try revisions(behind: file))
    }

    /// The inodes of the photos that a file's picture is made from, each with its revision. Throws `.noEntry` if the
    /// file is no photo, and stands for none.
    func revisions(behind file: Inode) throws(FileError) -> [UInt64] {
        guard let photo = try tree.copies.photo(representedBy: file) else { throw .noEntry }
        var revisions = [photo.ino, photo.row.revision]
        if let still = try tree.groups.still(of: photo) { revisions += [still.ino, still.row.revision] }
        return revisions
    }

    // MARK: Listing

    func list(
        _ folder: ThumbnailFolder, _ types: Set<MediaType>, after cookie: UInt64, plus: Bool,
        _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        let directory = try tree.directory(folder.directory)
        if folder.kind == nil, cookie < DirectoryEntry.firstCookie, try showsPhotos(directory) {
            let fast = DirectoryEntry(
                name: Name(ThumbnailKind.fastName), cookie: DirectoryEntry.firstCookie,
                ino: VirtualInode.unknown,
                mode: virtualDirectoryAttributes(tree.attributes(directory)).mode)
            if !visit(fast) { return }
        }
        if folder.isMirror, try !listDirectories(in: directory, after: cookie, visit) { return }
        try listPictures(of: types, in: folder.directory, after: cookie) {
            dentry, file, kept throws(FileError) in
            let name = try pictureName(dentry.name) { name throws(FileError) in
                guard let other = try tree.find(directory, name)?.inode else { return false }
                if folder.isMirror && other.isDirectory { return true }
                return try tree.copies.photo(representedBy: other) != nil
            }
            guard let name else { return true }
            let number = try pictureNumber(file)
            var entry: Entry?
            if plus, folder.kind == nil, let kept {
                var shown = pictureAttributes(tree.attributes(file), byteCount: Int(kept.length))
                shown.ino = number
                entry = Entry(
                    attributes: shown, entryTimeout: KernelTimeout.none, attributeTimeout: KernelTimeout.none)
            }
            return visit(
                DirectoryEntry(
                    name: Name(name), cookie: dentry.id | pictureCookie, ino: number,
                    mode: pictureMode(tree.attributes(file)), entry: entry))
        }
    }

    func pictureNumber(_ file: Inode) throws(FileError) -> UInt64 {
        let node = VirtualNode.picture(of: file.ino, .standard, try pictureVersion(of: file))
        return VirtualInode.number(encoding: node) ?? VirtualInode.unknown
    }

    /// Lists the directories in a directory, all of them before its pictures; false if the visitor stopped.
    private func listDirectories(
        in directory: Inode, after cookie: UInt64, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) -> Bool {
        guard cookie & pictureCookie == 0 else { return true }
        var isOver = false
        try tree.list(directory, after: cookie, plus: false) { entry in
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
    func listPictures(
        of types: Set<MediaType>, in directory: UInt64, after cookie: UInt64,
        _ visit: (DentryRow, Inode, ThumbnailRow?) throws(FileError) -> Bool
    ) throws(FileError) {
        var failed: FileError?
        let last = cookie & pictureCookie == 0 ? 0 : cookie & ~pictureCookie
        try tree.tables.dentries.eachPhoto(in: directory, after: last) { dentry in
            do throws(FileError) {
                let file = try tree.inode(dentry.ino)
                guard let photo = try tree.copies.photo(representedBy: file) else { return true }
                let (mayExist, kept) = try picture(of: photo, types)
                return mayExist ? try visit(dentry, file, kept) : true
            } catch {
                failed = error
                return false
            }
        }
        if let failed { throw failed }
    }

    /// Whether a photo may have a picture, as far as is known without decoding, and its standard picture if that is
    /// kept.
    func picture(
        of photo: Inode, _ types: Set<MediaType>
    ) throws(FileError) -> (mayExist: Bool, kept: ThumbnailRow?) {
        guard photo.row.size > 0 else { return (false, nil) }
        let rows = try tree.tables.thumbnails.rows(of: photo.ino)
        let current = rows.filter { $0.revision == photo.row.revision }
        if current.contains(where: { $0.length < 0 }), try tree.groups.still(of: photo) == nil {
            return (false, nil)
        }
        let kept = current.first { $0.size == .standard && $0.pictureFormat == .jpeg }
        return (kept == nil ? try isAmong(types, photo) : true, kept)
    }

    private func isAmong(_ types: Set<MediaType>, _ photo: Inode) throws(FileError) -> Bool {
        if let type = try tree.photos.photo(photo).mediaType, types.contains(type) { return true }
        // A video that no program can decode may have a still.
        guard let still = try tree.groups.still(of: photo) else { return false }
        return try isAmong(types, still)
    }

    /// The name of the picture of a photo with that name; nil if it would be too long, or is taken.
    func pictureName(
        _ name: [UInt8], isTaken: ([UInt8]) throws(FileError) -> Bool
    ) throws(FileError) -> [UInt8]? {
        if hasJPEGExtension(name) { return name }
        let name = name + jpegExtension
        guard name.count <= nameBytesMax else { return nil }
        return try isTaken(name) ? nil : name
    }
}

/// Attributes of a directory of thumbnails: with the owner and permissions of the directory with these attributes, so
/// that it shows nobody more than that one does.
func virtualDirectoryAttributes(_ directory: Attributes) -> Attributes {
    var shown = directory
    shown.mode = directoryType | shown.mode & 0o555
    shown.nlink = 2
    shown.size = 0
    return shown
}

extension VirtualInode {
    /// Listed for an inode that gets its number only when it is looked up.
    static let unknown = counted(0)
}

/// Whether a name ends in `.jpg` or `.jpeg`, in any case.
private func hasJPEGExtension(_ name: [UInt8]) -> Bool {
    let lower = name.suffix(5).map { $0 >= 65 && $0 <= 90 ? $0 + 32 : $0 }
    return hasSuffix(lower, jpegExtension) || hasSuffix(lower, longJPEGExtension)
}

let thumbsName = Array(".thumbs".utf8)
let sharedName = Array(".sh_thumbnails".utf8)
private let jpegExtension = Array(".jpg".utf8)
private let longJPEGExtension = Array(".jpeg".utf8)
/// In a cookie: pictures are being listed, which come after all directories.
let pictureCookie: UInt64 = 1 << 62
