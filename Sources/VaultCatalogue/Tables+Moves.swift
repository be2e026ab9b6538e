public import VaultFormat

/// A row of extents, with its content.
public struct ContentRun: Sendable, Equatable {
    public var content: UInt64
    public var run: ExtentRun
}

/// Contents whose extents are sealed anew elsewhere.
extension Tables {
    /// The first rows, by sector, of extents in a range of sectors, also of one that begins before: those of at most
    /// `limit` runs. Rows that share sectors are equal, and follow each other.
    public func rows(in sectors: Range<UInt64>, limit: Int) throws(CatalogueError) -> [ContentRun] {
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
    public func rows(at sector: UInt64) throws(CatalogueError) -> [ContentRun] {
        let query = connection.prepare(
            "SELECT content, offset, length, sector, generation, epoch FROM extent WHERE sector=? "
                + "ORDER BY content")
        query.bind(1, sector)
        return try query.all(Self.contentRun)
    }

    private static func contentRun(_ row: Statement) -> ContentRun {
        ContentRun(content: row.unsigned(0), run: run(row, from: 1))
    }

    /// The numbers of identity records in a range of sectors.
    public func identities(in sectors: Range<UInt64>) throws(CatalogueError) -> [UInt64] {
        let query = connection.prepare("SELECT id FROM identity WHERE sector>=? AND sector<?")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all { $0.unsigned(0) }
    }

    /// The inodes with contents that have extents which begin in a range of sectors. Reads all inodes: contents have no
    /// index.
    public func inodes(withExtentsIn sectors: Range<UInt64>) throws(CatalogueError) -> [UInt64] {
        let query = connection.prepare(
            "SELECT ino FROM inode "
                + "WHERE content IN (SELECT content FROM extent WHERE sector>=? AND sector<?)")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all { $0.unsigned(0) }
    }
}
