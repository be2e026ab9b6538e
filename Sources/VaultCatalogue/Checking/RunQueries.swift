public import FileRequests
import VaultFormat
public import VaultStore

/// Queries for runs of extents by their place, with those of identity records. They read whole tables, or many rows.
public final class RunQueries {
    private let connection: Connection
    private let snapshots: SnapshotTable
    /// Whether the indexes by sector agree with their tables. If not, a check reads whole tables.
    public var trustsSectorIndexes = true

    init(_ connection: Connection, _ snapshots: SnapshotTable) {
        (self.connection, self.snapshots) = (connection, snapshots)
    }

    /// All runs of sealed extents; `record` is 1 for an identity record.
    private var all: String {
        // An index is on columns: a search or a sort by an expression does not use it.
        let (length, sector) = trustsSectorIndexes ? ("length", "sector") : ("+length", "+sector")
        let columns = "\(length) AS length, \(sector) AS sector, generation, epoch"
        return "SELECT content, offset, \(columns), 0 AS record FROM extent "
            + "UNION ALL SELECT id, 0, \(columns), 1 FROM identity"
    }

    /// How many runs begin in each segment that has some.
    public func counts(sectorsPerSegment: Int) throws(FileError) -> [Int: Int] {
        let query = connection.prepare(
            "SELECT sector / ?1 AS segment, count(*) FROM (\(all)) GROUP BY segment")
        query.bind(1, Int64(sectorsPerSegment))
        var counts: [Int: Int] = [:]
        for (segment, count) in try query.all({ ($0.integer(0), $0.integer(1)) }) {
            counts[Int(segment)] = Int(count)
        }
        return counts
    }

    /// All runs that begin in a range of sectors, in their order.
    public func runs(in sectors: Range<UInt64>) throws(FileError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT * FROM (\(all)) WHERE sector >= ?1 AND sector < ?2 ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all { CheckedRun($0) }
    }

