import CatalogueRows
package import FileRequests
import PhotoRules
import VaultCatalogue

/// XMP files next to photos: `NAME.EXT.xmp`, else `NAME.xmp`. Their dates take precedence over all others.
package final class Sidecars {
    private unowned let tree: Tree

    private struct Note {
        /// Of the client that changed the sidecar.
        var thread: Int32
        /// The directories that had, or have, the sidecar.
        var directories: Set<UInt64> = []
    }

    /// Photos beside which a sidecar came or went. As companions do, they follow a little later: a program may be about
    /// to write the sidecar anew, or to move or remove the photo too. The catalogue lists them as pending
    /// classification.
    private var noted: [UInt64: Note] = [:]
    var hasNoted: Bool { !noted.isEmpty }

    init(_ tree: Tree) { self.tree = tree }

    /// The files that are sidecars of a photo by their names, in order of precedence: next to `place`, if given, and
    /// next to the names of the photo that it is saved over there; else next to its own names. The order does not
    /// depend on which of the names was made first.
    package func candidates(
        of inode: Inode, at place: (parent: UInt64, name: [UInt8])?
    ) throws(FileError) -> [SidecarCandidate] {
        var names: [(parent: UInt64, name: [UInt8])] = []
        var named: Inode? = inode
        if let place {
            names = [place]
            let directory = try tree.directory(place.parent)
            if let present = try tree.find(directory, place.name)?.inode {
                named = present.isPhoto ? present : nil
            } else {
                named = try tree.saves.backup(of: place.name, in: directory, except: inode)
            }
        }
        if let named {
            for row in try tree.names(of: named)
            where !names.contains(where: { row.isOf($0.parent, $0.name) }) {
                names.append((row.parent, row.name))
            }
        }
        names.sort {
            $0.parent == $1.parent ? $0.name.lexicographicallyPrecedes($1.name) : $0.parent < $1.parent
        }
        var found: [SidecarCandidate] = []
        for (parent, name) in names where found.count < Self.candidatesMax {
            found += try sidecars(beside: name, in: tree.directory(parent))
        }
        return found
    }

    /// More are not read.
    private static let candidatesMax = 16

    /// The sidecar that waits where a photo has been moved to in an album.
    package func sidecar(awaiting request: RenameRequest) throws(FileError) -> UInt64? {
        guard request.source.isPhoto, request.to.area == .album, !request.isIntoTrash else { return nil }
        return try sidecars(beside: request.newName, in: request.to).first?.ino
    }

    private func sidecars(beside name: [UInt8], in directory: Inode) throws(FileError) -> [SidecarCandidate] {
        var found: [SidecarCandidate] = []
        for candidate in sidecarNames(name) {
            guard let inode = try tree.find(directory, candidate)?.inode, mayDescribe(inode) else { continue }
            found.append(SidecarCandidate(ino: inode.ino, name: candidate, photo: name))
        }
        return found
    }

    private func mayDescribe(_ inode: Inode) -> Bool {
        inode.isRegular && !inode.isPhoto && inode.row.size > 0
    }

    /// The photos whose sidecar a file is, by any of its names. Few: a raw file and its JPEG.
    package func photos(besideSidecar inode: Inode) throws(FileError) -> [UInt64] {
        var photos: [UInt64] = []
        for row in try tree.names(of: inode) {
            photos += try self.photos(beside: row.name, in: tree.inode(row.parent))
        }
        return photos
    }

    /// The photos in a directory whose sidecar is called `sidecar`.
    private func photos(beside sidecar: [UInt8], in directory: Inode) throws(FileError) -> [UInt64] {
        guard let stem = sidecarStem(sidecar) else { return [] }
        var photos: [UInt64] = []
        if let found = try tree.find(directory, stem), found.inode.isPhoto { photos.append(found.inode.ino) }
        for other in try tree.tables.dentries.names(
            in: directory.ino, beginning: stem + [UInt8(ascii: ".")], limit: siblingNamesMax)
        where stemOf(other.name) == stem {
            if try tree.inode(other.ino).isPhoto { photos.append(other.ino) }
        }
        return photos
    }

    // MARK: Photos to date anew

    /// Notes a file's name that is removed, or that another file gets: if it was a sidecar, the photos next to it are
    /// dated anew. They are not if the directory is in the trash.
    func noteRemoved(
        _ inode: Inode, _ name: [UInt8], from directory: Inode, by thread: Int32
    ) throws(FileError) {
        guard isSidecarName(name), mayDescribe(inode), try !tree.isInTrash(directory) else { return }
        for photo in try photos(beside: name, in: directory) { try note(photo, in: directory, by: thread) }
    }

    /// Notes another name of a file: it may be a photo's sidecar there, or a photo next to one.
    func noteLinked(_ inode: Inode, _ name: [UInt8], in directory: Inode, by thread: Int32) throws(FileError)
    {
        if inode.isPhoto {
            guard directory.area == .album, try !sidecars(beside: name, in: directory).isEmpty else { return }
            try note(inode.ino, in: directory, by: thread)
        } else {
            try noteRemoved(inode, name, from: directory, by: thread)
        }
    }

    private func note(_ photo: UInt64, in directory: Inode, by thread: Int32) throws(FileError) {
        if noted[photo] == nil { try tree.tables.pendingClassification.add(photo) }
        noted[photo, default: Note(thread: thread)].directories.insert(directory.ino)
        noted[photo]?.thread = thread
    }

    /// Notes that a photo's name was removed from an album. A sidecar that went before it was removed with it: the
    /// photo keeps its date, in whichever order a program removes the files of an album.
    func noteRemoved(photo ino: UInt64, from album: Inode) throws(FileError) {
        guard noted[ino]?.directories.remove(album.ino) != nil, noted[ino]?.directories.isEmpty == true else {
            return
        }
        noted[ino] = nil
        try tree.tables.pendingClassification.remove(ino)
    }

    /// The photos noted, which are then no longer. Those in the trash keep their dates.
    func takeNoted() throws(FileError) -> [UInt64] {
        if noted.isEmpty { return [] }
        var photos: [UInt64] = []
        for ino in noted.keys.sorted() {
            if let inode = try tree.existing(ino), inode.isPhoto, !inode.isTrashed {
                photos.append(ino)
            } else {
                try tree.tables.pendingClassification.remove(ino)
            }
        }
        noted = [:]
        return photos
    }

    /// Whether photos are noted because of changes by other threads than this one, which may be about to move the
    /// photos too.
    func hasNoted(byOtherThan thread: Int32) -> Bool { noted.values.contains { $0.thread != thread } }
}

/// A file that is a photo's sidecar by its name.
package struct SidecarCandidate {
    package var ino: UInt64
    package var name: [UInt8]
    /// The photo's name beside it.
    package var photo: [UInt8]
}
