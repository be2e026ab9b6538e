import PhotoLibrary
import VaultFormat

/// The bytes of a content as of a commit, where extents of that commit authenticate and no record names them.
///
/// The record that names them may lie in a segment that is away: that of a version, or the newest record of a file. So
/// while segments or records are missing, a salvage must not free these extents as replaced ones.
struct UnnamedState {
    var content: UInt64
    /// The generation of the commit.
    var commit: UInt64
    var bytes: FoundBytes

    /// The most states of a content. A file that was written in many commits may have left extents of each.
    private static let countMax = 16

    /// The states of contents that have authentic extents outside of `named`, the newest of each content first.
    static func all(
        of numbers: some Sequence<UInt64>, in contents: FoundContents, named: RangeSet<UInt64>
    ) -> [UnnamedState] {
        var states: [UnnamedState] = []
        for content in numbers {
            let extents = contents.distinctExtents(of: content, preferring: named)
            var left = extents.filter { !named.contains($0.sector) }
            for commit in Set(left.map(\.generation)).sorted(by: >).prefix(countMax)
            where left.contains(where: { $0.generation == commit }) {
                let bytes = contents.newestBytes(of: extents, asOf: commit)
                let kept = RangeSet(sectorsOf: bytes.stored)
                left.removeAll { kept.contains($0.sector) }
                states.append(UnnamedState(content: content, commit: commit, bytes: bytes))
            }
        }
        return states
    }
}

extension RangeSet<UInt64> {
    /// The sectors of extents, in any order.
    init(sectorsOf runs: some Sequence<ExtentRun>) {
        // In their order each is appended; else the set would be moved for each.
        self.init(runs.map { $0.sector..<$0.endSector }.sorted { $0.lowerBound < $1.lowerBound })
    }
}
