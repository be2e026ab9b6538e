import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// The virtual directories that show versions.
package final class VersionDirectories: Sendable {
    private unowned let session: TreeSession

    init(_ session: TreeSession) { self.session = session }

    /// Looks up a name in a directory of versions.
    package func lookup(_ name: [UInt8], in node: VersionNode) throws(FileError) -> Entry {
        try session.locked { tree throws(FileError) in
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
        try session.locked { tree throws(FileError) in
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
        try session.locked { tree throws(FileError) in
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
        try session.locked { tree throws(FileError) in
            switch node {
            case .beside(let ino):
                guard DirectoryEntry.visitDots(node.number, ino, after: cookie, visit) else { return }
                try tree.tables.versions.eachFile(in: ino, after: max(cookie, 2)) { row in
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
                }
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
