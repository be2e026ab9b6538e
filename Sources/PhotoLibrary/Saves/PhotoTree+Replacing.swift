import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

/// Files that take a photo's place when a program saves it by rename; for the rules see `SavingRules.swift`.
extension PhotoTree {
    /// The ids of the names that stay with a photo's old bytes when a new file is saved as `name` in `place`; see
    /// `namesStaying`.
    func staying(of old: Inode, savedAs name: [UInt8], in place: Inode) throws(FileError) -> Set<UInt64> {
        namesStaying(
            withOldBytesOf: try placedNames(of: old), whenSavedAs: name, in: place.ino, isDay: place.isDay)
    }

    /// Makes `new`, which was saved as `name` in `place`, the photo: its moment and memberships are
    /// retargeted from `old`. The names in `staying` keep the old file, which becomes a plain file if all of
    /// them are backups, else a photo of its own. `row` describes the new file; `seen` is its classification,
    /// if one was needed; `isSame` says without it that the bytes are the same. If `new` had a moment of its own, that
    /// is removed.
    func replacePhoto(
        from old: Inode, to new: Inode, _ row: PhotoRow, except staying: Set<UInt64>, in place: Inode,
        named name: [UInt8], seen: MediaProbe? = nil, isSame: Bool = false, _ space: Space, now: Timestamp
    ) throws(FileError) {
        if new.isPhoto, let own = try moment(of: new), own.directory.ino != place.ino || own.row.name != name
        {
            try withdraw(own.row, in: own.directory, new, now: now)
            new.row.countLinks(by: -1)
        }
        let previous = try photo(old)
        let isGiven = old.row.flags.contains(.namedInMoments)
        let isSame =
            isSame || seen?.names(old.row) ?? false
        try handOverVersions(of: old, to: new, isSame: isSame, now: now)
        var link: [UInt8]?
        var backup: DentryRow?
        let hasSaved = try names(of: old).contains { $0.isOf(place.ino, name) }
        for entry in try names(of: old) {
            if staying.contains(entry.id) {
                let isBackup = entry.parent == place.ino && isBackupName(entry.name, of: name)
                // A backup that was made by linking: the saved name is another.
                if isBackup, !hasSaved { backup = entry }
                if !isBackup, try !inode(entry.parent).isDay { link = link ?? entry.name }
                continue
            }
            let directory = try inode(entry.parent)
            try retarget(directory, entry.id, from: old, to: new, now: now)
            addLink(to: new, now: now)
            try removeLink(to: old, now: now)
            // The kernel itself changes the dentry of the name that is being saved.
            guard entry.parent != place.ino || entry.name != name else { continue }
            noteLost(entry, in: directory)
            new.dentries.hasNewNames = true
        }
        if let backup { try mark(place, name, of: new, like: backup, now: now) }
        // Until the kernel is notified that the names belong to another file, it opens this inode by them.
        old.dentries.mayBeStale = true
        kernelNames.noteChange(of: new.ino)
        kernelNames.noteChange(of: old.ino)
        if let link {
            try addMoment(old, day: previous.day, name: link, now: now)
            setNameGivenInMoments(old, isGiven: false)
        } else {
            let areHandedOver = isSame ? try handOver(old, toEqual: new, space) : false
            if !areHandedOver { try promoteCopy(of: old, now: now) }
            try deletePhoto(old, space)
        }
        if old.ino == restoredPhoto && old.row.nlink == 0 { inodesToDestroy.append(old.ino) }
        restoredPhoto = 0
        var row = row
        row.inherit(from: previous, now: now.seconds)
        row = try datedByStill(row)
        try storePhoto(new, row)
        setNameGivenInMoments(new, isGiven: isGiven)
        if let own = try moment(of: new) {
            try queueCompanionMoves(
                of: new, own.row.name, in: own.directory, captured: previous.captured, to: row.day)
        }
        try moveMoment(new, to: row.day, now: now)
    }

    /// Makes the name of a new file the membership, or hard link, that its backup was.
    private func mark(
        _ directory: Inode, _ name: [UInt8], of inode: Inode, like backup: DentryRow, now: Timestamp
    ) throws(FileError) {
        guard !directory.isDay, let own = try names(of: inode).first(where: { $0.isOf(directory.ino, name) }),
            own.member != backup.member
        else { return }
        try removeEntry(directory, own.id, inode, now: now)
        try addEntry(
            directory, name, inode, isMember: backup.isMember, isLink: backup.isLink, now: now)
    }

    /// The photo in this directory that an editor renamed from `name` to a backup name, so that a new file could take
    /// `name`.
    func backup(
        of name: [UInt8], in directory: Inode, except inode: Inode
    ) throws(FileError) -> Inode? {
        // Mostly no other name begins with this one, which one query tells.
        let first = try sql(tables.dentries(in: directory.ino, beginning: name, limit: 2))
        if first.allSatisfy({ $0.name == name }) { return nil }
        var candidates: [UInt64] = []
        for beginning in backupBeginnings(name) {
            let rows = try sql(tables.dentries(in: directory.ino, beginning: beginning, limit: .max))
            candidates += rows.filter { backupOriginal($0.name) == name }.map(\.ino)
        }
        // Vim takes another name only where NAME~ exists.
        if try sql(tables.dentry(directory.ino, name + [UInt8(ascii: "~")])) != nil {
            let rows = try sql(tables.dentries(in: directory.ino, beginning: name.dropLast(), limit: .max))
            candidates += rows.filter { isVimBackup($0.name, of: name) }.map(\.ino)
        }
        for ino in candidates where ino != inode.ino {
            let found = try self.inode(ino)
            // Older backups are plain files.
            if found.isPhoto, try photo(found).former == name { return found }
        }
        return nil
    }
}
