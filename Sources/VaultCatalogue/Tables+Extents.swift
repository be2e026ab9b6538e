public import VaultFormat

struct ExtentStatements {
    let list: Statement
    let insert: Statement
    let deleteRange: Statement
    let some: Statement
    let lastBefore: Statement
    let lastRecordBefore: Statement
    let oneOf: Statement
    let copy: Statement
    let named: Statement
    let across: Statement
    let bytesOfOne: Statement
    let bytesBesideSource: Statement

    init(_ connection: Connection) {
        list = connection.prepare(
            "SELECT offset, length, sector, generation, epoch FROM extent WHERE content=? ORDER BY offset")
        insert = connection.prepare("REPLACE INTO extent VALUES(?,?,?,?,?,?)")
        deleteRange = connection.prepare("DELETE FROM extent WHERE content=? AND offset>=? AND offset<=?")
        some = connection.prepare(
            "SELECT offset, length, sector, generation, epoch FROM extent WHERE content=? "
                + "ORDER BY offset LIMIT ?"
        )
        lastBefore = connection.prepare(
            "SELECT sector, length FROM extent WHERE sector < ? ORDER BY sector DESC LIMIT 1")
        lastRecordBefore = connection.prepare(
            "SELECT sector, length FROM identity WHERE sector < ? ORDER BY sector DESC LIMIT 1")
        oneOf = connection.prepare("SELECT 1 FROM extent WHERE content BETWEEN ? AND ? LIMIT 1")
        copy = connection.prepare(
            "INSERT INTO extent SELECT ?2, offset, length, sector, generation, epoch FROM extent WHERE content=?1"
        )
        named = connection.prepare(
            "SELECT offset, length, sector, generation, epoch FROM extent WHERE sector>=? AND sector<? "
                + "ORDER BY sector")
        across = connection.prepare(
            "SELECT content, offset, length, sector, generation, epoch FROM extent "
                + "WHERE sector = (SELECT max(sector) FROM extent WHERE sector < ?)")
        let bytes =
            "SELECT coalesce(sum(length), 0) FROM extent AS e WHERE e.content=?1 "
            + "AND NOT EXISTS (SELECT 1 FROM extent AS o WHERE o.sector=e.sector"
        bytesOfOne = connection.prepare("\(bytes) AND o.content<>e.content)")
        bytesBesideSource = connection.prepare("\(bytes) AND o.content=?2)")
    }
}

extension Tables {
    /// All runs of a content, by offset.
    public func extents(of content: UInt64) throws(CatalogueError) -> [ExtentRun] {
        extents.list.bind(1, content)
        return try extents.list.all(Self.run)
    }

    /// The first runs of a content, at most `limit`.
    public func firstExtents(of content: UInt64, limit: Int) throws(CatalogueError) -> [ExtentRun] {
        extents.some.bind(1, content)
        extents.some.bind(2, Int64(limit))
        return try extents.some.all(Self.run)
    }

    /// Inserts a run, or replaces the one at the same offset.
    public func insert(_ run: ExtentRun, of content: UInt64) throws(CatalogueError) {
        let insert = extents.insert
        insert.bind(1, content)
        insert.bind(2, run.offset)
        insert.bind(3, run.length)
        insert.bind(4, run.sector)
        insert.bind(5, run.generation)
        insert.bind(6, run.epoch)
        try insert.run()
    }

    /// Deletes the rows that begin in `first...last`.
    public func deleteExtents(of content: UInt64, from first: UInt64, through last: UInt64)
        throws(CatalogueError)
    {
        extents.deleteRange.bind(1, content)
        extents.deleteRange.bind(2, first)
        extents.deleteRange.bind(3, min(last, UInt64(Int64.max)))
        try extents.deleteRange.run()
    }

    /// Whether a run lies in these sectors, wholly or in part. If runs overlap each other, only the last one that
    /// begins before the end is checked.
    public func isAnyNamed(_ sectors: Range<UInt64>) throws(CatalogueError) -> Bool {
        for statement in [extents.lastBefore, extents.lastRecordBefore] {
            statement.bind(1, sectors.upperBound)
            let last = try statement.one { row in
                ExtentRun(
                    offset: 0, length: UInt64(row.integer(1, in: 1...1 << 61)), sector: row.count(0),
                    generation: 0, epoch: 0)
            }
            guard let last else { continue }
            if last.sector + UInt64(last.sectorCount) > sectors.lowerBound { return true }
        }
        return false
    }

    static func run(_ row: Statement) -> ExtentRun { run(row, from: 0) }

    static func run(_ row: Statement, from column: Int32) -> ExtentRun {
        ExtentRun(
            offset: row.count(column), length: UInt64(row.integer(column + 1, in: 1...1 << 61)),
            sector: row.count(column + 2), generation: row.unsigned(column + 3),
            epoch: row.unsigned(column + 4))
    }
}
