package import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
package import VaultStore

/// A file that is no longer a photo, because its bytes changed: its row and name as a photo.
struct FormerPhoto {
    var row: PhotoRow
    /// Its name in moments.
    var place: RemovedPlace
    var isNameGiven: Bool
}

/// A name of a photo that unlink(2) has just removed. The program may be saving a new file there; see
/// `isSavedByRemoval`.
struct RemovedName {
    /// The photo's inode.
    var photo: UInt64
    /// Whether the name was a membership in an album, or a hard link of another name in albums.
    var isMember: Bool
    var isLink: Bool
    /// All names that the photo and its copies had, if it is not kept in the trash: it is withheld from destruction.
    var lost: [DentryRow]
    /// The id of the next name that any file got.
    var nextName: UInt64
    var remover: Int32
    /// Milliseconds of the monotonic clock.
    var time: Int64
}

/// Where a name was removed.
struct RemovedPlace: Hashable {
    var directory: UInt64
    var name: [UInt8]
}

/// A photo, with its copies, whose names were removed for good, because no trash is kept. It is withheld from
/// destruction as long as its program may be about to save a new file in its place. After a crash the next mount
/// destroys it as any other orphan.
struct WithheldPhoto {
    /// The inodes, and whether the kernel forgot each meanwhile.
    var inodes: [UInt64: Bool]
    var place: RemovedPlace
    var remover: Int32
    /// Milliseconds of the monotonic clock.
    var time: Int64
}

