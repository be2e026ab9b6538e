package import FileRequests
import LinuxIO
package import VaultCatalogue
import VaultFormat

/// A photo that is in views no more, and was similar to others.
struct RemovedLikeness {
    var hash: UInt64
    /// Its name in views.
    var name: [UInt8]
}

/// Hashes of the standard pictures of photos that are in views. They are computed in the background.
package final class Likenesses {
    private unowned let tree: Tree
    /// Grows when a photo gets a hash, or loses it other than by leaving views.
    private(set) var additions: UInt64 = 0
    /// When hashes were last added or removed; the earliest time at the start of a session.
    private(set) var modified = Timestamp(seconds: 0)
    /// Photos that lost theirs in this session, so that the groups in which they were keep their names.
    private(set) var removed: [UInt64: RemovedLikeness] = [:]

    init(_ tree: Tree) { self.tree = tree }

    /// The likeness of a photo; nil if it is not known.
    package func likeness(of ino: UInt64) throws(FileError) -> Likeness? {
        try tree.tables.likenesses.likeness(of: ino)
    }

    /// Stores the likeness of a photo's present picture.
    package func store(_ likeness: Likeness, of inode: Inode) throws(FileError) {
        guard inode.isPhoto, !inode.isTrashed, !tree.orphans.contains(inode.ino) else { return }
        try tree.tables.likenesses.store(likeness, of: inode.ino)
        guard case .hash = likeness else { return }
        removed[inode.ino] = nil
        additions += 1
        modified = .now()
    }

    /// Forgets the likeness of a photo that has left views, or has other bytes.
    ///
    /// - Parameter name: its name in views, if it has left them.
    package func forget(_ ino: UInt64, named name: [UInt8]? = nil) throws(FileError) {
        guard let likeness = try likeness(of: ino) else { return }
        try tree.tables.likenesses.store(nil, of: ino)
        guard case .hash(let hash) = likeness else { return }
        if let name, removed.count < tree.options.limits.removedLikenesses {
            removed[ino] = RemovedLikeness(hash: hash, name: name)
        } else {
            additions += 1
        }
        modified = .now()
    }
}
