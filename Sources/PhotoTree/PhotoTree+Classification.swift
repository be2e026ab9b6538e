package import CatalogueRows
package import FileRequests
package import FileTree
import KernelNames
package import LinuxIO
package import PhotoRules
import VaultCatalogue
package import VaultStore

/// Effects of a file's classification.
extension PhotoTree {
    /// Applies the classification of a regular file: moves it into moments, out of them, or to another day.
    package func apply(_ classification: Classification, to inode: Inode, _ space: Space, now: Timestamp)
        throws(FileError)
    {
        guard inode.isRegular else { return }
        var probe: MediaProbe?
        var place: (directory: Inode, row: DentryRow)?
        if case .media(let seen) = classification {
            probe = seen
            place = try classifiableName(of: inode)
        }
        let facts = FilingFacts(
            isPhoto: inode.isPhoto, isCopy: inode.isCopy, isNamed: inode.row.nlink > 0,
            hasPhotoName: place != nil)
        switch filing(of: facts, as: classification) {
        case .nothing: return
        case .demote: try demote(inode, space, now: now)
        case .promote:
            guard let probe, let place else { return }
            try promote(inode, probe, place.row, in: place.directory, space, now: now)
        case .redate:
            guard let probe else { return }
            if let place,
                try becomeCopy(inode, probe, named: place.row.name, in: place.directory, space, now: now)
            {
                return
            }
            try redate(inode, probe, now: now)
        }
    }

    /// Makes a file a photo.
    private func promote(
        _ inode: Inode, _ probe: MediaProbe, _ place: DentryRow, in directory: Inode, _ space: Space,
        now: Timestamp
    ) throws(FileError) {
        var row = PhotoRow(inode.row, probe, named: place.name, now: now)
        if let backup = try backup(of: place.name, in: directory, besides: inode),
            let staying = try staying(of: backup, savedAs: place.name, in: directory)
        {
            try takeOver(
                from: backup, to: inode, row, besides: staying, in: directory, named: place.name,
                seen: probe, space, now: now)
            return
        }
        if try becomeCopy(inode, probe, named: place.name, in: directory, space, now: now) { return }
        // A plain file may already have names in days; these count even if they are names of working files.
        if let own = try moment(of: inode) {
            try keepOnly(own.row, amongDaysOf: inode, now: now)
            if row.day != own.directory.row.day { row.pin(to: own.directory.row.day) }
            nameInMoments(inode, isGiven: true)
        } else {
            try addMoment(inode, day: row.day, name: place.name, now: now)
        }
        try storePhoto(inode, row)
    }

    /// Removes all names in days but one: moments holds every photo once.
    func keepOnly(_ own: DentryRow, amongDaysOf inode: Inode, now: Timestamp) throws(FileError) {
        for (directory, other) in try moments(of: inode) where other.id != own.id {
            try withdraw(other, in: directory, inode, now: now)
            try unlinked(inode, now: now)
            kernelNames.noteChange(of: inode.ino)
        }
    }

    /// Dates a photo by its new bytes, unless the user chose its day.
    private func redate(
        _ inode: Inode, _ probe: MediaProbe, now: Timestamp
    ) throws(FileError) {
        let old = try photo(inode)
        let names = try names(of: inode)
        var name = names.first?.name ?? []
        for row in names {
            if try !self.inode(row.parent).isDay {
                name = row.name
                break
            }
        }
        var row = PhotoRow(inode.row, probe, named: name, now: now)
        row.former = old.former
        row.group = row.group ?? old.group
        if old.isPinned {
            row.pin(to: old.day)
            row.captured = old.captured
        } else if keepsDay(old, savedAs: row) {
            row.keepDay(of: old)
        } else if row.day != old.day {
            if let own = try moment(of: inode) {
                try noteCompanions(
                    of: inode, own.row.name, in: own.directory, captured: old.captured, to: row.day)
            }
            try moveMoment(inode, to: row.day, now: now)
        }
        try storePhoto(inode, row)
    }

    /// Notes that the time of modification of a file was set. Returns whether that dates it: it is a photo without any
    /// other date. A day that was kept when the photo was saved is given up.
    package func followTime(_ inode: Inode) throws(FileError) -> Bool {
        guard inode.isPhoto else { return false }
        var row = try photo(inode)
        guard row.isUndated, !row.isPinned else { return false }
        let kept = row.source
        row.forgetKeptDay()
        if row.source != kept { try storePhoto(inode, row) }
        return true
    }

    /// Turns a former photo into a plain file, which leaves moments unless its only name is there.
    func demote(_ inode: Inode, _ space: Space, now: Timestamp) throws(FileError) {
        if inode.row.nlink > 1 { try removeMoment(inode, now: now) }
        try deletePhoto(inode, space)
    }

    /// The ids of the names that stay with a photo's old bytes when a new file is saved as `name` in `place`; see
    /// `namesKept`.
    func staying(of old: Inode, savedAs name: [UInt8], in place: Inode) throws(FileError) -> Set<UInt64>? {
        namesKept(by: try placedNames(of: old), whenSavedAs: name, in: place.ino, isDay: place.isDay)
    }

