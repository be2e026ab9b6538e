import LinuxIO
import VaultFormat

/// Room for pages.
///
/// A commit that finds too few slots fails, and so do all later ones: what was accepted meanwhile would be lost. So the
/// catalogue does not grow into the slots that commits of removals need, and no commit may change more pages than fit
/// into the free ones.
extension Space {
    /// Whether rows may be added for users.
    ///
    /// - Parameter replacing: whether they take the place of others: half of the reserve may be used for that.
    public func hasRowRoom(replacing: Bool = false) -> Bool {
        lock.withLock { hasSlots(for: reserveSlots / (replacing ? 2 : 1) + 2 * changedPages) }
    }

    /// Whether one commit may change so many rows that lie near each other.
    public func hasRoom(toChangeRows count: Int) -> Bool {
        lock.withLock { hasSlots(for: count / Self.rowsPerPage + 2 * changedPages) }
    }

    /// Changed rows to a changed page, at least, where names are long.
    private static let rowsPerPage = 2

    /// Whether commits release so many slots that rows may be added for users then.
    public var commitsMakeRowRoom: Bool {
        lock.withLock {
            let kept = pending.reduce(0) {
                $1.entry.kind == DeltaLayout.kindSlotsFreed ? $0 + Int($1.entry.count) : $0
            }
            return hasSlots(for: reserveSlots - kept)
        }
    }

    /// Whether so few slots are free that commits must not become large.
    ///
    /// - Parameter unstaged: changed pages that are not staged yet.
    public func isShortOfRowRoom(unstaged: Int = 0) -> Bool { lock.withLock { isShort(unstaged: unstaged) } }

    /// Whether the next commit is large for the slots that are free, so that it must come before the next change.
    public var mustCommitPages: Bool {
        lock.withLock { staged.count > slots.freeSlots / 8 && isShort(unstaged: 0) }
    }

    /// As `isShortOfRowRoom`, under `lock`.
    private func isShort(unstaged: Int) -> Bool {
        !hasSlots(for: 2 * reserveSlots + 2 * (changedPages + unstaged))
    }

    /// Pages of the next commit and of one under way. Under `lock`.
    var changedPages: Int { staged.count + frozenPages.count }

    /// Slots that users' rows do not take: an eighth, within bounds. Under `lock`.
    private var reserveSlots: Int {
        min(max(limits.reservedSlots, slots.backedSlots / 8), slots.backedSlots / 2, 8192)
    }

    /// Whether `count` slots are free or can be added. Under `lock`.
    private func hasSlots(for count: Int) -> Bool {
        let missing = count - slots.freeSlots
        if missing <= 0 { return true }
        if grows {
            let bytes = 2 * UInt64((missing + limits.slotsPerStep) * Geometry.pageBytes)
            return ((try? hostAvailable()) ?? 0) >= bytes
        }
        let wanted = 2 * ((missing - 1) / slotsPerPair + 1)
        return mayGrowIntoPair && unusedSegments.prefix(wanted).reduce(0) { count, _ in count + 1 } == wanted
    }

    // MARK: Segments of pages

    /// Updates the segments that content must not use: those of pages, those reserved for more pages, and those that
    /// are lost. Under `lock`.
    func updateExcluded() {
        var excluded = Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
        if !grows {
            let wanted = pageSegmentsWanted - pairs.count * 2
            if wanted > 0 {
                excluded.formUnion(Array(unusedSegments.prefix(wanted)))
            }
        }
        sectors.excluded = excluded.union(lostSegments)
    }

    /// Segments to have or reserve for pages: 1 % of the space, or room for four times all bitmaps if that is more, and
    /// two more than now once fewer than half a pair's slots are free.
    private var pageSegmentsWanted: Int {
        let bitmapPages = sectors.segmentCount * sectors.pagesPerSegment
        let share = max(
            (sectors.segmentCount / 100 + 1) / 2 * 2, (bitmapPages * 4 / slotsPerPair + 1) * 2)
        let isHalfTaken = slots.freeSlots < slotsPerPair / 2
        return max(2, share, isHalfTaken && mayGrowIntoPair ? pairs.count * 2 + 2 : 0)
    }

    // MARK: Adding slots

    /// Makes more slots allocatable; throws `noRoom` if there is no room for them. Under `lock`.
    func addSlots() throws(StoreError) {
        if slots.backedSlots == slots.slotCount { try addPair() }
        if slots.backedSlots < slots.slotCount { try preallocateSlots() }
    }

    /// In a vault that grows, preallocates disk blocks for the next slots, so that writing them cannot fail for lack of
    /// room on a host that honours preallocation. Under `lock`.
    func preallocateSlots() throws(StoreError) {
        let inPair = slots.backedSlots - slotsPerPair * (pairs.count - 1)
        let count = min(inPair + limits.slotsPerStep, slotsPerPair)
        guard let pair = pairs.last else { return }
        for number in [pair.a, pair.b] {
            try files.preallocate(Int(number), bytes: UInt64(count * Geometry.pageBytes))
        }
        slots.back(slotsPerPair * (pairs.count - 1) + count)
    }

    /// Preallocates the slots' disk blocks again, once per mount: copying the files may have lost unwritten blocks.
    /// Best effort, as the host may have no room. Under `lock`.
    func ensurePreallocated() {
        guard grows, !isPreallocated else { return }
        isPreallocated = true
        for (index, pair) in pairs.enumerated() {
            let count = min(slotsPerPair, slots.backedSlots - slotsPerPair * index)
            for number in [pair.a, pair.b] {
                try? files.preallocate(Int(number), bytes: UInt64(count * Geometry.pageBytes))
            }
        }
    }

    /// Adds a pair of segments for pages; throws `noRoom` if none is left. Under `lock`.
    func addPair() throws(StoreError) {
        guard mayAddPair else { throw .noRoom }
        let count = sectors.segmentCount
        if grows {
            guard count + 2 <= Geometry.segmentsMax else { throw .noRoom }
            for number in [count, count + 1] { try files.create(number) }
            sectors.addSegments(to: count + 2)
            pairs.append(SegmentPair(a: UInt32(count), b: UInt32(count + 1)))
        } else {
            let unused = Array(unusedSegments.prefix(2))
            guard unused.count == 2 else { throw .noRoom }
            pairs.append(SegmentPair(a: UInt32(unused[0]), b: UInt32(unused[1])))
        }
        slots.addPair()
        if !grows { slots.back(slots.slotCount) }
        updateExcluded()
    }

    /// Whether the catalogue may grow into one more pair: half of a space's segments stay for content, because a pair
    /// is never given up again. Under `lock`.
    private var mayGrowIntoPair: Bool {
        mayAddPair && (grows || 4 * (pairs.count + 1) <= sectors.segmentCount)
    }

    /// Whether the format allows one more pair. Under `lock`.
    private var mayAddPair: Bool {
        pairs.count < RootLayout.pairsMax && (pairs.count + 1) * slotsPerPair <= RootLayout.slotsMax
    }

    /// Segments without content and pages, the last first. Under `lock`.
    private var unusedSegments: some Sequence<Int> {
        let taken = Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
        return (0..<sectors.segmentCount).reversed().lazy.filter {
            !taken.contains($0) && self.sectors.isUnused($0)
        }
    }
}
