/// The kind of a directory, by the rules that hold in it.
public enum Area: Sendable, CaseIterable {
    /// The root: only trash directories (`.Trash-UID`) can be made.
    case root
    /// `moments` itself: days only.
    case moments
    /// A day: photos and plain files.
    case day
    /// `albums` and everything below it; also the trash, which differs little.
    case album
}