/// Photos that programs save anew: by a rename onto the old name, by removing that first, or by emptying the file. For
/// the rules see `SavingRules.swift`.
package final class Saves {
    private unowned let tree: Tree
    /// Photos' names that unlink(2) removed just now, and that are not in use again.
    private var removedNames: RecentTable<RemovedPlace, RemovedName>
    /// Photos that became plain files just now, by inode.
    private var formerPhotos: RecentTable<UInt64, FormerPhoto>
    /// Photos that were removed for good just now, in the order of removal.
    private var withheldPhotos: [WithheldPhoto] = []
    /// Photos that are withheld no longer, and that the kernel has forgotten.
    private var released: [UInt64] = []

    init(_ tree: Tree) {
        self.tree = tree
        removedNames = RecentTable(countMax: tree.options.limits.removedNames)
        formerPhotos = RecentTable(countMax: tree.options.limits.formerPhotos)
    }

    /// Notes that a name was added to a directory: a removed name is in use again.
    func noteAdded(_ name: [UInt8], to directory: UInt64) {
        let place = RemovedPlace(directory: directory, name: name)
        if !removedNames.isEmpty { removedNames.remove(place) }
        if !withheldPhotos.isEmpty { destroyWithheld { $0.place == place } }
    }

    /// Whether a program has just written something else than a photo into this file, which was one.
    func wasPhoto(_ ino: UInt64) -> Bool { formerPhotos[ino] != nil }

    /// The ids of the names that stay with a photo's old bytes when a new file is saved as `name` in `place`; see
    /// `namesStaying`.
    func staying(of old: Inode, savedAs name: [UInt8], in place: Inode) throws(FileError) -> Set<UInt64> {
        namesStaying(
            withOldBytesOf: try tree.moments.placedNames(of: old), whenSavedAs: name, in: place.ino,
            isDay: place.isDay)
    }

    /// Makes `new`, which was saved as `name` in `place`, the photo: its moment and memberships are
    /// retargeted from `old`. The names in `staying` keep the old file, which becomes a plain file if all of
    /// them are backups, else a photo of its own. `row` describes the new file; `seen` is its classification,
    /// if one was needed; `isSame` says without it that the bytes are the same. If `new` had a moment of its own, that
    /// is removed.
    func replacePhoto(
        from old: Inode, to new: Inode, _ row: PhotoRow, except staying: Set<UInt64>, in place: Inode,
        named name: [UInt8], seen: MediaProbe? = nil, isSame: Bool = false, _ space: Space, _ change: Change
    ) throws(FileError) {
        if new.isPhoto, let own = try tree.moments.moment(of: new),
            own.directory.ino != place.ino || own.row.name != name
        {
            try tree.withdraw(own.row, in: own.directory, new, now: change.now)
            new.row.countLinks(by: -1)
        }
        let previous = try tree.photos.photo(old)
        let isGiven = old.row.flags.contains(.namedInMoments)
        let isSame =
            isSame || seen?.names(old.row) ?? false
        try tree.versions.handOverVersions(of: old, to: new, isSame: isSame, change)
        var link: [UInt8]?
        var backup: DentryRow?
        let hasSaved = try tree.names(of: old).contains { $0.isOf(place.ino, name) }
        for entry in try tree.names(of: old) {
            if staying.contains(entry.id) {
                let isBackup = entry.parent == place.ino && isBackupName(entry.name, of: name)
                // A backup that was made by linking: the saved name is another.
                if isBackup, !hasSaved { backup = entry }
                if !isBackup, try !tree.inode(entry.parent).isDay { link = link ?? entry.name }
                continue
            }
            let directory = try tree.inode(entry.parent)
            try tree.retarget(directory, entry.id, from: old, to: new, now: change.now)
            tree.addLink(to: new, now: change.now)
            try tree.removeLink(to: old, now: change.now)
            // The kernel itself changes the dentry of the name that is being saved.
            guard entry.parent != place.ino || entry.name != name else { continue }
            tree.noteLost(entry, in: directory)
            new.dentries.hasNewNames = true
        }
        if let backup { try mark(place, name, of: new, like: backup, now: change.now) }
        // Until the kernel is notified that the names belong to another file, it opens this inode by them.
        old.dentries.mayBeStale = true
        tree.kernelNames.noteChange(of: new.ino)
        tree.kernelNames.noteChange(of: old.ino)
        if let link {
            try tree.moments.addMoment(old, day: previous.day, name: link, now: change.now)
            tree.moments.setNameGivenInMoments(old, isGiven: false)
            // The name was saved: the next file that takes it was renamed to a later backup.
            var row = previous
            row.former = nil
            try tree.photos.storePhoto(old, row, change)
        } else {
            let areHandedOver = isSame ? try tree.copies.handOver(old, toEqual: new, space) : false
            if !areHandedOver { try tree.copies.promoteCopy(of: old, change) }
            try tree.photos.deletePhoto(old, space, change)
        }
        if old.ino == change.restoredPhoto && old.row.nlink == 0 { change.inodesToDestroy.append(old.ino) }
        change.restoredPhoto = 0
        var row = row
        row.inherit(from: previous, now: change.now.seconds)
        row = try tree.groups.datedByStill(row)
        try tree.photos.storePhoto(new, row, change)
        tree.moments.setNameGivenInMoments(new, isGiven: isGiven)
        if let own = try tree.moments.moment(of: new) {
            try tree.companions.queueCompanionMoves(
                of: new, own.row.name, in: own.directory, captured: previous.captured, to: row.day, change)
        }
        try tree.moments.moveMoment(new, to: row.day, now: change.now)
    }

    /// Makes the name of a new file the membership, or hard link, that its backup was.
    private func mark(
        _ directory: Inode, _ name: [UInt8], of inode: Inode, like backup: DentryRow, now: Timestamp
    ) throws(FileError) {
        guard !directory.isDay,
            let own = try tree.names(of: inode).first(where: { $0.isOf(directory.ino, name) }),
            own.member != backup.member
        else { return }
        try tree.removeEntry(directory, own.id, inode, now: now)
        try tree.addEntry(
            directory, name, inode, isMember: backup.isMember, isLink: backup.isLink, now: now)
    }

    /// The photo in this directory that an editor renamed from `name` to a backup name, so that a new file could take
    /// `name`.
    func backup(
        of name: [UInt8], in directory: Inode, except inode: Inode
    ) throws(FileError) -> Inode? {
        // Mostly no other name begins with this one, which one query tells.
        let first = try tree.tables.dentries.names(in: directory.ino, beginning: name, limit: 2)
        if first.allSatisfy({ $0.name == name }) { return nil }
        var candidates: [UInt64] = []
        for beginning in backupBeginnings(name) {
            let rows = try tree.tables.dentries.names(in: directory.ino, beginning: beginning, limit: .max)
            candidates += rows.filter { backupOriginal($0.name) == name }.map(\.ino)
        }
        // Vim takes another name only where NAME~ exists.
        if try tree.tables.dentries.entry(directory.ino, name + [UInt8(ascii: "~")]) != nil {
            let rows = try tree.tables.dentries.names(
                in: directory.ino, beginning: name.dropLast(), limit: .max)
            candidates += rows.filter { isVimBackup($0.name, of: name) }.map(\.ino)
        }
        for ino in candidates where ino != inode.ino {
            let found = try tree.inode(ino)
            // Older backups are plain files.
            if found.isPhoto, try tree.photos.photo(found).former == name { return found }
        }
        return nil
    }

    /// Notes that a photo is about to become a plain file.
    func noteFormer(_ inode: Inode) throws(FileError) {
        formerPhotos.remove(inode.ino)
        guard let own = try tree.moments.moment(of: inode) else { return }
        let place = RemovedPlace(directory: own.directory.ino, name: own.row.name)
        let isGiven = inode.row.flags.contains(.namedInMoments)
        formerPhotos.insert(
            FormerPhoto(row: try tree.photos.photo(inode), place: place, isNameGiven: isGiven), for: inode.ino
        )
    }

    /// The photo that a file was before its present bytes, unless it was moved to another day since.
    func takeFormer(of inode: Inode) throws(FileError) -> FormerPhoto? {
        guard let former = formerPhotos.remove(inode.ino) else { return nil }
        guard let own = try tree.moments.moment(of: inode) else { return former }
        return own.row.isOf(former.place.directory, former.place.name) ? former : nil
    }

    /// The names that a photo and its copies are about to lose for good with the photo's name in a day.
    package func namesLost(withRemoving photo: Inode, from directory: Inode) throws(FileError) -> [DentryRow]
    {
        guard tree.trash.days == 0, directory.isDay, photo.isPhoto else { return [] }
        var lost = try tree.names(of: photo)
        for copy in try tree.copies.copies(of: photo) { lost += try tree.names(of: copy) }
        return lost
    }

    /// Notes that a name of a photo was removed.
    ///
    /// - Parameters:
    ///   - removed: the name.
    ///   - lost: see `namesLost`.
    package func noteRemoved(
        _ removed: DentryRow, of photo: Inode, lost: [DentryRow], from directory: Inode, _ caller: Caller
    ) {
        guard photo.isPhoto else { return }
        let place = RemovedPlace(directory: directory.ino, name: removed.name)
        let isLost = photo.row.nlink == 0
        if isLost ? lost.isEmpty || caller.pid <= 0 : directory.isDay != photo.isTrashed { return }
        let time = tree.clocks.monotonic()
        removedNames.insert(
            RemovedName(
                photo: photo.ino, isMember: removed.isMember, isLink: removed.isLink,
                lost: isLost ? lost : [], nextName: tree.counters.dentry, remover: caller.pid, time: time),
            for: place)
        if isLost {
            withhold(Set(lost.map(\.ino)), removedFrom: place, by: caller.pid, at: time)
        }
    }

    /// The photo whose name was removed so that this file can be renamed onto it; nil if there is none.
    func removedPhoto(_ request: RenameRequest) throws(FileError) -> (removal: RemovedName, photo: Inode)? {
        guard request.target == nil, !request.isIntoTrash, !removedNames.isEmpty,
            let removal = removedNames[RemovedPlace(directory: request.to.ino, name: request.newName)],
            isSaved(
                removal, by: request.caller,
                wasBeside: request.from.ino == request.to.ino && request.sourceID < removal.nextName),
            let photo = try photo(of: removal, in: request.to), photo.ino != request.source.ino
        else { return nil }
        return (removal, photo)
    }

    /// See `isSavedByRemoval`.
    private func isSaved(_ removal: RemovedName, by caller: Caller, wasBeside: Bool) -> Bool {
        isSavedByRemoval(
            RemovalFacts(
                wasBeside: wasBeside, remover: removal.remover, caller: caller.pid,
                milliseconds: tree.clocks.monotonic() - removal.time))
    }

    /// The photo whose name was removed from that directory, unless it is gone or was moved since.
    private func photo(of removal: RemovedName, in directory: Inode) throws(FileError) -> Inode? {
        guard let photo = try tree.existing(removal.photo), photo.isPhoto else { return nil }
        guard removal.lost.isEmpty else { return isWithheld(photo.ino) ? photo : nil }
        guard photo.row.nlink > 0, photo.isTrashed == directory.isDay else { return nil }
        guard photo.isTrashed else { return photo }
        // Its name in the trash is the one that the removal gave it.
        return try tree.names(of: photo).last.map { $0.id < removal.nextName } == true ? photo : nil
    }

    /// Undoes the removal of the name that the file is renamed onto, if the file is to take the place of that photo.
    package func undoRemoval(before request: inout RenameRequest, _ change: Change) throws(FileError) {
        guard let (removal, photo) = try removedPhoto(request), try tree.renames.rowOfSaved(request) != nil
        else { return }
        try undo(removal, of: photo, request.newName, in: request.to, change)
        request.target = try tree.find(request.to, request.newName).map { ($0.id, $0.inode) }
    }

    /// Makes a new file in place of the photo whose name a program removed in order to make the file anew, as mv(1)
    /// from another disk, tar(1), unzip and git do; nil if there is none. Other hard links, and programs that have the
    /// old file open, keep its bytes.
    ///
    /// - Parameter mode: of the new file.
    package func recreate(
        _ parent: UInt64, _ name: [UInt8], mode: UInt32, _ caller: Caller, _ space: Space, _ change: Change
    ) throws(FileError) -> (directory: Inode, inode: Inode)? {
        guard !removedNames.isEmpty,
            let removal = removedNames[RemovedPlace(directory: parent, name: name)],
            isSaved(removal, by: caller, wasBeside: true)
        else { return nil }
        let directory = try tree.directory(parent)
        guard directory.row.nlink > 0, try !tree.has(directory, name),
            let photo = try photo(of: removal, in: directory),
            caller.uid == 0 || caller.uid == photo.row.uid
        else { return nil }
        let now = Timestamp.now()
        try undo(removal, of: photo, name, in: directory, change)
        let new = tree.makeInode(mode: mode, in: directory, caller, now: now)
        var row = try tree.photos.photo(photo)
        (row.ino, row.former) = (new.ino, nil)
        try replacePhoto(
            from: photo, to: new, row, except: try staying(of: photo, savedAs: name, in: directory),
            in: directory, named: name, space, change)
        return (directory, new)
    }

    private func undo(
        _ removal: RemovedName, of photo: Inode, _ name: [UInt8], in directory: Inode, _ change: Change
    ) throws(FileError) {
        if !removal.lost.isEmpty {
            let place = RemovedPlace(directory: directory.ino, name: name)
            return try restoreWithheld(photo, removal.lost, removedFrom: place, change)
        }
        guard photo.isTrashed else {
            try tree.addEntry(
                directory, name, photo, isMember: removal.isMember, isLink: removal.isLink, now: change.now)
            tree.addLink(to: photo, now: change.now)
            return tree.kernelNames.noteChange(of: photo.ino)
        }
        guard let kept = try tree.names(of: photo).last else { throw .damaged }
        try tree.trash.restore(photo, change)
        try tree.tables.trash.delete(photo.ino, kept.id)
        try tree.trash.discard(kept, change)
    }

    package var hasWithheldPhotos: Bool { !withheldPhotos.isEmpty }

    func isWithheld(_ ino: UInt64) -> Bool { withheldPhotos.contains { $0.inodes[ino] != nil } }

    /// Bytes that are free once nothing is withheld.
    package func withheldBytes() -> UInt64 {
        withheldPhotos.reduce(0) { sum, photo in
            photo.inodes.keys.reduce(sum) { $0 + (tree.cached($1)?.row.allocated ?? 0) }
        }
    }

    /// Withholds a photo. The last photo that the same thread removed was none that it saves.
    func withhold(_ inodes: Set<UInt64>, removedFrom place: RemovedPlace, by remover: Int32, at time: Int64) {
        destroyWithheld { $0.remover == remover || $0.place == place }
        if withheldPhotos.count >= tree.options.limits.removedNames, let first = withheldPhotos.first {
            destroyWithheld { $0.place == first.place }
        }
        withheldPhotos.append(
            WithheldPhoto(
                inodes: Dictionary(uniqueKeysWithValues: inodes.map { ($0, false) }), place: place,
                remover: remover, time: time))
    }

    /// Notes that the kernel has forgotten a nameless inode; false if that is not withheld.
    package func noteForgotten(_ ino: UInt64) -> Bool {
        guard let index = withheldPhotos.firstIndex(where: { $0.inodes[ino] != nil }) else { return false }
        withheldPhotos[index].inodes[ino] = true
        return true
    }

    /// Gives up the withheld photos whose programs have not saved in time. Returns all that are given up since the last
    /// call: they are to be destroyed once the lock is released, unless the kernel still holds them.
    func takeReleased() -> [UInt64] {
        if !withheldPhotos.isEmpty {
            let limit = tree.clocks.monotonic() - removalMillisecondsMax
            destroyWithheld { $0.time < limit }
        }
        defer { released = [] }
        return released
    }

    /// Destroys all withheld photos, because their room is needed; false if there are none.
    package func destroyWithheld() -> Bool {
        defer { destroyWithheld { _ in true } }
        return !withheldPhotos.isEmpty
    }

    /// Once the lock is released they are destroyed, unless the kernel still holds them.
    func destroyWithheld(where isOver: (WithheldPhoto) -> Bool) {
        for photo in withheldPhotos where isOver(photo) {
            released += photo.inodes.filter(\.value).keys
        }
        withheldPhotos.removeAll(where: isOver)
    }

    /// Gives a withheld photo and its copies their names back.
    func restoreWithheld(
        _ photo: Inode, _ lost: [DentryRow], removedFrom place: RemovedPlace, _ change: Change
    ) throws(FileError) {
        for withheld in withheldPhotos where withheld.place == place {
            // The kernel sends no second FORGET: it is destroyed with its last name.
            if withheld.inodes[photo.ino] == true { change.restoredPhoto = photo.ino }
        }
        withheldPhotos.removeAll { $0.place == place }
        // Its companions stay with it.
        tree.companions.keepBeside(photo.ino)
        for row in lost {
            guard let inode = try tree.existing(row.ino), let directory = try tree.existing(row.parent),
                directory.isDirectory, directory.row.nlink > 0, try !tree.has(directory, row.name)
            else { continue }
            try tree.orphans.leave(inode.ino, tree.tables)
            inode.dentries.mayBeStale = false
            try tree.addEntry(
                directory, row.name, inode, isMember: row.isMember, isLink: row.isLink, now: change.now)
            tree.addLink(to: inode, now: change.now)
            tree.kernelNames.noteChange(of: directory.ino)
            tree.kernelNames.noteChange(of: inode.ino)
        }
    }

    /// Whether a program wrote a file in order to replace another; see `PhotoRules.isNewFile`.
    func isNewFile(_ inode: Inode, named id: UInt64, in directory: Inode) throws(FileError) -> Bool {
        guard inode.ino >= tree.firstOfSession, inode.row.nlink <= 2 else { return false }
        var isPinned = false
        if inode.isPhoto, !directory.isDay { isPinned = try tree.photos.photo(inode).isPinned }
        return PhotoRules.isNewFile(
            try tree.moments.placedNames(of: inode), own: id, isInDay: directory.isDay, isOfSession: true,
            isPinned: isPinned)
    }
}
