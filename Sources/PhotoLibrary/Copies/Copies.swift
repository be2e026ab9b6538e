import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoImaging
import PhotoRules
import VaultCatalogue
package import VaultStore

/// Copies: files in albums with exactly a photo's bytes. A copy has an inode of its own and no name in
/// moments. It shares the photo's content, and is removed with the photo.
package final class Copies {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// The photo that a file is, or is a copy of; nil if it is a plain file.
    package func photo(representedBy inode: Inode) throws(FileError) -> Inode? {
        if inode.isPhoto { return inode }
        guard inode.isCopy, let photo = try tree.tables.copies.photo(ofCopy: inode.ino) else { return nil }
        return try tree.inode(photo)
    }

    package func copies(of photo: Inode) throws(FileError) -> [Inode] {
        guard photo.row.flags.contains(.shared) else { return [] }
        var copies: [Inode] = []
        for ino in try tree.tables.copies.numbers(of: photo.ino) { copies.append(try tree.inode(ino)) }
        return copies
    }

    /// Makes a saved file in an album a copy of a photo that was found to have the same bytes, if that is still true.
    /// Excluded are photos that the user pinned to a day, files with a name in a day, files whose name dates them to
    /// another day, and files that a repair made without their newest records: one that comes back may name their
    /// bytes, and the copy would have the photo's in their place. The sidecars beside it date the photo from then on,
    /// as if they were beside that: so the order in which copies and sidecars come does not matter. Returns false if
    /// nothing was done.
    func becomeCopy(
        _ inode: Inode, _ probe: MediaProbe, named name: [UInt8], in directory: Inode, _ space: Space,
        _ change: Change
    ) throws(FileError) -> Bool {
        guard !probe.equals.isEmpty, !directory.isDay, !inode.row.flags.isGuess else {
            return false
        }
        if inode.isPhoto {
            if try tree.photos.photo(inode).isPinned || inode.row.nlink < 2 { return false }
        } else if try tree.moments.moment(of: inode) != nil {
            return false
        }
        var bare = probe
        bare.sidecar = nil
        let own = try tree.groups.datedByStill(PhotoRow(inode.row, bare, named: name, now: change.now))
        for equal in probe.equals {
            guard let photo = try? tree.inode(equal.ino), photo.row.revision == equal.revision,
                try canBeCopy(inode, dated: own, bare, of: photo, now: change.now),
                photo.state?.share() ?? true
            else { continue }
            try makeCopy(inode, of: photo, space, change)
            let isPhoto = try takePart(inode, named: name, of: photo, space, change)
            if probe.sidecar != nil {
                try tree.sidecars.note((isPhoto ? inode : photo).ino, in: directory, by: change.thread)
            }
            return true
        }
        return false
    }

    /// Whether the photo may have copies now: it is a photo with a name in moments, and its bytes are saved.
    package func canHaveCopies(_ inode: Inode) throws(FileError) -> Bool {
        guard inode.isPhoto, inode.row.nlink > 0, inode.state?.hasUnsaved != true else { return false }
        return try tree.moments.moment(of: inode) != nil
    }

    /// Whether the file may become a copy of the photo now; see `mayBeCopy`.
    ///
    /// - Parameter probe: the metadata in the bytes, which both have.
    private func canBeCopy(
        _ inode: Inode, dated own: PhotoRow, _ probe: MediaProbe, of photo: Inode, now: Timestamp
    ) throws(FileError) -> Bool {
        guard photo.ino != inode.ino, photo.row.size == inode.row.size, try canHaveCopies(photo) else {
            return false
        }
        var row = try tree.photos.photo(photo)
        if row.isDatedBySidecar, !row.isPinned {
            let name = try tree.effects.datingName(of: photo)
            row = try tree.groups.datedByStill(PhotoRow(photo.row, probe, named: name, now: now))
        }
        return mayBeCopy(own, of: row)
    }

    /// Makes a file a copy of a photo, with the same content.
    func makeCopy(_ inode: Inode, of photo: Inode, _ space: Space, _ change: Change) throws(FileError) {
        if inode.isPhoto {
            try tree.moments.removeMoment(inode, now: change.now)
            try tree.photos.deletePhoto(inode, space, change)
            try tree.tables.copies.move(of: inode.ino, to: photo.ino)
        }
        // A backup of the file that the photo was copied from has its content already.
        if inode.row.content != photo.row.content { try shareContent(of: photo, with: inode, space) }
        inode.row.flags.insert(.copy)
        tree.touch(inode)
        try tree.tables.copies.store(inode.ino, of: photo.ino)
        tree.kernelNames.noteChange(of: inode.ino)
    }

    /// Makes a copy the photo if nothing but a time of modification dates that, and the copy's is of an earlier day: so
    /// the order in which equal files come does not matter. A photo that has no name but that in its day stays where
    /// the user has put it. Returns whether the copy is the photo now.
    @discardableResult
    private func takePart(
        _ copy: Inode, named name: [UInt8], of photo: Inode, _ space: Space, _ change: Change
    ) throws(FileError) -> Bool {
        let row = try tree.photos.photo(photo)
        guard copy.isCopy, row.followsTime, row.group == nil, photo.row.nlink > 1, !hasDate(fileName: name),
            let moment = try tree.moments.moment(of: photo)
        else { return false }
        var dated = row.dated(byTime: copy.row.modified)
        guard dated.precedes(row) else { return false }
        let isNameGiven = photo.row.flags.contains(.namedInMoments)
        try tree.companions.queueCompanionMoves(
            of: photo, moment.row.name, in: moment.directory, captured: row.captured, to: dated.day,
            withPhotos: false, change)
        try exchangeRoles(copy, photo, space, change)
        (dated.ino, dated.former) = (copy.ino, nil)
        try tree.photos.storePhoto(copy, dated, change)
        try tree.moments.addMoment(
            copy, day: dated.day, name: isNameGiven ? moment.row.name : name, now: change.now)
        tree.moments.setNameGivenInMoments(copy, isGiven: isNameGiven)
        tree.moments.setNameGivenInMoments(photo, isGiven: false)
        tree.kernelNames.noteChange(of: photo.ino)
        return true
    }

    /// As above, for a copy whose time of modification was set.
    func takePart(_ copy: Inode, _ space: Space, _ change: Change) throws(FileError) {
        guard copy.isCopy, let photo = try photo(representedBy: copy), try canHaveCopies(photo),
            let name = try nameOutsideTrash(of: copy)
        else { return }
        try takePart(copy, named: name, of: photo, space, change)
    }

    private func shareContent(of photo: Inode, with inode: Inode, _ space: Space) throws(FileError) {
        let content = photo.row.content
        let runs = try tree.tables.extents.runs(of: content)
        try releaseContent(of: inode, space)
        inode.state?.adopt(content, runs)
        inode.row.content = content
        inode.row.allocated = photo.row.allocated
        inode.row.flags.insert(.shared)
        photo.row.flags.insert(.shared)
        tree.touch(photo)
        try tree.tables.copies.store(users: try tree.tables.copies.users(of: content) + 1, of: content)
    }

    /// Replaces the content of an inode. A copy becomes an ordinary file; the copies of a photo lose it, and the first
    /// of them becomes the photo.
    package func replaceContent(of inode: Inode, by content: UInt64, _ space: Space, _ change: Change)
        throws(FileError)
    {
        if inode.isCopy {
            // The sidecars beside the copy describe the copy alone from now on.
            if let photo = try photo(representedBy: inode) {
                try tree.sidecars.noteDescribed(photo, beside: inode, by: change.thread)
            }
            try forgetCopy(inode)
        }
        if inode.isPhoto { try promoteCopy(of: inode, change) }
        try releaseContent(of: inode, space)
        inode.row.content = content
        inode.row.flags.remove(.shared)
        tree.touch(inode)
    }

    /// Makes a copy an ordinary file.
    package func forgetCopy(_ inode: Inode) throws(FileError) {
        try tree.tables.copies.delete(inode.ino)
        inode.row.flags.remove(.copy)
        tree.touch(inode)
    }

    /// Call before a photo loses its bytes or becomes a plain file: makes its first copy the photo, under the same day,
    /// with the other copies as its copies. If all of them were put into the trash, they stay there, as plain files.
    func promoteCopy(of photo: Inode, _ change: Change) throws(FileError) {
        // In the trash, nameless copies must get their names back before they can be photos of their own.
        if photo.isTrashed, try !copies(of: photo).isEmpty {
            if photo.row.nlink > 0 {
                try tree.trash.restore(photo, change)
            } else {
                try tree.trash.leaveTrash(photo, change)
            }
        }
        let named = try copies(of: photo).filter { $0.row.nlink > 0 }
        var found: (copy: Inode, name: [UInt8])?
        for copy in named where found == nil {
            if let name = try nameOutsideTrash(of: copy) { found = (copy, name) }
        }
        guard let (first, name) = found else {
            for copy in named { try forgetCopy(copy) }
            return
        }
        var row = try tree.photos.photo(photo)
        row.ino = first.ino
        row.former = nil
        try handOver(photo, to: first)
        try tree.photos.storePhoto(first, row, change)
        try tree.moments.addMoment(first, day: row.day, name: name, now: change.now)
        // The sidecars of the photo stay with that.
        if row.isDatedBySidecar {
            try tree.sidecars.note(first.ino, in: tree.inode(WellKnownInode.moments), by: change.thread)
        }
    }

    private func nameOutsideTrash(of copy: Inode) throws(FileError) -> [UInt8]? {
        for row in try tree.names(of: copy) where try !tree.isInTrash(tree.inode(row.parent)) {
            return row.name
        }
        return nil
    }

    /// Makes a copy the photo, and the photo its copy: for a copy that is moved into a day. The photo's name in moments
    /// is removed.
    func exchangeRoles(_ copy: Inode, _ photo: Inode, _ space: Space, _ change: Change) throws(FileError) {
        var row = try tree.photos.photo(photo)
        row.ino = copy.ino
        row.former = nil
        try tree.moments.removeMoment(photo, now: change.now)
        try handOver(photo, to: copy)
        try tree.versions.moveVersions(of: photo.ino, to: copy.ino, change)
        try tree.photos.deletePhoto(photo, space, change)
        try tree.photos.storePhoto(copy, row, change)
        if photo.row.nlink > 0 {
            try tree.tables.copies.store(photo.ino, of: copy.ino)
            photo.row.flags.insert(.copy)
        }
    }

    func handOver(_ photo: Inode, to copy: Inode) throws(FileError) {
        try forgetCopy(copy)
        try tree.tables.copies.move(of: photo.ino, to: copy.ino)
        try tree.positions.copy(from: photo.ino, to: copy)
    }

    /// Makes the copies of a photo that is saved with the same bytes those of the new file, which shares its content.
    /// Returns false if there are none.
    func handOver(_ photo: Inode, toEqual new: Inode, _ space: Space) throws(FileError) -> Bool {
        guard photo.row.size == new.row.size, try !copies(of: photo).isEmpty, photo.state?.share() ?? true
        else {
            return false
        }
        if photo.row.content != new.row.content { try shareContent(of: photo, with: new, space) }
        try tree.tables.copies.move(of: photo.ino, to: new.ino)
        return true
    }

    /// Releases an inode's content. Frees its extents, unless other inodes have the content.
    private func releaseContent(of inode: Inode, _ space: Space) throws(FileError) {
        let content = inode.row.content
        if try leaveContent(of: inode) { return }
        try tree.contents.free(content, space)
        tree.marks.retire(content: content)
    }

    /// Removes one user of a shared content; false if the inode is the only one.
    package func leaveContent(of inode: Inode) throws(FileError) -> Bool {
        guard inode.row.flags.contains(.shared) else { return false }
        let users = try tree.tables.copies.users(of: inode.row.content)
        guard users > 1 else { return false }
        try tree.tables.copies.store(users: users - 1, of: inode.row.content)
        return true
    }
}
