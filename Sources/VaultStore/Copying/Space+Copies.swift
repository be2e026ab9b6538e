import LinuxIO
import VaultFormat

/// What a space keeps from being used again while somebody copies its vault. Under the space's lock.
struct KeptRoom {
    /// The copy it is kept for.
    private(set) var copy: UInt64?
    /// Slots in use when that copy was noticed. Others it cannot need.
    private var slots = BitRow(count: 0)
    /// Given back, and released but for the copy: the next commit gives them back once more.
    private(set) var entries: [DeltaEntry] = []
    /// Slots among them.
    private(set) var slotCount = 0

    /// Keeps for another copy from now on, or for none. What is kept already stays so till the next commit.
    mutating func keep(for copy: UInt64?, slotsInUse: BitRow) {
        self.copy = copy
        slots = copy == nil ? BitRow(count: 0) : slotsInUse
    }

    /// Whether the copy may need a slot.
    func needs(slot: UInt64) -> Bool { slot < UInt64(slots.count) && slots[Int(slot)] }

    /// - Parameter sectorsPerSegment: no entry of sectors crosses a segment.
    mutating func add(_ entry: DeltaEntry, sectorsPerSegment: Int) {
        if entry.kind == DeltaLayout.kindSlotsFreed { slotCount += Int(entry.count) }
        guard let last = entries.last, last.kind == entry.kind, last.isDestroyed == entry.isDestroyed,
            last.start + UInt64(last.count) == entry.start,
            entry.kind == DeltaLayout.kindSlotsFreed
                || last.start / UInt64(sectorsPerSegment) == entry.start / UInt64(sectorsPerSegment)
        else { return entries.append(entry) }
        entries[entries.count - 1].count += entry.count
    }

    /// All that is kept, for a commit that gives it back.
    mutating func takeEntries() -> [DeltaEntry] {
        defer { (entries, slotCount) = ([], 0) }
        return entries
    }
}

/// Copies of the vault that others make meanwhile: what the newest durable root that they may have found refers to
/// stays where it is until they are done, or room runs out.
extension Space {
    /// Asks whether there is a copy to keep room for. Called when a durable root has been written, before anything is
    /// released by it; by the one thread that publishes.
    func noticeCopy() {
        guard let copies else { return }
        let copy = copies.copyToKeepFor()
        lock.withLock { if copy != kept.copy { kept.keep(for: copy, slotsInUse: slots.inUse) } }
    }

    /// Room has run out: whoever copies the vault, or reads a snapshot, must begin anew. Two durable commits later what
    /// was kept is free.
    public func giveUpCopies() {
        copies?.giveUp()
        lock.withLock {
            kept.keep(for: nil, slotsInUse: slots.inUse)
            held = []
        }
    }

    /// As above, where the slots that are kept are what the catalogue lacks. Under `lock`.
    func giveUpCopiesIfShort() {
        guard kept.slotCount > slots.freeSlots, slots.freeSlots < slots.backedSlots / 3 else { return }
        copies?.giveUp()
        kept.keep(for: nil, slotsInUse: slots.inUse)
    }
}
