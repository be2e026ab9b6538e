import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Versions of photos that are written in place, and the virtual directories that show versions.
extension TreeSession {
    // MARK: Edits in place

    /// Keeps the saved bytes of a photo before they are changed in place. The writer's lock is held.
    ///
    /// - Parameter kept: how many of the file's first bytes stay, at least in part.
    func keepVersion(of file: FileState, keeping kept: UInt64) throws(FileError) {
        if isReadOnly { return }
        let isKept = try locked { tree throws(FileError) in
            file.noteSnapshots(try sql(tree.tables.hasSnapshots(of: file.content)))
            return options.versions != .off && (file.inode.isPhoto || file.inode.isCopy)
        }
        guard isKept else { return }
        let rowsMax = kept > 0 ? space.limits.snapshotRows : 0
        let rows = min(file.map.pieces.count, rowsMax)
        let pages = Self.pagesPerChange + FileContext.pages(ofRows: rows)
        try change(for: .edit, pages: pages) { change throws(FileError) in
            let isNew = try change.tree.versions.keepVersion(
                of: file.inode, for: file.ino, snapshotRows: rowsMax, now: .now())
            guard isNew else { return }
            guard try sql(change.tree.tables.hasSnapshots(of: file.content)) else { return }
            file.noteSnapshots(true)
            space.passGeneration(of: file.map.pieces.map(\.run))
        }
    }

    // MARK: Virtual directories

    /// Looks up a name in a directory of versions.
    package func lookup(_ name: [UInt8], in node: VersionNode) throws(FileError) -> Entry {
        try locked { tree throws(FileError) in
            switch node {
            case .beside(let ino):
                let directory = try tree.directory(ino)
                guard let file = try tree.find(directory, name)?.inode,
                    let versions = try tree.versions.versionsDirectory(shownFor: file)
                else { throw .noEntry }
                var shown = tree.versions.attributes(ofVersionsOf: file, in: versions)
                shown.ino = VersionNode.of(file.ino).number
                return virtual(shown)
            case .of(let ino):
                let file = try tree.inode(ino)
                guard let versions = try tree.versions.versionsDirectory(shownFor: file) else {
                    throw .noEntry
                }
                let photo = try tree.versions.nameForVersions(of: file)
                for row in try tree.rows(of: versions) where shownVersionName(row.name, of: photo) == name {
                    return virtual(try tree.versions.versionAttributes(try tree.inode(row.ino)))
                }
                throw .noEntry
            }
        }
    }

    /// `.versions` beside photos; nil where there is none. A real directory of that name comes first.
    package func lookupVersions(beside parent: UInt64) throws(FileError) -> Entry? {
        try locked { tree throws(FileError) in
            let directory = try tree.directory(parent)
            guard directory.area == .album || directory.area == .day, try !tree.has(directory, versionsName),
                try tree.versions.hasVersions(in: directory)
            else { return nil }
            var shown = tree.versions.attributes(ofVersionsIn: directory)
            shown.ino = VersionNode.beside(parent).number
            return virtual(shown)
        }
    }

    private func virtual(_ shown: Attributes) -> Entry {
        Entry(attributes: shown, entryTimeout: KernelTimeout.none, attributeTimeout: KernelTimeout.none)
    }

    package func attributes(of node: VersionNode) throws(FileError) -> Attributes {
        try locked { tree throws(FileError) in
            var shown: Attributes
            switch node {
            case .beside(let ino): shown = tree.versions.attributes(ofVersionsIn: try tree.directory(ino))
            case .of(let ino):
                let file = try tree.inode(ino)
                guard let versions = try tree.versions.versionsDirectory(shownFor: file) else { throw .stale }
                shown = tree.versions.attributes(ofVersionsOf: file, in: versions)
            }
            shown.ino = node.number
            return shown
        }
    }

    /// Lists a virtual directory from after a cookie.
    package func list(
        _ node: VersionNode, after cookie: UInt64, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        try locked { tree throws(FileError) in
            switch node {
            case .beside(let ino):
                guard DirectoryEntry.visitDots(node.number, ino, after: cookie, visit) else { return }
                try sql(
                    tree.tables.eachFileWithVersions(in: ino, after: max(cookie, 2)) { row in
                        // A file that cannot be read is left out.
                        guard let file = try? tree.inode(row.ino),
                            let versions = try? tree.versions.versionsDirectory(shownFor: file)
                        else { return true }
                        var shown = tree.versions.attributes(ofVersionsOf: file, in: versions)
                        shown.ino = VersionNode.of(row.ino).number
                        return visit(
                            DirectoryEntry(
                                name: Name(row.name), cookie: row.id, ino: shown.ino, mode: shown.mode,
                                entry: virtual(shown)))
                    })
            case .of(let ino):
                let file = try tree.inode(ino)
                guard DirectoryEntry.visitDots(node.number, WellKnownInode.root, after: cookie, visit),
                    let versions = try tree.versions.versionsDirectory(shownFor: file)
                else { return }
                let photo = try tree.versions.nameForVersions(of: file)
                for row in try tree.rows(of: versions) where row.id > cookie {
                    let version = try tree.inode(row.ino)
                    guard version.isRegular else { continue }
                    let entry = virtual(try tree.versions.versionAttributes(version))
                    let isTaken = visit(
                        DirectoryEntry(
                            name: Name(shownVersionName(row.name, of: photo)), cookie: row.id, ino: row.ino,
                            mode: entry.attributes.mode, entry: entry))
                    if !isTaken { return }
                }
            }
        }
    }
}
