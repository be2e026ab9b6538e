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
    public func integrityErrors() throws(CatalogueError) -> [IntegrityError] {
        let lines = try connection.prepare("PRAGMA integrity_check(20)").all {
            String(decoding: $0.bytes(0), as: UTF8.self)
        }
        return lines == ["ok"] ? [] : lines.map { IntegrityError(text: $0) }
    }

    /// Inodes, or contents, that break a rule; at most `limit`.
    public func violations(of rule: IntegrityConstraint, limit: Int) throws(CatalogueError) -> [UInt64] {
        let query = try connection.prepare("SELECT * FROM (\(rule.query)) LIMIT ?")
        query.bind(1, Int64(limit))
        return try query.all { $0.unsigned(0) }
    }

    /// Counts anew what the tables keep totals of.
    public func countTotals() throws(CatalogueError) {
        for rule in IntegrityConstraint.totals {
            if case .statements(let statements) = rule.remedy {
                for statement in statements { try connection.execute(statement) }
            }
        }
    }

    /// Makes all indexes anew from their tables.
    public func reindex(_ chooseName: CatalogueMender.NameChooser) throws(CatalogueError) {
        let indexes = try connection.prepare(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        ).all { (String(decoding: $0.bytes(0), as: UTF8.self), String(decoding: $0.bytes(1), as: UTF8.self)) }
        // An index that is wrong is asked nothing, and no row has to agree with it.
        for (name, _) in indexes { try connection.execute("DROP INDEX \(name)") }
        try renameDoubles(chooseName)
        for (_, statement) in indexes { try connection.execute(statement) }
        trustsSectorIndexes = true
    }

    /// Of several entries of one name in a directory all but the oldest get another.
    private func renameDoubles(_ chooseName: CatalogueMender.NameChooser) throws(CatalogueError) {
        let doubles = try connection.prepare(
            """
            SELECT parent, id, name FROM (SELECT *, row_number() OVER (PARTITION BY parent, name ORDER BY id) AS n
                FROM dentry) WHERE n > 1
            """
        ).all { ($0.integer(0), $0.integer(1), $0.bytes(2)) }
        let known = try connection.prepare("SELECT 1 FROM dentry WHERE parent = ? AND name = ?")
        let rename = try connection.prepare("UPDATE dentry SET name = ?3 WHERE parent = ?1 AND id = ?2")
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

    /// Names of an inode, whatever they are, the oldest first; at most `limit`.
    public func rawNames(
        of ino: UInt64, limit: Int
    ) throws(CatalogueError) -> [(parent: UInt64, name: [UInt8])] {
        let query = try connection.prepare(
            "SELECT parent, name FROM dentry WHERE ino = ? ORDER BY id LIMIT ?")
        query.bind(1, ino)
        query.bind(2, Int64(limit))
        return try query.all { ($0.unsigned(0), $0.bytes(1)) }
    }

    // MARK: Runs

    /// Every run of sealed extents that there is; `record` is 1 where it is an identity record.
    var runs: String {
        // An index is of columns: it is of no use to what is searched and sorted by expressions.
        let (length, sector) = trustsSectorIndexes ? ("length", "sector") : ("+length", "+sector")
        let columns = "\(length) AS length, \(sector) AS sector, generation, epoch"
        return "SELECT content, offset, \(columns), 0 AS record FROM extent "
            + "UNION ALL SELECT id, 0, \(columns), 1 FROM identity"
    }

    /// How many runs begin in each segment that has some.
    public func runCounts(sectorsPerSegment: Int) throws(CatalogueError) -> [Int: Int] {
        let query = try connection.prepare(
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
        let query = try connection.prepare(
            "SELECT * FROM (\(runs)) WHERE sector >= ?1 AND sector < ?2 ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all(Self.checkedRun)
    }

    /// Runs of which no sector is one of the space's, and none lost either.
    ///
    /// - Parameter end: behind the last sector of the space.
    public func runsNowhere(from end: UInt64) throws(CatalogueError) -> [CheckedRun] {
        let query = try connection.prepare(
            "SELECT * FROM (\(runs)) WHERE NOT sector BETWEEN 0 AND ?1 "
                + "AND NOT sector BETWEEN \(Geometry.lostSector) AND \(Geometry.numberMax - 1)")
        query.bind(1, Int64(clamping: end) - 1)
        return try query.all(Self.checkedRun)
    }

    /// Runs that stand for bytes that are lost.
    public func lostRuns() throws(CatalogueError) -> [CheckedRun] {
        let query = try connection.prepare(
            "SELECT * FROM (\(runs)) "
                + "WHERE sector BETWEEN \(Geometry.lostSector) AND \(Geometry.numberMax - 1)")
        return try query.all(Self.checkedRun)
    }

    /// Identity records with numbers above `last`, in order, at most `limit`, whatever their rows say.
    public func records(after last: UInt64, limit: Int) throws(CatalogueError) -> [CheckedRun] {
        let query = try connection.prepare(
            "SELECT id, 0, length, sector, generation, epoch, 1 FROM identity WHERE id > ? ORDER BY id LIMIT ?"
        )
        query.bind(1, last)
        query.bind(2, Int64(limit))
        return try query.all(Self.checkedRun)
    }

    /// The runs from an offset of a content on, by content and offset; at most `limit`. The first may begin before.
    /// Without identity records. Where rows make no sense they may be out of order.
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
        return try query.all(Self.checkedRun)
    }

    /// All runs that have sectors in a range, by sector.
    public func runs(reaching sectors: Range<UInt64>) throws(CatalogueError) -> [CheckedRun] {
        // Sectors of a run at most: those of as many whole chunks as it may begin.
        let query = try connection.prepare(
            "SELECT * FROM (\(runs)) WHERE sector < ?2 "
                + "AND sector + (length / \(Geometry.chunkBytes) + 1) * \(Geometry.sectorsPerChunk) > ?1 "
                + "ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all(Self.checkedRun)
    }

    /// All runs of a content, or of an identity record.
    public func runs(of content: UInt64, isRecord: Bool) throws(CatalogueError) -> [CheckedRun] {
        let query = try connection.prepare("SELECT * FROM (\(runs)) WHERE content = ?1 AND record = ?2")
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

    /// Contents for which a rule is broken that is mended by their extents.
    public func contentsToMend() throws(CatalogueError) -> [UInt64] {
        var found: [UInt64] = []
        for query in [
            IntegrityConstraint.impossibleExtents, IntegrityConstraint.overlappingExtents,
            IntegrityConstraint.unowned,
            IntegrityConstraint.sharedByThumbnails, IntegrityConstraint.missingExtents,
        ] { found += try connection.prepare(query).all { $0.unsigned(0) } }
        return found
    }

    /// How large the largest file is that has a content, and can be; nil where none has it.
    public func largestSize(ofFilesWith content: UInt64) throws(CatalogueError) -> UInt64? {
        let query = try connection.prepare(
            "SELECT max(size) FROM inode WHERE content = ? AND \(RuleText.isFile) "
                + "AND size BETWEEN 0 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.isNull(0) ? nil : $0.unsigned(0) } ?? nil
    }

    /// How many bytes are stored of a file with a content, by its own account; all, where that cannot be.
    public func storedBytes(ofFilesWith content: UInt64) throws(CatalogueError) -> UInt64 {
        let query = try connection.prepare(
            "SELECT coalesce(max(CASE WHEN allocated BETWEEN 0 AND size THEN allocated ELSE size END), 0) "
                + "FROM inode WHERE content = ? AND \(RuleText.isFile) "
                + "AND size BETWEEN 0 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.unsigned(0) } ?? 0
    }

    /// Counts anew what is stored of the files that have a content.
    public func countStoredBytes(ofFilesWith content: UInt64) throws(CatalogueError) {
        let update = try connection.prepare(
            "UPDATE inode SET allocated = \(RuleText.storedBytes) WHERE content = ? AND \(RuleText.isFile)")
        update.bind(1, content)
        try update.run()
    }

    /// How large a file with a content is that has no holes, by its own account; nil where none has.
    public func sizeWithoutHoles(ofFilesWith content: UInt64) throws(CatalogueError) -> UInt64? {
        let query = try connection.prepare(
            "SELECT max(size) FROM inode WHERE content = ? AND \(RuleText.isFile) AND allocated = size "
                + "AND size BETWEEN 1 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.isNull(0) ? nil : $0.unsigned(0) } ?? nil
    }

    /// Identity records of files with a content that are not known to be out of date, and the version of the bytes.
    public func currentRecords(
        ofFilesWith content: UInt64
    ) throws(CatalogueError) -> [(record: CheckedRun, version: UInt64)] {
        let query = try connection.prepare(
            "SELECT id, 0, identity.length, sector, generation, epoch, 1, version FROM inode "
                + "JOIN identity ON identity.id = inode.ino WHERE content = ? AND \(RuleText.isFile) "
                + "AND ino NOT IN (SELECT id FROM unrecorded)")
        query.bind(1, content)
        return try query.all { (Self.checkedRun($0), $0.unsigned(7)) }
    }

    /// Puts runs in the place of all that a content has.
    public func replaceRuns(of content: UInt64, by runs: [ExtentRun]) throws(CatalogueError) {
        let delete = try connection.prepare("DELETE FROM extent WHERE content = ?")
        delete.bind(1, content)
        try delete.run()
        for run in runs { try insert(run, of: content) }
    }

    /// Notes that the identity records are out of date of all files that have a content.
    public func markRecords(ofContent content: UInt64) throws(CatalogueError) {
        let mark = try connection.prepare(
            "INSERT OR IGNORE INTO unrecorded SELECT ino FROM inode WHERE content = ? AND ino >= 16")
        mark.bind(1, content)
        try mark.run()
    }

    /// Forgets a thumbnail and its extents.
    public func dropThumbnail(content: UInt64) throws(CatalogueError) {
        try replaceRuns(of: content, by: [])
        try dropThumbnailRows(content: content)
    }

    /// Forgets a thumbnail whose extents are another's.
    public func dropThumbnailRows(content: UInt64) throws(CatalogueError) {
        let delete = try connection.prepare("DELETE FROM thumbnail WHERE content = ?")
        delete.bind(1, content)
        try delete.run()
    }

    /// How many files there are that have a name.
    public func fileCount() throws(CatalogueError) -> Int {
        let query = try connection.prepare(
            "SELECT count(*) FROM inode WHERE mode & 61440 = 32768 AND nlink > 0")
        return try query.one { Int($0.integer(0)) } ?? 0
    }
}

/// A line of `PRAGMA integrity_check`.
public struct IntegrityError: Sendable {
    public let text: String

    /// Whether an index does not agree with its table, which is whole.
    public var isOfIndex: Bool {
        text.contains("missing from index") || text.contains("# of entries in index")
            || text.contains("non-unique entry in index")
    }
}
