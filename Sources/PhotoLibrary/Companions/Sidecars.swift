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

    /// Sidecars that came back out of the trash into a day that the photo beside which they were has left meanwhile, by
    /// photo: until that has been dated by them.
    private var returned: [UInt64: SidecarCandidate] = [:]

    /// Sidecars that came back out of the trash into a day before the photo that they describe, by photo.
    private var early: [UInt64: (sidecar: UInt64, name: [UInt8], day: UInt64)] = [:]

    init(_ tree: Tree) { self.tree = tree }

    /// The files that are sidecars of a photo by their names, those next to one name together, in order of precedence:
    /// next to `place`, if given, and next to the names of the photo that it is saved over there; else next to its own
    /// names and those of its copies. What lies in the trash describes nothing outside it.
    package func candidates(
        of inode: Inode, at place: (parent: UInt64, name: [UInt8])?
    ) throws(FileError) -> [[SidecarCandidate]] {
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
            for row in try placesDescribing(named)
            where !names.contains(where: { row.isOf($0.parent, $0.name) }) {
                names.append((row.parent, row.name))
            }
        }
        var found: [[SidecarCandidate]] = []
        if let sidecar = try returned(with: inode) { found.append([sidecar]) }
        for (parent, name) in names where found.count < Self.placesMax {
            let beside = try sidecars(beside: name, in: tree.directory(parent))
            if !beside.isEmpty { found.append(beside) }
        }
        return found
    }

    /// The sidecars beside more names of one photo are not read.
    private static let placesMax = 16

    /// The names of a photo and of its copies, outside the trash unless the photo is in it.
    private func placesDescribing(_ photo: Inode) throws(FileError) -> [DentryRow] {
        var rows = try tree.names(of: photo)
        for copy in try tree.copies.copies(of: photo) { rows += try tree.names(of: copy) }
        if rows.count < 2 { return rows }
        var outside: [DentryRow] = []
        for row in rows where try !tree.isInTrash(tree.inode(row.parent)) { outside.append(row) }
        return outside
    }

    /// The sidecar that waits where a photo has been moved to in an album.
    package func sidecar(awaiting request: RenameRequest) throws(FileError) -> UInt64? {
        guard request.source.isPhoto || request.source.isCopy, request.to.area == .album,
            !request.isIntoTrash
        else { return nil }
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

    // MARK: Out of the trash

    /// Lets a sidecar that is about to come back into a day describe the photos again that it described when it was
    /// trashed. It follows the first of them if that is on another day all the same.
    ///
    /// - Parameter numbers: those photos' inodes.
    func noteReturn(
        of sidecar: Inode, as name: [UInt8], to day: Inode, describing numbers: [UInt64], by thread: Int32
    ) throws(FileError) {
        guard isSidecarName(name), try !tree.companions.hasPhoto(describedBy: name, in: day) else { return }
        var isNoted = false
        for number in numbers {
            guard let photo = try tree.existing(number), photo.isPhoto else { continue }
            if photo.isTrashed { early[number] = (sidecar.ino, name, day.ino) }
            guard !photo.isTrashed, let own = try tree.moments.moment(of: photo) else { continue }
            let shown = photoName(describedBy: name, for: own.row.name)
            returned[number] = SidecarCandidate(ino: sidecar.ino, name: name, photo: shown)
            try note(number, in: day, by: thread)
            if isNoted { continue }
            isNoted = true
            let origin = CompanionMove.Origin(parent: day.ino, name: name, day: day.row.day)
            tree.companions.note(
                sidecar.ino,
                CompanionMove(
                    directory: day.ino, name: name, target: .restored(origin), photo: number,
                    photoName: shown, mover: thread))
        }
    }

    /// Lets a sidecar that came back before its photo describe that, which has come back now.
    func noteReturn(ofPhoto photo: Inode, by thread: Int32) throws(FileError) {
        guard let (ino, name, number) = early.removeValue(forKey: photo.ino),
            let day = try tree.existing(number), day.isDay, let found = try tree.find(day, name)?.inode,
            found.ino == ino, mayDescribe(found)
        else { return }
        try noteReturn(of: found, as: name, to: day, describing: [photo.ino], by: thread)
    }

    /// The photos that a sidecar may have described which an early release has put into the trash, alone, out of a day
    /// that they left then: such a release did not record them. They were in the space already, have no other sidecar,
    /// and are on one day. Any others may be photos that merely have the name, so that these are none.
    ///
    /// - Parameters:
    ///   - name: its name beside the photo.
    ///   - since: the number of an inode that was made when the sidecar was removed.
    func photosDescribed(
        byEarly sidecar: Inode, named name: [UInt8], before since: UInt64
    ) throws(FileError) -> [UInt64] {
        guard let stem = sidecarStem(name), try !tree.tables.trash.isCompanion(sidecar.ino) else { return [] }
        try tree.views.settleViewNames()
        var found: [UInt64] = []
        var days: Set<UInt64> = []
        for base in Set([stem, stemOf(stem)]) {
            for ending in [".", " ("] {
                let names = try tree.tables.views.names(
                    beginning: base + Array(ending.utf8), limit: siblingNamesMax)
                // There may be more.
                if names.count == siblingNamesMax { return [] }
                for number in names.values.sorted() where !found.contains(number) {
                    let photo = try tree.inode(number)
                    guard try tree.photos.photo(photo).arrived < since,
                        let own = try tree.moments.moment(of: photo),
                        sidecarNames(own.row.name).contains(name),
                        try candidates(of: photo, at: nil).isEmpty
                    else { continue }
                    found.append(number)
                    days.insert(own.directory.ino)
                }
            }
        }
        return days.count == 1 ? found : []
    }

    /// The sidecar that came back for a photo, if it is still outside the trash.
    private func returned(with photo: Inode) throws(FileError) -> SidecarCandidate? {
        guard let candidate = returned[photo.ino], let inode = try tree.existing(candidate.ino),
            mayDescribe(inode)
        else { return nil }
        for row in try tree.names(of: inode) where row.name == candidate.name {
            if try !tree.isInTrash(tree.inode(row.parent)) { return candidate }
        }
        return nil
    }

    /// Notes that the photos have been dated by the sidecars that came back.
    func forgetReturned() { returned = [:] }

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
    func photos(beside sidecar: [UInt8], in directory: Inode) throws(FileError) -> [UInt64] {
        guard let stem = sidecarStem(sidecar) else { return [] }
        var files: [Inode] = []
        if let found = try tree.find(directory, stem) { files.append(found.inode) }
        for other in try tree.tables.dentries.names(
            in: directory.ino, beginning: stem + [UInt8(ascii: ".")], limit: siblingNamesMax)
        where stemOf(other.name) == stem { files.append(try tree.inode(other.ino)) }
        var photos: [UInt64] = []
        for file in files {
            // A copy stands for its photo.
            guard let photo = try tree.copies.photo(representedBy: file), !photos.contains(photo.ino) else {
                continue
            }
            if file.isPhoto || !photo.isTrashed { photos.append(photo.ino) }
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
        if let photo = try tree.copies.photo(representedBy: inode) {
            guard directory.area == .album, try !sidecars(beside: name, in: directory).isEmpty else { return }
            try note(photo.ino, in: directory, by: thread)
        } else {
            try noteRemoved(inode, name, from: directory, by: thread)
        }
    }

    /// Notes a photo that has a copy next to a sidecar from now on, or no longer.
    func noteDescribed(_ photo: Inode, beside copy: Inode, by thread: Int32) throws(FileError) {
        for row in try tree.names(of: copy) {
            let directory = try tree.inode(row.parent)
            if try !sidecars(beside: row.name, in: directory).isEmpty {
                try note(photo.ino, in: directory, by: thread)
            }
        }
    }

    /// Notes a photo to be dated anew, because of a sidecar in that directory.
    func note(_ photo: UInt64, in directory: Inode, by thread: Int32) throws(FileError) {
        if noted[photo] == nil { try tree.tables.pendingClassification.add(photo) }
        noted[photo, default: Note(thread: thread)].directories.insert(directory.ino)
        noted[photo]?.thread = thread
    }

    /// Notes that a name of a photo, or of a copy of it, was removed from an album. A sidecar that went before it was
    /// removed with it: the photo keeps its date, in whichever order a program removes the files of an album.
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
