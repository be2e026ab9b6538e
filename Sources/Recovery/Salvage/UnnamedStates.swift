import PhotoLibrary
import VaultFormat

/// What a file was as of some commit, made of extents that no record tells of.
///
/// The record of a version that an edit kept may be lost, and the newest record of a file; with a segment that is away
/// both come back. So while something is missing, such extents must not be taken for replaced ones.
struct UnnamedState {
    var content: UInt64
    /// The generation of the commit.
    var commit: UInt64
    var bytes: FoundBytes

    /// The newest of so many of each content are kept: a file that was written in many commits may have left as many.
    private static let countMax = 16

    /// The states of contents that have authentic extents outside of `named`, the newest of each content first.
    static func all(
        of numbers: some Sequence<UInt64>, in contents: FoundContents, named: SectorRanges
    ) -> [UnnamedState] {
        var states: [UnnamedState] = []
        for content in numbers {
            let extents = contents.distinctExtents(of: content, preferring: named)
            var left = extents.filter { !named.contains($0.sector) }
            for commit in Set(left.map(\.generation)).sorted(by: >).prefix(countMax)
            where left.contains(where: { $0.generation == commit }) {
                let bytes = contents.newestBytes(of: extents, asOf: commit)
                let kept = SectorRanges(bytes.sectors)
                left.removeAll { kept.contains($0.sector) }
                states.append(UnnamedState(content: content, commit: commit, bytes: bytes))
            }
        }
        return states
    }
}

/// Sectors that rows name.
struct SectorRanges: Equatable {
    /// By first sector, and apart from each other.
    private var ranges: [Range<UInt64>] = []

    init(_ unsorted: [Range<UInt64>]) {
        for range in unsorted.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = ranges.last, range.lowerBound <= last.upperBound {
                ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                ranges.append(range)
            }
        }
    }

    func contains(_ sector: UInt64) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].lowerBound > sector { high = middle } else { low = middle + 1 }
        }
        return low > 0 && ranges[low - 1].contains(sector)
    }
}
