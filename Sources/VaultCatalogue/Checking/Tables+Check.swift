public import VaultFormat
public import VaultStore

/// A row that names the extents of a file or thumbnail.
public struct ContentOwner: Sendable, Hashable {
    public var content: UInt64
    /// The inode of the file, or of the thumbnail's photo.
    public var ino: UInt64
    public var isThumbnail: Bool
}

/// Queries of a check: they read whole tables. Prepared when they are needed.
extension Tables {
    /// The errors of `PRAGMA integrity_check`; empty if the database is sound.
    public func integrityErrors() throws(CatalogueError) -> [IntegrityError] {
        let lines = try connection.prepare("PRAGMA integrity_check(20)").all {
            String(decoding: $0.bytes(0), as: UTF8.self)
        }
        return lines == ["ok"] ? [] : lines.map { IntegrityError(text: $0) }
    }

    /// Inodes, or contents, that violate a constraint; at most `limit`.
    public func violations(of constraint: IntegrityConstraint, limit: Int) throws(CatalogueError) -> [UInt64]
    {
        let query = connection.prepare("SELECT * FROM (\(constraint.query)) LIMIT ?")
        query.bind(1, Int64(limit))
        return try query.all { $0.unsigned(0) }
    }

    /// Counts all totals again.
    public func countTotals() throws(CatalogueError) {
        for constraint in IntegrityConstraint.totals {
            if case .statements(let statements) = constraint.remedy {
                for statement in statements { try connection.execute(statement) }
            }
        }
    }

    /// Rebuilds all indexes from their tables.
    public func reindex(_ chooseName: CatalogueMender.NameChooser) throws(CatalogueError) {
        let indexes = try connection.prepare(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        ).all { (String(decoding: $0.bytes(0), as: UTF8.self), String(decoding: $0.bytes(1), as: UTF8.self)) }
        // Dropped first, so that no query uses a wrong index and no row must agree with it.
        for (name, _) in indexes { try connection.execute("DROP INDEX \(name)") }
        try renameDuplicates(chooseName)
        for (_, statement) in indexes { try connection.execute(statement) }
        trustsSectorIndexes = true
    }

    /// Renames all but the oldest of several entries with one name in a directory.
    private func renameDuplicates(_ chooseName: CatalogueMender.NameChooser) throws(CatalogueError) {
        let doubles = try connection.prepare(
            """
            SELECT parent, id, name FROM (SELECT *, row_number() OVER (PARTITION BY parent, name ORDER BY id) AS n
                FROM dentry) WHERE n > 1
            """
        ).all { ($0.integer(0), $0.integer(1), $0.bytes(2)) }
        let known = connection.prepare("SELECT 1 FROM dentry WHERE parent = ? AND name = ?")
        let rename = connection.prepare("UPDATE dentry SET name = ?3 WHERE parent = ?1 AND id = ?2")
        for (parent, id, name) in doubles {
            let chosen = try chooseName(name) { name throws(CatalogueError) in
                known.bind(1, parent)
                known.bind(2, name)
                return try known.one { _ in true } == nil
            }
            rename.bind(1, parent)
            rename.bind(2, id)
            rename.bind(3, chosen)
            try rename.run()
        }
    }

    // MARK: Names

    /// Names of an inode, valid or not, the oldest first; at most `limit`.
    public func rawNames(
        of ino: UInt64, limit: Int
    ) throws(CatalogueError) -> [(parent: UInt64, name: [UInt8])] {
        let query = connection.prepare(
            "SELECT parent, name FROM dentry WHERE ino = ? ORDER BY id LIMIT ?")
        query.bind(1, ino)
        query.bind(2, Int64(limit))
        return try query.all { ($0.unsigned(0), $0.bytes(1)) }
    }

    // MARK: Runs