    /// Runs that begin outside the space and are not lost ones either.
    ///
    /// - Parameter end: the number of sectors in the space.
    public func outside(from end: UInt64) throws(FileError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT * FROM (\(all)) WHERE NOT sector BETWEEN 0 AND ?1 "
                + "AND NOT sector BETWEEN \(Geometry.lostSector) AND \(Geometry.numberMax - 1)")
        query.bind(1, Int64(clamping: end) - 1)
        return try query.all { CheckedRun($0) }
    }

    /// Runs of lost bytes.
    public func lost() throws(FileError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT * FROM (\(all)) "
                + "WHERE sector BETWEEN \(Geometry.lostSector) AND \(Geometry.numberMax - 1)")
        return try query.all { CheckedRun($0) }
    }

    /// Identity records with numbers above `last`, in order, at most `limit`, valid or not.
    public func records(after last: UInt64, limit: Int) throws(FileError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT id, 0, length, sector, generation, epoch, 1 FROM identity WHERE id > ? ORDER BY id LIMIT ?"
        )
        query.bind(1, last)
        query.bind(2, Int64(limit))
        return try query.all { CheckedRun($0) }
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
    ) throws(FileError) -> [CheckedRun] {
        let query = connection.prepare(
            "SELECT *, 0 FROM extent AS e WHERE (content, offset) >= (?1, coalesce((SELECT max(offset) "
                + "FROM extent WHERE content = ?1 AND offset <= ?2), ?2)) "
                + "AND (content > ?1 OR offset + length > ?2) "
                + "AND NOT (content >= \(SnapshotID.all.lowerBound) AND \(Self.isOfAnother)) "
                + "ORDER BY content, offset LIMIT ?3")
        query.bind(1, content)
        query.bind(2, min(offset, UInt64(Int64.max)))
        query.bind(3, Int64(limit))
        return try query.all { CheckedRun($0) }
    }

    /// The damage of some contents, and the same damage of all contents that have those extents.
    public func ofAllContents(_ damage: [ExtentDamage]) throws(FileError) -> [ExtentDamage] {
        var all = damage
        for one in damage where !one.isRecord && !one.fault.isOfOneExtent {
            let source = SnapshotID.source(one.content)
            let others = try snapshots.numbers(of: source)
            if others.isEmpty { continue }
            let end = min(one.offset, 1 << 62) + min(one.length, 1 << 62)
            let own = Set(
                try runs(of: one.content, isRecord: false).map(\.run).filter {
                    $0.offset < end && $0.following > one.offset
                })
            for other in [source] + others where other != one.content {
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
    public func runs(reaching sectors: Range<UInt64>) throws(FileError) -> [CheckedRun] {
        // Upper bound of a run's sectors: as if all its chunks were whole.
        let query = connection.prepare(
            "SELECT * FROM (\(all)) WHERE sector < ?2 "
                + "AND sector + (length / \(Geometry.chunkBytes) + 1) * \(Geometry.sectorsPerChunk) > ?1 "
                + "ORDER BY sector")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all { CheckedRun($0) }
    }

    /// All runs of a content, or of an identity record.
    public func runs(of content: UInt64, isRecord: Bool) throws(FileError) -> [CheckedRun] {
        let query = connection.prepare("SELECT * FROM (\(all)) WHERE content = ?1 AND record = ?2")
        query.bind(1, content)
        query.bind(2, isRecord ? 1 : 0 as Int64)
        return try query.all { CheckedRun($0) }
    }

    /// The first, the last and the newest of the runs that begin in each segment with content.
    public func samples(sectorsPerSegment: Int) throws(FileError) -> [CheckedRun] {
        var samples: [CheckedRun] = []
        for (sector, generation) in [
            ("min(sector)", "generation"), ("max(sector)", "generation"), ("sector", "max(generation)"),
        ] {
            // With a single min() or max(), SQLite takes the other columns from the same row.
            let query = connection.prepare(
                "SELECT content, offset, length, \(sector), \(generation), epoch, record "
                    + "FROM (\(all)) GROUP BY sector / ?1")
            query.bind(1, Int64(sectorsPerSegment))
            samples += try query.all { CheckedRun($0) }
        }
        return samples
    }

    /// The first runs that begin in a range of sectors, at most `limit` of files and as many of identity records.
    public func first(in sectors: Range<UInt64>, limit: Int) throws(FileError) -> [CheckedRun] {
        let place = "length, sector, generation, epoch"
        var found: [CheckedRun] = []
        for select in [
            "SELECT content, offset, \(place), 0 FROM extent", "SELECT id, 0, \(place), 1 FROM identity",
        ] {
            let query = connection.prepare(
                "\(select) WHERE sector >= ?1 AND sector < ?2 ORDER BY sector LIMIT ?3")
            query.bind(1, sectors.lowerBound)
            query.bind(2, sectors.upperBound)
            query.bind(3, Int64(limit))
            found += try query.all { CheckedRun($0) }
        }
        return found
    }
}

extension CheckedRun {
    /// Reads content, offset, length, sector, generation, epoch, and whether it is a record.
    init(_ row: Statement) {
        self.init(
            content: row.unsigned(0), isRecord: row.integer(6) != 0,
            run: ExtentRun(
                offset: row.unsigned(1), length: row.unsigned(2), sector: row.unsigned(3),
                generation: row.unsigned(4), epoch: row.unsigned(5)))
    }
}

extension Catalogue {
    /// Samples of a space's content, for a search for exchanged segments: `Tables.runSamples` of its catalogue. Empty
    /// if that cannot be read: then only segments of pages can be told from each other.
    public static func runSamples(of space: Space) -> [CheckedRun] {
        guard space.pageCount > 0 else { return [] }
        let runs = try? Catalogue(storage: space, readOnly: true).locked { tables throws(FileError) in
            try tables.runs.samples(sectorsPerSegment: space.sectors.perSegment)
        }
        return (runs ?? []).filter { space.segments.isPossible($0.run) }
    }
}
