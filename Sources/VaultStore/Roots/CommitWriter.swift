import LinuxIO
import VaultFormat

/// Writes commits: their pages, maps and deltas first, their root last.
///
/// Unchecked Sendable: everything mutable is under the space's lock. Functions marked so are called with it held, the
/// others take it. One thread at a time freezes and publishes.
final class CommitWriter: @unchecked Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let codec: PageCodec
    private let gate: WriteGate
    private let segments: SegmentRoles
    private let sectors: SectorRoom
    private let slots: SlotRoom
    private let pages: PageStore
    private let freed: FreedRoom
    private let ledger: RoomLedger
    private let roots: RootStore
    private let next: NextCommit
    private let unsynced: UnsyncedState
    private let pagesPerWrite: Int
    /// Random number of this mount.
    private let epoch: UInt64
    private let bootHash: [UInt8]
    /// The newest published root.
    private var current: RootRecord
    /// Generation and delta of the newest durable root.
    private var durableGeneration: UInt64
    private var durableDelta: Reference
    /// Whether this mount has published a root.
    private var hasPublished = false

    init(
        _ opened: OpenedRoot, _ parts: SpaceParts, epoch: UInt64, bootHash: [UInt8], pagesPerWrite: Int
    ) {
        (lock, disk, codec, gate) = (parts.lock, parts.disk, parts.codec, parts.gate)
        (segments, sectors, slots, pages) = (parts.segments, parts.sectors, parts.slots, parts.pages)
        (freed, ledger, roots, next) = (parts.freed, parts.ledger, parts.roots, parts.next)
        (unsynced, self.epoch, self.bootHash) = (parts.unsynced, epoch, bootHash)
        self.pagesPerWrite = pagesPerWrite
        current = opened.root
        durableGeneration = opened.root.isDurable ? opened.root.generation : opened.root.base
        durableDelta = opened.durableDelta
    }

    // MARK: What is published

    /// The newest published root.
    var newest: RootRecord { lock.withLock { current } }

    /// As `newest`. Under the lock.
    var newestLocked: RootRecord { current }

    /// Delta of the newest durable root. Under the lock.
    var newestDurableDelta: Reference { durableDelta }

    /// Generation of the newest durable root, which no power cut can undo.
    var newestDurable: UInt64 { lock.withLock { durableGeneration } }

    /// Whether this mount has published a root.
    var hasWritten: Bool { lock.withLock { hasPublished } }

    /// Whether the newest root is durable and nothing has changed since.
    var isClean: Bool { lock.withLock { current.isDurable && !next.isChanged } }

    // MARK: Publishing

    /// Takes all changes since the last call. The caller holds the catalogue's lock, has ended its transaction, and
    /// publishes the result before it freezes again.
    func freeze() -> FrozenCommit {
        lock.withLock {
            let (bitmaps, counts) = sectors.freeze()
            let frozen = FrozenCommit(
                generation: next.end(), pages: pages.freeze(), bitmaps: bitmaps, counts: counts,
                entries: freed.freeze())
            frozen.slotsMax = slotsWanted(for: frozen)
            return frozen
        }
    }

    /// Writes a frozen commit and its root. With `durable` it survives a power cut.
    ///
    /// If this throws, nothing was published, and the next freeze contains the commit's changes.
    func publish(_ frozen: FrozenCommit, durable: Bool) throws(StoreError) {
        // Only durable roots release slots that a durable one refers to, so a shortage makes the commit durable.
        let durable =
            durable || lock.withLock { slots.isShort(for: max(2 * slotsWanted(for: frozen), slots.enough)) }
        do throws(StoreError) {
            try gate.requireOpen()
            if durable && lock.withLock({ unsynced.isLost }) { try rewriteUnsynced(frozen) }
            let root = try writeCommit(frozen, durable: durable)
            if durable { try sync() }
            try gate.verifyClaim()
            try roots.write(root)
            if durable {
                try sync()
                // The commit is reported as durable only if a mount that takes over is sure to see it.
                try gate.verifyClaim()
                freed.noticeCopy()
            }
            try lock.withLock { () throws(StoreError) in try didPublish(root, frozen) }
        } catch {
            lock.withLock { takeBack(frozen) }
            throw error
        }
    }

    private func sync() throws(StoreError) {
        do throws(StoreError) { try disk.sync() } catch {
            lock.withLock { unsynced.noteLost() }
            throw error
        }
    }

    /// Returns an unpublished commit's changes to the next one. Under the lock.
    private func takeBack(_ frozen: FrozenCommit) {
        pages.takeBack(frozen.pages, current)
        // The root may have reached the disk nevertheless, so its slots are freed by the next commit and not at once.
        freed.takeBack(frozen.entries.prefix(frozen.entriesFrozen) + frozen.slotsTaken.map { .slotFreed($0) })
        next.noteChange()
        slots.takeBack()
        sectors.takeBack()
    }

    /// Makes a published root the current one, and releases sectors and slots that no root needs any more. Under the
    /// lock.
    private func didPublish(_ root: RootRecord, _ frozen: FrozenCommit) throws(StoreError) {
        pages.didPublish()
        freed.didPublish(
            frozen.entries, deltaSlots: frozen.deltaSlots, generation: root.generation,
            inherited: inheritedSince(frozen))
        current = root
        hasPublished = true
        sectors.didPublish()
        slots.didPublish(durable: root.isDurable, mayReuse: freed.isAlone)
        if root.isDurable {
            let releasable = durableGeneration
            durableGeneration = root.generation
            durableDelta = root.delta
            unsynced.clear()
            try freed.release(through: releasable)
        }
        slots.updateSegments()
    }

    /// The durable generation since which a commit's delta takes over all entries; nil if it does not. Under the lock.
    private func inheritedSince(_ frozen: FrozenCommit) -> UInt64? {
        frozen.inherited == nil ? nil : durableGeneration
    }

    // MARK: Pages

    private struct PageToWrite {
        var object: MapObject
        var page: Int
        var slot: UInt32
        var place: SlotPlace
        var bytes: PageSource
    }

    private enum PageSource {
        case buffer(PageBuffer)
        case array([UInt8])

        func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws(StoreError) -> R) throws(StoreError) -> R {
            switch self {
            case .buffer(let page): return try body(UnsafeRawBufferPointer(page.bytes))
            case .array(let bytes):
                return try withUnsafeTemporaryPage { (plain) throws(StoreError) in
                    plain.zero()
                    plain.copyBytes(from: bytes)
                    return try body(UnsafeRawBufferPointer(plain))
                }
            }
        }
    }

    /// Seals and writes the pages of a commit, then their maps. Returns the root to publish.
    private func writeCommit(_ frozen: FrozenCommit, durable: Bool) throws(StoreError) -> RootRecord {
        let changed = try lock.withLock { () throws(StoreError) in try assignSlots(frozen) }
        var writer = PageWriter(disk: disk, codec: codec, pagesMax: pagesPerWrite)
        var references: [Reference] = []
        references.reserveCapacity(changed.count)
        for page in changed {
            let identity = PageIdentity.page(page.object, page.page)
            references.append(
                try page.bytes.withBytes { (bytes) throws(StoreError) in
                    try writer.add(bytes, as: identity, slot: page.slot, at: page.place)
                })
        }
        let root = try lock.withLock { () throws(StoreError) -> RootRecord in
            for (page, reference) in zip(changed, references) { pages.set(page.object, page.page, reference) }
            return try writeMaps(frozen, durable: durable, &writer)
        }
        assert(
            frozen.slotsTaken.count <= frozen.slotsMax || frozen.inherited != nil,
            "a commit took \(frozen.slotsTaken.count) slots, and had reserved \(frozen.slotsMax)")
        try writer.flush()
        return root
    }

    /// Allocates a new slot for every changed page. Under the lock.
    private func assignSlots(_ frozen: FrozenCommit) throws(StoreError) -> [PageToWrite] {
        try slots.ensure(
            slotsWanted(for: frozen), stored: frozen.storedCount,
            cataloguePages: pages.pageCount(of: .catalogue))
        var changed: [PageToWrite] = []
        changed.reserveCapacity(frozen.storedCount)
        for (index, page) in frozen.pages {
            if page.isZero {
                try unassign(Int(index), frozen)
            } else {
                changed.append(try assign(.catalogue, Int(index), .buffer(page), frozen))
            }
        }
        for (page, bytes) in frozen.bitmaps {
            changed.append(try assign(.sectorBitmap, page, .array(bytes), frozen))
        }
        for (page, bytes) in frozen.counts { changed.append(try assign(.usage, page, .array(bytes), frozen)) }
        return changed
    }

    private func assign(
        _ object: MapObject, _ page: Int, _ bytes: PageSource, _ frozen: FrozenCommit
    ) throws(StoreError) -> PageToWrite {
        free(try pages.replace(object, page), frozen)
        pages.setPageCount(of: object, max(pages.pageCount(of: object), page + 1))
        let slot = try takeSlot(frozen)
        unsynced.note(object, page)
        return PageToWrite(object: object, page: page, slot: slot, place: try pages.place(slot), bytes: bytes)
    }

    /// Gives back the slot of a catalogue page of zeros, which is not stored. Also where it had no slot: after a failed
    /// sync its node is written again.
    private func unassign(_ page: Int, _ frozen: FrozenCommit) throws(StoreError) {
        free(try pages.replace(.catalogue, page), frozen)
        pages.set(.catalogue, page, .absent)
        unsynced.note(.catalogue, page)
    }

    private func takeSlot(_ frozen: FrozenCommit) throws(StoreError) -> UInt32 {
        let slot = try slots.take()
        frozen.slotsTaken.append(slot)
        return slot
    }

    private func free(_ old: Reference, _ frozen: FrozenCommit) {
        if old.isAbsent { return }
        // After a failed sync pages get places that the disk was not asked to write before.
        if !unsynced.isLost, slots.replace(old.slot) { return }
        let freed = DeltaEntry.slotFreed(old.slot)
        if frozen.entries.last?.isContinued(by: freed, sectorsPerSegment: disk.sectorsPerSegment) == true {
            frozen.entries[frozen.entries.count - 1].count += 1
        } else {
            frozen.entries.append(freed)
        }
    }

    /// Upper bound of the slots that a commit takes. Under the lock.
    private func slotsWanted(for frozen: FrozenCommit) -> Int {
        let zeros = frozen.pageCount - frozen.storedCount
        return ledger.commitSlots(
            stored: frozen.pages.count - zeros, zeros: zeros, bitmaps: frozen.bitmaps.count,
            counts: frozen.counts.count, entries: frozen.entries.count + (frozen.inherited?.count ?? 0))
    }

    // MARK: Maps and deltas

    /// Writes the changed map nodes, the slot bitmap and the delta, and composes the root. Under the lock.
    private func writeMaps(
        _ frozen: FrozenCommit, durable: Bool, _ writer: inout PageWriter
    ) throws(StoreError) -> RootRecord {
        for object in [MapObject.catalogue, .sectorBitmap, .usage] {
            for (key, node) in pages.changedNodes(object) {
                free(try pages.reference(object, node: key), frozen)
                try write(node, key, object, slot: takeSlot(frozen), &writer)
            }
        }
        frozen.entries += freed.oldDeltas(inherited: inheritedSince(frozen))
        let delta = try writeSlotBitmap(frozen, &writer)
        return RootRecord(
            generation: frozen.generation, isDurable: durable, epoch: epoch,
            bootHash: durable ? [UInt8](repeating: 0, count: RootLayout.bootHashBytes) : bootHash,
            base: durableGeneration, released: freed.released, peakSectors: sectors.peakSectors,
            objects: pages.objects, delta: delta, pairs: segments.pairs,
            evasion: Evasion(
                root: roots.rings.avoided, splitPair: slots.splitPair, isAbove: slots.isAbove,
                segment: sectors.firstSegment),
            format: current.format, room: current.room)
    }

    private func write(
        _ node: MapNode, _ key: NodeKey, _ object: MapObject, slot: UInt32, _ writer: inout PageWriter
    ) throws(StoreError) {
        let place = try pages.place(slot)
        let reference = try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            plain.zero()
            for (index, reference) in node.references.enumerated() {
                reference.encode(
                    into: plain.slice(index * MapLayout.referenceBytes, MapLayout.referenceBytes))
            }
            return try writer.add(
                UnsafeRawBufferPointer(plain), as: .node(object, key), slot: slot, at: place)
        }
        pages.set(object, node: key, reference)
    }

    /// Writes the slot bitmap and the delta. Allocating their slots changes the bitmap itself, so slots are allocated
    /// until no further page changes, and only then is anything sealed.
    private func writeSlotBitmap(
        _ frozen: FrozenCommit, _ writer: inout PageWriter
    ) throws(StoreError) -> Reference {
        let object = MapObject.slotBitmap
        var pageSlots: [Int: UInt32] = [:]
        var nodeSlots: [NodeKey: UInt32] = [:]
        var deltaSlots: [UInt32] = []
        while true {
            let dirty = slots.takeChangedPages().filter { pageSlots[$0] == nil }
            for page in dirty.sorted() {
                free(try pages.replace(object, page), frozen)
                pageSlots[page] = try takeSlot(frozen)
            }
            for (key, _) in pages.changedNodes(object) where nodeSlots[key] == nil {
                free(try pages.reference(object, node: key), frozen)
                nodeSlots[key] = try takeSlot(frozen)
            }
            let entryCount = frozen.entries.count + (frozen.inherited?.count ?? 0)
            let deltaPages = (entryCount + DeltaLayout.entriesPerPage - 1) / DeltaLayout.entriesPerPage
            while deltaSlots.count < deltaPages { deltaSlots.append(try takeSlot(frozen)) }
            if slots.changedPages.allSatisfy({ pageSlots[$0] != nil }) { break }
        }
        _ = slots.takeChangedPages()
        for (page, slot) in pageSlots.sorted(by: { $0.value < $1.value }) {
            let source = PageSource.array(slots.bytes(ofPage: page))
            let place = try pages.place(slot)
            let reference = try source.withBytes { (bytes) throws(StoreError) in
                try writer.add(bytes, as: .page(object, page), slot: slot, at: place)
            }
            pages.set(object, page, reference)
        }
        pages.setPageCount(of: object, (slots.count + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage)
        for (key, node) in pages.changedNodes(object) {
            guard let slot = nodeSlots[key] else { preconditionFailure("every dirty node has a slot") }
            try write(node, key, object, slot: slot, &writer)
        }
        return try writeDelta(frozen, deltaSlots, &writer)
    }

    private func writeDelta(
        _ frozen: FrozenCommit, _ slotList: [UInt32], _ writer: inout PageWriter
    ) throws(StoreError) -> Reference {
        let entries = (frozen.inherited ?? []) + frozen.entries
        var previous = frozen.inherited == nil ? current.delta : durableDelta
        for (number, slot) in slotList.enumerated() {
            let first = number * DeltaLayout.entriesPerPage
            let part = entries[first..<min(first + DeltaLayout.entriesPerPage, entries.count)]
            let place = try pages.place(slot)
            let linked = previous
            previous = try withUnsafeTemporaryPage { (plain) throws(StoreError) in
                plain.zero()
                plain.setNumber(frozen.generation, DeltaLayout.generationOffset)
                plain.setNumber(UInt32(part.count), DeltaLayout.countOffset)
                linked.encode(into: plain.slice(DeltaLayout.previousOffset, MapLayout.referenceBytes))
                for (index, entry) in part.enumerated() {
                    entry.encode(
                        into: plain.slice(
                            DeltaLayout.entriesOffset + index * DeltaLayout.entryBytes, DeltaLayout.entryBytes
                        ))
                }
                let identity = PageIdentity(role: .delta, index: slot)
                return try writer.add(UnsafeRawBufferPointer(plain), as: identity, slot: slot, at: place)
            }
        }
        frozen.deltaSlots = slotList
        return previous
    }

    // MARK: After a failed sync

    /// After a failed fdatasync the kernel may treat lost pages as clean, so everything written since the newest
    /// durable root is rewritten before the next sync. If something no longer opens, the commit fails again.
    ///
    /// Pages and deltas become part of `frozen` and so get new slots: an unwritable slot does not block the commit.
    /// Extents are opened and rewritten in place, because only the catalogue's rows know their places.
    private func rewriteUnsynced(_ frozen: FrozenCommit) throws(StoreError) {
        let inherited = try unsynced.rewriteExtents(
            frozen.entries, from: current.delta, pairs: segments.pairs, after: durableGeneration)
        try lock.withLock { () throws(StoreError) in
            for (object, changed) in unsynced.pages {
                for page in changed.sorted() { try readAgain(object, page, frozen) }
            }
        }
        frozen.inherited = inherited
    }

    /// Adds the newest root's version of a page to a commit that does not change it. Under the lock.
    private func readAgain(_ object: MapObject, _ page: Int, _ frozen: FrozenCommit) throws(StoreError) {
        // The whole slot bitmap is rewritten anyway.
        guard object != .slotBitmap, page < pages.pageCount(of: object) else { return }
        let reference = try pages.reference(object, page)
        if reference.isAbsent, object != .catalogue { return }
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            if reference.isAbsent {
                plain.zero()
            } else {
                try pages.openPage(reference, as: .page(object, page), into: plain)
            }
            frozen.addUnlessChanged(object, page, UnsafeRawBufferPointer(plain))
        }
    }
}
