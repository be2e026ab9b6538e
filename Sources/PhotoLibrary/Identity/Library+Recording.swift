import VaultCatalogue
import VaultFormat
import VaultStore

/// Writing identity records: by the committer alone, before a durable commit, of which they are a part.
extension Library {
    /// Writes records that are out of date, `most` at most. True where some are left for the next commit.
    ///
    /// What cannot be written, because there is no room, say, stays marked, and holds no commit up.
    func recordIdentities(most: Int) -> Bool {
        var last: UInt64 = 0
        var left = most
        while left > 0 {
            guard let batch = try? nextRecords(after: last, most: min(left, space.limits.recordsPerWrite)),
                let end = batch.end
            else { return false }
            guard (try? write(batch.records)) != nil else {
                try? committing { tree throws(FileError) in
                    tree.unrecorded.formUnion(batch.records.map(\.content))
                }
                return false
            }
            last = end
            left -= space.limits.recordsPerWrite
        }
        let more = try? committing { tree throws(FileError) in
            try sql(tree.tables.unrecorded(after: last, limit: 1))
        }
        return !(more ?? []).isEmpty
    }

    /// The next records, whose marks are taken away; `end` is the last number looked at, nil where there was none.
    private func nextRecords(
        after last: UInt64, most: Int
    ) throws(FileError) -> (records: [(content: UInt64, bytes: [UInt8])], end: UInt64?) {
        var records: [(content: UInt64, bytes: [UInt8])] = []
        var end: UInt64?
        while records.count < most {
            let found = try committing { tree throws(FileError) in
                try sql(tree.storeChanges())
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
        let marked = try sql(tree.tables.unrecorded(after: last, limit: limit))
        var records: [(content: UInt64, bytes: [UInt8])] = []
        for id in marked {
            do throws(FileError) {
                if try tree.mayHaveRecord(id) {
                    let bytes = try tree.recorded(id).encoded(history)
                    // Of rows that make no sense: what they say fits into no record.
                    guard bytes.count <= Geometry.chunkBytes else { continue }
                    records.append((id, bytes))
                } else {
                    try tree.dropRecord(id, space, overwriting: true)
                }
            } catch {
                // What cannot be read stays marked, and holds no other up.
                continue
            }
            try sql(tree.tables.unmarkUnrecorded(id))
        }
        return (records, marked.last)
    }

    /// Seals records and lets the tables name them in the place of older ones. An inode that changed meanwhile has been
    /// marked again; the record of one that has come to its end meanwhile is given up.
    private func write(_ records: [(content: UInt64, bytes: [UInt8])]) throws(FileError) {
        guard !records.isEmpty else { return }
        let runs = try stored(space.writeTogether(role: .identity, records))
        var count = 0
        var freed: [ExtentRun] = []
        var abandoned: [ExtentRun] = []
        defer {
            // Rows say where the first `count` lie, unless they were given up; nothing says so of the others.
            space.abandon(abandoned + runs[count...])
        }
        try committing { tree throws(FileError) in
            var adopted: [ExtentRun] = []
            defer {
                if !adopted.isEmpty { space.adopt(adopted) }
                if !freed.isEmpty { space.free(freed) }
            }
            for (record, run) in zip(records, runs) {
                if try tree.mayHaveRecord(record.content) {
                    let old = try sql(tree.tables.identity(record.content))
                    try sql(tree.tables.storeIdentity(record.content, run))
                    adopted.append(run)
                    if let old { freed.append(old) }
                } else {
                    abandoned.append(run)
                }
                count += 1
            }
            if let newest = adopted.last {
                try sql(
                    tree.tables.storeRecorder(epoch: newest.epoch, generation: newest.generation))
            }
        }
    }
}

extension Tree {
    fileprivate func mayHaveRecord(_ id: UInt64) throws(FileError) -> Bool {
        if id >= RetiredIDs.records { return true }
        if orphans.contains(id) { return false }
        if cached(id) != nil { return true }
        return try sql(tables.inode(id)) != nil
    }
}
