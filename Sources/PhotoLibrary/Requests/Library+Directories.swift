import CatalogueRows
public import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue

/// An open directory. Cookies are ids that never recur, so the handle stores no entries, only the end of the listing.
/// Names added while the directory is read are not listed: a program that adds a name at each step would never finish.
public final class DirectoryHandle: @unchecked Sendable {
    public let ino: UInt64
    /// The first cookie that was unassigned when the directory was opened, or last read from the start. Under the
    /// catalogue's lock.
    fileprivate var end: UInt64
    /// Nil if the kernel must not keep the listing.
    fileprivate let opened: KeptListings.Opened?
    private let lock = Lock()
    /// Entries of a view, as they were when it was last read from the start. Under `lock`.
    private var listed: [(name: [UInt8], ino: UInt64, mode: UInt32)]?

    init(_ ino: UInt64, end: UInt64, _ opened: KeptListings.Opened? = nil) {
        self.ino = ino
        self.end = end
        self.opened = opened
    }

    /// The entries of a view; `read` reads them when a listing begins.
    fileprivate func entries(
        after cookie: UInt64,
        _ read: () throws(FileError) -> [(name: [UInt8], ino: UInt64, mode: UInt32)]?
    ) throws(FileError) -> [(name: [UInt8], ino: UInt64, mode: UInt32)]? {
        lock.lock()
        defer { lock.unlock() }
        if cookie == 0 || listed == nil { listed = try read() }
        return listed
    }

    /// Whether the kernel may keep the listing that it reads, for later handles.
    public var mayKeepListing: Bool { opened != nil }
    /// Whether the listing that the kernel keeps, if any, is current.
    public var keepsListing: Bool { opened?.isKept == true }
}

extension Library {
    public func openDirectory(_ ino: UInt64) throws(FileError) -> DirectoryHandle {
        switch Node(ino) {
        case .version(let node):
            _ = try session.versions.attributes(of: node)
            return DirectoryHandle(ino, end: .max)
        case .view(let node):
            _ = try session.views.attributes(of: node)
            return DirectoryHandle(ino, end: try session.views.nextInode())
        case .thumbnail(let number):
            guard let virtual else { throw .stale }
            try virtual.openDirectory(number)
            return DirectoryHandle(ino, end: .max)
        case .real(let ino): return try listings.open(ino)
        }
    }

    public func releaseDirectory(_ handle: DirectoryHandle) {
        guard let opened = handle.opened else { return }
        // The body throws nothing.
        try? session.locked { tree throws(FileError) in tree.kernelNames.listings.close(handle.ino, opened) }
    }

    /// fsync(2) of a directory: its names, and all other changes, are on the disk when it returns. Of the root: also
    /// the bytes of files that are still being written, because syncfs(2) never reaches a FUSE daemon.
    public func fsyncDirectory(_ handle: DirectoryHandle) throws(FileError) {
        if handle.ino == WellKnownInode.root, !isReadOnly { return try session.flushAll() }
        try session.committer.makeDurable()
    }

    /// Lists a directory from after a cookie (0: from the start, as it is now), until `visit` returns false; the
    /// refused entry is listed again next time. `visit` is called with a lock held and must not call the library.
    public func readDirectory(
        _ handle: DirectoryHandle, after cookie: UInt64, plus: Bool, visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        switch Node(handle.ino) {
        case .version(let node): try session.versions.list(node, after: cookie, visit)
        case .view(let node): try listings.list(node, handle, after: cookie, visit)
        case .thumbnail(let number):
            guard let virtual else { throw .stale }
            try virtual.list(number, after: cookie, plus: plus, visit)
        case .real: try listings.list(handle, after: cookie, plus: plus, visit)
        }
    }

    private var listings: DirectoryListings { DirectoryListings(session: session, options: options) }
}

/// Opens and lists directories of the catalogue and of views.
private struct DirectoryListings {
    let session: TreeSession
    let options: LibraryOptions

    func open(_ ino: UInt64) throws(FileError) -> DirectoryHandle {
        // If the kernel keeps the listing, no request for it follows.
        try session.applyCompanionMoves()
        return try session.locked { tree throws(FileError) in
            let ino = try tree.directory(ino).ino
            let opened = mayKeepListing(of: ino) ? tree.kernelNames.listings.open(ino) : nil
            return DirectoryHandle(ino, end: tree.counters.dentry, opened)
        }
    }

    /// Whether the kernel may keep the listing of a directory: only if the names in the catalogue are all of it. A day
    /// that classification made is listed only as long as it is not empty; `.thumbs` only where there are photos.
    private func mayKeepListing(of ino: UInt64) -> Bool {
        ino != WellKnownInode.moments && options.thumbnails != .listed && !options.follows
    }

    func list(
        _ handle: DirectoryHandle, after cookie: UInt64, plus: Bool, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        if cookie == 0 { try session.applyCompanionMoves() }
        try session.locked { tree throws(FileError) in
            let directory = try tree.directory(handle.ino)
            if let opened = handle.opened { tree.kernelNames.listings.noteRead(handle.ino, by: opened) }
            if cookie == 0 { handle.end = tree.counters.dentry }
            let end = handle.end
            guard DirectoryEntry.visitDots(directory.ino, directory.row.parent, after: cookie, visit)
            else { return }
            if cookie < DirectoryEntry.firstCookie, options.thumbnails == .listed,
                let thumbs = try tree.pictureNames.thumbsEntry(directory, plus: plus), !visit(thumbs)
            {
                return
            }
            if cookie < Self.viewsCookie, options.views, directory.ino == WellKnownInode.root {
                let views = DirectoryEntry(
                    name: Name(viewsName), cookie: Self.viewsCookie, ino: ViewNode.root.number,
                    mode: directoryType)
                if !visit(views) { return }
            }
            try tree.list(directory, after: cookie, plus: plus) { $0.cookie < end && visit($0) }
        }
    }

    /// After that of `.thumbs`; IDs of dentries are higher.
    private static let viewsCookie = DirectoryEntry.firstCookie + 1

    func list(
        _ node: ViewNode, _ handle: DirectoryHandle, after cookie: UInt64, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        let listed = try handle.entries(after: cookie) { () throws(FileError) in
            try session.views.entries(of: node)
        }
        guard let listed else {
            if cookie == 0 { handle.end = try session.views.nextInode() }
            return try session.views.listPhotos(of: node, after: cookie, before: handle.end, visit)
        }
        let parent = node.parent?.number ?? WellKnownInode.root
        guard DirectoryEntry.visitDots(node.number, parent, after: cookie, visit) else { return }
        let before = DirectoryEntry.firstCookie - 1
        let first = Int(clamping: max(cookie, before) - before)
        for (index, entry) in listed.enumerated().dropFirst(first) {
            let cookie = DirectoryEntry.firstCookie + UInt64(index)
            let shown = DirectoryEntry(
                name: Name(entry.name), cookie: cookie, ino: entry.ino, mode: entry.mode)
            if !visit(shown) { return }
        }
    }
}