    /// Retargets a photo's moment and memberships to `new`, saved as `name` in `place`, which is the photo from now on.
    /// The names `staying` keep the old file: a plain file if all of them are backups, else a photo of its own. `row`
    /// describes the new file; `seen` is its classification, if one was needed. If the new file had a moment of its
    /// own, that is removed.
    func takeOver(
        from old: Inode, to new: Inode, _ row: PhotoRow, besides staying: Set<UInt64>, in place: Inode,
        named name: [UInt8], seen: MediaProbe? = nil, _ space: Space, now: Timestamp
    ) throws(FileError) {
        if new.isPhoto, let own = try moment(of: new), own.directory.ino != place.ino || own.row.name != name
        {
            try withdraw(own.row, in: own.directory, new, now: now)
            new.row.countLinks(by: -1)
        }
        let previous = try photo(old)
        let isGiven = old.row.flags.contains(.namedInMoments)
        let isSame =
            seen?.equals.contains { $0.ino == old.ino && $0.version == old.row.version } ?? false
        try handOverVersions(of: old, to: new, isSame: isSame, now: now)
        var link: [UInt8]?
        for entry in try names(of: old) {
            if staying.contains(entry.id) {
                let isBackup = entry.parent == place.ino && backupOriginal(entry.name) == name
                if !isBackup, try !inode(entry.parent).isDay { link = entry.name }
                continue
            }
            let directory = try inode(entry.parent)
            try retarget(directory, entry.id, from: old, to: new, now: now)
            linked(new, now: now)
            try unlinked(old, now: now)
            // The kernel itself changes the dentry of the name that is being saved.
            guard entry.parent != place.ino || entry.name != name else { continue }
            noteLost(entry, in: directory)
            new.dentries.hasNewNames = true
        }
        // Until the kernel is notified that the names belong to another file, it opens this inode by them.
        old.dentries.mayBeStale = true
        kernelNames.noteChange(of: new.ino)
        kernelNames.noteChange(of: old.ino)
        if let link {
            try addMoment(old, day: previous.day, name: link, now: now)
            nameInMoments(old, isGiven: false)
        } else {
            if try !handOver(old, toEqual: new, seen, space) { try promoteCopy(of: old, now: now) }
            try deletePhoto(old, space)
        }
        var row = row
        row.arrived = previous.arrived
        // A program that drops maker notes does not part a Live Photo.
        row.group = row.group ?? previous.group
        if previous.isPinned {
            row.pin(to: previous.day)
            row.captured = previous.captured
        } else if keepsDay(previous, savedAs: row) {
            row.keepDay(of: previous)
        }
        try storePhoto(new, row)
        nameInMoments(new, isGiven: isGiven)
        if let own = try moment(of: new) {
            try noteCompanions(
                of: new, own.row.name, in: own.directory, captured: previous.captured, to: row.day)
        }
        try moveMoment(new, to: row.day, now: now)
    }

    /// The photo in this directory that an editor renamed from `name` to a backup name, so that a new file could take
    /// `name`: its moment still has the old name.
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

    /// Removes a photo from the space: from moments and from every album, with its copies.
    package func removePhoto(_ photo: Inode, now: Timestamp) throws(FileError) {
        for inode in [photo] + (try copies(of: photo)) {
            inode.dentries.mayBeStale = true
            for name in try names(of: inode) {
                let directory = try self.inode(name.parent)
                try removeEntry(directory, name.id, inode, now: now)
                try unlinked(inode, now: now)
                // The kernel itself removes the dentry of the name in a day.
                if !directory.isDay { noteLost(name, in: directory) }
            }
            kernelNames.noteChange(of: inode.ino)
        }
    }

    /// Tells the kernel to forget a file's name that is gone or names another file now, and the attributes of its
    /// directory. The kernel looks names in days up each time, but keeps their dentries too: a dentry keeps the inode,
    /// and the inode its bytes.
    func noteLost(_ row: DentryRow, in directory: Inode) {
        kernelNames.noteLoss(of: row.name, in: row.parent)
        if !directory.isDay { kernelNames.noteChange(of: row.parent) }
    }

    /// Removes a file's name without a request of the kernel. The caller updates the link count.
    package func withdraw(_ row: DentryRow, in directory: Inode, _ inode: Inode, now: Timestamp)
        throws(FileError)
    {
        try removeEntry(directory, row.id, inode, now: now)
        noteLost(row, in: directory)
    }

    /// Whether a program wrote a file in order to replace another; see `PhotoRules.isNewFile`.
    func isNewFile(_ inode: Inode, named id: UInt64, in directory: Inode) throws(FileError) -> Bool {
        guard inode.ino >= firstOfSession, inode.row.nlink <= 2 else { return false }
        var isPinned = false
        if inode.isPhoto, !directory.isDay { isPinned = try photo(inode).isPinned }
        return PhotoRules.isNewFile(
            try placedNames(of: inode), own: id, isInDay: directory.isDay, isOfSession: true,
            isPinned: isPinned)
    }
}