    /// All runs of sealed extents; `record` is 1 for an identity record.
    var runs: String {
        // An index is on columns: a search or a sort by an expression does not use it.
        let (length, sector) = trustsSectorIndexes ? ("length", "sector") : ("+length", "+sector")
        let columns = "\(length) AS length, \(sector) AS sector, generation, epoch"
        return "SELECT content, offset, \(columns), 0 AS record FROM extent "
            + "UNION ALL SELECT id, 0, \(columns), 1 FROM identity"
    }

    /// How many runs begin in each segment that has some.
    public func runCounts(sectorsPerSegment: Int) throws(CatalogueError) -> [Int: Int] {
        let query = connection.prepare(
            "SELECT sector / ?1 AS segment, count(*) FROM (\(runs)) GROUP BY segment")
        query.bind(1, Int64(sectorsPerSegment))
        var counts: [Int: Int] = [:]
        for (segment, count) in try query.all({ ($0.integer(0), $0.integer(1)) }) {
            counts[Int(segment)] = Int(count)
        }
        return counts
    }

    /// All runs that begin in a range of sectors, in their order.
    public func runs(in sectors: Range<UInt64>) throws(CatalogueError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT * FROM (\(runs)) WHERE sector >= ?1 AND sector < ?2 ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all(Self.checkedRun)
    }

