import CatalogueRows
import FileRequests
import FileTree
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

/// Files that take a photo's place when a program saves it by rename; for the rules see `SavingRules.swift`.
extension PhotoTree {
    /// The ids of the names that stay with a photo's old bytes when a new file is saved as `name` in `place`; see
    /// `namesStaying`.
    func staying(of old: Inode, savedAs name: [UInt8], in place: Inode) throws(FileError) -> Set<UInt64>? {
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
            isSame || seen?.equals.contains { $0.ino == old.ino && $0.revision == old.row.revision } ?? false
        try handOverVersions(of: old, to: new, isSame: isSame, now: now)
        var link: [UInt8]?
        var isMembership = false
        for entry in try names(of: old) {
            if staying.contains(entry.id) {
                let isBackup = entry.parent == place.ino && backupOriginal(entry.name) == name
                if isBackup && entry.isMember { isMembership = true }
                if !isBackup, try !inode(entry.parent).isDay { link = entry.name }
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
        if isMembership { try makeMembership(place, name, of: new, now: now) }
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
        var row = row
        row.inherit(from: previous, now: now.seconds)
        try storePhoto(new, row)
        setNameGivenInMoments(new, isGiven: isGiven)
        if let own = try moment(of: new) {
            try queueCompanionMoves(
                of: new, own.row.name, in: own.directory, captured: previous.captured, to: row.day)
        }
        try moveMoment(new, to: row.day, now: now)
    }

    /// Makes the name of a new file the membership that its backup was.
    private func makeMembership(_ directory: Inode, _ name: [UInt8], of inode: Inode, now: Timestamp)
        throws(FileError)
    {
        guard let own = try find(directory, name), own.inode.ino == inode.ino, !own.isMember else { return }
        try removeEntry(directory, own.id, inode, now: now)
        try addEntry(directory, name, inode, isMember: true, now: now)
    }

    /// The photo in this directory that an editor renamed from `name` to a backup name, so that a new file could take
    /// `name`.
    func backup(
        of name: [UInt8], in directory: Inode, except inode: Inode
    ) throws(FileError) -> Inode? {
        for candidate in backupNames(name) {
            if let found = try find(directory, candidate)?.inode, try isBackup(found, of: name, except: inode)
            {
                return found
            }
        }
        // Older ones are plain files.
        var number = 1
        while let found = try find(directory, numberedBackupName(name, number))?.inode {
            if try isBackup(found, of: name, except: inode) { return found }
            number += 1
        }
        return nil
    }

    /// Whether a photo had that name when an editor renamed it to its own.
    private func isBackup(_ photo: Inode, of name: [UInt8], except inode: Inode) throws(FileError) -> Bool {
        guard photo.isPhoto, photo.ino != inode.ino else { return false }
        return try self.photo(photo).former == name
    }
}
