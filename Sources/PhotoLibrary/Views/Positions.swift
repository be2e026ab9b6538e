package import CatalogueRows
package import FileRequests
import LinuxIO
import VaultCatalogue
import VaultFormat

/// Positions of photos, from their metadata: of photos that are classified at once, of those in older vaults in the
/// background.
package final class Positions {
    private unowned let tree: Tree
    /// When a position was last stored, or a photo with one came into views or left them; the earliest time at the
    /// start of a session.
    private(set) var modified = Timestamp(seconds: 0)
    /// Photos whose place in views may be another since `takeChanged`; nil if there are too many to tell.
    private var changed: Set<UInt64>? = nil

    init(_ tree: Tree) { self.tree = tree }

    /// Whether the position of a photo is known, or that it has none.
    package func isKnown(_ ino: UInt64) throws(FileError) -> Bool {
        try tree.tables.positions.position(of: ino) != nil
    }

    /// Stores the position of a photo.
    package func store(_ position: PhotoPosition, of inode: Inode) throws(FileError) {
        let isShown = !inode.isTrashed && !tree.orphans.contains(inode.ino)
        try store(StoredPosition(position, isShown: isShown), of: inode.ino)
    }

    /// Forgets the position of what is no photo any more.
    func forget(_ ino: UInt64) throws(FileError) { try store(nil, of: ino) }

    /// Notes that a photo has come into views, or left them: it keeps its position for its return.
    func setShown(_ ino: UInt64, _ isShown: Bool) throws(FileError) {
        guard var stored = try tree.tables.positions.position(of: ino), stored.isShown != isShown else {
            return
        }
        stored.isShown = isShown
        try store(stored, of: ino)
    }

    /// Gives a file that takes the place of a photo with its bytes the position of that.
    func copy(from ino: UInt64, to inode: Inode) throws(FileError) {
        guard let stored = try tree.tables.positions.position(of: ino) else { return }
        try store(stored, of: inode.ino)
    }

    private func store(_ position: StoredPosition?, of ino: UInt64) throws(FileError) {
        guard try tree.tables.positions.store(position, of: ino) else { return }
        modified = .now()
        changed?.insert(ino)
        if let count = changed?.count, count > tree.options.limits.changedPositions { changed = nil }
    }

    /// Notes that the place of any photo may be another.
    func noteAll() { changed = nil }

    /// The photos whose place may be another since the last call; nil if it may be that of any.
    func takeChanged() -> Set<UInt64>? {
        defer { changed = [] }
        return changed
    }
}
