import CatalogueRows
package import FileRequests
import LinuxIO
import VaultCatalogue
import VaultStore

/// Open files: all handles of an inode share one `FileState`.
extension TreeSession {
    /// The state of an inode's file, opened once more. Under the catalogue's lock.
    package func openState(_ inode: Inode, _ tree: Tree) throws(FileError) -> FileState {
        if let state = inode.state {
            inode.openCount += 1
            return state
        }
        let isEmpty = inode.row.allocated == 0
        let runs = isEmpty ? [] : try tree.tables.extents.runs(of: inode.row.content)
        guard space.areValid(runs) else { throw .damaged }
        let state = FileState(inode, runs, context)
        inode.state = state
        inode.openCount += 1
        return state
    }

    /// Runs `body` with a file that stays open meanwhile.
    package func withState<R>(
        of ino: UInt64, _ body: (FileState) throws(FileError) -> R
    ) throws(FileError) -> R {
        let state = try locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.isRegular else { throw inode.isDirectory ? .isDirectory : .invalid }
            let state = try openState(inode, tree)
            inode.ownUseCount += 1
            return state
        }
        defer { close(state, isOwnUse: true) }
        return try body(state)
    }

    /// Releases a handle of a file, or a use by this program.
    package func close(_ file: FileState, isOwnUse: Bool = false) {
        let isOver = try? locked { tree throws(FileError) in
            let inode = file.inode
            inode.openCount -= 1
            if isOwnUse { inode.ownUseCount -= 1 }
            guard inode.openCount == 0 else { return false }
            let isOver = inode.row.nlink == 0 && inode.isForgotten
            // A file that could not be saved keeps its state until the committer has saved it.
            if isOver || !file.hasUnsaved { inode.state = nil }
            return isOver
        }
        guard isOver == true else { return }
        file.writer.lock()
        file.discard()
        file.writer.unlock()
        // If this fails, the next session finds the inode in the table of orphans.
        try? destroy(file.ino)
    }
}
