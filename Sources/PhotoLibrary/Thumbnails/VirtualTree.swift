import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import PhotoImaging
import Synchronization
import VaultCatalogue

/// `.thumbs` and `.sh_thumbnails`: names, attributes and bytes of virtual inodes.
package final class VirtualTree: Sendable {
    let session: TreeSession
    package let thumbnails: PhotoThumbnails
    package var service: ThumbnailService { thumbnails.service }
    /// The size of each picture in the last reply to the kernel, in bytes, by inode.
    private let toldSizes = Mutex(RecentTable<UInt64, UInt64>(countMax: 4096))

    package init(_ thumbnails: PhotoThumbnails) {
        (session, self.thumbnails) = (thumbnails.session, thumbnails)
    }

    /// Looks up a name in a directory of thumbnails.
    package func lookup(
        _ name: Name, in number: UInt64, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Entry {
        // Companions of a photo that moved to another day must be there before this lookup.
        try session.applyCompanionMoves()
        do throws(FileError) {
            let node = try child(of: try service.nodes.node(number), name.bytes, caller)
            return try entry(of: node, try attributes(of: node, caller, unless: cancellation))
        } catch {
            throw error == .stale ? .noEntry : error
        }
    }

    /// Looks up `.thumbs` of a view; nil for any other name.
    func lookup(
        _ name: Name, in view: ViewNode, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Entry? {
        guard name.bytes == thumbsName, try session.views.hasPhotos(view) else { return nil }
        let node = VirtualNode.thumbs(of: view.number)
        return try entry(of: node, try attributes(of: node, caller, unless: cancellation))
    }

    /// Looks up `.thumbs` or `.sh_thumbnails` beside photos; nil for any other name.
    package func lookup(
        _ name: Name, beside directory: UInt64, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Entry? {
        guard let node = try virtualChild(directory, name.bytes) else { return nil }
        return try entry(of: node, try attributes(of: node, caller, unless: cancellation))
    }

    /// The reply to a lookup.
    private func entry(of node: VirtualNode, _ found: Attributes) throws(FileError) -> Entry {
        var shown = found
        shown.ino = service.nodes.noteLookup(of: node)
        noteTold(shown)
        return Entry(
            attributes: shown, entryTimeout: KernelTimeout.none, attributeTimeout: KernelTimeout.brief)
    }

    private func noteTold(_ shown: Attributes) {
        if shown.isRegular { toldSizes.withLock { $0.insert(shown.size, for: shown.ino) } }
    }

    private func virtualChild(_ parent: UInt64, _ name: [UInt8]) throws(FileError) -> VirtualNode? {
        let isThumbs = name == thumbsName
        guard isThumbs || name == sharedName else { return nil }
        return try session.locked { tree throws(FileError) -> VirtualNode? in
            let directory = try tree.directory(parent)
            if isThumbs { return try tree.pictureNames.hasThumbs(directory) ? .thumbs(of: parent) : nil }
            guard try tree.pictureNames.showsPhotos(directory), try !tree.has(directory, name) else {
                return nil
            }
            return .repository(directory: parent)
        }
    }

    /// The node of a name in a virtual directory.
    private func child(
        of node: VirtualNode, _ name: [UInt8], _ caller: Caller?
    ) throws(FileError) -> VirtualNode {
        switch node {
        case .folder(let folder):
            if let view = ViewNode(folder.directory) { return try child(of: folder, in: view, name) }
            let found = try session.locked { tree throws(FileError) in
                try tree.pictureNames.child(of: folder, name)
            }
            guard case .composition(let directory, let composition, _, _) = found else { return found }
            let reader = ReadPermission(caller)
            let hidden = try hiddenFiles(of: composition, directory, from: reader)
            return .composition(
                directory: directory, composition, hidden: hidden,
                try version(of: composition, directory, hidden: hidden, reader))
        case .repository(let directory):
            guard let size = RepositorySize(named: name) else { throw .noEntry }
            return .sizeDirectory(directory: directory, size)
        case .sizeDirectory(let directory, let size):
            let photo = try repositoryName(name, in: directory)
            return .shared(
                directory: directory, name: photo, size, try sharedVersion(photo, in: directory))
        case .picture, .composition, .shared:
            throw .notDirectory
        }
    }

    package func attributes(
        _ ino: UInt64, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Attributes {
        let node = try service.nodes.node(ino)
        var shown: Attributes
        if try isCurrent(node, caller) {
            shown = try attributes(of: node, caller, unless: cancellation)
        } else {
            // A program has it open, though there is another one by now.
            guard let size = toldSizes.withLock({ $0[ino] }) else { throw .stale }
            shown = try attributes(of: node, byteCount: Int(size))
        }
        shown.ino = ino
        noteTold(shown)
        return shown
    }

    /// Whether a picture is still the one that its name leads to.
    private func isCurrent(_ node: VirtualNode, _ caller: Caller?) throws(FileError) -> Bool {
        switch node {
        case .folder, .repository, .sizeDirectory: return true
        case .picture(let file, _, let version):
            return try session.locked { tree throws(FileError) in
                try tree.pictureNames.pictureVersion(of: try tree.inode(file)) == version
            }
        case .composition(let directory, let composition, let hidden, let version):
            return try self.version(of: composition, directory, hidden: hidden, ReadPermission(caller))
                == version
        case .shared(let directory, let name, _, let version):
            return try sharedVersion(name, in: directory) == version
        }
    }

    /// The attributes of a picture of that size, except its number.
    private func attributes(of node: VirtualNode, byteCount: Int) throws(FileError) -> Attributes {
        try session.locked { tree throws(FileError) in
            let pictured: Inode
            switch node {
            case .picture(let file, _, _): pictured = try tree.inode(file)
            case .shared(let directory, let name, _, _):
                guard let found = try tree.find(tree.directory(directory), name) else { throw .noEntry }
                pictured = found.inode
            case .composition(let directory, _, _, _): pictured = try tree.directory(directory)
            case .folder, .repository, .sizeDirectory: throw .isDirectory
            }
            return tree.pictureNames.pictureAttributes(tree.attributes(pictured), byteCount: byteCount)
        }
    }

    /// The attributes of a virtual inode, except its number. Makes a picture to know its size.
    private func attributes(
        of node: VirtualNode, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> Attributes {
        switch node {
        case .folder, .repository, .sizeDirectory:
            let directory = node.directory ?? WellKnownInode.root
            if let view = ViewNode(directory) {
                return virtualDirectoryAttributes(try session.views.attributes(of: view))
            }
            return try session.locked { tree throws(FileError) in
                virtualDirectoryAttributes(tree.attributes(try tree.directory(directory)))
            }
        case .picture(let file, let kind, _):
            let picture = try thumbnails.thumbnail(
                of: photo(behind: file), kind, for: .interactive(cancellation))
            return try attributes(of: node, byteCount: picture.byteCount)
        case .composition(let directory, let composition, let hidden, _):
            let (bytes, modified) = try picture(
                of: composition, directory, hidden: hidden, ReadPermission(caller), unless: cancellation)
            return try session.locked { tree throws(FileError) in
                var like = tree.attributes(try tree.directory(directory))
                like.modified = modified
                return tree.pictureNames.pictureAttributes(like, byteCount: bytes.count)
            }
        case .shared(let directory, let name, let size, _):
            let bytes = try sharedPicture(name, in: directory, size, unless: cancellation)
            return try attributes(of: node, byteCount: bytes.count)
        }
    }

    /// The photo that a file is or stands for.
    private func photo(behind file: UInt64) throws(FileError) -> UInt64 {
        try session.locked { tree throws(FileError) in
            guard let photo = try tree.copies.photo(representedBy: try tree.inode(file)) else {
                throw .noEntry
            }
            return photo.ino
        }
    }

    /// Throws `.stale` if there is another picture by now, or if the kernel has cached another size of it, because it
    /// would read only that many bytes. It then looks the name up again.
    package func open(
        _ ino: UInt64, flags: Int32, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> [UInt8] {
        let node = try service.nodes.node(ino)
        guard !node.isDirectory else { throw .isDirectory }
        guard flags & openForWriting == 0 else { throw .readOnly }
        let bytes = try contents(of: node, caller, unless: cancellation)
        guard toldSizes.withLock({ $0[ino] }) == UInt64(bytes.count), try isCurrent(node, caller) else {
            throw .stale
        }
        return bytes
    }

    private func contents(
        of node: VirtualNode, _ caller: Caller?, unless cancellation: Cancellation?
    ) throws(FileError) -> [UInt8] {
        switch node {
        case .picture(let file, let kind, _):
            let photo = try photo(behind: file)
            do throws(FileError) {
                return try thumbnails.thumbnailBytes(of: photo, kind, for: .interactive(cancellation))
            } catch {
                // Replaced after its row was read and before its bytes were.
                guard error == .damaged else { throw error }
                return try thumbnails.thumbnailBytes(of: photo, kind, for: .interactive(cancellation))
            }
        case .composition(let directory, let composition, let hidden, _):
            return try picture(
                of: composition, directory, hidden: hidden, ReadPermission(caller), unless: cancellation
            ).bytes
        case .shared(let directory, let name, let size, _):
            return try sharedPicture(name, in: directory, size, unless: cancellation)
        case .folder, .repository, .sizeDirectory: throw .isDirectory
        }
    }

    // MARK: Listing

    /// Throws if the inode is not a directory.
    package func openDirectory(_ ino: UInt64) throws(FileError) {
        guard try service.nodes.node(ino).isDirectory else { throw .notDirectory }
    }

    /// Lists the pictures that may exist, without decoding. Those that are already made come with their attributes.
    package func list(
        _ ino: UInt64, after cookie: UInt64, plus: Bool, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        let node = try service.nodes.node(ino)
        if case .folder(let folder) = node, let view = ViewNode(folder.directory) {
            return try list(folder, of: view, ino, after: cookie, visit)
        }
        if cookie == 0 { try session.applyCompanionMoves() }
        let types = service.decodableTypes
        try session.locked { tree throws(FileError) in
            guard DirectoryEntry.visitDots(ino, node.directory ?? WellKnownInode.root, after: cookie, visit)
            else { return }
            switch node {
            case .folder(let folder):
                try tree.pictureNames.list(folder, types, after: cookie, plus: plus, visit)
            case .repository(let directory):
                let mode = virtualDirectoryAttributes(tree.attributes(try tree.directory(directory))).mode
                for (index, size) in RepositorySize.allCases.enumerated() where cookie < UInt64(index + 3) {
                    let entry = DirectoryEntry(
                        name: Name(size.name), cookie: UInt64(index + 3), ino: VirtualInode.unknown,
                        mode: mode)
                    if !visit(entry) { return }
                }
            case .sizeDirectory(let directory, _):
                try tree.pictureNames.listPictures(of: types, in: directory, after: cookie) {
                    dentry, file, _ in
                    let digest = repositoryDigests(of: dentry.name)[0]
                    return visit(
                        DirectoryEntry(
                            name: Name(repositoryFileName(digest)), cookie: dentry.id | pictureCookie,
                            ino: VirtualInode.unknown,
                            mode: tree.pictureNames.pictureMode(tree.attributes(file))))
                }
            case .picture, .composition, .shared: throw .notDirectory
            }
        }
    }
}

/// O_WRONLY, O_RDWR, O_TRUNC.
private let openForWriting: Int32 = 0o1 | 0o2 | 0o1000
