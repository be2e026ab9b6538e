import FileRequests

/// Inode numbers that are the same in every space.
package enum WellKnownInode {
    package static let root = rootInode
    package static let moments: UInt64 = 2
    package static let albums: UInt64 = 3
    /// Inodes other than those of `Tree.makeRootDirectories` have this number or a higher one.
    package static let firstOfUsers: UInt64 = 16
}
