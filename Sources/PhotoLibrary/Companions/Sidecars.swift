import CatalogueRows
package import FileRequests
import PhotoRules
import VaultCatalogue

/// XMP files next to photos: `NAME.EXT.xmp`, else `NAME.xmp`. Their dates take precedence over all others.
package final class Sidecars {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// The sidecar of a photo: next to `place`, if given, or next to a name of the photo that it is saved over there;
    /// else next to the first of its names that has one.
    package func sidecar(of inode: Inode, at place: (parent: UInt64, name: [UInt8])?) throws(FileError)
        -> UInt64?
    {
        guard let place else { return try sidecar(besideNamesOf: inode) }
        if let found = try sidecar(beside: place.name, in: place.parent) { return found }
        let directory = try tree.directory(place.parent)
        if let present = try tree.find(directory, place.name)?.inode {
            return present.isPhoto ? try sidecar(besideNamesOf: present) : nil
        }
        return try tree.saves.backup(of: place.name, in: directory, except: inode).flatMap {
            old throws(FileError) in
            try sidecar(besideNamesOf: old)
        }
    }

    /// The sidecar that waits where a photo has been moved to in an album.
    package func sidecar(awaiting request: RenameRequest) throws(FileError) -> UInt64? {
        guard request.source.isPhoto, request.to.area == .album, !request.isIntoTrash else { return nil }
        return try sidecar(beside: request.newName, in: request.to.ino)
    }

    private func sidecar(besideNamesOf inode: Inode) throws(FileError) -> UInt64? {
        for row in try tree.names(of: inode) {
            if let found = try sidecar(beside: row.name, in: row.parent) { return found }
        }
        return nil
    }

    private func sidecar(beside name: [UInt8], in parent: UInt64) throws(FileError) -> UInt64? {
        let directory = try tree.directory(parent)
        for candidate in sidecarNames(name) {
            guard let inode = try tree.find(directory, candidate)?.inode else { continue }
            if inode.isRegular, !inode.isPhoto, inode.row.size > 0 { return inode.ino }
        }
        return nil
    }

    /// The photos whose sidecar a file is, by any of its names. Few: a raw file and its JPEG.
    package func photos(besideSidecar inode: Inode) throws(FileError) -> [UInt64] {
        var photos: [UInt64] = []
        for row in try tree.names(of: inode) {
            guard let stem = sidecarStem(row.name) else { continue }
            let directory = try tree.inode(row.parent)
            if let found = try tree.find(directory, stem), found.inode.isPhoto {
                photos.append(found.inode.ino)
            }
            for other in try sql(
                tree.tables.dentries(
                    in: row.parent, beginning: stem + [UInt8(ascii: ".")], limit: siblingNamesMax)
            )
            where stemOf(other.name) == stem {
                if try tree.inode(other.ino).isPhoto { photos.append(other.ino) }
            }
        }
        return photos
    }
}
