import CatalogueRows
public import FileRequests
import FileTree
import KernelNames
import LinuxIO
import PhotoTree
import Thumbnails
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

    init(_ ino: UInt64, end: UInt64, _ opened: KeptListings.Opened? = nil) {
        self.ino = ino
        self.end = end
        self.opened = opened
    }

    /// Whether the kernel may keep the listing that it reads, for later handles.
    public var mayKeepListing: Bool { opened != nil }
    /// Whether the listing that the kernel keeps, if any, is current.
    public var keepsListing: Bool { opened?.isKept == true }
}

extension Library {
    public func openDirectory(_ ino: UInt64) throws(FileError) -> DirectoryHandle {
        if VirtualInode.isVirtual(ino) { return try openVirtualDirectory(ino) }
        // If the kernel keeps the listing, no request for it follows.
        try applyCompanionMoves()
        return try locked { tree throws(FileError) in
            let ino = try tree.directory(ino).ino
            let opened = mayKeepListing(of: ino) ? tree.kernelNames.listings.open(ino) : nil
            return DirectoryHandle(ino, end: tree.counters.dentry, opened)
        }
    }

    /// Whether the kernel may keep the listing of a directory: only if the names in the catalogue are all of it. A day
    /// that classification made is listed only as long as it is not empty; `.thumbs` only where there are photos.
    private func mayKeepListing(of ino: UInt64) -> Bool {
        ino != WellKnownInode.moments && options.thumbnails != .listed
    }

    public func releaseDirectory(_ handle: DirectoryHandle) {
        guard let opened = handle.opened else { return }
        try? locked { tree throws(FileError) in tree.kernelNames.listings.close(handle.ino, opened) }
    }

    /// fsync(2) of a directory: its names, and all other changes, are on the disk when it returns.
    public func fsyncDirectory(_ handle: DirectoryHandle) throws(FileError) {
        try committer.makeDurable()
    }

    /// Lists a directory from after a cookie (0: from the start, as it is now), until `visit` returns false; the
    /// refused entry is listed again next time. `visit` is called with a lock held and must not call the library.
    public func readDirectory(
        _ handle: DirectoryHandle, after cookie: UInt64, plus: Bool, visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        if VirtualInode.isVirtual(handle.ino) {
            try listThumbnails(handle.ino, after: cookie, plus: plus, visit)
            return
        }
        if cookie == 0 { try applyCompanionMoves() }
        try locked { tree throws(FileError) in
            let directory = try tree.directory(handle.ino)
            if let opened = handle.opened { tree.kernelNames.listings.noteRead(handle.ino, by: opened) }
            if cookie == 0 { handle.end = tree.counters.dentry }
            let end = handle.end
            guard visitDots(directory.ino, directory.row.parent, after: cookie, visit) else { return }
            if cookie < firstCookie, options.thumbnails == .listed,
                let thumbs = try tree.thumbsEntry(directory, plus: plus), !visit(thumbs)
            {
                return
            }
            try tree.list(directory, after: cookie, plus: plus) { $0.cookie < end && visit($0) }
        }
    }

    /// Visits "." and "..". Returns false if `visit` did.
    func visitDots(
        _ ino: UInt64, _ parent: UInt64, after cookie: UInt64, _ visit: (DirectoryEntry) -> Bool
    ) -> Bool {
        for (number, name, target) in [(1, ".", ino), (2, "..", parent)] where cookie < UInt64(number) {
            let dot = DirectoryEntry(
                name: Name(name), cookie: UInt64(number), ino: target, mode: directoryType, entry: nil)
            if !visit(dot) { return false }
        }
        return true
    }

    /// Applies pending companion moves. Call before a directory is listed.
    func applyCompanionMoves() throws(FileError) {
        let isWaiting = try locked { tree throws(FileError) in !tree.companionMoves.isEmpty }
        guard isWaiting, !isReadOnly else { return }
        // Photos that go into the trash need a `.trashinfo` file, sealed before the catalogue is locked.
        let removed = try locked { tree throws(FileError) in
            tree.companionMoves.filter { $0.value.caller != nil }
        }
        var infos: [UInt64: TrashInfo] = [:]
        defer { for info in infos.values { giveUp(info) } }
        for (ino, move) in removed {
            infos[ino] = try trashInfo(forRemoving: Name(move.name), from: move.directory)
        }
        let pendingErase = try changing { tree throws(FileError) in
            try tree.applyCompanionMoves(infos, space, now: .now())
        }
        // The kernel may not know them, and then sends no FORGET.
        for ino in pendingErase { forget(ino) }
    }
}
