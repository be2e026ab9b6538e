public import VaultStore

extension Catalogue {
    /// Samples of a space's content, for a search for exchanged segments: `Tables.runSamples` of its catalogue. Empty
    /// if that cannot be read: then only segments of pages can be told from each other.
    public static func runSamples(of space: Space) -> [CheckedRun] {
        guard space.pageCount > 0 else { return [] }
        let runs = try? Catalogue(storage: space, readOnly: true).locked { tables throws(CatalogueError) in
            try tables.runSamples(sectorsPerSegment: space.sectors.perSegment)
        }
        return (runs ?? []).filter { space.segments.isPossible($0.run) }
    }
}

extension Tables {
    /// The first, the last and the newest of the runs that begin in each segment with content.
    public func runSamples(sectorsPerSegment: Int) throws(CatalogueError) -> [CheckedRun] {
        var samples: [CheckedRun] = []
        for (sector, generation) in [
            ("min(sector)", "generation"), ("max(sector)", "generation"), ("sector", "max(generation)"),
        ] {
            // With a single min() or max(), SQLite takes the other columns from the same row.
            let query = connection.prepare(
                "SELECT content, offset, length, \(sector), \(generation), epoch, record "
                    + "FROM (\(runs)) GROUP BY sector / ?1")
            query.bind(1, Int64(sectorsPerSegment))
            samples += try query.all(Self.checkedRun)
        }
        return samples
    }

    /// The first runs that begin in a range of sectors, at most `limit` of files and as many of identity records.
    public func firstRuns(in sectors: Range<UInt64>, limit: Int) throws(CatalogueError) -> [CheckedRun] {
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
            found += try query.all(Self.checkedRun)
        }
        return found
    }
}
