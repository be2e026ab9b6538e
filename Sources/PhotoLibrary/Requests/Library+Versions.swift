public import FileRequests
import PhotoRules

/// Versions of photos for programs that write out all of a space.
extension Library {
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
        guard let found = try session.versions.lookupVersions(beside: ino),
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
        return try session.locked { tree throws(FileError) in
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
