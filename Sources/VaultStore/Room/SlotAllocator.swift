import VaultFormat

/// Allocates page slots: slot s lies in pair s / slotsPerPair, at the same offset in both segments. Everything happens
/// under the space's lock. All bits are in memory: 1 bit for 8 KiB of catalogue.
struct SlotAllocator {
    let slotsPerPair: Int
    private(set) var pairCount: Int
    /// Slots from 0 on that have disk blocks: none beyond is allocated. In a vault that grows this may be fewer than
    /// `slotCount`.
    private(set) var backedSlots: Int
    private var row: BitRow
    private(set) var usedSlots: Int
    private(set) var dirtyPages: Set<Int> = []
    private var cursor = RootLayout.rootSlots
    private var preferred = 0..<Int.max
    /// Slots that no durable root can refer to, because they were taken after the newest one was written.
    private var young: BitRow
    /// Slots that `replace` freed: clear in the bitmap of the commit that replaced them and of later ones, but not
    /// handed out while a root may be read that refers to them.
    private var withheld: BitRow
    /// Slots freed by the commit being written: the published root refers to them. Then those of earlier commits.
    private var withheldNow: [Int] = []
    private var withheldBefore: [Int] = []
    /// Slots that were handed back since the newest durable root, in descending order: taken first, because the host
    /// may not have written their old bytes to the disk yet, and then never does.
    private var recycled: [Int] = []

    /// `words` are the bits as stored, slot 0 first. The first `backed` slots have disk blocks, and so have all in use.
    init(slotsPerPair: Int, pairCount: Int, words: [UInt64], backed: Int) {
        self.slotsPerPair = slotsPerPair
        self.pairCount = pairCount
        backedSlots = backed
        row = BitRow(count: slotsPerPair * pairCount)
        young = row
        withheld = row
        for index in 0..<min(words.count, row.words.count) { row.setWord(index, words[index]) }
        for slot in 0..<RootLayout.rootSlots where !row[slot] { row.set(slot..<slot + 1) }
        usedSlots = row.setCount
        backedSlots = max(backed, row.lastSet + 1)
    }

    /// All slots, with disk blocks or without.
    var slotCount: Int { slotsPerPair * pairCount }

    /// The slots in use, including those of roots.
    var inUse: BitRow { row }

    /// Slots that can be allocated now: `usedSlots` counts those that are withheld.
    var freeSlots: Int { backedSlots - usedSlots }

    /// Slots in use that become free without a delta, once no older state is read.
    var withheldSlots: Int { withheldNow.count + withheldBefore.count }

    /// Notes that the slots before `count` have disk blocks.
    mutating func back(_ count: Int) {
        precondition(count <= slotCount)
        backedSlots = max(backedSlots, count)
    }

    /// The highest slot in use.
    var lastUsed: Int { max(row.lastSet, withheld.lastSet) }

    /// Notes that slots from `count` on have no disk blocks any more; none of them is in use.
    mutating func unback(_ count: Int) {
        precondition(count > lastUsed && count <= backedSlots)
        backedSlots = count
    }

    /// Adds a pair's slots, which have no disk blocks yet.
    mutating func addPair() {
        pairCount += 1
        row = row.grown(to: slotsPerPair * pairCount)
        young = young.grown(to: row.count)
        withheld = withheld.grown(to: row.count)
    }

    /// Allocates a free slot, if possible the next after the last one, so that a commit writes contiguously; nil if all
    /// are in use.
    mutating func take() -> UInt32? {
        while let slot = recycled.popLast() {
            if !row[slot], slot < backedSlots { return mark(slot) }
        }
        let isPreferred = preferred.contains(cursor)
        let found = isPreferred ? nextFree(from: cursor) : nil
        guard
            let slot = inPreferred(found) ?? inPreferred(nextFree(from: preferred.lowerBound))
                ?? nextFree(from: cursor) ?? nextFree(from: 0)
        else { return nil }
        cursor = slot + 1
        return mark(slot)
    }

    private mutating func mark(_ slot: Int) -> UInt32 {
        row.set(slot..<slot + 1)
        if !young[slot] { young.set(slot..<slot + 1) }
        usedSlots += 1
        dirtyPages.insert(slot / MapLayout.bitsPerPage)
        return UInt32(slot)
    }

    private func inPreferred(_ slot: Int?) -> Int? { slot.flatMap { preferred.contains($0) ? $0 : nil } }

    private func nextFree(from start: Int) -> Int? {
        var word = start >> 6
        var mask = UInt64.max << UInt64(start & 63)
        while word < row.words.count {
            let bits = ~(row.words[word] | withheld.words[word]) & mask
            if bits != 0 {
                let slot = word << 6 + bits.trailingZeroBitCount
                return slot < backedSlots ? slot : nil
            }
            word += 1
            mask = .max
        }
        return nil
    }

