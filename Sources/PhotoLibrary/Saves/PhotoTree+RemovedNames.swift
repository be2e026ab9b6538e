package import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
package import VaultStore

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

/// Programs that save a new file by unlink(2) of the old one and rename(2) onto its name, as digiKam does, or open(2)
/// of a new file of that name. The removal is undone first, so that the new file takes the place of the photo.
extension PhotoTree {
    /// The names that a photo and its copies are about to lose for good with the photo's name in a day.
    package func namesLost(withRemoving photo: Inode, from directory: Inode) throws(FileError) -> [DentryRow]
    {
        guard trashDays == 0, directory.isDay, photo.isPhoto else { return [] }
        var lost = try names(of: photo)
        for copy in try copies(of: photo) { lost += try names(of: copy) }
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
        let time = clocks.monotonic()
        removedNames.insert(
            RemovedName(
                photo: photo.ino, isMember: removed.isMember, isLink: removed.isLink,
                lost: isLost ? lost : [], nextName: counters.dentry, remover: caller.pid, time: time),
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
                milliseconds: clocks.monotonic() - removal.time))
    }

    /// The photo whose name was removed from that directory, unless it is gone or was moved since.
    private func photo(of removal: RemovedName, in directory: Inode) throws(FileError) -> Inode? {
        guard let photo = try existing(removal.photo), photo.isPhoto else { return nil }
        guard removal.lost.isEmpty else { return isWithheld(photo.ino) ? photo : nil }
        guard photo.row.nlink > 0, photo.isTrashed == directory.isDay else { return nil }
        guard photo.isTrashed else { return photo }
        // Its name in the trash is the one that the removal gave it.
        return try names(of: photo).last.map { $0.id < removal.nextName } == true ? photo : nil
    }

    /// Undoes the removal of the name that the file is renamed onto, if the file is to take the place of that photo.
    package func undoRemoval(before request: inout RenameRequest) throws(FileError) {
        guard let (removal, photo) = try removedPhoto(request), try rowOfSaved(request) != nil else { return }
        try undo(removal, of: photo, request.newName, in: request.to, now: request.now)
        request.target = try find(request.to, request.newName).map { ($0.id, $0.inode) }
    }

    /// Makes a new file in place of the photo whose name a program removed in order to make the file anew, as mv(1)
    /// from another disk, tar(1), unzip and git do; nil if there is none. Other hard links, and programs that have the
    /// old file open, keep its bytes.
    ///
    /// - Parameter mode: of the new file.
    package func recreate(
        _ parent: UInt64, _ name: [UInt8], mode: UInt32, _ caller: Caller, _ space: Space
    ) throws(FileError) -> (directory: Inode, inode: Inode)? {
        guard !removedNames.isEmpty,
            let removal = removedNames[RemovedPlace(directory: parent, name: name)],
            isSaved(removal, by: caller, wasBeside: true)
        else { return nil }
        let directory = try self.directory(parent)
        guard directory.row.nlink > 0, try !has(directory, name),
            let photo = try photo(of: removal, in: directory),
            caller.uid == 0 || caller.uid == photo.row.uid
        else { return nil }
        let now = Timestamp.now()
        try undo(removal, of: photo, name, in: directory, now: now)
        let new = makeInode(mode: mode, in: directory, caller, now: now)
        var row = try self.photo(photo)
        (row.ino, row.former) = (new.ino, nil)
        try replacePhoto(
            from: photo, to: new, row, except: try staying(of: photo, savedAs: name, in: directory),
            in: directory, named: name, space, now: now)
        return (directory, new)
    }

    private func undo(
        _ removal: RemovedName, of photo: Inode, _ name: [UInt8], in directory: Inode, now: Timestamp
    ) throws(FileError) {
        if !removal.lost.isEmpty {
            let place = RemovedPlace(directory: directory.ino, name: name)
            return try restoreWithheld(photo, removal.lost, removedFrom: place, now: now)
        }
        guard photo.isTrashed else {
            try addEntry(
                directory, name, photo, isMember: removal.isMember, isLink: removal.isLink, now: now)
            addLink(to: photo, now: now)
            return kernelNames.noteChange(of: photo.ino)
        }
        guard let kept = try names(of: photo).last else { throw .damaged }
        try restore(photo, now: now)
        try sql(tables.deleteTrash(photo.ino, kept.id))
        var namelessInodes: [UInt64] = []
        try discard(kept, now: now, &namelessInodes)
        inodesToDestroy += namelessInodes
    }
}
