package import FileRequests
import VaultCatalogue
package import VaultFormat
package import VaultStore

extension Tree {
    /// Frees a content of few extents.
    package func freeContent(_ content: UInt64, _ space: Space, overwriting: Bool = false) throws(FileError) {
        let runs = try sql(tables.extents(of: content))
        guard let first = runs.first, let last = runs.last else { return }
        try sql(tables.deleteExtents(of: content, from: first.offset, through: last.offset))
        space.free(try unnamed(runs, of: content), overwriting: overwriting)
    }

    /// The parts of runs, whose rows were deleted, that no other row names: a content may share extents with its
    /// snapshots.
    package func unnamed(_ runs: [ExtentRun], of content: UInt64) throws(FileError) -> [ExtentRun] {
        if !SnapshotID.isSnapshot(content) {
            guard try sql(tables.hasSnapshots(of: content)) else { return runs }
        }
        return try sql(tables.unnamed(runs))
    }
}
