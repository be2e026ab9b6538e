import FileRequests
import VaultCatalogue
import VaultFormat
package import VaultStore

/// The steps of a commit, and the destruction of versions and trash for room. The committer calls them.
extension TreeSession {
    /// Ends the transaction and takes the store's state, in one critical section.
    package func freeze() throws(StoreError) -> FrozenCommit {
        let (tree, space) = (self.tree, self.space)
        do throws(FileError) {
            return try catalogue.commitTransaction(
                before: { _ throws(FileError) in
                    space.renewHalved()
                    try tree.storeChanges()
                },
                freeze: {
                    room.noteTransactionEnd(tree.tables.changeCount)
                    tree.unwritten.freeze()
                    return space.freeze()
                })
        } catch {
            throw error == .noRoom ? .noRoom : .damaged
        }
    }

    /// Ends the transaction without a commit, so that its journal, which is in memory, does not grow on.
    package func endTransaction() {
        let tree = self.tree
        // An error recurs in the commit.
        try? catalogue.commitTransaction(
            before: { _ throws(FileError) in try tree.storeChanges() },
            freeze: { room.noteTransactionEnd(tree.tables.changeCount) })
    }

    /// Writes at most `most` outdated identity records, before a durable commit. Returns true if some are left.
    package func writeRecords(most: Int) -> Bool {
        let recorder = IdentityRecorder(self)
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
        func pages(_ count: Int) -> Int { Self.pagesPerRecord * (written + count) + room.unstaged }
        let (many, few) = (min(most, space.limits.recordsPerWrite), min(most, Self.recordsWhenShort))
        if space.ledger.hasRoom(for: .edit, pages: pages(many)) { return many }
        if space.ledger.hasRoom(for: .edit, pages: pages(few)) { return few }
        // More slots take room of content for good: in a space of fixed size whole segments, else disk, so not before
        // the transaction was ended, whose pages count by their worst case.
        guard space.grows, written == 0, space.ledger.makesRoom(for: .edit, pages: pages(few)) else {
            return nil
        }
        return few
    }

    private static let recordsWhenShort = 16
    /// Its rows in two tables and in an index.
    private static let pagesPerRecord = 3

    /// Notes that the newest commit is durable.
    package func noteDurable() {
        // The body throws nothing.
        try? locked { tree throws(FileError) in tree.unwritten.noteDurable() }
    }

    /// Destroys versions, else trashed photos, for that many bytes of room. Returns false if there are none.
    package func makeRoom(bytes: UInt64) -> Bool {
        if destroyWithheld() { return true }
        return VersionExpiry(self).destroyOldest(bytes: bytes)
            || TrashExpiry(self).destroyOldest(bytes: bytes)
    }

    /// Destroys photos that were only withheld; false if there are none.
    private func destroyWithheld() -> Bool {
        guard (try? locked({ tree throws(FileError) in tree.saves.hasWithheldPhotos })) == true else {
            return false
        }
        return (try? change { change throws(FileError) in change.tree.saves.destroyWithheld() }) ?? false
    }

    /// Destroys expired trash and versions, until that time of the monotonic clock. Returns true if some are left.
    package func expire(until time: Int64) -> Bool {
        let hasMore = TrashExpiry(self).expire(until: time)
        return VersionExpiry(self).expire(until: time) || hasMore
    }
}
