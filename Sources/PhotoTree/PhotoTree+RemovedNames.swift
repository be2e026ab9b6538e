import CatalogueRows
package import FileRequests
package import FileTree
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue

/// A name of a photo that unlink(2) has just removed. The program may be saving a new file there; see
/// `isSavedByRemoval`.
struct RemovedName {
    /// The photo's inode.
    var photo: UInt64
    /// Whether the name was a membership in an album.
    var isMember: Bool
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
/// of a new file of that name. The removal is undone first, so that the rename or the writing changes the photo.
extension PhotoTree {
    /// Notes that a name of a photo was removed.
    ///
    /// - Parameter isMember: whether it was a membership in an album.
    package func noteRemoved(
        _ name: [UInt8], of photo: Inode, isMember: Bool, from directory: Inode, _ caller: Caller
    ) {
        guard photo.isPhoto, photo.row.nlink > 0, directory.isDay == photo.isTrashed else { return }
        removedNames.insert(
            RemovedName(
                photo: photo.ino, isMember: isMember, nextName: counters.dentry, remover: caller.pid,
                time: clocks.monotonic()),
            for: RemovedPlace(directory: directory.ino, name: name))
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
        guard let photo = try existing(removal.photo), photo.isPhoto, photo.row.nlink > 0,
            photo.isTrashed == directory.isDay
        else { return nil }
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

    /// The photo whose name a program removed in order to make the file anew, as mv(1) from another disk, tar(1) and
    /// git do; nil if there is none. Its removal is undone: the caller empties it, and the program writes into it.
    ///
    /// - Parameter mode: of the new file.
    package func recreate(
        _ parent: UInt64, _ name: [UInt8], mode: UInt32, _ caller: Caller
    ) throws(FileError) -> (directory: Inode, inode: Inode)? {
        guard !removedNames.isEmpty,
            let removal = removedNames[RemovedPlace(directory: parent, name: name)],
            isSaved(removal, by: caller, wasBeside: true)
        else { return nil }
        let directory = try self.directory(parent)
        guard directory.row.nlink > 0, try !has(directory, name),
            let photo = try photo(of: removal, in: directory),
            // Some programs read the old file while they write the new one.
            !photo.hasHandles, caller.uid == 0 || caller.uid == photo.row.uid
        else { return nil }
        let now = Timestamp.now()
        try undo(removal, of: photo, name, in: directory, now: now)
        photo.row.mode = mode
        photo.row.changed = now
        touch(photo)
        return (directory, photo)
    }

    private func undo(
        _ removal: RemovedName, of photo: Inode, _ name: [UInt8], in directory: Inode, now: Timestamp
    ) throws(FileError) {
        guard photo.isTrashed else {
            try addEntry(directory, name, photo, isMember: removal.isMember, now: now)
            addLink(to: photo, now: now)
            return kernelNames.noteChange(of: photo.ino)
        }
        guard let kept = try names(of: photo).last else { throw .damaged }
        try restore(photo, now: now)
        try sql(tables.deleteTrash(photo.ino, kept.id))
        var namelessInodes: [UInt64] = []
        try discard(kept, now: now, &namelessInodes)
        inodesToDestroy += namelessInodes
        try cancelTrashMovesOfCompanions(photo, name, in: directory)
    }
}
