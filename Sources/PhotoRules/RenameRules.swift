package import CatalogueRows

/// How a rename(2) relates to the trash.
package enum TrashMove: Sendable, CaseIterable {
    case outside
    /// Into the trash, or within it.
    case into
    case outOf
}

/// The source and the target of a rename(2), as far as its effect depends on them.
package struct RenameFacts: Sendable {
    package var from: Area
    package var to: Area
    package var trash: TrashMove
    /// Whether the source is a directory.
    package var isDirectory: Bool

    package init(from: Area, to: Area, trash: TrashMove, isDirectory: Bool) {
        (self.from, self.to, self.trash, self.isDirectory) = (from, to, trash, isDirectory)
    }
}

/// The effect of a rename(2) on photos, besides its effect on names by POSIX. `fileMove` has the effect on files of
/// each kind.
package enum RenameEffect: Sendable, CaseIterable {
    /// Nothing: a directory moves with all that is in it.
    case moveDirectory
    /// A file moves, and may be the new version of the photo that had its new name.
    case moveInAlbums
    /// A photo gets its moment where the user put it, and the name in the album is gone.
    case moveIntoDay
    /// A photo gets another name in its day, or another day.
    case moveInDays
    /// A photo stays in its day and becomes a member of an album.
    case addToAlbum
    /// All photos of a day get another date.
    case renameDay
    /// An album with the photos of a day is made; the day stays.
    case copyDay
    /// A name in an album moves into the trash, or within it.
    case moveToTrash
    /// A name moves from the trash into an album: a photo that was taken out of moments is restored.
    case restoreToAlbum
    /// A photo leaves its day and all albums; its names there are kept for its return.
    case removeToTrash
    /// As `removeToTrash`, for all photos of a day, whose directory moves.
    case removeDayToTrash
    /// A photo returns to its albums, and the day becomes its own.
    case restoreIntoDay
    /// A directory becomes a day again, and its photos return to their albums.
    case restoreDay
}

/// One row of the table of renames. `isDirectory` nil: files and directories.
struct RenameRule: Sendable {
    package let from: Area
    package let to: Area
    package var trash = TrashMove.outside
    package var isDirectory: Bool?
    package let effect: RenameEffect
}

/// All renames that are allowed: any other is refused with EPERM.
let renameRules = [
    RenameRule(from: .album, to: .album, isDirectory: true, effect: .moveDirectory),
    RenameRule(from: .album, to: .album, isDirectory: false, effect: .moveInAlbums),
    RenameRule(from: .album, to: .day, effect: .moveIntoDay),
    RenameRule(from: .day, to: .day, effect: .moveInDays),
    RenameRule(from: .day, to: .album, effect: .addToAlbum),
    RenameRule(from: .moments, to: .moments, effect: .renameDay),
    RenameRule(from: .moments, to: .album, effect: .copyDay),
    RenameRule(from: .album, to: .album, trash: .into, effect: .moveToTrash),
    RenameRule(from: .album, to: .album, trash: .outOf, effect: .restoreToAlbum),
    RenameRule(from: .day, to: .album, trash: .into, effect: .removeToTrash),
    RenameRule(from: .moments, to: .album, trash: .into, effect: .removeDayToTrash),
    RenameRule(from: .album, to: .day, trash: .outOf, effect: .restoreIntoDay),
    RenameRule(from: .album, to: .moments, trash: .outOf, effect: .restoreDay),
]

/// The effect of a rename; nil if the rules of moments forbid it.
package func effect(of rename: RenameFacts) -> RenameEffect? {
    renameRules.first { rule in
        rule.from == rename.from && rule.to == rename.to && rule.trash == rename.trash
            && rule.isDirectory ?? rename.isDirectory == rename.isDirectory
    }?.effect
}

/// Whether two names may exchange their files (RENAME_EXCHANGE): in albums as POSIX says, and within a day. A photo
/// leaves the trash only by the rules of restoring.
package func mayExchange(
    _ from: Area, _ to: Area, isSameDirectory: Bool, isFromTrash: Bool, isIntoTrash: Bool
) -> Bool {
    guard isFromTrash == isIntoTrash else { return false }
    return (from == .album && to == .album) || (from == .day && isSameDirectory)
}
