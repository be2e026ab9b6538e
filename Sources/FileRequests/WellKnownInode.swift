/// Inode numbers that are the same in every space.
public enum WellKnownInode {
    /// FUSE_ROOT_ID.
    public static let root: UInt64 = 1
    public static let moments: UInt64 = 2
    public static let albums: UInt64 = 3
    /// The parent of the directories of versions, in spaces that have had any. It has no name.
    public static let versions: UInt64 = 4
    /// Inodes other than those that every space has from the start have this number or a higher one.
    public static let firstOfUsers: UInt64 = 16
}
