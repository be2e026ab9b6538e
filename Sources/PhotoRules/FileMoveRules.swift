/// The kind of a file that is renamed.
package enum MovedFile: Sendable, CaseIterable {
    case plain
    /// A symbolic link, FIFO, socket or device node.
    case special
    case photo
    /// A file in an album that represents a photo with the same bytes.
    case copy
    /// A photo that was taken out of moments. Its names are in the trash; or in an album, if a directory of the trash
    /// was moved there and the session ended before this photo was restored.
    case trashedPhoto
}

/// One step of the effect of a rename on a file. `Tree` carries the steps out, in the order of `FileMove`.
package enum FileMoveStep: Sendable, CaseIterable {
    // Before the name:
    /// A copy becomes the photo, and the photo its copy, because only photos have names in days.
    case becomePhoto
    /// The file's companions in its old day are noted, to follow it.
    case queueCompanionMoves
    /// The photo's name in moments is removed, because the new name takes its place.
    case leaveMoment

    // The name:
    case move
    /// The name moves, and is a membership.
    case moveAsMember
    /// The photo becomes a member of an album; the old name stays.
    case addMembership
    /// The photo gets a name in the trash, and loses all others.
    case removeToTrash

    // After the name:
    /// The classification of the file's bytes is applied.
    case classify
    /// If a program has renamed a photo from this name to a backup name, a new file takes the photo's place,
    /// and the remaining steps of `after` are skipped.
    case replaceBackup
    /// A photo renamed to a backup name remembers its old one, for a file that will be saved there.
    case noteBackup
    /// The photo's other names in days are removed: moments holds a photo once.
    case keepOnlyArrived
    /// The day becomes the photo's own, chosen by the user.
    case pin
    /// The trashed photo that the file is, or represents, returns to its albums.
    case restore
    /// The photo's name in moments follows the new name in the album; see `follows`.
    case followName
    /// The new name was given in moments, and stays when a name in an album is changed.
    case noteGivenName
    /// The time at which the name came into the trash is recorded; `forgetTrashAge` deletes that record.
    case noteTrashAge
    case forgetTrashAge
}

/// The effect of a rename on files of one kind.
package struct FileMove: Sendable {
    /// Whether the file may be a new version of the photo that has its new name; see `isSave`. If it is, it takes that
    /// photo's place, and only `finally` is left to do.
    package var maySave = false
    package var before: [FileMoveStep] = []
    /// The effect to continue with instead of `name` and `after`, because `before` made the file one of
    /// another kind.
    package var then: RenameEffect?
    package var name = FileMoveStep.move
    package var after: [FileMoveStep] = []
    package var finally: [FileMoveStep] = []
}

/// The table of the effects of renames on files; nil if a file of that kind cannot be renamed so: EPERM.
package func fileMove(_ effect: RenameEffect, of file: MovedFile) -> FileMove? {
    switch (effect, file) {
    case (.moveInAlbums, .plain): FileMove(maySave: true, after: [.classify])
    case (.moveInAlbums, .photo): FileMove(maySave: true, after: [.replaceBackup, .noteBackup, .followName])
    case (.moveInAlbums, .trashedPhoto): FileMove(maySave: true, after: [.replaceBackup])
    case (.moveInAlbums, .copy): FileMove(maySave: true, after: [.replaceBackup])
    case (.moveInAlbums, .special): FileMove()

    case (.moveIntoDay, .plain): FileMove(maySave: true, after: [.classify])
    case (.moveIntoDay, .photo):
        FileMove(
            maySave: true, before: [.queueCompanionMoves, .leaveMoment],
            after: [.keepOnlyArrived, .pin, .noteGivenName])
    case (.moveIntoDay, .copy): FileMove(before: [.becomePhoto], then: .moveIntoDay)
    case (.moveIntoDay, .trashedPhoto): FileMove(after: [.restore, .pin])

    case (.moveInDays, .plain): FileMove(maySave: true, after: [.classify])
    case (.moveInDays, .photo):
        FileMove(
            maySave: true, before: [.queueCompanionMoves],
            after: [.replaceBackup, .noteBackup, .keepOnlyArrived, .pin, .noteGivenName])

    case (.addToAlbum, .plain): FileMove(after: [.classify])
    case (.addToAlbum, .photo): FileMove(name: .addMembership)

    case (.removeToTrash, .plain): FileMove(finally: [.noteTrashAge])
    case (.removeToTrash, .photo): FileMove(name: .removeToTrash)

    case (.moveToTrash, .plain): FileMove(maySave: true, after: [.classify], finally: [.noteTrashAge])
    case (.moveToTrash, .photo): FileMove(maySave: true, after: [.replaceBackup], finally: [.noteTrashAge])
    case (.moveToTrash, .copy), (.moveToTrash, .special), (.moveToTrash, .trashedPhoto):
        FileMove(finally: [.noteTrashAge])

    case (.restoreToAlbum, .plain): FileMove(after: [.classify], finally: [.forgetTrashAge])
    case (.restoreToAlbum, .photo), (.restoreToAlbum, .special): FileMove(finally: [.forgetTrashAge])
    case (.restoreToAlbum, .copy): FileMove(finally: [.forgetTrashAge, .restore])
    case (.restoreToAlbum, .trashedPhoto):
        FileMove(name: .moveAsMember, finally: [.forgetTrashAge, .restore])

    case (.restoreIntoDay, .plain), (.restoreIntoDay, .photo):
        FileMove(before: [.forgetTrashAge], then: .moveIntoDay)
    case (.restoreIntoDay, .copy): FileMove(before: [.forgetTrashAge, .restore], then: .moveIntoDay)
    case (.restoreIntoDay, .trashedPhoto): FileMove(before: [.forgetTrashAge], after: [.restore, .pin])

    // Days have only plain files and photos.
    case (.moveIntoDay, .special), (.restoreIntoDay, .special): nil
    case (.moveInDays, _), (.addToAlbum, _), (.removeToTrash, _): nil
    // Of directories.
    case (.moveDirectory, _), (.renameDay, _), (.copyDay, _), (.removeDayToTrash, _), (.restoreDay, _): nil
    }
}

/// The effect on the file that has the new name of a renamed one.
package enum ReplacedFile: Sendable {
    /// It loses this name, as by rename(2).
    case unlinked
    /// It is a photo that leaves the space, as by rm in its day.
    case removed
    /// It stays, and the renamed file gets a numbered name.
    case kept
}

/// The effect on the file that has the new name, unless the renamed file is its new version. A photo from elsewhere
/// never replaces a photo of a day.
///
/// - Parameters:
///   - isPhoto: whether it is a photo; `isToBePhoto` whether the renamed file is one or becomes one.
///   - isInDay: whether the name is in a day; `isBeside` whether the renamed file was there already.
package func replacedFile(isPhoto: Bool, isInDay: Bool, isBeside: Bool, isToBePhoto: Bool) -> ReplacedFile {
    guard isInDay, isPhoto else { return .unlinked }
    return isBeside || !isToBePhoto ? .removed : .kept
}
