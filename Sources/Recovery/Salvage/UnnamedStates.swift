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
        numbers.flatMap { content -> [UnnamedState] in
            let extents = contents.extents(of: content)
            let left = extents.filter { !named.contains($0.sector) }
            return left.isEmpty ? [] : states(of: content, extents, left, contents)
        }
    }

    private static func states(
        of content: UInt64, _ extents: [ExtentRun], _ unnamed: [ExtentRun], _ contents: FoundContents
    ) -> [UnnamedState] {
        var states: [UnnamedState] = []
        var left = unnamed
        // Each state has the first extent of the commit that is left, at least.
        while states.count < countMax, let newest = left.max(by: { $0.generation < $1.generation }) {
            let parts = parts(of: extents, with: left, of: newest)
            let bytes = contents.newestBytes(of: parts, asOf: newest.generation)
            let stored = RangeSet(sectorsOf: bytes.stored)
            left.removeAll { stored.contains($0.sector) }
            states.append(UnnamedState(content: content, commit: newest.generation, bytes: bytes))
        }
        return states
    }

    /// The extents up to the commit of `newest`, without those in whose places it also wrote extents of `left`. A
    /// commit may have written a chunk twice before it was published, and the record tells which of the two counts.
    /// Where an extent that is left ends before the other one, the content ended: what lies behind was added since.
    private static func parts(
        of extents: [ExtentRun], with left: [ExtentRun], of newest: ExtentRun
    ) -> [ExtentRun] {
        func isOfCommit(_ extent: ExtentRun) -> Bool {
            extent.generation == newest.generation && extent.epoch == newest.epoch
        }
        let wanted = left.filter(isOfCommit)
        let sectors = Set(wanted.map(\.sector))
        let byChunk = Dictionary(grouping: wanted, by: chunk)
        var end = UInt64.max
        var parts = extents.filter { extent in
            guard isOfCommit(extent) else { return extent.generation < newest.generation }
            if sectors.contains(extent.sector) { return true }
            let others = (byChunk[chunk(of: extent)] ?? []).filter {
                $0.offset < extent.end && extent.offset < $0.end
            }
            if let last = others.map(\.end).max(), last < extent.end { end = min(end, last) }
            return others.isEmpty
        }
        parts.removeAll { $0.offset >= end }
        return parts
    }

    private static func chunk(of extent: ExtentRun) -> UInt64 { extent.offset / UInt64(Geometry.chunkBytes) }
}

extension RangeSet<UInt64> {
    /// The sectors of extents, in any order.
    init(sectorsOf runs: some Sequence<ExtentRun>) {
        // In their order each is appended; else the set would be moved for each.
        self.init(runs.map { $0.sector..<$0.endSector }.sorted { $0.lowerBound < $1.lowerBound })
    }
}
