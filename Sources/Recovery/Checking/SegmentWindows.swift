import FileRequests
import VaultCatalogue
import VaultFormat
import VaultStore

/// The runs of a space in the order of their sectors, in windows of segments. Limits on runs and segments bound a
/// window.
struct SegmentWindows {
    /// Consecutive segments.
    struct Window {
        /// Runs that begin in the window, by sector; impossible ones too.
        package var runs: [CheckedRun]
        /// The expected use of the sectors, also by runs that begin before the window.
        package var expected: ExpectedUse

        /// Contents whose runs share sectors with others or lie at impossible sectors.
        func contested(_ space: Space) -> Set<ContentKey> {
            var keys = Set(runs.filter { !space.segments.isPossible($0.run) }.map(\.key))
            for (one, other) in expected.shared { keys.formUnion([one, other]) }
            return keys
        }
    }

    private let space: Space
    private var left: ArraySlice<Range<Int>>
    /// Runs that reach into the next window.
    private var carried: [CheckedRun] = []

    package init(_ space: Space, _ tables: Tables) throws(FileError) {
        self.space = space
        let counts = try tables.runs.counts(sectorsPerSegment: space.sectors.perSegment)
        var windows: [Range<Int>] = []
        var (first, count) = (0, 0)
        for segment in 0..<space.segments.count {
            let more = counts[segment] ?? 0
            if segment > first,
                count + more > space.limits.checkedRuns
                    || segment - first == space.limits.checkedSegments
            {
                windows.append(first..<segment)
                (first, count) = (segment, 0)
            }
            count += more
        }
        if first < space.segments.count { windows.append(first..<space.segments.count) }
        left = windows[...]
    }

    /// The next window; nil after the last.
    package mutating func next(_ tables: Tables) throws(FileError) -> Window? {
        guard let segments = left.popFirst() else { return nil }
        let sectors = UInt64(space.sectors.perSegment)
        let end = UInt64(segments.upperBound) * sectors
        let runs = try tables.runs.runs(in: UInt64(segments.lowerBound) * sectors..<end)
        var expected = AllocationCheck(of: space).expectedUse(of: segments)
        let possible = (carried + runs).filter { space.segments.isPossible($0.run) }
        for checked in possible { expected.add(checked) }
        carried = possible.filter { $0.run.sector + UInt64($0.run.sectorCount) > end }
        return Window(runs: runs, expected: expected)
    }
}