    /// Prefers free slots of this range as long as there are any.
    mutating func prefer(_ slots: Range<Int>) { preferred = slots }

    /// Free slots of the preferred range.
    var preferredFree: Int {
        let range = preferred.clamped(to: 0..<backedSlots)
        return range.isEmpty ? 0 : range.count - row.setCount(in: range) - withheld.setCount(in: range)
    }

    /// Continues at the slot farthest from all of `slots`, measured in free slots between, to within 63.
    mutating func begin(farFrom slots: [Int]) {
        let room = row.words.indices.map { word in
            word << 6 < backedSlots ? (~row.words[word]).nonzeroBitCount : 0
        }
        if let word = farthestPlace(in: room, from: slots.map { $0 >> 6 }) { cursor = word << 6 }
    }

    /// Takes every slot, because an unreadable state may refer to it; returns those it took.
    mutating func takeAll() -> Range<Int> {
        let all = RootLayout.rootSlots..<slotCount
        precondition(usedSlots == RootLayout.rootSlots)
        row.set(all)
        usedSlots = slotCount
        backedSlots = slotCount
        markAllDirty()
        return all
    }

    /// Frees the slots that `takeAll` took.
    mutating func releaseAll(_ all: Range<Int>) {
        row.clear(all)
        usedSlots -= all.count
    }

    // MARK: Slots that only soft roots refer to

    /// Frees a slot whose page or node the commit being written replaces, if no durable root can refer to it. Returns
    /// false if one can, or might: then a delta must free it.
    ///
    /// The slot is clear in the bitmap of this very commit, and reused once its root is published: nothing leads to the
    /// older soft roots any more.
    mutating func replace(_ slot: Int) -> Bool {
        guard slot < row.count, row[slot], young[slot] else { return false }
        row.clear(slot..<slot + 1)
        young.clear(slot..<slot + 1)
        withheld.set(slot..<slot + 1)
        withheldNow.append(slot)
        dirtyPages.insert(slot / MapLayout.bitsPerPage)
        return true
    }

    /// Notes that the commit being written was published.
    ///
    /// - Parameter mayReuse: whether nobody reads an older state.
    mutating func didPublish(durable: Bool, mayReuse: Bool) {
        withheldBefore += withheldNow
        withheldNow = []
        if durable {
            young = BitRow(count: row.count)
            recycled = []
        }
        guard mayReuse, !withheldBefore.isEmpty else { return }
        for slot in withheldBefore { withheld.clear(slot..<slot + 1) }
        usedSlots -= withheldBefore.count
        if !durable { recycled = (recycled + withheldBefore).sorted(by: >) }
        withheldBefore = []
    }

    /// Notes that the commit being written failed. Its root may be on the disk all the same, so no slot counts as one
    /// that only soft roots refer to.
    mutating func takeBack() {
        for slot in withheldNow {
            withheld.clear(slot..<slot + 1)
            row.set(slot..<slot + 1)
        }
        withheldNow = []
        young = BitRow(count: row.count)
        recycled = []
        markAllDirty()
    }

    /// Frees a slot that no root refers to any more.
    mutating func release(_ slot: Int) throws(StoreError) {
        guard slot >= RootLayout.rootSlots, slot < row.count, row[slot] else { throw .damaged }
        row.clear(slot..<slot + 1)
        if young[slot] { young.clear(slot..<slot + 1) }
        usedSlots -= 1
        dirtyPages.insert(slot / MapLayout.bitsPerPage)
    }

    /// Whether a slot is in use.
    func isUsed(_ slot: Int) -> Bool { slot < row.count && row[slot] }

    /// Takes a slot that is referred to although its bit is clear.
    mutating func take(found slot: Int) {
        precondition(slot < row.count && !row[slot])
        row.set(slot..<slot + 1)
        usedSlots += 1
        backedSlots = max(backedSlots, slot + 1)
        dirtyPages.insert(slot / MapLayout.bitsPerPage)
    }

    mutating func takeDirtyPages() -> Set<Int> {
        defer { dirtyPages = [] }
        return dirtyPages
    }

    /// Marks all pages dirty, because the written bits may not have been published.
    mutating func markAllDirty() {
        dirtyPages.formUnion(0..<(row.count + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage)
    }

    /// The present 2048 bytes of a bitmap page.
    func bytes(ofPage page: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: MapLayout.bitmapBytes)
        let first = page * MapLayout.bitsPerPage / 64
        bytes.withUnsafeMutableBytes { bytes in
            for index in 0..<MapLayout.bitmapBytes / 8 where first + index < row.words.count {
                bytes.setNumber(row.words[first + index], index * 8)
            }
        }
        return bytes
    }
}
