package import CatalogueRows

/// A photo's name in moments comes from the name in an album by which the photo arrived. It follows when that name is
/// changed, so that the working name of a program that copies (`IMG.jpg.02430b31.partial`) does not stay. A name that
/// was given in moments itself stays.

/// The name in an album that a photo's moment is named after; nil if there is none, or it was renamed to a working or
/// backup name since. Of several, an ordinary name comes before a membership, and an older name before a newer one.
///
/// - Parameter names: of the photo.
package func namesake(of moment: [UInt8], among names: [PlacedName]) -> DentryRow? {
    names.filter { !$0.isInDay && isNumberedForm(moment, of: $0.row.name) }.map(\.row)
        .min { ($0.isMember ? 1 : 0, $0.id) < ($1.isMember ? 1 : 0, $1.id) }
}

/// A rename of a photo's name in an album.
package struct MomentFollowing: Sendable {
    /// Whether the moment's name was given in moments.
    package var isGiven = false
    /// Whether the renamed name is the moment's namesake; `hasOther` whether another name is.
    package var isNamesake = false
    package var hasOther = false
    /// Whether the old name is a working or backup name; `becomesWorking` whether the new one is. The moment does not
    /// follow to such a name, and follows when the file gets another.
    package var wasWorking = false
    package var becomesWorking = false

    package init() {}
}

/// Whether a photo's name in moments follows the rename of one of its names in albums.
package func follows(_ rename: MomentFollowing) -> Bool {
    guard !rename.isGiven, !rename.becomesWorking else { return false }
    return rename.isNamesake || rename.wasWorking && !rename.hasOther
}
