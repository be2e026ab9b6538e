import LinuxIO
import VaultFormat

/// Freed sectors or slots that a root may still refer to.
struct PendingFree: Sendable {
    var entry: DeltaEntry
    /// Generation of the commit that freed it: no root from then on refers to it.
    var generation: UInt64
}

/// Keeps freed sectors and slots until no root, snapshot or backup needs them; and the entries of the next commit's
/// delta.
///
/// Unchecked Sendable: everything mutable is under the space's lock. Functions marked so are called with it held, the
/// others take it.
final class FreedRoom: @unchecked Sendable {
    private let lock: Lock
    private let sectors: SectorRoom
    private let slots: SlotRoom
    private let next: NextCommit
    private let copies: BackupHold?
    private let sectorsPerSegment: Int
    /// The next commit's.
    private var entries: [DeltaEntry] = []
    private var pending: [PendingFree] = []
    /// Sectors of destroyed photos that no root refers to and that are to be overwritten; see `Eraser`.
    private var toErase: [DeltaEntry] = []
    /// Sectors in `toErase`, and those that will be moved there.
    private var destroyed: UInt64 = 0
    /// Sectors and slots kept for a backup that is reading the vault.
    private var kept = KeptRoom()
    /// Generations of held snapshots; see `Space.holdSnapshot`.
    private var held: [UInt64] = []
    /// Slots of delta pages that a newer root may still need, oldest first.
    private var deltaPages: [PendingFree] = []
    /// Sectors and slots freed by commits up to this generation are allocatable.
    private(set) var released: UInt64

    init(
        released: UInt64, _ sectors: SectorRoom, _ slots: SlotRoom, _ next: NextCommit, _ copies: BackupHold?,
        lock: Lock
    ) {
        (self.released, self.sectors, self.slots, self.next) = (released, sectors, slots, next)
        (self.copies, self.lock) = (copies, lock)
        sectorsPerSegment = sectors.perSegment
    }

    /// Reads from the deltas of the last commits which sectors and slots they freed. Under the lock.
    func load(from delta: Reference, pairs: [SegmentPair], _ reader: PageReader) {
        var found: [PendingFree] = []
        // A damaged delta only leaks the room that its entries freed.
        try? reader.forEachDelta(from: delta, pairs: pairs, after: released) { slot, generation, entries in
            deltaPages.append(PendingFree(entry: .slotFreed(slot), generation: generation))
            for entry in entries where entry.kind != DeltaLayout.kindExtentsWritten {
                found.append(PendingFree(entry: entry, generation: generation))
                if entry.kind == DeltaLayout.kindSectorsFreed { sectors.willRelease(UInt64(entry.count)) }
            }
        }
        deltaPages.reverse()
        pending = found.reversed()
    }

    // MARK: Changes of the next commit

    /// Notes written sectors. Under the lock.
    func noteWritten(_ sector: UInt64, _ count: Int) { note(DeltaLayout.kindExtentsWritten, sector, count) }

    /// Notes freed sectors. Under the lock.
    ///
    /// - Parameter isDestroyed: whether they are overwritten before they are reused.
    func noteFreed(_ sector: UInt64, _ count: Int, isDestroyed: Bool = false) {
        note(DeltaLayout.kindSectorsFreed, sector, count, isDestroyed: isDestroyed)
        sectors.willRelease(UInt64(count))
        if isDestroyed { destroyed += UInt64(count) }
    }

    /// Notes freed slots. Under the lock.
    func noteFreed(slots range: Range<Int>) {
        next.noteChange()
        entries.append(
            DeltaEntry(
                kind: DeltaLayout.kindSlotsFreed, count: UInt32(range.count), start: UInt64(range.lowerBound))
        )
    }

    /// Adds an entry to the next commit's delta, or extends the last one if it is contiguous. Under the lock.
    private func note(_ kind: UInt8, _ sector: UInt64, _ count: Int, isDestroyed: Bool = false) {
        next.noteChange()
        var entry = DeltaEntry(kind: kind, count: UInt32(count), start: sector)
        entry.isDestroyed = isDestroyed
        if entries.last?.isContinued(by: entry, sectorsPerSegment: sectorsPerSegment) == true {
            entries[entries.count - 1].count += entry.count
        } else {
            entries.append(entry)
        }
    }

    /// Takes all entries for a commit. Its root marks older deltas as released, so those of sectors to be overwritten
    /// and of kept room are among them again. Under the lock.
    func freeze() -> [DeltaEntry] {
        let frozen = joined(entries) + toErase + kept.takeEntries()
        entries = []
        toErase = []
        return frozen
    }

    /// Returns the entries of a commit that failed to the next one. Under the lock.
    func takeBack(_ frozen: [DeltaEntry]) { entries = frozen + entries }

