/// Inode numbers that are the same in every space.
public enum WellKnownInode {
    /// FUSE_ROOT_ID.
    public static let root: UInt64 = 1
    public static let moments: UInt64 = 2
    public static let albums: UInt64 = 3
    /// Inodes other than those that every space has from the start have this number or a higher one.
    public static let firstOfUsers: UInt64 = 16
}

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

extension InodeRow {
    /// The area of a directory.
    public var area: Area {
        if day != 0 { return .day }
        switch ino {
        case WellKnownInode.root: return .root
        case WellKnownInode.moments: return .moments
        default: return .album
        }
    }
}
