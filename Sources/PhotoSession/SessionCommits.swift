package import FileRequests
package import FileTree
import PhotoTree
import Recovery
import VaultCatalogue
package import VaultStore

/// The library as the committer and a check see it.
extension Library: TreeAccess, CommitSource {
    package func reading<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R {
        try locked { tree throws(FileError) in try body(tree) }
    }

    package func committing<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R {
        try catalogue.locked { tables throws(FileError) in
            guard tables.isIntact else { throw .damaged }
            tree.trim(isKernelNotified: isKernelNotified)
            return try body(tree)
        }
    }

    package var retryBounds: RetryBounds { options.commitRetries }

    package var monotonicMilliseconds: Int64 { options.clocks.monotonic() }

    package func freeze() throws(StoreError) -> FrozenCommit {
        do throws(CatalogueError) {
            return try catalogue.commitTransaction(
                before: { _ throws(CatalogueError) in try tree.storeChanges() },
                freeze: {
                    tree.unwritten.freeze()
                    return space.freeze()
                })
        } catch {
            throw FileError(error) == .noRoom ? .noRoom : .damaged
        }
    }

    package func writeRecords(most: Int) -> Bool { IdentityRecorder(self).write(most: most) }

    package func noteDurable() { try? locked { tree throws(FileError) in tree.unwritten.noteDurable() } }

    package func makeRoom(bytes: UInt64) -> Bool { destroyOldestTrash(bytes: bytes) }

    package func expire(until time: Int64) -> Bool { expireTrash(until: time) }
}