    /// Entries of a large delta with adjacent ones joined, sectors written before those freed: as many small files or
    /// pieces are removed, their sectors become few runs.
    private func joined(_ entries: [DeltaEntry]) -> [DeltaEntry] {
        guard entries.count > DeltaLayout.entriesPerPage else { return entries }
        func order(_ entry: DeltaEntry) -> (UInt8, UInt8, UInt64) {
            (entry.kind, entry.isDestroyed ? 1 : 0, entry.start)
        }
        var joined: [DeltaEntry] = []
        for entry in entries.sorted(by: { order($0) < order($1) }) {
            if joined.last?.isContinued(by: entry, sectorsPerSegment: sectorsPerSegment) == true {
                joined[joined.count - 1].count += entry.count
            } else {
                joined.append(entry)
            }
        }
        return joined
    }

    // MARK: For the ledger, under the lock

    /// Entries of the next commit's delta so far.
    var entryCount: Int { entries.count + toErase.count }
    /// Entries that a commit that changes nothing releases, and those that it has itself.
    var entriesToRelease: Int { pending.count + entries.count }
    var entriesToErase: Int { toErase.count }
    var deltaPageCount: Int { deltaPages.count }
    /// Slots that the next commits release.
    var pendingSlots: Int {
        pending.reduce(0) {
            $1.entry.kind == DeltaLayout.kindSlotsFreed ? $0 + Int($1.entry.count) : $0
        }
    }

    // MARK: Releasing

    /// The slots of delta pages that no mount will read again once a commit is published. Under the lock.
    ///
    /// - Parameter inherited: whether its own delta takes over the entries since the newest durable root, of that
    ///   generation.
    func oldDeltas(inherited: UInt64?) -> [DeltaEntry] {
        deltaPages.filter { isOld($0, inherited) }.map(\.entry)
    }

    /// Whether all entries of a delta page were released, or the commit's own delta takes them over.
    private func isOld(_ page: PendingFree, _ inherited: UInt64?) -> Bool {
        page.generation <= released || inherited.map { page.generation > $0 } ?? false
    }

    /// Notes that a commit with these entries, and with deltas in these slots, was published. Under the lock.
    func didPublish(
        _ entries: [DeltaEntry], deltaSlots: [UInt32], generation: UInt64, inherited: UInt64?
    ) {
        for entry in entries where entry.kind != DeltaLayout.kindExtentsWritten {
            pending.append(PendingFree(entry: entry, generation: generation))
        }
        deltaPages.removeAll { isOld($0, inherited) }
        for slot in deltaSlots {
            deltaPages.append(PendingFree(entry: .slotFreed(slot), generation: generation))
        }
    }

    /// Releases sectors and slots freed by commits up to `generation`: neither of the two newest durable roots refers
    /// to them. Under the lock.
    func release(through generation: UInt64) throws(StoreError) {
        let generation = releasable(through: generation)
        var count = 0
        while count < pending.count, pending[count].generation <= generation {
            try release(pending[count].entry)
            count += 1
        }
        pending.removeFirst(count)
        released = max(released, generation)
        giveUpBackupIfShort()
    }

    /// Releases an entry that no root of this space needs, unless a running backup may need it.
    private func release(_ entry: DeltaEntry) throws(StoreError) {
        if entry.kind == DeltaLayout.kindSlotsFreed {
            for slot in entry.start..<entry.end { try release(slot: slot) }
        } else if kept.copy != nil {
            kept.add(entry, sectorsPerSegment: sectorsPerSegment)
        } else if entry.isDestroyed {
            toErase.append(entry)
        } else {
            sectors.release(entry.start, Int(entry.count))
        }
    }

    private func release(slot: UInt64) throws(StoreError) {
        guard kept.needs(slot: slot) else { return try slots.release(slot) }
        kept.add(.slotFreed(UInt32(slot)), sectorsPerSegment: sectorsPerSegment)
    }

    // MARK: Sectors to overwrite

    /// Whether some can be overwritten now.
    var canErase: Bool { lock.withLock { !toErase.isEmpty } }

    /// Whether some are left, even if a root still refers to them.
    var hasDestroyed: Bool { lock.withLock { destroyed > 0 } }

    /// The last sectors to be overwritten, `most` of them or fewer, and the entry that has them; nil if there are none.
    func nextToErase(most: UInt64) -> (entry: DeltaEntry, count: UInt64)? {
        lock.withLock { toErase.last.map { ($0, min(UInt64($0.count), most)) } }
    }

    /// Frees the last sectors of an entry, which were overwritten, unless a freeze has taken it meanwhile.
    func didErase(_ entry: DeltaEntry, _ count: UInt64) {
        lock.withLock {
            guard toErase.last == entry else { return }
            if UInt64(entry.count) == count {
                toErase.removeLast()
            } else {
                toErase[toErase.count - 1].count -= UInt32(count)
            }
            destroyed -= count
            // An unreadable bitmap keeps them in use, like its whole segment.
            sectors.release(entry.end - count, Int(count))
        }
    }

