import LinuxIO
import VaultFormat

/// Gives out slots for pages, and adds more while the space or the host's disk has room for them.
///
/// Unchecked Sendable: everything mutable is under the space's lock, with which all functions are called.
final class SlotRoom: @unchecked Sendable {
    private let disk: SpaceDisk
    private let segments: SegmentRoles
    private let host: HostRoom
    private let limits: Limits
    private let grows: Bool
    let slotsPerPair: Int
    private var slots: SlotAllocator
    /// Whether this mount has preallocated all slots that should have disk blocks; see `ensurePreallocated`.
    private var isPreallocated = false
    /// Whether the host reserves nothing: room is kept for the slots behind the ends of the files.
    private var keepsRoom = false
    /// Placement of pages; see `Evasion`.
    private(set) var splitPair: UInt16
    private(set) var isAbove: Bool

    /// Pages with bits that are asked for at once, where each takes a round trip.
    private static let pagesAtOnce = 64
    /// Slots that are added at once on a host that is nearly full.
    private static let slotsPerLeastStep = 32

    init(
        _ root: RootRecord, _ disk: SpaceDisk, _ segments: SegmentRoles, _ host: HostRoom, grows: Bool,
        limits: Limits
    ) {
        (self.disk, self.segments, self.host) = (disk, segments, host)
        (self.grows, self.limits) = (grows, limits)
        slotsPerPair = disk.slotsPerPair
        (splitPair, isAbove) = (root.evasion.splitPair, root.evasion.isAbove)
        slots = SlotAllocator(
            slotsPerPair: slotsPerPair, pairCount: root.pairs.count, words: [], backed: 0)
    }

