import LinuxIO
import PhotoImaging
import VaultCatalogue
import VaultStore

/// What becomes of a file once its bytes were looked at.
extension Tree {
    /// Files a regular file by what a look at its bytes found: into moments, out of them, or under another
    /// day.
    func file(_ inode: Inode, _ verdict: Verdict, _ space: Space, now: Timestamp) throws(FileError) {
        guard inode.isRegular, inode.row.nlink > 0 else { return }
        switch verdict {
        case .unknown: return
        case .plain:
            if inode.isPhoto { try unfile(inode, space, now: now) }
        case .media(let facts, let sidecar):
            if inode.isPhoto {
                try refile(inode, facts, sidecar, now: now)
            } else if let place = try fileableName(of: inode) {
                try fileAnew(inode, facts, sidecar, place.row, in: place.directory, space, now: now)
            }
        }
    }

    /// Makes a photo of a file.
    private func fileAnew(
        _ inode: Inode, _ facts: MediaFacts, _ sidecar: Sidecar?, _ place: DentryRow, in directory: Inode,
        _ space: Space,
        now: Timestamp
    ) throws(FileError) {
        var row = PhotoRow(inode, facts, sidecar, named: place.name, now: now)
        if let backup = try backup(of: place.name, in: directory, besides: inode) {
            try takeOver(
                from: backup, to: inode, row, in: directory, named: place.name, space, now: now)
            return
        }
        if directory.isDay {
            if row.day != directory.row.day { row.pin(to: directory.row.day) }
        } else {
            try addMoment(inode, day: row.day, name: place.name, now: now)
        }
        try storePhoto(inode, row)
    }

    /// Dates a photo by its new bytes, unless the user chose its day.
    private func refile(
        _ inode: Inode, _ facts: MediaFacts, _ sidecar: Sidecar?, now: Timestamp
    ) throws(FileError) {
        let old = try photo(inode)
        let names = try sql(tables.dentries(of: inode.ino))
        var name = names.first?.name ?? []
        for row in names {
            if try !self.inode(row.parent).isDay {
                name = row.name
                break
            }
        }
        var row = PhotoRow(inode, facts, sidecar, named: name, now: now)
        row.former = old.former
        if old.isPinned {
            row.pin(to: old.day)
            row.captured = old.captured
        } else if row.day != old.day {
            try moveMoment(inode, to: row.day, now: now)
        }
        try storePhoto(inode, row)
    }

    /// A photo that is none any more leaves moments, unless it lies nowhere else.
    func unfile(_ inode: Inode, _ space: Space, now: Timestamp) throws(FileError) {
        if inode.row.nlink > 1 { try removeMoment(inode, now: now) }
        try deletePhoto(inode, space)
    }

    /// Lets a photo's moment and memberships mean another file, which is the photo from now on: `new`, saved
    /// as `name` in `place`. What is a backup of that name there stays with the old file, which becomes a
    /// plain one. `row` is what is known of the new file. What it had as a moment of its own goes, unless it
    /// lies in a day itself: then it is dated that day.
    func takeOver(
        from old: Inode, to new: Inode, _ row: PhotoRow, in place: Inode, named name: [UInt8], _ space: Space,
        now: Timestamp
    ) throws(FileError) {
        if new.isPhoto, !place.isDay, let own = try moment(of: new) {
            try removeEntry(own.directory, own.row.id, new, now: now)
            new.row.nlink -= 1
        }
        let previous = try photo(old)
        for entry in try sql(tables.dentries(of: old.ino)) {
            if entry.parent == place.ino, backupOriginal(entry.name) == name { continue }
            let directory = try inode(entry.parent)
            try retarget(directory, entry.id, to: new, now: now)
            linked(new, now: now)
            unlinked(old, now: now)
            // The name that is being saved is the kernel's own doing.
            if entry.parent != place.ino || entry.name != name { noteEntry(entry, in: directory) }
        }
        notices.append(.attributes(new.ino))
        notices.append(.attributes(old.ino))
        try deletePhoto(old, space)
        var row = row
        if previous.isPinned {
            row.pin(to: previous.day)
            row.captured = previous.captured
        } else if place.isDay, row.day != place.row.day {
            row.pin(to: place.row.day)
        }
        try storePhoto(new, row)
        try moveMoment(new, to: row.day, now: now)
    }

    /// The photo in this directory that an editor renamed from `name` to a backup's name, so that a new file
    /// could take `name`: its moment is still called so.
    func backup(
        of name: [UInt8], in directory: Inode, besides inode: Inode
    ) throws(FileError) -> Inode? {
        for candidate in backupNames(name) {
            guard let found = try find(directory, candidate), found.inode.isPhoto,
                found.inode.ino != inode.ino
            else { continue }
            if directory.isDay {
                if try photo(found.inode).former == name { return found.inode }
            } else if let moment = try moment(of: found.inode), isNumberedForm(moment.row.name, of: name) {
                return found.inode
            }
        }
        return nil
    }

    /// Takes a photo out of the space: out of moments and of every album.
    func removePhoto(_ inode: Inode, now: Timestamp) throws(FileError) {
        inode.isTakenAway = true
        for name in try sql(tables.dentries(of: inode.ino)) {
            let directory = try self.inode(name.parent)
            try removeEntry(directory, name.id, inode, now: now)
            unlinked(inode, now: now)
            noteEntry(name, in: directory)
        }
        notices.append(.attributes(inode.ino))
    }

    /// What the kernel may have kept of a name, and of the directory it is in. Of days it keeps nothing.
    func noteEntry(_ row: DentryRow, in directory: Inode) {
        guard !directory.isDay else { return }
        notices.append(.entry(parent: row.parent, name: row.name))
        notices.append(.attributes(row.parent))
    }

    /// Whether a file was made in this session and has no names but this one and its own moment: what a
    /// program writes to put it in another's place.
    func isNewFile(_ inode: Inode, named id: UInt64, in directory: Inode) throws(FileError) -> Bool {
        guard inode.ino >= firstOfSession, inode.row.nlink <= 2 else { return false }
        for row in try sql(tables.dentries(of: inode.ino)) where row.parent != directory.ino || row.id != id {
            if directory.isDay { return false }
            guard try self.inode(row.parent).isDay else { return false }
        }
        if inode.isPhoto && !directory.isDay { return try !photo(inode).isPinned }
        return true
    }
}
