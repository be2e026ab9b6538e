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
    var name: [UInt8]
    /// The photo's inode.
    var photo: UInt64
    /// Whether the name was a membership in an album.
    var isMember: Bool
    /// The id of the name that the photo got in the trash; nil if it stays in moments.
    var trashName: UInt64?
    /// The directory's mtime after the removal.
    var modified: Timestamp
    var remover: Int32
    /// Milliseconds of the monotonic clock.
    var time: Int64
}

/// Programs that save a new file by unlink(2) of the old one and rename(2) onto its name, as digiKam does. The
/// removal is undone as part of the rename, which then is one onto the photo.
extension PhotoTree {
    /// Directories of which a removed name is remembered.
    private static let removedNamesMax = 64

    /// Notes that a name of a photo was removed.
    ///
    /// - Parameter isMember: whether it was a membership in an album.
    package func noteRemoved(
        _ name: [UInt8], of photo: Inode, isMember: Bool, from directory: Inode, _ caller: Caller
    ) throws(FileError) {
        removedNames[directory.ino] = nil
        guard photo.isPhoto, photo.row.nlink > 0, directory.isDay == photo.isTrashed,
            try !isInTrash(directory)
        else { return }
        let time = clocks.monotonic()
        if removedNames.count >= Self.removedNamesMax {
            removedNames = removedNames.filter { time - $0.value.time <= removalMillisecondsMax }
        }
        guard removedNames.count < Self.removedNamesMax else { return }
        removedNames[directory.ino] = RemovedName(
            name: name, photo: photo.ino, isMember: isMember,
            trashName: photo.isTrashed ? try names(of: photo).map(\.id).max() : nil,
            modified: directory.row.modified, remover: caller.pid, time: time)
    }

    /// The photo whose name was removed so that this file can be renamed onto it; nil if there is none.
    func removedPhoto(_ request: RenameRequest) throws(FileError) -> (removal: RemovedName, photo: Inode)? {
        guard let removal = removedNames[request.to.ino], removal.name == request.newName,
            request.target == nil,
            isSavedByRemoval(
                RemovalFacts(
                    isBeside: request.from.ino == request.to.ino,
                    isUnchanged: request.to.row.modified == removal.modified,
                    remover: removal.remover, caller: request.caller.pid,
                    milliseconds: clocks.monotonic() - removal.time)),
            let photo = try existing(removal.photo), photo.isPhoto, photo.row.nlink > 0,
            photo.ino != request.source.ino, photo.isTrashed == (removal.trashName != nil)
        else { return nil }
        if let id = removal.trashName, try !names(of: photo).contains(where: { $0.id == id }) { return nil }
        return (removal, photo)
    }

    /// Undoes the removal of the name that the file is renamed onto, if the file is to take the place of that photo.
    package func undoRemoval(before request: inout RenameRequest) throws(FileError) {
        guard let (removal, photo) = try removedPhoto(request), try rowOfSaved(request) != nil else { return }
        let now = request.now
        removedNames[request.to.ino] = nil
        if let id = removal.trashName {
            guard let kept = try names(of: photo).first(where: { $0.id == id }) else { throw .damaged }
            try restore(photo, now: now)
            try sql(tables.deleteTrash(photo.ino, id))
            var pendingErase: [UInt64] = []
            try discard(kept, now: now, &pendingErase)
            abandoned += pendingErase
            try stayWithRestored(photo, removal.name, in: request.to)
        } else {
            try addEntry(request.to, removal.name, photo, isMember: removal.isMember, now: now)
            linked(photo, now: now)
            kernelNames.noteChange(of: photo.ino)
        }
        request.target = try find(request.to, request.newName).map { ($0.id, $0.inode) }
    }
}
