package import FileRequests
import VaultCatalogue
package import VaultFormat
package import VaultStore

/// The stored bytes of files that are removed.
package struct Contents {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// Frees a content of few extents.
    package func free(_ content: UInt64, _ space: Space, overwriting: Bool = false) throws(FileError) {
        let runs = try tree.tables.extents.runs(of: content)
        guard let first = runs.first, let last = runs.last else { return }
        try tree.tables.extents.delete(of: content, from: first.offset, through: last.offset)
        space.free(try unnamed(runs, of: content), overwriting: overwriting)
    }

    /// The parts of runs, whose rows were deleted, that no other row names: a content may share extents with its
    /// snapshots.
    package func unnamed(_ runs: [ExtentRun], of content: UInt64) throws(FileError) -> [ExtentRun] {
        if !SnapshotID.isSnapshot(content) {
            guard try tree.tables.snapshots.exist(of: content) else { return runs }
        }
        return try tree.tables.snapshots.unnamed(runs)
    }
}