    /// Runs that begin outside the space and are not lost ones either.
    ///
    /// - Parameter end: the number of sectors in the space.
    public func runsNowhere(from end: UInt64) throws(CatalogueError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT * FROM (\(runs)) WHERE NOT sector BETWEEN 0 AND ?1 "
                + "AND NOT sector BETWEEN \(Geometry.lostSector) AND \(Geometry.numberMax - 1)")
        query.bind(1, Int64(clamping: end) - 1)
        return try query.all(Self.checkedRun)
    }

    /// Runs of lost bytes.
    public func lostRuns() throws(CatalogueError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT * FROM (\(runs)) "
                + "WHERE sector BETWEEN \(Geometry.lostSector) AND \(Geometry.numberMax - 1)")
        return try query.all(Self.checkedRun)
    }

    /// Identity records with numbers above `last`, in order, at most `limit`, valid or not.
    public func records(after last: UInt64, limit: Int) throws(CatalogueError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT id, 0, length, sector, generation, epoch, 1 FROM identity WHERE id > ? ORDER BY id LIMIT ?"
        )
        query.bind(1, last)
        query.bind(2, Int64(limit))
        return try query.all(Self.checkedRun)
    }

    /// Whether a row of a snapshot is equal to one of its source, or of an earlier snapshot of that.
    private static let isOfAnother = """
        EXISTS (SELECT 1 FROM extent AS o WHERE o.sector = e.sector AND o.content < e.content AND o.offset = e.offset
            AND o.length = e.length AND o.generation = e.generation AND o.epoch = e.epoch
            AND (e.content - (1 << 61)) >> 30
                = CASE WHEN o.content < 1 << 61 THEN o.content ELSE (o.content - (1 << 61)) >> 30 END)
        """

    /// The runs from an offset of a content on, by content and offset; at most `limit`. The first may begin before.
    /// Without identity records, and without the rows of a snapshot whose extents another content has. Damaged rows may
    /// be out of order.
    public func runs(
        from content: UInt64, _ offset: UInt64, limit: Int
    ) throws(CatalogueError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT *, 0 FROM extent AS e WHERE (content, offset) >= (?1, coalesce((SELECT max(offset) "
                + "FROM extent WHERE content = ?1 AND offset <= ?2), ?2)) "
                + "AND (content > ?1 OR offset + length > ?2) "
                + "AND NOT (content >= \(SnapshotID.all.lowerBound) AND \(Self.isOfAnother)) "
                + "ORDER BY content, offset LIMIT ?3")
        query.bind(1, content)
        query.bind(2, min(offset, UInt64(Int64.max)))
        query.bind(3, Int64(limit))
        return try query.all(Self.checkedRun)
    }

    /// The damage of some contents, and the same damage of all contents that have those extents.
    public func ofAllContents(_ damage: [ExtentDamage]) throws(CatalogueError) -> [ExtentDamage] {
        var all = damage
        for one in damage where !one.isRecord && !one.fault.isOfOneExtent {
            let source = SnapshotID.source(one.content)
            let snapshots = try snapshots(of: source)
            if snapshots.isEmpty { continue }
            let end = min(one.offset, 1 << 62) + min(one.length, 1 << 62)
            let own = Set(
                try runs(of: one.content, isRecord: false).map(\.run).filter {
                    $0.offset < end && $0.following > one.offset
                })
            for other in [source] + snapshots where other != one.content {
                for run in try runs(of: other, isRecord: false).map(\.run) where own.contains(run) {
                    var same = one
                    same.content = other
                    same.offset = max(run.offset, one.offset)
                    same.length = min(run.following, end) - same.offset
                    let chunk = (same.offset - run.offset) / UInt64(Geometry.chunkBytes)
                    same.sector = run.sector &+ chunk &* UInt64(Geometry.sectorsPerChunk)
                    all.append(same)
                }
            }
        }
        return all
    }

    /// All runs that have sectors in a range, by sector.
    public func runs(reaching sectors: Range<UInt64>) throws(CatalogueError) -> [CheckedRun] {
        // Upper bound of a run's sectors: as if all its chunks were whole.
        let query = connection.prepare(
            "SELECT * FROM (\(runs)) WHERE sector < ?2 "
                + "AND sector + (length / \(Geometry.chunkBytes) + 1) * \(Geometry.sectorsPerChunk) > ?1 "
                + "ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all(Self.checkedRun)
    }

    /// All runs of a content, or of an identity record.
    public func runs(of content: UInt64, isRecord: Bool) throws(CatalogueError) -> [CheckedRun] {
        let query = connection.prepare("SELECT * FROM (\(runs)) WHERE content = ?1 AND record = ?2")
        query.bind(1, content)
        query.bind(2, isRecord ? 1 : 0 as Int64)
        return try query.all(Self.checkedRun)
    }

    static func checkedRun(_ row: Statement) -> CheckedRun {
        CheckedRun(
            content: row.unsigned(0), isRecord: row.integer(6) != 0,
            run: ExtentRun(
                offset: row.unsigned(1), length: row.unsigned(2), sector: row.unsigned(3),
                generation: row.unsigned(4), epoch: row.unsigned(5)))
    }

    /// The owners of these contents. Reads all rows of files and thumbnails.
    public func owners(of contents: Set<UInt64>) throws(CatalogueError) -> [ContentOwner] {
        if contents.isEmpty { return [] }
        var found: [ContentOwner] = []
        for (table, isThumbnail) in [("inode", false), ("thumbnail", true)] {
            let rows = connection.prepare("SELECT content, ino FROM \(table) WHERE content <> 0")
            try rows.each { row in
                let content = row.unsigned(0)
                if contents.contains(content) {
                    found.append(
                        ContentOwner(content: content, ino: row.unsigned(1), isThumbnail: isThumbnail))
                }
                return true
            }
        }
        return found
    }

    /// Contents that violate a constraint with the remedy `.extents`.
    public func contentsToMend() throws(CatalogueError) -> [UInt64] {
        var found: [UInt64] = []
        for query in [
            IntegrityConstraint.impossibleExtents, IntegrityConstraint.overlappingExtents,
            IntegrityConstraint.unowned,
            IntegrityConstraint.sharedByThumbnails, IntegrityConstraint.missingExtents,
        ] { found += try connection.prepare(query).all { $0.unsigned(0) } }
        return found
    }

    /// The size of the largest file with a content, among possible sizes; nil if no file has it.
    public func largestSize(ofFilesWith content: UInt64) throws(CatalogueError) -> UInt64? {
        let query = connection.prepare(
            "SELECT max(size) FROM inode WHERE content = ? AND \(ConstraintSQL.isFile) "
                + "AND size BETWEEN 0 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.isNull(0) ? nil : $0.unsigned(0) } ?? nil
    }

    /// The bytes that a file with a content stores by its row; its size if that count is impossible.
    public func storedBytes(ofFilesWith content: UInt64) throws(CatalogueError) -> UInt64 {
        let query = connection.prepare(
            "SELECT coalesce(max(CASE WHEN allocated BETWEEN 0 AND size THEN allocated ELSE size END), 0) "
                + "FROM inode WHERE content = ? AND \(ConstraintSQL.isFile) "
                + "AND size BETWEEN 0 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.unsigned(0) } ?? 0
    }

    /// Counts the stored bytes of the files with a content again.
    public func countStoredBytes(ofFilesWith content: UInt64) throws(CatalogueError) {
        let update = connection.prepare(
            "UPDATE inode SET allocated = \(ConstraintSQL.storedBytes) WHERE content = ? AND \(ConstraintSQL.isFile)"
        )
        update.bind(1, content)
        try update.run()
    }

    /// The size of a file with a content that has no holes by its row; nil if there is none.
    public func sizeWithoutHoles(ofFilesWith content: UInt64) throws(CatalogueError) -> UInt64? {
        let query = connection.prepare(
            "SELECT max(size) FROM inode WHERE content = ? AND \(ConstraintSQL.isFile) AND allocated = size "
                + "AND size BETWEEN 1 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.isNull(0) ? nil : $0.unsigned(0) } ?? nil
    }

    /// Identity records of files with a content that are not marked as outdated, and their revision.
    public func currentRecords(
        ofFilesWith content: UInt64
    ) throws(CatalogueError) -> [(record: CheckedRun, revision: UInt64)] {
        let query = connection.prepare(
            "SELECT id, 0, identity.length, sector, generation, epoch, 1, version FROM inode "
                + "JOIN identity ON identity.id = inode.ino WHERE content = ? AND \(ConstraintSQL.isFile) "
                + "AND ino NOT IN (SELECT id FROM unrecorded)")
        query.bind(1, content)
        return try query.all { (Self.checkedRun($0), $0.unsigned(7)) }
    }

    /// Replaces all runs of a content.
    public func replaceRuns(of content: UInt64, by runs: [ExtentRun]) throws(CatalogueError) {
        let delete = connection.prepare("DELETE FROM extent WHERE content = ?")
        delete.bind(1, content)
        try delete.run()
        for run in runs { try insert(run, of: content) }
    }

    /// Marks the identity records of all files with a content as outdated.
    public func markRecords(ofContent content: UInt64) throws(CatalogueError) {
        let mark = connection.prepare(
            "INSERT OR IGNORE INTO unrecorded SELECT ino FROM inode WHERE content = ? AND ino >= 16")
        mark.bind(1, content)
        try mark.run()
    }

    /// Deletes a thumbnail and its extents.
    public func dropThumbnail(content: UInt64) throws(CatalogueError) {
        try replaceRuns(of: content, by: [])
        try dropThumbnailRows(content: content)
    }

    /// Deletes a thumbnail whose extents belong to a file.
    public func dropThumbnailRows(content: UInt64) throws(CatalogueError) {
        let delete = connection.prepare("DELETE FROM thumbnail WHERE content = ?")
        delete.bind(1, content)
        try delete.run()
    }

    /// The number of regular files that have a name.
    public func fileCount() throws(CatalogueError) -> Int {
        let query = connection.prepare(
            "SELECT count(*) FROM inode WHERE mode & 61440 = 32768 AND nlink > 0")
        return try query.one { Int($0.integer(0)) } ?? 0
    }
}

/// A line of `PRAGMA integrity_check`.
public struct IntegrityError: Sendable {
    public let text: String

    /// Whether an index disagrees with its table, which is sound.
    public var isOfIndex: Bool {
        text.contains("missing from index") || text.contains("# of entries in index")
            || text.contains("non-unique entry in index")
    }
}
