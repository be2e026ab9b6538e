public import VaultFormat

/// Snapshots: contents whose rows name extents of another content, their source. Rows that share sectors are equal; see
/// *Snapshots of contents* in the documentation of the library.
extension Tables {
    /// Whether a content has snapshots with extents.
    public func hasSnapshots(of source: UInt64) throws(CatalogueError) -> Bool {
        guard let ids = SnapshotID.ids(of: source) else { return false }
        extents.oneOf.bind(1, ids.lowerBound)
        extents.oneOf.bind(2, ids.upperBound)
        return try extents.oneOf.one { _ in true } ?? false
    }

    /// Gives a snapshot, which has no rows yet, those that its source has now.
    public func storeSnapshot(_ snapshot: UInt64) throws(CatalogueError) {
        extents.copy.bind(1, SnapshotID.source(snapshot))
        extents.copy.bind(2, snapshot)
        try extents.copy.run()
    }

    /// Cuts all rows that reach across the beginning or the end of a run, a part of them, so that the run is made of
    /// whole rows.
    public func cut(_ run: ExtentRun) throws(CatalogueError) {
        if run.isLost { return }
        try cut(at: run.sector)
        try cut(at: run.sector + UInt64(run.sectorCount))
    }

    private func cut(at sector: UInt64) throws(CatalogueError) {
        extents.across.bind(1, sector)
        let rows = try extents.across.all { (content: $0.unsigned(0), run: Self.run($0, from: 1)) }
        for (content, run) in rows { try cut(run, of: content, at: [sector]) }
    }

    /// Replaces a row by its parts between those of the sectors that lie between two of its extents. No extent of a
    /// sound row reaches across one.
    private func cut(
        _ run: ExtentRun, of content: UInt64, at sectors: some Collection<UInt64>
    ) throws(CatalogueError) {
        if run.isLost { return }
        var rest = run
        for sector in sectors where sector > rest.sector {
            let (chunks, odd) = (sector - rest.sector).quotientAndRemainder(
                dividingBy: UInt64(Geometry.sectorsPerChunk))
            guard odd == 0, chunks < UInt64(rest.chunkCount) else { continue }
            var first = rest
            first.length = chunks * UInt64(Geometry.chunkBytes)
            try insert(first, of: content)
            rest.offset += first.length
            rest.length -= first.length
            rest.sector = sector
        }
        if rest != run { try insert(rest, of: content) }
    }

    /// The parts of runs that no row names. Parts that a damaged row may name are left out, so that nothing
    /// in use is freed.
    public func unnamed(_ runs: [ExtentRun]) throws(CatalogueError) -> [ExtentRun] {
        var left: [ExtentRun] = []
        for run in runs where !run.isLost {
            let end = run.sector + UInt64(run.sectorCount)
            guard try isAnyNamed(run.sector..<end) else {
                left.append(run)
                continue
            }
            extents.named.bind(1, run.sector)
            extents.named.bind(2, end)
            let others = try extents.named.all(Self.run)
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
    public func ownBytes(of content: UInt64) throws(CatalogueError) -> (own: UInt64, besideSource: UInt64) {
        extents.bytesOfOne.bind(1, content)
        let own = try extents.bytesOfOne.one { UInt64(clamping: $0.integer(0)) } ?? 0
        guard SnapshotID.isSnapshot(content) else { return (own, max(own, 1)) }
        extents.bytesBesideSource.bind(1, content)
        extents.bytesBesideSource.bind(2, SnapshotID.source(content))
        return (own, try extents.bytesBesideSource.one { UInt64(clamping: $0.integer(0)) } ?? 0)
    }

    /// Cuts the rows of a content and its snapshots so that those that share sectors are equal. For a repair, which
    /// makes rows anew.
    public func alignSnapshots(of source: UInt64) throws(CatalogueError) {
        let snapshots = try snapshots(of: source)
        if snapshots.isEmpty { return }
        var rows: [(content: UInt64, run: ExtentRun)] = []
        for content in [source] + snapshots {
            rows += try extents(of: content).map { (content, $0) }
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
    public func snapshotSources() throws(CatalogueError) -> [UInt64] {
        let query = connection.prepare(
            "SELECT DISTINCT (content - (1 << 61)) >> 30 FROM extent WHERE content BETWEEN ?1 AND ?2")
        query.bind(1, SnapshotID.all.lowerBound)
        query.bind(2, SnapshotID.all.upperBound)
        return try query.all { $0.unsigned(0) }
    }

    /// The snapshots of a content that have extents.
    public func snapshots(of source: UInt64) throws(CatalogueError) -> [UInt64] {
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
