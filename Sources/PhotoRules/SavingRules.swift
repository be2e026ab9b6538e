package import CatalogueRows

/// Programs save a photo in three ways: they write into it, they rename a new file over it, or they rename the photo to
/// a backup name and give its name to a new file. In the last two the new file becomes the photo: its moment, its
/// albums and its pinned day are the photo's from then on. The rules here tell which new file is a save, and which
/// names stay with the old bytes.

/// A name of a file, and whether its directory is a day.
package struct PlacedName: Sendable, Equatable {
    package var row: DentryRow
    package var isInDay: Bool

    package init(_ row: DentryRow, isInDay: Bool) { (self.row, self.isInDay) = (row, isInDay) }
}

/// A regular file that is renamed over a photo, not from the trash.
package struct SaveFacts: Sendable {
    /// Whether the file is a photo already.
    package var isPhoto: Bool
    /// Whether its old name was that of a program's working file.
    package var hadWorkingName: Bool
    /// Whether its new name may be a photo's.
    package var getsPhotoName: Bool
    /// Whether a program has just written it; see `isNewFile`.
    package var isNew: Bool
    /// Whether it was in the photo's directory.
    package var isBeside: Bool

    package init(isPhoto: Bool, hadWorkingName: Bool, getsPhotoName: Bool, isNew: Bool, isBeside: Bool) {
        (self.isPhoto, self.hadWorkingName, self.getsPhotoName) = (isPhoto, hadWorkingName, getsPhotoName)
        (self.isNew, self.isBeside) = (isNew, isBeside)
    }
}

/// Whether a file renamed over a photo is its new version, and not another photo.
package func isSave(_ file: SaveFacts) -> Bool {
    guard file.getsPhotoName else { return false }
    // rsync links a file that it has to a working name, and renames that over another.
    if file.isPhoto && file.hadWorkingName { return true }
    // Programs write next to the file that they replace: a new photo from elsewhere is a different one.
    return file.isNew && (file.hadWorkingName || file.isBeside)
}

/// Whether a program wrote a file in order to replace another: the file was made in this session and has no names
/// except the one with this id and, if that is in an album, its moment on a day that the user did not choose.
///
/// - Parameters:
///   - isInDay: whether that name is in a day.
///   - isPinned: whether the user chose the day of the photo; false for a plain file.
package func isNewFile(
    _ names: [PlacedName], own id: UInt64, isInDay: Bool, isOfSession: Bool, isPinned: Bool
) -> Bool {
    guard isOfSession, names.count <= 2 else { return false }
    let others = names.filter { $0.row.id != id }
    return isInDay ? others.isEmpty : others.allSatisfy(\.isInDay) && !isPinned
}

/// A photo's own name in moments. A photo whose album links stayed with its old bytes when it was saved anew has a
/// backup name next to its own; if that is its only name in moments, it counts.
package func ownMoment(_ names: [PlacedName]) -> DentryRow? {
    let moments = names.filter(\.isInDay).map(\.row)
    return moments.first { backupOriginal($0.name) == nil } ?? moments.first
}

/// The ids of the names that stay with a photo's old bytes when a new file is saved as `name` in `place`: its backups,
/// of this save or an earlier one; and, if it is saved in an album, the other hard links of names in albums, as POSIX
/// says. The others become names of the new file: the photo's moment, its memberships and the name by which it was put
/// into an album.
///
/// - Parameters:
///   - names: of the photo.
///   - place: the directory of the saved name.
package func namesStaying(
    withOldBytesOf names: [PlacedName], whenSavedAs name: [UInt8], in place: UInt64, isDay: Bool
) -> Set<UInt64> {
    let own = ownMoment(names)?.id
    // Backup names in days that still belong to the photo.
    let former = names.filter { $0.isInDay && $0.row.id != own }.map(\.row)
    let backups =
        names.map(\.row).filter {
            $0.parent == place && isBackupName($0.name, of: name) && !former.contains($0)
        } + former
    if isDay { return Set(backups.map(\.id)) }
    let saved = names.map(\.row).first { $0.isOf(place, name) } ?? backups.first
    let ordinary = names.filter {
        !$0.row.isMember && !$0.isInDay
            && ($0.row.id == saved?.id || !isWorkingName($0.row.name) && !backups.contains($0.row))
    }.map(\.row)
    // Catalogues of earlier releases do not tell links apart: there the oldest name counts.
    let first = ordinary.filter { !$0.isLink }.min { $0.id < $1.id }
    return Set((backups + ordinary.filter { $0.id != saved?.id && $0.id != first?.id }).map(\.id))
}

/// The removal of a photo's name, and the rename of a file onto that name, or a new file of that name.
package struct RemovalFacts: Sendable {
    /// Whether the file had its name in the directory before the removal, and is renamed within the directory; or is
    /// new.
    package var wasBeside: Bool
    /// The threads that requested the removal (`remover`) and the rename or the file (`caller`); 0 or less if unknown.
    package var remover: Int32
    package var caller: Int32
    /// The time between the removal and the rename.
    package var milliseconds: Int64

    package init(wasBeside: Bool, remover: Int32, caller: Int32, milliseconds: Int64) {
        (self.wasBeside, self.remover) = (wasBeside, remover)
        (self.caller, self.milliseconds) = (caller, milliseconds)
    }
}

/// The longest time between a removal and the rename that belongs to it. A person who deletes one photo and renames
/// another takes longer, even if one thread of a file manager does both.
package let removalMillisecondsMax: Int64 = 3000

/// Whether a program removed a photo's name in order to rename a file onto it, or to make that file anew: one thread
/// did both, one soon after the other, and a renamed file lay beside the photo before. The photo itself then changes.
package func isSavedByRemoval(_ facts: RemovalFacts) -> Bool {
    facts.wasBeside && facts.remover > 0 && facts.remover == facts.caller
        && facts.milliseconds <= removalMillisecondsMax
}
