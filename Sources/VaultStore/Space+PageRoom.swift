import LinuxIO
import Synchronization
import VaultFormat

/// The purpose of a change of the catalogue: how much of the room for pages it must leave.
public enum ChangePurpose: Sendable {
    /// New names, links and attributes.
    case addition
    /// New bytes of files: a file that could be made can be written, and an existing one be edited.
    case edit
    /// Any other change.
    case change
    /// Removing, and saving accepted bytes: may use the whole reserve.
    case removal

    /// The part of `Space.reserveSlots` that stays free, in quarters.
    fileprivate var reservedQuarters: Int {
        switch self {
        case .addition: 4
        case .edit: 2
        case .change: 1
        case .removal: 0
        }
    }
}

/// The ledger of page slots: what was accepted can be committed.
///
/// Changed pages get new slots, and those of the old ones are reused only after two durable commits. So before each
/// change there must be slots for the commit that it becomes part of, and for two more commits, which release what
/// that one replaced. Then every commit succeeds, and after two of them all slots are free but those of the newest
/// state. Additions leave a reserve, in which removing goes on in batches.
extension Space {
    /// Whether the next commit has slots for so many more changed pages, beside the reserve that the purpose leaves.
    public func hasRoom(for purpose: ChangePurpose, pages: Int) -> Bool {
        lock.withLock { slots.freeSlots >= slotsNeeded(pages, purpose) }
    }

    /// Whether the next commit has slots for so many more changed pages, and the one after it as well.
    public func canCommit(pages: Int) -> Bool {
        lock.withLock { slots.freeSlots >= commitSlots(pages: pages) + drainSlots }
    }

    /// As `hasRoom`, but first adds slots if there is room for more.
    public func makesRoom(for purpose: ChangePurpose, pages: Int) -> Bool {
        guard !isReadOnly, (try? requireWritable()) != nil else { return false }
        return lock.withLock {
            while slots.freeSlots < slotsNeeded(pages, purpose) {
                guard mayAddSlots(for: purpose), (try? addSlots()) != nil else { return false }
            }
            return true
        }
    }

    /// Whether durable commits may release so many slots that there is room then.
    public func commitsMakeRoom(for purpose: ChangePurpose, pages: Int) -> Bool {
        lock.withLock { slotsAfterCommits >= leastSlots(pages: pages, purpose) }
    }

    /// Whether rows may be added for users.
    public var hasRowRoom: Bool { hasRoom(for: .addition, pages: limits.reservedSlots / 4) }

    /// Whether so few slots are free that commits must not become large.
    public var isShortOfRowRoom: Bool {
        lock.withLock { slots.freeSlots < 2 * (reserveSlots + changedPages + drainSlots) }
    }

    /// Slots that are free after two durable commits that change nothing, except those of pages that are added. Under
    /// `lock`.
    var slotsAfterCommits: Int {
        let freed = pending.reduce(0) {
            $1.entry.kind == DeltaLayout.kindSlotsFreed ? $0 + Int($1.entry.count) : $0
        }
        return slots.freeSlots + slots.withheldSlots + freed + changedZeros
    }

    /// The least that a change of so many pages takes, once there is nothing else to commit. Under `lock`.
    ///
    /// - Parameter bitmaps: pages of the sector bitmap that each commit changes.
    func leastSlots(pages: Int, _ purpose: ChangePurpose, bitmaps: Int = 1) -> Int {
        func commit(_ stored: Int) -> Int {
            commitSlots(stored: stored, zeros: 0, bitmaps: bitmaps, counts: 1, entries: 0)
        }
        return commit(pages) + 2 * commit(0) + reservedSlots(purpose)
    }

    /// Pages of the next commit and of one under way that take a slot. Under `lock`.
    private var changedPages: Int { staged.count + frozenPages.count - changedZeros }

    /// Pages of zeros of the next commit and of one under way: they take no slots. Under `lock`.
    private var changedZeros: Int { stagedZeros + frozenZeros }

    /// Slots that additions do not take: an eighth, within bounds. Under `lock`.
    private var reserveSlots: Int {
        min(max(limits.reservedSlots, slots.backedSlots / 8), slots.backedSlots / 2, 8192)
    }

    private func reservedSlots(_ purpose: ChangePurpose) -> Int {
        reserveSlots * purpose.reservedQuarters / 4
    }

    private func slotsNeeded(_ pages: Int, _ purpose: ChangePurpose) -> Int {
        commitSlots(pages: pages) + 2 * drainSlots + reservedSlots(purpose)
    }

    /// Upper bound of the slots that a commit of all changes takes, with `pages` more. Under `lock`.
    private func commitSlots(pages: Int) -> Int {
        commitSlots(
            stored: changedPages + pages, zeros: changedZeros, bitmaps: sectors.unpublishedPages,
            counts: sectors.unpublishedCountPages, entries: entries.count + pendingErase.count)
    }

