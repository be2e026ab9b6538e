public import FileRequests
import Glibc
import PhotoRules
import VaultCatalogue
import VaultStore

/// Walks the tree of a space without a mount: for commands that read all of it.
public struct SpaceWalk: Sendable {
    let library: Library

    /// All entries of a directory except `.` and `..`, with attributes, in the order in which they were added.
    public func entries(of directory: UInt64) throws(FileError) -> [DirectoryEntry] {
        let handle = try library.openDirectory(directory)
        defer { library.releaseDirectory(handle) }
        var found: [DirectoryEntry] = []
        try library.readDirectory(handle, after: 0, plus: true) { entry in
            if entry.name != "." && entry.name != ".." { found.append(entry) }
            return true
        }
        return found
    }

    /// A mark of the space for an unfinished export; see `UnlockedSpace.mark`.
    public func exportMark(_ salt: [UInt8]) -> [UInt8] { library.unlocked?.mark(salt) ?? [] }

    /// Whether a file is a photo.
    public func isPhoto(_ ino: UInt64) throws(FileError) -> Bool {
        try library.session.locked { tree throws(FileError) in try tree.inode(ino).isPhoto }
    }

    /// The extended attributes that programs gave a file or directory: only `user.*`, even if a forged catalogue has
    /// others.
    public func extendedAttributes(of ino: UInt64) throws(FileError) -> [ExtendedAttribute] {
        let names = try library.listExtendedAttributes(ino)
        return try names.filter { $0.starts(with: "user.".utf8) }.map { name throws(FileError) in
            ExtendedAttribute(name: name, value: try library.getExtendedAttribute(ino, name: name))
        }
    }

    /// Passes `body` the stored bytes of a regular file, from the beginning and piece by piece, all of them
    /// authenticated, until `body` returns false. Bytes between the pieces, and after the last, are zeros.
    public func readStored(
        _ ino: UInt64, _ caller: Caller, _ body: (_ offset: UInt64, UnsafeRawBufferPointer) -> Bool
    ) throws(FileError) {
        let handle = try library.open(ino, flags: O_RDONLY, caller)
        defer { library.release(handle) }
        guard let file = handle.state else { throw .invalid }
        var offset: UInt64 = 0
        while let stored = file.storedRange(from: offset) {
            offset = stored.lowerBound
            while offset < stored.upperBound {
                let wanted = Int(min(UInt64(FileContext.requestBytesMax), stored.upperBound - offset))
                let (count, goesOn) = try unsafe library.read(handle, offset: offset, count: wanted) {
                    bytes in
                    unsafe (bytes.count, bytes.isEmpty || body(offset, bytes))
                }
                if count == 0 || !goesOn { return }
                offset += UInt64(count)
            }
        }
    }

    /// Number of photos in the space, for `status`, without those in the trash.
    public func photoCount() throws(FileError) -> Int {
        try library.session.views.withStoredRows { tree throws(FileError) in
            Int(try tree.tables.photos.shownCount())
        }
    }

    /// Number of photos in the trash.
    public func trashedPhotoCount() throws(FileError) -> Int {
        try library.session.locked { tree throws(FileError) in Int(try tree.tables.trash.photoCount()) }
    }

    // MARK: Versions

    /// The entries of a directory to export with versions, among them its `.versions`. In an album that has only the
    /// versions of files that are no photos of their own, any more or because they are copies: those of photos are in
    /// their days.
    public func entriesWithVersions(of ino: UInt64) throws(FileError) -> [DirectoryEntry] {
        switch Node(ino) {
        case .version(.beside(let directory)): return try versionEntries(beside: directory)
        case .version(.of), .view, .thumbnail: return try entries(of: ino)
        case .real: break
        }
        let entries = try entries(of: ino)
        guard let found = try library.session.versions.lookupVersions(beside: ino),
            try !versionEntries(beside: ino).isEmpty
        else {
            return entries
        }
        let shown = found.attributes
        return entries + [
            DirectoryEntry(
                name: Name(versionsName), cookie: .max, ino: shown.ino, mode: shown.mode, entry: found)
        ]
    }

    private func versionEntries(beside ino: UInt64) throws(FileError) -> [DirectoryEntry] {
        let entries = try entries(of: VersionNode.beside(ino).number)
        return try library.session.locked { tree throws(FileError) in
            if try tree.inode(ino).isDay { return entries }
            var others: [DirectoryEntry] = []
            for entry in entries {
                guard case .version(.of(let file)) = Node(entry.ino), try !tree.inode(file).isPhoto else {
                    continue
                }
                others.append(entry)
            }
            return others
        }
    }

    /// Whether an inode is a virtual directory of versions.
    public static func isOfVersions(_ ino: UInt64) -> Bool {
        if case .version = Node(ino) { true } else { false }
    }
}
