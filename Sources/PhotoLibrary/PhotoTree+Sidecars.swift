import CatalogueRows
import FileRequests
import FileTree
import VaultCatalogue

/// XMP files next to photos: `NAME.EXT.xmp`, else `NAME.xmp`. Their dates take precedence over all others.
extension PhotoTree {
    /// The sidecar of a photo: next to `place`, if given, else next to the first of its names that has one.
    func sidecar(of inode: Inode, at place: (parent: UInt64, name: [UInt8])?) throws(FileError) -> UInt64? {
        if let place { return try sidecar(beside: place.name, in: place.parent) }
        for row in try names(of: inode) {
            if let found = try sidecar(beside: row.name, in: row.parent) { return found }
        }
        return nil
    }

    private func sidecar(beside name: [UInt8], in parent: UInt64) throws(FileError) -> UInt64? {
        let directory = try self.directory(parent)
        for candidate in sidecarNames(name) {
            guard let inode = try find(directory, candidate)?.inode else { continue }
            if inode.isRegular, !inode.isPhoto, inode.row.size > 0 { return inode.ino }
        }
        return nil
    }

    /// The photos whose sidecar a file is, by any of its names. Few: a raw file and its JPEG.
    func photos(besideSidecar inode: Inode) throws(FileError) -> [UInt64] {
        var photos: [UInt64] = []
        for row in try names(of: inode) {
            guard let stem = sidecarStem(row.name) else { continue }
            let directory = try self.inode(row.parent)
            if let found = try find(directory, stem), found.inode.isPhoto { photos.append(found.inode.ino) }
            for other in try sql(
                tables.dentries(in: row.parent, beginning: stem + [dot], limit: siblingNamesMax))
            where stemOf(other.name) == stem {
                if try self.inode(other.ino).isPhoto { photos.append(other.ino) }
            }
        }
        return photos
    }
}

/// Whether the name is that of a sidecar.
func isSidecarName(_ name: [UInt8]) -> Bool { sidecarStem(name) != nil }

/// The possible names of a photo's sidecar, in order of precedence.
func sidecarNames(_ name: [UInt8]) -> [[UInt8]] {
    let stem = stemOf(name)
    var names: [[UInt8]] = []
    for base in stem == name ? [name] : [name, stem] {
        for suffix in sidecarSuffixes where base.count + suffix.count <= nameBytesMax {
            names.append(base + suffix)
        }
    }
    return names
}

/// The name of a sidecar next to `shown`, if next to `name` it is called `sidecar`.
func sidecarName(_ sidecar: [UInt8], of name: [UInt8], for shown: [UInt8]) -> [UInt8] {
    if shown == name { return sidecar }
    if sidecar.starts(with: name) { return shown + sidecar.dropFirst(name.count) }
    return stemOf(shown) + sidecar.dropFirst(stemOf(name).count)
}

private func sidecarStem(_ name: [UInt8]) -> [UInt8]? {
    for suffix in sidecarSuffixes where hasSuffix(name, suffix) && name.count > suffix.count {
        return Array(name.dropLast(suffix.count))
    }
    return nil
}

/// A name without its extension.
func stemOf(_ name: [UInt8]) -> [UInt8] {
    guard let last = name.lastIndex(of: dot), last > 0 else { return name }
    return Array(name[..<last])
}

/// Maximum number of names that begin with a stem and a dot and are examined: `IMG.jpg`, but also `IMG.001.jpg`, which
/// does not belong to `IMG`.
let siblingNamesMax = 1024
private let dot = UInt8(ascii: ".")
private let sidecarSuffixes: [[UInt8]] = [".xmp", ".XMP"].map { Array($0.utf8) }
