public import FileRequests
public import VaultFormat

/// A row of extents, with its content.
public struct ContentRun: Sendable, Equatable {
    public var content: UInt64
    public var run: ExtentRun
}

private struct ExtentStatements {
    let list: Statement
    let insert: Statement
    let deleteRange: Statement
    let some: Statement
    let lastBefore: Statement
    let lastRecordBefore: Statement

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
    }
}

/// Table `extent`: the runs of sealed extents of each content.
public final class ExtentTable {
    private let connection: Connection
    private let statements: ExtentStatements

    init(_ connection: Connection) {
        (self.connection, statements) = (connection, ExtentStatements(connection))
    }

    /// All runs of a content, by offset.
    public func runs(of content: UInt64) throws(FileError) -> [ExtentRun] {
        statements.list.bind(1, content)
        return try statements.list.all { ExtentRun($0) }
    }

    /// The first runs of a content, at most `limit`.
    public func firstRuns(of content: UInt64, limit: Int) throws(FileError) -> [ExtentRun] {
        statements.some.bind(1, content)
        statements.some.bind(2, Int64(limit))
        return try statements.some.all { ExtentRun($0) }
    }

    /// Inserts a run, or replaces the one at the same offset.
    public func insert(_ run: ExtentRun, of content: UInt64) throws(FileError) {
        let insert = statements.insert
        insert.bind(1, content)
        insert.bind(2, run.offset)
        insert.bind(3, run.length)
        insert.bind(4, run.sector)
        insert.bind(5, run.generation)
        insert.bind(6, run.epoch)
        try insert.run()
    }

    /// Deletes the rows that begin in `first...last`.
    public func delete(of content: UInt64, from first: UInt64, through last: UInt64)
        throws(FileError)
    {
        statements.deleteRange.bind(1, content)
        statements.deleteRange.bind(2, first)
        statements.deleteRange.bind(3, min(last, UInt64(Int64.max)))
        try statements.deleteRange.run()
    }

    /// Whether a run lies in these sectors, wholly or in part. If runs overlap each other, only the last one that
    /// begins before the end is checked.
    public func isAnyNamed(_ sectors: Range<UInt64>) throws(FileError) -> Bool {
        for statement in [statements.lastBefore, statements.lastRecordBefore] {
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

    /// The first rows, by sector, of extents in a range of sectors, also of one that begins before: those of at most
    /// `limit` runs. Rows that share sectors are equal, and follow each other.
    public func rows(in sectors: Range<UInt64>, limit: Int) throws(FileError) -> [ContentRun] {
        let query = connection.prepare(
            """
            SELECT content, offset, length, sector, generation, epoch FROM extent WHERE sector IN (
                SELECT DISTINCT sector FROM extent
                WHERE sector >= (SELECT coalesce(max(sector), 0) FROM extent WHERE sector <= ?1) AND sector < ?2
                ORDER BY sector LIMIT ?3)
            ORDER BY sector, content
            """)
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        query.bind(3, Int64(limit))
        return try query.all(Self.contentRun)
            .filter { $0.run.sector + UInt64($0.run.sectorCount) > sectors.lowerBound }
    }

    /// All rows whose extents begin at a sector, by content.
    public func rows(at sector: UInt64) throws(FileError) -> [ContentRun] {
        let query = connection.prepare(
            "SELECT content, offset, length, sector, generation, epoch FROM extent WHERE sector=? "
                + "ORDER BY content")
        query.bind(1, sector)
        return try query.all(Self.contentRun)
    }

    private static func contentRun(_ row: Statement) -> ContentRun {
        ContentRun(content: row.unsigned(0), run: ExtentRun(row, from: 1))
    }
}

extension ExtentRun {
    /// Reads offset, length, sector, generation and epoch from a column on.
    init(_ row: Statement, from column: Int32 = 0) {
        self.init(
            offset: row.count(column), length: UInt64(row.integer(column + 1, in: 1...1 << 61)),
            sector: row.count(column + 2), generation: row.unsigned(column + 3),
            epoch: row.unsigned(column + 4))
    }
}
