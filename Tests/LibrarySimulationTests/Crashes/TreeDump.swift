import CatalogueRows
import FileRequests
import Glibc
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import VaultCatalogue

/// All of a library that a user sees, by path.
struct TreeDump: Equatable, Sendable {
    struct Entry: Equatable, Sendable {
        var mode: UInt32
        var nlink: UInt32
        var size: UInt64
        var modified: Timestamp
        /// Of a file's bytes and its attribute `user.note`.
        var digest: Int
    }

    var entries: [String: Entry] = [:]

    /// The differences, for the message of a failing test.
    func difference(from other: TreeDump) -> String {
        Set(entries.keys).union(other.entries.keys).sorted().compactMap { path in
            let (mine, others) = (entries[path], other.entries[path])
            if mine == others { return nil }
            return "\(path): \(mine.map { "\($0)" } ?? "none") instead of \(others.map { "\($0)" } ?? "none")"
        }.joined(separator: "\n")
    }
}

extension LibraryUser {
    /// Reads all there is.
    ///
    /// - Parameter isAsSaved: whether bytes and times that were not saved yet are left out, as a commit leaves them
    ///   out.
    func dump(asSaved isAsSaved: Bool = false) throws -> TreeDump {
        var tree = TreeDump()
        try dump(1, "", isAsSaved, into: &tree)
        return tree
    }

    private func dump(
        _ directory: UInt64, _ path: String, _ isAsSaved: Bool, into tree: inout TreeDump
    ) throws {
        let handle = try library.openDirectory(directory)
        var entries: [DirectoryEntry] = []
        try library.readDirectory(handle, after: 0, plus: true) {
            entries.append($0)
            return true
        }
        // Not listed, but part of the tree.
        if let versions = try? library.lookup(directory, Name(".versions"), caller), directory >> 60 == 0 {
            entries.append(
                DirectoryEntry(
                    name: Name(".versions"), cookie: 0, ino: versions.attributes.ino,
                    mode: versions.attributes.mode, entry: versions))
        }
        for entry in entries where entry.name != "." && entry.name != ".." {
            var found =
                try entry.entry?.attributes ?? library.lookup(directory, entry.name, caller).attributes
            let below = path + "/" + entry.name.description
            var digest = Hasher()
            let unsaved = isAsSaved ? library.session.context.unsavedFiles : []
            if let file = unsaved.first(where: { $0.ino == found.ino }) {
                (found.size, found.modified) = (file.inode.row.size, file.inode.row.modified)
                try readSaved(file, into: &digest)
            } else if found.isRegular {
                do { try readAll(found.ino, into: &digest) } catch FileError.stale {
                    // As the kernel does: it looks the name up, and tries again.
                    _ = try library.lookup(directory, entry.name, caller)
                    try readAll(found.ino, into: &digest)
                }
            }
            if found.isDirectory {
                try dump(found.ino, below, isAsSaved, into: &tree)
            } else if let note = try? library.getExtendedAttribute(found.ino, name: Array("user.note".utf8)) {
                digest.combine(note)
            }
            // A directory's size and times tell of days that nobody sees.
            tree.entries[below] = TreeDump.Entry(
                mode: found.mode, nlink: found.isDirectory ? 0 : found.nlink,
                size: found.isDirectory ? 0 : found.size,
                modified: found.isDirectory ? Timestamp(seconds: 0) : found.modified,
                digest: digest.finalize())
        }
    }

    /// Reads what rows say of a file that has newer bytes.
    private func readSaved(_ file: FileState, into digest: inout Hasher) throws {
        let (inode, context) = (file.inode, file.context)
        let runs = try library.session.locked { tree throws(FileError) in
            try tree.tables.extents.runs(of: inode.row.content)
        }
        let saved = FileState(inode, inode.row.allocated == 0 ? [] : runs, context)
        var offset: UInt64 = 0
        while true {
            let count = try saved.read(offset, 1 << 20) { bytes in
                digest.combine(bytes: bytes)
                return bytes.count
            }
            if count == 0 { return }
            offset += UInt64(count)
        }
    }

    private func readAll(_ ino: UInt64, into digest: inout Hasher) throws {
        let file = try library.open(ino, flags: O_RDONLY, caller)
        defer { library.release(file) }
        var offset: UInt64 = 0
        while true {
            let count = try library.read(file, offset: offset, count: 1 << 20) { bytes in
                digest.combine(bytes: bytes)
                return bytes.count
            }
            if count == 0 { return }
            offset += UInt64(count)
        }
    }
}
