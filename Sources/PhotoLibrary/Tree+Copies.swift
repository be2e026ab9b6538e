import LinuxIO
import VaultCatalogue
import VaultStore

/// Copies of photos: files of their own in albums that have a photo's very bytes and stand for it. They have no place
/// in moments, share its content, and go with it.
extension Tree {
    /// The photo that a file is or stands for; nil where it is a plain file.
    func photoStanding(for inode: Inode) throws(FileError) -> Inode? {
        if inode.isPhoto { return inode }
        guard inode.isCopy, let photo = try sql(tables.photo(ofCopy: inode.ino)) else { return nil }
        return try self.inode(photo)
    }

    func copies(of photo: Inode) throws(FileError) -> [Inode] {
        guard photo.row.flags.contains(.shared) else { return [] }
        var copies: [Inode] = []
        for ino in try sql(tables.copies(of: photo.ino)) { copies.append(try inode(ino)) }
        return copies
    }

    /// Makes a saved file in an album a copy of the photo that was found to have the same bytes, if that still holds. A
    /// photo whose own place in moments the user chose stays one, and so does a file that lies in a day too, or whose
    /// name or sidecar tells of another day. False where nothing was done.
    func becomeCopy(
        _ inode: Inode, _ probe: MediaProbe, named name: [UInt8], in directory: Inode, _ space: Space,
        now: Timestamp
    ) throws(FileError) -> Bool {
        guard !probe.equals.isEmpty, !directory.isDay else { return false }
        if inode.isPhoto {
            if try photo(inode).isPinned || inode.row.nlink < 2 { return false }
        } else if try moment(of: inode) != nil {
            return false
        }
        let own = PhotoRow(inode, probe, named: name, now: now)
        for equal in probe.equals {
            guard let photo = try? self.inode(equal.ino), photo.row.version == equal.version,
                try canBeCopy(inode, dated: own, of: photo), photo.state?.share() ?? true
            else { continue }
            try makeCopy(inode, of: photo, space, now: now)
            return true
        }
        return false
    }

    /// Whether the photo is still there to be stood for, and nothing but its mtime would give the file another day.
    private func canBeCopy(_ inode: Inode, dated own: PhotoRow, of photo: Inode) throws(FileError) -> Bool {
        guard photo.ino != inode.ino, photo.row.size == inode.row.size, try canStandFor(photo) else {
            return false
        }
        let row = try self.photo(photo)
        return own.day == row.day || own.isUndated || row.isPinned
    }

    /// Lets a file share the content of a photo and stand for it.
    func makeCopy(_ inode: Inode, of photo: Inode, _ space: Space, now: Timestamp) throws(FileError) {
        if inode.isPhoto {
            try removeMoment(inode, now: now)
            try deletePhoto(inode, space)
            try sql(tables.moveCopies(of: inode.ino, to: photo.ino))
        }
        // A backup of what the photo was copied from has its content already.
        if inode.row.content != photo.row.content { try shareContent(of: photo, with: inode, space) }
        inode.row.flags.insert(.copy)
        touch(inode)
        try sql(tables.storeCopy(inode.ino, of: photo.ino))
        notices.append(.attributes(inode.ino))
    }

    private func shareContent(of photo: Inode, with inode: Inode, _ space: Space) throws(FileError) {
        let content = photo.row.content
        let runs = try sql(tables.extents(of: content))
        try releaseContent(of: inode, space)
        inode.state?.adopt(content, runs)
        inode.row.content = content
        inode.row.allocated = photo.row.allocated
        inode.row.flags.insert(.shared)
        photo.row.flags.insert(.shared)
        touch(photo)
        try sql(tables.store(users: try tables.users(of: content) + 1, of: content))
    }

    /// The file's content is another from now on: what stood for the same photo no longer does.
    func replaceContent(of inode: Inode, by content: UInt64, _ space: Space, now: Timestamp) throws(FileError)
    {
        if inode.isCopy { try forgetCopy(inode) }
        if inode.isPhoto { try promoteCopy(of: inode, now: now) }
        try releaseContent(of: inode, space)
        inode.row.content = content
        inode.row.flags.remove(.shared)
        touch(inode)
    }

    /// A copy is an ordinary file again.
    func forgetCopy(_ inode: Inode) throws(FileError) {
        try sql(tables.deleteCopy(inode.ino))
        inode.row.flags.remove(.copy)
        touch(inode)
    }

    /// A photo is about to lose its bytes, or to be none any more: its first copy becomes the photo, under the same
    /// day, and the others stand for that.
    func promoteCopy(of photo: Inode, now: Timestamp) throws(FileError) {
        // In the trash, the copies without a name must have theirs before they can be photos of their own.
        if photo.isTrashed, try !copies(of: photo).isEmpty {
            if photo.row.nlink > 0 { try restore(photo, now: now) } else { try leaveTrash(photo) }
        }
        guard let first = try copies(of: photo).first(where: { $0.row.nlink > 0 }) else { return }
        var row = try self.photo(photo)
        row.ino = first.ino
        row.former = nil
        let name = try names(of: first).first?.name
        try handOver(photo, to: first)
        try storePhoto(first, row)
        if let name { try addMoment(first, day: row.day, name: name, now: now) }
    }

    /// A copy takes the photo's part, and the photo that of a copy: for a copy that is moved into a day. The photo's
    /// place in moments goes.
    func exchangeRoles(_ copy: Inode, _ photo: Inode, _ space: Space, now: Timestamp) throws(FileError) {
        var row = try self.photo(photo)
        row.ino = copy.ino
        row.former = nil
        try removeMoment(photo, now: now)
        try handOver(photo, to: copy)
        try deletePhoto(photo, space)
        try storePhoto(copy, row)
        if photo.row.nlink > 0 {
            try sql(tables.storeCopy(photo.ino, of: copy.ino))
            photo.row.flags.insert(.copy)
        }
    }

    func handOver(_ photo: Inode, to copy: Inode) throws(FileError) {
        try forgetCopy(copy)
        try sql(tables.moveCopies(of: photo.ino, to: copy.ino))
    }

    /// Where a photo is saved with the bytes that it had, its copies stand for the new file, which shares its content.
    /// False where the bytes are others, or nothing stands for them.
    func handOver(
        _ photo: Inode, toEqual new: Inode, _ seen: MediaProbe?, _ space: Space
    ) throws(FileError) -> Bool {
        let equals = seen?.equals ?? []
        guard equals.contains(where: { $0.ino == photo.ino && $0.version == photo.row.version }),
            photo.row.size == new.row.size, try !copies(of: photo).isEmpty, photo.state?.share() ?? true
        else { return false }
        try shareContent(of: photo, with: new, space)
        try sql(tables.moveCopies(of: photo.ino, to: new.ino))
        return true
    }

    /// The inode's content is no longer used by it: its extents go, unless others have them.
    func releaseContent(of inode: Inode, _ space: Space) throws(FileError) {
        let content = inode.row.content
        if try leaveContent(of: inode) { return }
        try freeContent(content, space)
        newlyRetired.add(content: content)
    }

    /// Counts one user of a shared content less; false where the inode is the only one.
    func leaveContent(of inode: Inode) throws(FileError) -> Bool {
        guard inode.row.flags.contains(.shared) else { return false }
        let users = try sql(tables.users(of: inode.row.content))
        guard users > 1 else { return false }
        try sql(tables.store(users: users - 1, of: inode.row.content))
        return true
    }
}