    /// Slots of a commit that only releases what earlier ones freed. Under `lock`.
    private var drainSlots: Int {
        let bitmapPages = sectors.segmentCount * sectors.pagesPerSegment
        let freed = pending.count + entries.count + sectors.unpublishedPages
        return commitSlots(
            stored: 0, zeros: 0, bitmaps: min(bitmapPages, freed), counts: 1, entries: pendingErase.count)
    }

    /// Upper bound of the slots that a commit takes. Under `lock`.
    ///
    /// - Parameters:
    ///   - stored: pages of the catalogue that are stored.
    ///   - zeros: those that are not stored any more.
    ///   - bitmaps: pages of the sector bitmap.
    ///   - counts: pages of the usage counts.
    ///   - entries: entries of the delta, without those of slots that the commit replaces.
    func commitSlots(stored: Int, zeros: Int, bitmaps: Int, counts: Int, entries: Int) -> Int {
        func nodes(_ changed: Int, of pages: Int) -> Int {
            var (width, count, levels) = (pages, 0, 0)
            while width > 1 || levels == 0 {
                width = (width + MapLayout.fanout - 1) / MapLayout.fanout
                count += min(changed, width)
                levels += 1
            }
            // A page at a new end adds a level.
            return changed == 0 ? 0 : count + 2
        }
        let bitmapPages = sectors.segmentCount * sectors.pagesPerSegment
        let countPages = sectors.segmentCount / MapLayout.countsPerPage + 1
        let slotPages = (slots.slotCount + 2 * slotsPerPair) / MapLayout.bitsPerPage + 1
        let catalogue = Int(maps[MapObject.catalogue.rawValue].pageCount) + stored
        let counted =
            stored + nodes(stored + zeros, of: catalogue) + bitmaps + nodes(bitmaps, of: bitmapPages)
            + counts + nodes(counts, of: countPages)
        // The slot bitmap records the slots that it takes itself.
        let bits = slotPages + nodes(slotPages, of: slotPages)
        let listed = entries + deltaPages.count + zeros + counted + bits
        return counted + bits + listed / DeltaLayout.entriesPerPage + 2
    }

    /// Whether slots may be added. The room that this takes is users' as well: half of a space's segments stay for
    /// content. Under `lock`.
    func mayAddSlots(for purpose: ChangePurpose) -> Bool {
        guard grows else { return slots.backedSlots < slots.slotCount || mayGrowIntoPair }
        if purpose == .removal { return true }
        return ((try? hostAvailable()) ?? 0) >= stepBytes
    }

    /// The host's disk that must be free before slots are added for users.
    var stepBytes: UInt64 { 2 * UInt64(2 * Self.slotsPerLeastStep * Geometry.pageBytes) }

    /// Slots that are added at once on a host that is nearly full.
    private static let slotsPerLeastStep = 32

    /// Slots that are added at once. Under `lock`.
    private var slotsPerStep: Int {
        let host = lastHostBytes.load(ordering: .relaxed) / UInt64(4 * Geometry.pageBytes)
        return min(limits.slotsPerStep, max(Self.slotsPerLeastStep, Int(clamping: host)))
    }

    // MARK: Segments of pages

    /// Updates the segments that content must not use: those of pages, those reserved for more pages, those that are
    /// being emptied, and those that are lost. Under `lock`.
    func updateExcluded() {
        var excluded = Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
        if !grows {
            let wanted = pageSegmentsWanted - pairs.count * 2
            if wanted > 0 {
                excluded.formUnion(Array(unusedSegments.prefix(wanted)))
            }
        }
        sectors.excluded = excluded.union(lostSegments).union(vacating)
    }

    /// Segments to have or reserve for pages: 1 % of the space, or room for eight times all bitmaps if that is more:
    /// those in use, those of a commit and of two that release, and what changes beside. Two more than now once fewer
    /// than half a pair's slots are free.
    private var pageSegmentsWanted: Int {
        let bitmapPages = sectors.segmentCount * sectors.pagesPerSegment
        let share = max(
            (sectors.segmentCount / 100 + 1) / 2 * 2, (bitmapPages * 8 / slotsPerPair + 1) * 2)
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
        let count = min(inPair + slotsPerStep, slotsPerPair)
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
    var mayGrowIntoPair: Bool {
        mayAddPair && (grows || 4 * (pairs.count + 1) <= sectors.segmentCount)
    }

    /// Whether the format allows one more pair. Under `lock`.
    private var mayAddPair: Bool {
        pairs.count < RootLayout.pairsMaxWithRoom && (pairs.count + 1) * slotsPerPair <= RootLayout.slotsMax
    }

    /// Segments without content and pages, the last first. Under `lock`.
    var unusedSegments: some Sequence<Int> {
        let taken = Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
        return (0..<sectors.segmentCount).reversed().lazy.filter {
            !taken.contains($0) && self.sectors.isUnused($0)
        }
    }
}
