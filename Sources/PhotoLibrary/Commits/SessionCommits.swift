import FileRequests
import VaultCatalogue
import VaultFormat
package import VaultStore

/// A session as the source of the committer: its changes, and the versions and trash to destroy for room.
package final class SessionCommits: CommitSource, @unchecked Sendable {
    private let session: TreeSession
    private let trash: TrashExpiry
    private let versions: VersionExpiry

    package init(_ session: TreeSession, _ trash: TrashExpiry, _ versions: VersionExpiry) {
        (self.session, self.trash, self.versions) = (session, trash, versions)
    }

    package var space: Space { session.space }

    package var retryBounds: RetryBounds { session.options.commitRetries }

    package var monotonicMilliseconds: Int64 { session.options.clocks.monotonic() }

    package func saveFiles(unsavedBefore time: Int64) -> Bool { session.saveFiles(unsavedBefore: time) }

    package func freeze() throws(StoreError) -> FrozenCommit {
        let (session, tree, space) = (session, session.tree, session.space)
        do throws(CatalogueError) {
            return try session.catalogue.commitTransaction(
                before: { _ throws(CatalogueError) in
                    space.renewHalved()
                    try tree.storeChanges()
                },
                freeze: {
                    session.noteTransactionEnd(tree.tables.changeCount)
                    tree.unwritten.freeze()
                    return space.freeze()
                })
        } catch {
            throw FileError(error) == .noRoom ? .noRoom : .damaged
        }
    }

    package func endTransaction() {
        let (session, tree) = (session, session.tree)
        // An error recurs in the commit.
        try? session.catalogue.commitTransaction(
            before: { _ throws(CatalogueError) in try tree.storeChanges() },
            freeze: { session.noteTransactionEnd(tree.tables.changeCount) })
    }

    package func writeRecords(most: Int) -> Bool {
        let recorder = IdentityRecorder(session)
        var (left, written) = (most, 0)
        while left > 0 {
            // They change pages of the commit that begins: only as many as there is room for.
            guard let count = recordsThatFit(left, besides: written) else {
                if written == 0 { return true }
                endTransaction()
                written = 0
                continue
            }
            guard recorder.write(most: count) else { return false }
            left -= count
            written += count
        }
        return true
    }

    /// How many records the commit that begins has room for, besides those in this transaction; nil for none.
    private func recordsThatFit(_ most: Int, besides written: Int) -> Int? {
        [space.limits.recordsPerWrite, Self.recordsWhenShort].lazy.map { min(most, $0) }.first { count in
            let pages = Self.pagesPerRecord * (written + count)
            return space.hasRoom(for: .edit, pages: pages + session.unstaged)
        }
    }

    private static let recordsWhenShort = 16
    /// Its rows in two tables and in an index.
    private static let pagesPerRecord = 3

    package func noteDurable() {
        try? session.locked { tree throws(FileError) in tree.unwritten.noteDurable() }
    }

    package func makeRoom(bytes: UInt64) -> Bool {
        if destroyWithheld() { return true }
        return versions.destroyOldest(bytes: bytes) || trash.destroyOldest(bytes: bytes)
    }

    /// Destroys photos that were only withheld; false if there are none.
    private func destroyWithheld() -> Bool {
        guard (try? session.locked({ tree throws(FileError) in tree.hasWithheldPhotos })) == true else {
            return false
        }
        return (try? session.changing { tree throws(FileError) in tree.destroyWithheld() }) ?? false
    }

    package func expire(until time: Int64) -> Bool {
        let hasMore = trash.expire(until: time)
        return versions.expire(until: time) || hasMore
    }
}
