package import FileRequests
import VaultCatalogue
import VaultFormat
package import VaultStore

extension Tree {
    /// Frees a content of few extents.
    package func freeContent(_ content: UInt64, _ space: Space, overwriting: Bool = false) throws(FileError) {
        let runs = try sql(tables.extents(of: content))
        guard let first = runs.first, let last = runs.last else { return }
        try sql(tables.deleteExtents(of: content, from: first.offset, through: last.offset))
        space.free(runs, overwriting: overwriting)
    }
}