    /// Reads which slots are in use.
    func load(from pages: PageStore) throws(StoreError) {
        let (count, pairCount) = (slotsPerPair * segments.pairs.count, segments.pairs.count)
        guard count <= RootLayout.slotsMax else { throw .damaged }
        var words: [UInt64] = []
        let pageCount = (count + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage
        for page in 0..<pageCount {
            if page % Self.pagesAtOnce == 0 {
                pages.willRead(.slotBitmap, Array(page..<min(page + Self.pagesAtOnce, pageCount)))
            }
            words += try pages.words(.slotBitmap, page, count: MapLayout.bitmapBytes / 8)
        }
        slots = SlotAllocator(
            slotsPerPair: slotsPerPair, pairCount: pairCount, words: words, backed: backedSlots())
        slots.prefer(preferredSlots)
    }

    /// The number of slots with disk blocks. In a vault that grows, they end with the files of the last pair.
    private func backedSlots() -> Int {
        let pairs = segments.pairs
        guard grows, let last = pairs.last else { return slotsPerPair * pairs.count }
        // A missing file is damage, which reading its pages reports.
        let sectors = [last.a, last.b].map { (try? disk.writtenSectors(Int($0))) ?? 0 }.min() ?? 0
        return slotsPerPair * (pairs.count - 1) + sectors / Geometry.sectorsPerPage
    }

    #if DEBUG
        /// For tests that take slots without writing.
        var allocator: SlotAllocator {
            get { slots }
            set { slots = newValue }
        }
    #endif

    // MARK: How many there are

    /// Slots that can be allocated now.
    var free: Int { slots.freeSlots }
    var used: Int { slots.usedSlots }
    /// Slots with disk blocks.
    var backed: Int { slots.backedSlots }
    /// All slots of the pairs.
    var count: Int { slots.slotCount }
    /// Slots in use that become free without a delta, once no older state is read.
    var withheld: Int { slots.withheldSlots }
    /// The slots in use, including those of roots.
    var inUse: BitRow { slots.inUse }

    func isUsed(_ slot: UInt32) -> Bool { slots.isUsed(Int(slot)) }

    /// The number of slots from a pair's first to its last one in use; root slots do not count as in use.
    func inUse(ofPair pair: Int) -> Int {
        let first = slotsPerPair * pair
        let row = slots.inUse
        for slot in stride(from: first + slotsPerPair - 1, through: first, by: -1)
        where slot >= RootLayout.rootSlots && row[slot] {
            return slot - first + 1
        }
        return 0
    }

    /// Whether fewer slots are free than `count`, and than a third of all.
    func isShort(for count: Int) -> Bool { slots.freeSlots < min(count, slots.backedSlots / 3) }

    /// Whether so few slots are free that nothing is kept any more for readers of older states.
    var isShort: Bool { isShort(for: enough) }

    /// So many that commits need not be durable to release some.
    var enough: Int { min(16 * limits.slotsPerStep, slotsPerPair / 2) }

    // MARK: Giving out

    func take() throws(StoreError) -> UInt32 {
        if slots.freeSlots == 0 { try add() }
        guard let slot = slots.take() else { throw .noRoom }
        return slot
    }

    /// Frees a slot that the commit being written replaces, if no durable root can refer to it; see
    /// `SlotAllocator.replace`.
    func replace(_ slot: UInt32) -> Bool { slots.replace(Int(slot)) }

    /// Frees a slot that no root refers to any more.
    func release(_ slot: UInt64) throws(StoreError) { try slots.release(Int(slot)) }

    /// Takes a slot that is referred to although its bit is clear.
    func take(found slot: Int) { slots.take(found: slot) }

    /// Takes every slot, because an unreadable state may refer to it; returns those it took.
    func takeAll() -> Range<Int> { slots.takeAll() }

    /// Frees the slots that `takeAll` took.
    func releaseAll(_ all: Range<Int>) { slots.releaseAll(all) }

    // MARK: Adding

    /// Makes more slots allocatable; throws `noRoom` if there is no room for them.
    func add() throws(StoreError) {
        if slots.backedSlots == slots.slotCount { try addPair() }
        if slots.backedSlots < slots.slotCount { try preallocate() }
    }

    private func addPair() throws(StoreError) {
        try segments.addPair()
        slots.addPair()
        if !grows { slots.back(slots.slotCount) }
        updateSegments()
    }

    /// Has the segments that content must not use follow the number of free slots.
    func updateSegments() { segments.update(freeSlots: slots.freeSlots) }

    /// In a vault that grows, preallocates disk blocks for the next slots, so that writing them cannot fail for lack of
    /// room on a host that honours preallocation.
    private func preallocate() throws(StoreError) {
        let before = slotsPerPair * (segments.pairs.count - 1)
        let count = min(slots.backedSlots - before + perStep, slotsPerPair)
        guard let pair = segments.pairs.last else { return }
        for number in [pair.a, pair.b] {
            let isReserved = try disk.reserve(Int(number), bytes: UInt64(count * Geometry.pageBytes))
            keepsRoom = keepsRoom || !isReserved
        }
        if keepsRoom {
            let bytes = unwrittenBytes(before + count)
            guard try host.available() >= bytes else { throw .noRoom }
            host.promise(bytes)
        }
        slots.back(before + count)
    }

    /// Bytes of the first `count` slots that the files of their segments do not have yet.
    private func unwrittenBytes(_ count: Int) -> UInt64 {
        var bytes: UInt64 = 0
        for (index, pair) in segments.pairs.enumerated() {
            let sectors = min(slotsPerPair, count - slotsPerPair * index) * Geometry.sectorsPerPage
            for number in [pair.a, pair.b] {
                let written = (try? disk.writtenSectors(Int(number))) ?? 0
                bytes += UInt64(max(0, sectors - written) * Geometry.sectorBytes)
            }
        }
        return bytes
    }

    /// Preallocates the slots' disk blocks again, once per mount: copying the files may have lost unwritten blocks.
    /// Best effort, as the host may have no room.
    private func ensurePreallocated() {
        guard grows, !isPreallocated else { return }
        isPreallocated = true
        for (index, pair) in segments.pairs.enumerated() {
            let count = min(slotsPerPair, slots.backedSlots - slotsPerPair * index)
            for number in [pair.a, pair.b] {
                // Without it slots are written into holes, which may fragment them.
                _ = try? disk.reserve(Int(number), bytes: UInt64(count * Geometry.pageBytes))
            }
        }
    }

    /// Slots that are added at once.
    private var perStep: Int {
        let host = self.host.lastAvailable / UInt64(4 * Geometry.pageBytes)
        return min(limits.slotsPerStep, max(Self.slotsPerLeastStep, Int(clamping: host)))
    }

    /// The host's disk that must be free before slots are added for users.
    var stepBytes: UInt64 { 2 * UInt64(2 * Self.slotsPerLeastStep * Geometry.pageBytes) }

    /// Whether slots may be added. The room that this takes is users' as well: half of a space's segments stay for
    /// content.
    func mayAdd(for purpose: ChangePurpose) -> Bool {
        guard grows else { return slots.backedSlots < slots.slotCount || segments.mayGrowIntoPair }
        return purpose == .removal || host.availableOrNone >= stepBytes
    }

    /// Ensures, before a commit writes anything, that there are slots for its pages and maps.
    ///
    /// - Parameters:
    ///   - wanted: the most that the commit may take.
    ///   - stored: the pages that it surely stores.
    ///   - cataloguePages: pages of the whole catalogue.
    func ensure(_ wanted: Int, stored: Int, cataloguePages: Int) throws(StoreError) {
        ensurePreallocated()
        makePreferred(wanted)
        while slots.freeSlots < wanted {
            do throws(StoreError) { try add() } catch {
                // The estimate is generous: continue while the slots may still suffice.
                if slots.freeSlots > stored + 24 { break }
                throw error
            }
        }
        if grows { backAhead(of: wanted, cataloguePages) }
        if keepsRoom { host.promise(unwrittenBytes(slots.backedSlots)) }
    }

    /// In a vault that grows, backs more slots than the next commit needs while the host has room, so that deleting
    /// still works when it has none. With as many free slots as used ones, no commit has to become durable early.
    private func backAhead(of wanted: Int, _ pages: Int) {
        let kept = 2 * wanted + min(max(limits.slotsPerStep, pages / 2), 8 * limits.slotsPerStep)
        while slots.freeSlots < kept
            || (slots.freeSlots < slots.backedSlots / 2 && host.availableOrNone > HostRoom.plentyBytes)
        {
            let isPairFull = slots.backedSlots == slots.slotCount
            if isPairFull && slots.freeSlots >= kept { return }
            guard (try? add()) != nil else { return }
        }
    }

    /// Truncates the files of the last pair of page segments after its last page, keeping the slots that deleting
    /// needs.
    func trimLastPair() {
        guard let pair = segments.pairs.last else { return }
        let before = slotsPerPair * (segments.pairs.count - 1)
        let count = min(slots.lastUsed + 1 + 2 * limits.reservedSlots, slots.backedSlots)
        guard count > before, count < slots.backedSlots else { return }
        for number in [pair.a, pair.b] {
            let bytes = UInt64((count - before) * Geometry.pageBytes)
            guard disk.shorten(Int(number), to: bytes) else { return }
        }
        slots.unback(count)
    }

    // MARK: Placement after a takeover

    /// The preferred slots for pages.
    private var preferredSlots: Range<Int> {
        let split = Int(splitPair)
        guard split > 0, split < segments.pairs.count else { return 0..<Int.max }
        return isAbove ? split * slotsPerPair..<Int.max : 0..<split * slotsPerPair
    }

    /// Adds preferred slots until there are `wanted` free ones; if that is impossible, pages get other slots.
    private func makePreferred(_ wanted: Int) {
        while splitPair > 0, slots.preferredFree < wanted {
            if !isAbove {
                splitPair = 0
                slots.prefer(preferredSlots)
            } else if (try? add()) == nil {
                return
            }
        }
    }

    /// Moves pages to pairs in which the other mount allocates no slots.
    func keepAway(lastSlot: Int?) {
        // The side that the other mount itself avoids, after an earlier takeover.
        if splitPair > 0 && splitPair < segments.pairs.count {
            isAbove.toggle()
            slots.prefer(preferredSlots)
            if isAbove || slots.preferredFree >= limits.reservedSlots { return }
        }
        do throws(StoreError) {
            while slots.backedSlots < slots.slotCount { try preallocate() }
            try addPair()
            if grows { try preallocate() }
            (splitPair, isAbove) = (UInt16(segments.pairs.count - 1), true)
            slots.prefer(preferredSlots)
        } catch {
            // No two segments are free: use slots as far away as possible.
            splitPair = 0
            slots.prefer(preferredSlots)
            slots.begin(farFrom: [0] + [lastSlot].compactMap { $0 })
        }
    }

    // MARK: Commits

    /// Pages of the slot bitmap that changed since the last call.
    func takeChangedPages() -> Set<Int> { slots.takeDirtyPages() }
    var changedPages: Set<Int> { slots.dirtyPages }

    /// The present 2048 bytes of a bitmap page.
    func bytes(ofPage page: Int) -> [UInt8] { slots.bytes(ofPage: page) }

    /// Notes that the commit being written was published.
    ///
    /// - Parameter mayReuse: whether nobody reads an older state.
    func didPublish(durable: Bool, mayReuse: Bool) { slots.didPublish(durable: durable, mayReuse: mayReuse) }

    /// Notes that the commit being written failed.
    func takeBack() { slots.takeBack() }

    /// Has the next commit write the whole bitmap anew.
    func markAllChanged() { slots.markAllDirty() }
}
