public import FileRequests
public import VaultFormat

private struct SnapshotStatements {
    let oneOf: Statement
    let copy: Statement
    let named: Statement
    let across: Statement
    let bytesOfOne: Statement
    let bytesBesideSource: Statement

    init(_ connection: Connection) {
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

/// Snapshots: contents whose rows name extents of another content, their source. Rows that share sectors are equal; see
/// *Snapshots of contents* in the documentation of the library.
public final class SnapshotTable {
    private let connection: Connection
    private let statements: SnapshotStatements
    private let extents: ExtentTable

    init(_ connection: Connection, _ extents: ExtentTable) {
        (self.connection, self.extents) = (connection, extents)
        statements = SnapshotStatements(connection)
    }

    /// Whether a content has snapshots with extents.
    public func exist(of source: UInt64) throws(FileError) -> Bool {
        guard let ids = SnapshotID.ids(of: source) else { return false }
        statements.oneOf.bind(1, ids.lowerBound)
        statements.oneOf.bind(2, ids.upperBound)
        return try statements.oneOf.one { _ in true } ?? false
    }

    /// Gives a snapshot, which has no rows yet, those that its source has now.
    public func store(_ snapshot: UInt64) throws(FileError) {
        statements.copy.bind(1, SnapshotID.source(snapshot))
        statements.copy.bind(2, snapshot)
        try statements.copy.run()
    }

    /// Cuts all rows that reach across the beginning or the end of a run, a part of them, so that the run is made of
    /// whole rows.
    public func cut(_ run: ExtentRun) throws(FileError) {
        if run.isLost { return }
        try cut(at: run.sector)
        try cut(at: run.sector + UInt64(run.sectorCount))
    }

    private func cut(at sector: UInt64) throws(FileError) {
        statements.across.bind(1, sector)
        let rows = try statements.across.all { (content: $0.unsigned(0), run: ExtentRun($0, from: 1)) }
        for (content, run) in rows { try cut(run, of: content, at: [sector]) }
    }

    /// Replaces a row by its parts between those of the sectors that lie between two of its extents. No extent of a
    /// sound row reaches across one.
    private func cut(
        _ run: ExtentRun, of content: UInt64, at sectors: some Collection<UInt64>
    ) throws(FileError) {
        if run.isLost { return }
        var rest = run
        for sector in sectors where sector > rest.sector {
            let (chunks, odd) = (sector - rest.sector).quotientAndRemainder(
                dividingBy: UInt64(Geometry.sectorsPerChunk))
            guard odd == 0, chunks < UInt64(rest.chunkCount) else { continue }
            var first = rest
            first.length = chunks * UInt64(Geometry.chunkBytes)
            try extents.insert(first, of: content)
            rest.offset += first.length
            rest.length -= first.length
            rest.sector = sector
        }
        if rest != run { try extents.insert(rest, of: content) }
    }

    /// The parts of runs that no row names. Parts that a damaged row may name are left out, so that nothing
    /// in use is freed.
    public func unnamed(_ runs: [ExtentRun]) throws(FileError) -> [ExtentRun] {
        var left: [ExtentRun] = []
        for run in runs where !run.isLost {
            let end = run.sector + UInt64(run.sectorCount)
            guard try extents.isAnyNamed(run.sector..<end) else {
                left.append(run)
                continue
            }
            statements.named.bind(1, run.sector)
            statements.named.bind(2, end)
            let others = try statements.named.all { ExtentRun($0) }
            left += Self.subtracting(others, from: run)
        }
        return left
    }

    /// The parts of a run before, between and behind others in its sectors, by sector; none if they do not fit its
    /// extents.
    static func subtracting(_ others: [ExtentRun], from run: ExtentRun) -> [ExtentRun] {
        guard let first = others.first, first.sector >= run.sector else { return [] }
        var left: [ExtentRun] = []
        var chunk: UInt64 = 0
        let perChunk = UInt64(Geometry.sectorsPerChunk)
        func part(_ chunks: Range<UInt64>) -> ExtentRun {
            var part = run
            let start = chunks.lowerBound * UInt64(Geometry.chunkBytes)
            part.offset += start
            part.length = min(run.length, chunks.upperBound * UInt64(Geometry.chunkBytes)) - start
            part.sector += chunks.lowerBound * perChunk
            return part
        }
        for other in others {
            let (first, rest) = (other.sector - run.sector).quotientAndRemainder(dividingBy: perChunk)
            guard rest == 0 else { return [] }
            if first > chunk { left.append(part(chunk..<first)) }
            chunk = max(chunk, first + UInt64(other.chunkCount))
        }
        if chunk < UInt64(run.chunkCount) { left.append(part(chunk..<UInt64(run.chunkCount))) }
        return left
    }

    /// The bytes of a content that no other content has, and those that its source does not have any more: if there are
    /// none, its end never frees any.
    public func ownBytes(of content: UInt64) throws(FileError) -> (own: UInt64, besideSource: UInt64) {
        statements.bytesOfOne.bind(1, content)
        let own = try statements.bytesOfOne.one { UInt64(clamping: $0.integer(0)) } ?? 0
        guard SnapshotID.isSnapshot(content) else { return (own, max(own, 1)) }
        statements.bytesBesideSource.bind(1, content)
        statements.bytesBesideSource.bind(2, SnapshotID.source(content))
        return (own, try statements.bytesBesideSource.one { UInt64(clamping: $0.integer(0)) } ?? 0)
    }

    /// Cuts the rows of a content and its snapshots so that those that share sectors are equal. For a repair, which
    /// makes rows anew.
    public func align(of source: UInt64) throws(FileError) {
        let snapshots = try numbers(of: source)
        if snapshots.isEmpty { return }
        var rows: [(content: UInt64, run: ExtentRun)] = []
        for content in [source] + snapshots {
            rows += try extents.runs(of: content).map { (content, $0) }
        }
        rows.removeAll { $0.run.isLost || $0.run.length > Geometry.lostBytesMax }
        let bounds = Set(rows.flatMap { [$0.run.sector, $0.run.sector + UInt64($0.run.sectorCount)] })
            .sorted()
        for (content, run) in rows {
            let first = bounds.partitioningIndex { $0 > run.sector }
            let end = bounds.partitioningIndex { $0 >= run.sector + UInt64(run.sectorCount) }
            if first < end { try cut(run, of: content, at: bounds[first..<end]) }
        }
    }

    /// The sources of all snapshots that have extents.
    public func sources() throws(FileError) -> [UInt64] {
        let query = connection.prepare(
            "SELECT DISTINCT (content - (1 << 61)) >> 30 FROM extent WHERE content BETWEEN ?1 AND ?2")
        query.bind(1, SnapshotID.all.lowerBound)
        query.bind(2, SnapshotID.all.upperBound)
        return try query.all { $0.unsigned(0) }
    }

    /// The snapshots of a content that have extents.
    public func numbers(of source: UInt64) throws(FileError) -> [UInt64] {
        guard let ids = SnapshotID.ids(of: source) else { return [] }
        let query = connection.prepare(
            "SELECT DISTINCT content FROM extent WHERE content BETWEEN ?1 AND ?2")
        query.bind(1, ids.lowerBound)
        query.bind(2, ids.upperBound)
        return try query.all { $0.unsigned(0) }
    }
}

extension [UInt64] {
    /// The index of the first element that fulfils a condition which all elements behind it fulfil too.
    fileprivate func partitioningIndex(where isBehind: (UInt64) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
