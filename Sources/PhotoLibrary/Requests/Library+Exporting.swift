public import FileRequests
import Glibc
import VaultStore

/// Walking the tree without a mount.
extension Library {
    /// All entries of a directory except `.` and `..`, with attributes, in the order in which they were added.
    public func entries(of directory: UInt64) throws(FileError) -> [DirectoryEntry] {
        let handle = try openDirectory(directory)
        defer { releaseDirectory(handle) }
        var found: [DirectoryEntry] = []
        try readDirectory(handle, after: 0, plus: true) { entry in
            if entry.name != "." && entry.name != ".." { found.append(entry) }
            return true
        }
        return found
    }

    /// A mark of the space for an unfinished export; see `UnlockedSpace.mark`.
    public func exportMark(_ salt: [UInt8]) -> [UInt8] { unlocked?.mark(salt) ?? [] }

    /// Whether a file is a photo.
    public func isPhoto(_ ino: UInt64) throws(FileError) -> Bool {
        try session.locked { tree throws(FileError) in try tree.inode(ino).isPhoto }
    }

    /// The extended attributes that programs gave a file or directory: only `user.*`, even if a forged catalogue has
    /// others.
    public func extendedAttributes(of ino: UInt64) throws(FileError) -> [ExtendedAttribute] {
        let names = try listExtendedAttributes(ino)
        return try names.filter { $0.starts(with: "user.".utf8) }.map { name throws(FileError) in
            ExtendedAttribute(name: name, value: try getExtendedAttribute(ino, name: name))
        }
    }

    /// Passes `body` the stored bytes of a regular file, from the beginning and piece by piece, all of them
    /// authenticated, until `body` returns false. Bytes between the pieces, and after the last, are zeros.
    public func readStored(
        _ ino: UInt64, _ caller: Caller, _ body: (_ offset: UInt64, UnsafeRawBufferPointer) -> Bool
    ) throws(FileError) {
        let handle = try open(ino, flags: O_RDONLY, caller)
        defer { release(handle) }
        guard let file = handle.state else { throw .invalid }
        var offset: UInt64 = 0
        while let stored = file.storedRange(from: offset) {
            offset = stored.lowerBound
            while offset < stored.upperBound {
                let wanted = Int(min(UInt64(FileContext.requestBytesMax), stored.upperBound - offset))
                let (count, goesOn) = try read(handle, offset: offset, count: wanted) { bytes in
                    (bytes.count, bytes.isEmpty || body(offset, bytes))
                }
                if count == 0 || !goesOn { return }
                offset += UInt64(count)
            }
        }
    }
}
