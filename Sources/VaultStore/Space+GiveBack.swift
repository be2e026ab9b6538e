import LinuxIO
import VaultFormat

/// A vault of one space gives the host back what nothing lies in: segments at its end are removed, free sectors
/// elsewhere become holes. What either of the two newest durable roots refers to stays.
extension Space {
    /// Whether more was given back and not made reusable than writers may leave behind them.
    public var isBacklogged: Bool {
        guard grows else { return false }
        return lock.withLock {
            // While somebody reads an older state nothing becomes reusable.
            guard kept.copy == nil, held.isEmpty else { return false }
            let bytes = pendingSectors * UInt64(Geometry.sectorBytes)
            return bytes > max(limits.backlogBytes, sectors.usedSectors * UInt64(Geometry.sectorBytes) / 8)
        }
    }

    /// Gives back what is worth it. Best effort: a host that cannot punch holes keeps them.
    ///
    /// - Parameter commit: makes a durable commit of all that has changed.
    public func giveBack(_ commit: () throws(StoreError) -> Void) throws(StoreError) {
        guard grows, try isMuchUnused() else { return }
        giveUpCopies()
        overwriteFreed(most: .max / 2)
        // What the first commit gives back nobody refers to after the second; the third's bitmaps say so.
        for _ in 0..<3 {
            lock.withLock { peakSectors = min(peakSectors, sectors.usedSectors) }
            try commit()
            overwriteFreed(most: .max / 2)
        }
        removeLastSegments()
        for number in 0..<lock.withLock({ sectors.segmentCount }) { punch(number) }
        trimLastPair()
        try files.sync()
    }

    /// Whether the host holds so much more for the vault than is in it that a pass is worth its commits.
    private func isMuchUnused() throws(StoreError) -> Bool {
        let (count, used) = lock.withLock { () -> (Int, UInt64) in
            let content = sectors.usedSectors - min(pendingSectors, sectors.usedSectors)
            let pages = UInt64(2 * (slots.usedSlots + Self.catalogueReserveSlots) * Geometry.sectorsPerPage)
            return (sectors.segmentCount, (content + pages) * UInt64(Geometry.sectorBytes))
        }
        var held: UInt64 = 0
        for number in 0..<count { held += files.blockBytes(number) }
        return held > used + used / 50 + Self.spareBytesMax
    }

    /// Disk that is left to a vault beyond what is in it: a pass costs commits.
    private static let spareBytesMax: UInt64 = 1 << 20

    /// Removes segments from the last one on in which nothing is, by the bitmaps that are on the disk.
    private func removeLastSegments() {
        lock.withLock {
            let pageSegments = Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
            while let last = sectors.lastRemovable, !pageSegments.contains(last) {
                guard files.remove(last) else { return }
                sectors.removeLast()
            }
        }
    }

    /// Makes holes of a segment's free runs. Nobody else gets them meanwhile.
    private func punch(_ number: Int) {
        let runs = lock.withLock { () -> [Range<Int>] in
            guard !pairs.contains(where: { Int($0.a) == number || Int($0.b) == number }),
                number < sectors.segmentCount
            else { return [] }
            let used = UInt64(sectors.usedCounts[number]) * UInt64(Geometry.sectorBytes)
            guard files.blockBytes(number) > used + Self.spareSegmentBytes else { return [] }
            return sectors.reserveFreeRuns(of: number, least: Geometry.sectorsPerPage)
        }
        for run in runs { files.punch(number, sectors: run) }
        lock.withLock {
            let first = UInt64(number * files.sectorsPerSegment)
            // Their bits are in memory, as they are reserved.
            for run in runs { try? sectors.abandon(first + UInt64(run.lowerBound), run.count) }
        }
    }

    private static let spareSegmentBytes: UInt64 = 64 << 10

    /// Ends the files of the last pair of page segments behind its last page, but for the slots that deleting needs.
    private func trimLastPair() {
        lock.withLock {
            guard let pair = pairs.last else { return }
            let count = min(slots.lastUsed + 1 + 2 * Self.catalogueReserveSlots, slots.backedSlots)
            let inPair = count - slotsPerPair * (pairs.count - 1)
            guard inPair > 0, count < slots.backedSlots else { return }
            for number in [pair.a, pair.b] {
                guard files.shorten(Int(number), to: UInt64(inPair * Geometry.pageBytes)) else { return }
            }
            slots.unback(count)
        }
    }
}
