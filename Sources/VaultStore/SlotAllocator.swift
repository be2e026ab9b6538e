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

    /// `words` are the bits as stored, slot 0 first. The first `backed` slots have disk blocks, and so have all in use.
    init(slotsPerPair: Int, pairCount: Int, words: [UInt64], backed: Int) {
        self.slotsPerPair = slotsPerPair
        self.pairCount = pairCount
        backedSlots = backed
        row = BitRow(count: slotsPerPair * pairCount)
        for index in 0..<min(words.count, row.words.count) { row.setWord(index, words[index]) }
        for slot in 0..<RootLayout.rootSlots where !row[slot] { row.set(slot..<slot + 1) }
        usedSlots = row.setCount
        backedSlots = max(backed, row.lastSet + 1)
    }

    /// All slots, with disk blocks or without.
    var slotCount: Int { slotsPerPair * pairCount }

    /// The slots in use, including those of roots.
    var inUse: BitRow { row }

    /// Slots that can be allocated now.
    var freeSlots: Int { backedSlots - usedSlots }

    /// Notes that the slots before `count` have disk blocks.
    mutating func back(_ count: Int) {
        precondition(count <= slotCount)
        backedSlots = max(backedSlots, count)
    }

    /// The highest slot in use.
    var lastUsed: Int { row.lastSet }

    /// Notes that slots from `count` on have no disk blocks any more; none of them is in use.
    mutating func unback(_ count: Int) {
        precondition(count > row.lastSet && count <= backedSlots)
        backedSlots = count
    }

    /// Adds a pair's slots, which have no disk blocks yet.
    mutating func addPair() {
        pairCount += 1
        var grown = BitRow(count: slotsPerPair * pairCount)
        for index in 0..<row.words.count { grown.setWord(index, row.words[index]) }
        row = grown
    }

    /// Allocates a free slot, if possible the next after the last one, so that a commit writes contiguously; nil if all
    /// are in use.
    mutating func take() -> UInt32? {
        let isPreferred = preferred.contains(cursor)
        let found = isPreferred ? nextFree(from: cursor) : nil
        guard
            let slot = inPreferred(found) ?? inPreferred(nextFree(from: preferred.lowerBound))
                ?? nextFree(from: cursor) ?? nextFree(from: 0)
        else { return nil }
        cursor = slot + 1
        row.set(slot..<slot + 1)
        usedSlots += 1
        dirtyPages.insert(slot / MapLayout.bitsPerPage)
        return UInt32(slot)
    }

    private func inPreferred(_ slot: Int?) -> Int? { slot.flatMap { preferred.contains($0) ? $0 : nil } }

    private func nextFree(from start: Int) -> Int? {
        var word = start >> 6
        var mask = UInt64.max << UInt64(start & 63)
        while word < row.words.count {
            let bits = ~row.words[word] & mask
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
        return range.isEmpty ? 0 : range.count - row.setCount(in: range)
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
    mutating func giveBack(_ all: Range<Int>) {
        row.clear(all)
        usedSlots -= all.count
    }

    /// Frees a slot that no root refers to any more.
    mutating func release(_ slot: Int) throws(StoreError) {
        guard slot >= RootLayout.rootSlots, slot < row.count, row[slot] else { throw .damaged }
        row.clear(slot..<slot + 1)
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
