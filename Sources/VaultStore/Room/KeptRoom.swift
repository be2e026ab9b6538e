import LinuxIO
import VaultFormat

/// Sectors and slots that a space does not reuse while a backup of its vault runs. Under the space's lock.
struct KeptRoom {
    /// The backup that room is kept for.
    private(set) var copy: UInt64?
    /// Slots in use when that backup was detected. It cannot need others.
    private var slots = BitRow(count: 0)
    /// Entries that would be released without the backup. The next commit frees them again.
    private(set) var entries: [DeltaEntry] = []
    /// Number of slots in `entries`.
    private(set) var slotCount = 0

    /// Keeps room for another backup from now on, or for none. Entries already kept stay until the next commit.
    mutating func keep(for copy: UInt64?, slotsInUse: BitRow) {
        self.copy = copy
        slots = copy == nil ? BitRow(count: 0) : slotsInUse
    }

    /// Whether the backup may need a slot.
    func needs(slot: UInt64) -> Bool { slot < UInt64(slots.count) && slots[Int(slot)] }

    /// - Parameter sectorsPerSegment: no entry of sectors crosses a segment.
    mutating func add(_ entry: DeltaEntry, sectorsPerSegment: Int) {
        if entry.kind == DeltaLayout.kindSlotsFreed { slotCount += Int(entry.count) }
        guard entries.last?.isContinued(by: entry, sectorsPerSegment: sectorsPerSegment) == true else {
            return entries.append(entry)
        }
        entries[entries.count - 1].count += entry.count
    }

    /// Removes all kept entries, for a commit that frees them.
    mutating func takeEntries() -> [DeltaEntry] {
        defer { (entries, slotCount) = ([], 0) }
        return entries
    }
}
