public import VaultStore

extension Tables {
    /// The first, the last and the newest of the runs that begin in each segment with content.
    public func runSamples(sectorsPerSegment: Int) throws(CatalogueError) -> [CheckedRun] {
        var samples: [CheckedRun] = []
        for (sector, generation) in [
            ("min(sector)", "generation"), ("max(sector)", "generation"), ("sector", "max(generation)"),
        ] {
            // With a single min() or max(), SQLite takes the other columns from the same row.
            let query = try connection.prepare(
                "SELECT content, offset, length, \(sector), \(generation), epoch, record "
                    + "FROM (\(runs)) GROUP BY sector / ?1")
            query.bind(1, Int64(sectorsPerSegment))
            samples += try query.all(Self.checkedRun)
        }
        return samples
    }
}
