public import VaultFormat
public import VaultStore

/// A row that names the extents of a file or thumbnail.
public struct ContentOwner: Sendable, Hashable {
    public var content: UInt64
    /// The file's, or that of the photo which the thumbnail is of.
    public var ino: UInt64
    public var isThumbnail: Bool
}

/// Queries of a check: they read whole tables. Prepared when they are needed.
extension Tables {
    /// What `PRAGMA integrity_check` has to say; empty where the database is whole.
    public func integrityErrors() throws(CatalogueError) -> [String] {
        let lines = try connection.prepare("PRAGMA integrity_check(20)").all {
            String(decoding: $0.bytes(0), as: UTF8.self)
        }
        return lines == ["ok"] ? [] : lines
    }

    /// Inodes, or contents, that break a rule; at most `limit`.
    public func violations(of rule: CatalogueRule, limit: Int) throws(CatalogueError) -> [UInt64] {
        let query = try connection.prepare("SELECT * FROM (\(rule.query)) LIMIT ?")
        query.bind(1, Int64(limit))
        return try query.all { $0.unsigned(0) }
    }

    /// Sets right what breaks a rule.
    public func mend(_ rule: CatalogueRule) throws(CatalogueError) {
        for statement in rule.mending { try connection.execute(statement) }
    }

    /// Counts anew what the tables keep totals of.
    public func countTotals() throws(CatalogueError) {
        for rule in CatalogueRule.totals { try mend(rule) }
    }

    /// Makes all indexes anew from their tables.
    public func reindex() throws(CatalogueError) { try connection.execute("REINDEX") }

    /// Every run of sealed extents that there is; `record` is 1 where it is an identity record.
    static let runs =
        "SELECT content, offset, length, sector, generation, epoch, 0 AS record FROM extent "
        + "UNION ALL SELECT id, 0, length, sector, generation, epoch, 1 FROM identity"

    /// How many runs begin in each segment that has some.
    public func runCounts(sectorsPerSegment: Int) throws(CatalogueError) -> [Int: Int] {
        let query = try connection.prepare(
            "SELECT sector / ?1 AS segment, count(*) FROM (\(Self.runs)) GROUP BY segment")
        query.bind(1, Int64(sectorsPerSegment))
        var counts: [Int: Int] = [:]
        for (segment, count) in try query.all({ ($0.integer(0), $0.integer(1)) }) {
            counts[Int(segment)] = Int(count)
        }
        return counts
    }

    /// All runs that begin in a range of sectors, in their order.
    public func runs(in sectors: Range<UInt64>) throws(CatalogueError) -> [CheckedRun] {
        let query = try connection.prepare(
            "SELECT * FROM (\(Self.runs)) WHERE sector >= ?1 AND sector < ?2 ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all(Self.checkedRun)
    }

    /// The runs from an offset of a content on, by content and offset; at most `limit`. The first may begin before.
    /// Without identity records.
    public func runs(
        from content: UInt64, _ offset: UInt64, limit: Int
    ) throws(CatalogueError) -> [CheckedRun] {
        let query = try connection.prepare(
            "SELECT *, 0 FROM extent WHERE (content, offset) >= (?1, coalesce((SELECT max(offset) "
                + "FROM extent WHERE content = ?1 AND offset <= ?2), ?2)) "
                + "AND (content > ?1 OR offset + length > ?2) ORDER BY content, offset LIMIT ?3")
        query.bind(1, content)
        query.bind(2, min(offset, UInt64(Int64.max)))
        query.bind(3, Int64(limit))
        return try query.all { row in
            let found = Self.checkedRun(row)
            row.require((found.content, found.run.following) > (content, offset))
            return found
        }
    }

    /// All runs that have sectors in a range, by sector.
    public func runs(reaching sectors: Range<UInt64>) throws(CatalogueError) -> [CheckedRun] {
        // Sectors of a run at most: those of as many whole chunks as it may begin.
        let query = try connection.prepare(
            "SELECT * FROM (\(Self.runs)) WHERE sector < ?2 "
                + "AND sector + (length / \(Geometry.chunkBytes) + 1) * \(Geometry.sectorsPerChunk) > ?1 "
                + "ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all(Self.checkedRun)
    }

    /// All runs of a content, or of an identity record.
    public func runs(of content: UInt64, isRecord: Bool) throws(CatalogueError) -> [CheckedRun] {
        let query = try connection.prepare("SELECT * FROM (\(Self.runs)) WHERE content = ?1 AND record = ?2")
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

    /// Who has these contents. Reads all rows of files and thumbnails.
    public func owners(of contents: Set<UInt64>) throws(CatalogueError) -> [ContentOwner] {
        if contents.isEmpty { return [] }
        var found: [ContentOwner] = []
        for (table, isThumbnail) in [("inode", false), ("thumbnail", true)] {
            let rows = try connection.prepare("SELECT content, ino FROM \(table) WHERE content <> 0")
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

    /// Forgets a thumbnail and its extents; returns the runs that nobody has then.
    public func dropThumbnail(content: UInt64) throws(CatalogueError) -> [ExtentRun] {
        let runs = try extents(of: content)
        try deleteExtents(of: content, from: 0, through: .max)
        let delete = try connection.prepare("DELETE FROM thumbnail WHERE content = ?")
        delete.bind(1, content)
        try delete.run()
        return runs
    }

    /// How many files there are that have a name.
    public func fileCount() throws(CatalogueError) -> Int {
        let query = try connection.prepare(
            "SELECT count(*) FROM inode WHERE mode & 61440 = 32768 AND nlink > 0")
        return try query.one { Int($0.integer(0)) } ?? 0
    }
}