    #if DEBUG
        /// For tests of backups.
        var keptEntries: [DeltaEntry] { kept.entries }

        /// For tests that count all slots. Under the lock.
        var deltaSlots: [UInt32] { deltaPages.map { UInt32($0.entry.start) } }

        /// For tests that must find out. Under the lock.
        func releaseAllTooEarly() throws(StoreError) {
            let until = released
            try release(through: .max)
            released = until
        }
    #endif

    // MARK: Readers of older states

    /// Whether neither a snapshot nor a backup may be reading an older soft state; or room is so short that it must do
    /// without. Under the lock.
    var isAlone: Bool {
        slots.isShort || (held.isEmpty && kept.copy == nil && copies?.isBackupRunning != true)
    }

    /// Whether no older state is held for a snapshot or a backup. Under the lock.
    var keepsNothing: Bool { kept.copy == nil && held.isEmpty }

    /// Holds a state for a snapshot. Under the lock.
    func hold(_ generation: UInt64) { held.append(generation) }

    /// Ends a hold on the state of that generation; returns false if it was given up meanwhile.
    func letGo(of generation: UInt64) -> Bool {
        lock.withLock {
            guard let place = held.firstIndex(of: generation) else { return false }
            held.remove(at: place)
            return true
        }
    }

    /// The newest generation whose freed sectors and slots no snapshot needs.
    private func releasable(through generation: UInt64) -> UInt64 {
        // A commit without free slots is worse than a check that restarts a step.
        if slots.isShort { held = [] }
        return min(generation, held.min() ?? .max)
    }

    /// Looks for a backup to keep room for: sectors and slots of the newest durable root that it may have read are not
    /// reused until it is done, or room runs out. Called by the publishing thread after a durable root was written,
    /// before anything is released by it.
    func noticeCopy() {
        guard let copies else { return }
        let copy = copies.copyToKeepFor()
        lock.withLock { if copy != kept.copy { kept.keep(for: copy, slotsInUse: slots.inUse) } }
    }

    /// Gives up backups and snapshots because room has run out: they must start again. Two durable commits later
    /// everything kept is free.
    func giveUpReaders() {
        copies?.giveUp()
        lock.withLock {
            kept.keep(for: nil, slotsInUse: slots.inUse)
            held = []
        }
    }

    /// As above, but only for backups, if the kept slots cause a shortage of slots.
    private func giveUpBackupIfShort() {
        guard kept.slotCount > slots.free, slots.isShort else { return }
        copies?.giveUp()
        kept.keep(for: nil, slotsInUse: slots.inUse)
    }

    // MARK: Checking, under the lock

    /// All ranges of sectors that were freed and are not allocatable yet.
    var freedSectors: [Range<UInt64>] {
        (pending.map(\.entry) + toErase).compactMap { $0.sectors(ifOf: DeltaLayout.kindSectorsFreed) }
    }

    /// All ranges of slots that were freed and are not allocatable yet.
    var freedSlots: [Range<Int>] {
        pending.compactMap { free in
            free.entry.sectors(ifOf: DeltaLayout.kindSlotsFreed).map {
                Int($0.lowerBound)..<Int($0.upperBound)
            }
        }
    }

    /// Keeps of the freed sectors only these parts of each range; the others stay in use.
    func keepFreed(_ parts: (Range<UInt64>) -> [Range<UInt64>]) {
        next.noteChange()
        func left(of entry: DeltaEntry) -> [DeltaEntry] {
            guard let range = entry.sectors(ifOf: DeltaLayout.kindSectorsFreed) else { return [entry] }
            let left = parts(range).map { part in
                var kept = entry
                (kept.start, kept.count) = (part.lowerBound, UInt32(part.count))
                return kept
            }
            let gone = UInt64(entry.count) - left.reduce(0) { $0 + UInt64($1.count) }
            sectors.willKeep(gone)
            if entry.isDestroyed { destroyed -= min(gone, destroyed) }
            return left
        }
        pending = pending.flatMap { free in
            left(of: free.entry).map { PendingFree(entry: $0, generation: free.generation) }
        }
        toErase = toErase.flatMap { left(of: $0) }
    }

    /// Frees leaked sectors, each run by an entry of its own.
    func noteLeaked(_ runs: [Range<UInt64>]) {
        next.noteChange()
        for run in runs {
            entries.append(
                DeltaEntry(
                    kind: DeltaLayout.kindSectorsFreed, count: UInt32(run.count), start: run.lowerBound))
            sectors.willRelease(UInt64(run.count))
        }
    }
}

extension DeltaEntry {
    /// The sector, or slot, behind the last.
    var end: UInt64 { start + UInt64(count) }

    static func slotFreed(_ slot: UInt32) -> DeltaEntry {
        DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64(slot))
    }
}
