import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Versions of photos that are written in place.
extension TreeSession {
    /// Keeps the saved bytes of a photo before they are changed in place. The writer's lock is held.
    ///
    /// - Parameter kept: how many of the file's first bytes stay, at least in part.
    func keepVersion(of file: FileState, keeping kept: UInt64) throws(FileError) {
        if isReadOnly { return }
        let isKept = try locked { tree throws(FileError) in
            file.noteSnapshots(try tree.tables.snapshots.exist(of: file.content))
            return options.versions != .off && (file.inode.isPhoto || file.inode.isCopy)
        }
        guard isKept else { return }
        let rowsMax = kept > 0 ? space.limits.snapshotRows : 0
        let rows = min(file.map.pieces.count, rowsMax)
        let pages = PageRoom.pagesPerChange + FileContext.pages(ofRows: rows)
        try change(for: .edit, pages: pages) { change throws(FileError) in
            let isNew = try change.tree.versions.keepVersion(
                of: file.inode, for: file.ino, snapshotRows: rowsMax, now: .now())
            guard isNew else { return }
            guard try change.tree.tables.snapshots.exist(of: file.content) else { return }
            file.noteSnapshots(true)
            space.passGeneration(of: file.map.pieces.map(\.run))
        }
    }
}
