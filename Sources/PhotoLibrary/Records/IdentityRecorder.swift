import FileRequests
import VaultCatalogue
import VaultFormat
import VaultStore

/// Writes identity records, as part of each durable commit. Only the committer's thread uses it.
package struct IdentityRecorder {
    private let session: TreeSession
    private var space: Space { session.space }

    package init(_ session: TreeSession) { self.session = session }

    /// Writes at most `most` outdated records. Returns true if some are left for the next commit.
    ///
    /// Records that cannot be written, for lack of room for example, stay marked and delay no commit.
    package func write(most: Int) -> Bool {
        var last: UInt64 = 0
        var left = most
        while left > 0 {
            guard let batch = try? nextRecords(after: last, most: min(left, space.limits.recordsPerWrite)),
                let end = batch.end
            else { return false }
            guard (try? write(batch.records)) != nil else {
                // The body throws nothing.
                try? session.committing { tree throws(FileError) in
                    tree.marks.add(batch.records.map(\.content))
                }
                return false
            }
            last = end
            left -= space.limits.recordsPerWrite
        }
        let more = try? session.committing { tree throws(FileError) in
            try tree.tables.identities.unrecorded(after: last, limit: 1)
        }
        return !(more ?? []).isEmpty
    }

    /// Takes the next records and clears their marks. `end` is the last number that was read; nil if there was none.
    private func nextRecords(
        after last: UInt64, most: Int
    ) throws(FileError) -> (records: [(content: UInt64, bytes: [UInt8])], end: UInt64?) {
        var records: [(content: UInt64, bytes: [UInt8])] = []
        var end: UInt64?
        while records.count < most {
            let found = try session.committing { tree throws(FileError) in
                try tree.storeChanges()
                return try takeRecords(
                    tree, after: end ?? last, limit: min(space.limits.recordsPerLock, most))
            }
            guard let newEnd = found.end else { break }
            records += found.records
            end = newEnd
        }
        return (records, end)
    }

    private func takeRecords(
        _ tree: Tree, after last: UInt64, limit: Int
    ) throws(FileError) -> (records: [(content: UInt64, bytes: [UInt8])], end: UInt64?) {
        let history = RecordedHistory(before: tree.recorder, durable: space.newestDurable)
        let marked = try tree.tables.identities.unrecorded(after: last, limit: limit)
        var records: [(content: UInt64, bytes: [UInt8])] = []
        for id in marked {
            do throws(FileError) {
                if try mayHaveRecord(id, tree) {
                    let bytes = try tree.records.record(of: id).encoded(history)
                    // Too large for a record: the rows are damaged.
                    guard bytes.count <= Geometry.chunkBytes else { continue }
                    records.append((id, bytes))
                } else {
                    try RecordMarks.drop(id, tree.tables, space, overwriting: true)
                }
            } catch {
                // A record that cannot be read stays marked and delays no other.
                continue
            }
            try tree.tables.identities.unmarkUnrecorded(id)
        }
        return (records, marked.last)
    }

    /// Seals records and replaces older ones in the tables. An inode that changed meanwhile has been marked again; a
    /// record whose inode was retired meanwhile is abandoned.
    private func write(_ records: [(content: UInt64, bytes: [UInt8])]) throws(FileError) {
        guard !records.isEmpty else { return }
        let runs = try stored(space.writeBatch(role: .identity, records))
        var count = 0
        var freed: [ExtentRun] = []
        var abandoned: [ExtentRun] = []
        defer {
            // Rows name the first `count` runs, except the abandoned ones; no row names the others.
            space.abandon(abandoned + runs[count...])
        }
        try session.committing { tree throws(FileError) in
            var adopted: [ExtentRun] = []
            defer {
                if !adopted.isEmpty { space.adopt(adopted) }
                if !freed.isEmpty { space.free(freed) }
            }
            for (record, run) in zip(records, runs) {
                if try mayHaveRecord(record.content, tree) {
                    let old = try tree.tables.identities.location(record.content)
                    try tree.tables.identities.store(record.content, run)
                    adopted.append(run)
                    if let old { freed.append(old) }
                } else {
                    abandoned.append(run)
                }
                count += 1
            }
            if let newest = adopted.last {
                try tree.tables.identities.storeRecorder(epoch: newest.epoch, generation: newest.generation)
            }
        }
    }

    private func mayHaveRecord(_ id: UInt64, _ tree: Tree) throws(FileError) -> Bool {
        if id >= RetiredIDs.records { return true }
        if tree.orphans.contains(id) { return false }
        if tree.cached(id) != nil { return true }
        return try tree.tables.inodes.row(id) != nil
    }
}
