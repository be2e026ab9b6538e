import LinuxIO
import VaultFormat

/// A consistent state of a space, taken in the catalogue's critical section, to be published.
public final class FrozenCommit: @unchecked Sendable {
    let generation: UInt64
    private(set) var pages: [(index: UInt32, page: PageBuffer)]
    private(set) var bitmaps: [(page: Int, bytes: [UInt8])]
    private(set) var counts: [(page: Int, bytes: [UInt8])]
    /// Changes up to the freeze, then slots freed by publishing itself.
    var entries: [DeltaEntry]
    let entriesFrozen: Int
    /// Entries of earlier soft commits that this commit's delta takes over, so that their deltas are no longer needed.
    var inherited: [DeltaEntry]?
    /// Slots allocated by publishing: freed if it fails.
    var slotsTaken: [UInt32] = []
    /// The most that publishing may take, by the ledger.
    var slotsMax = 0

    init(
        generation: UInt64, pages: [(index: UInt32, page: PageBuffer)],
        bitmaps: [(page: Int, bytes: [UInt8])],
        counts: [(page: Int, bytes: [UInt8])], entries: [DeltaEntry]
    ) {
        self.generation = generation
        self.pages = pages
        self.bitmaps = bitmaps
        self.counts = counts
        self.entries = entries
        entriesFrozen = entries.count
    }

    /// Changed pages: the catalogue's, and those of bits and counts of sectors.
    var pageCount: Int { pages.count + bitmaps.count + counts.count }

    /// Changed pages to be stored.
    var storedCount: Int { pageCount - pages.count { $0.page.isZero } }

    /// Adds the newest root's version of a page, unless the commit changes the page.
    func addUnlessChanged(_ object: MapObject, _ page: Int, _ bytes: UnsafeRawBufferPointer) {
        switch object {
        case .catalogue:
            if pages.contains(where: { $0.index == page }) { return }
            pages.append((index: UInt32(page), page: PageBuffer(bytes)))
        case .sectorBitmap:
            if bitmaps.contains(where: { $0.page == page }) { return }
            bitmaps.append((page: page, bytes: Array(bytes.prefix(MapLayout.bitmapBytes))))
        case .usage:
            if counts.contains(where: { $0.page == page }) { return }
            counts.append((page: page, bytes: Array(bytes.prefix(MapLayout.countsPerPage * 4))))
        case .slotBitmap: break
        }
    }
}

/// Publishing: everything that a commit refers to is written first, its root last.
extension Space {
    /// Takes all changes since the last call. The caller holds the catalogue's lock, has ended its transaction, and
    /// publishes the result before it freezes again.
    public func freeze() -> FrozenCommit {
        lock.withLock {
            let (bitmaps, counts) = sectors.freezeDirtyPages()
            let frozen = FrozenCommit(
                generation: nextGeneration,
                pages: staged.map { (index: $0.key, page: $0.value) }.sorted { $0.index < $1.index },
                bitmaps: bitmaps, counts: counts,
                entries: joined(entries) + pendingErase + kept.takeEntries())
            frozen.slotsMax = slotsWanted(for: frozen)
            (frozenPages, frozenZeros) = (staged, stagedZeros)
            (staged, stagedZeros) = ([:], 0)
            entries = []
            pendingErase = []
            isChanged = false
            nextGeneration += 1
            peakSectors = max(peakSectors, sectors.usedSectors)
            return frozen
        }
    }

    /// Writes a frozen commit and its root. With `durable` it survives a power cut.
    ///
    /// If this throws, nothing was published, and the next freeze contains the commit's changes.
    public func publish(_ frozen: FrozenCommit, durable: Bool) throws(StoreError) {
        willPublish?()
        // Only durable roots release slots that a durable one refers to, so a shortage makes the commit durable.
        let durable =
            durable || lock.withLock { isShortOfSlots(for: max(2 * slotsWanted(for: frozen), enoughSlots)) }
        do throws(StoreError) {
            try requireWritable()
            if syncFailed && durable { try rewriteUnsynced(frozen) }
            let root = try writeCommit(frozen, durable: durable)
            if durable { try syncFiles() }
            try verifyClaim()
            try writeRoot(root)
            if durable {
                try syncFiles()
                // The commit is reported as durable only if a mount that takes over is sure to see it.
                try verifyClaim()
                noticeCopy()
            }
            try lock.withLock { () throws(StoreError) in try didPublish(root, frozen) }
        } catch {
            lock.withLock { takeBack(frozen) }
            throw error
        }
        wasPublished?(self)
    }

    private func syncFiles() throws(StoreError) {
        do throws(StoreError) { try files.sync() } catch {
            lock.withLock { syncFailed = true }
            throw error
        }
    }

    /// Returns an unpublished commit's changes to the next one. Under `lock`.
    private func takeBack(_ frozen: FrozenCommit) {
        for (index, page) in frozen.pages where staged[index] == nil { stage(index, page) }
        (frozenPages, frozenZeros) = ([:], 0)
        // The root may have reached the disk nevertheless, so its slots are freed by the next commit and not at once.
        let taken = frozen.slotsTaken.map {
            DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64($0))
        }
        entries = frozen.entries.prefix(frozen.entriesFrozen) + taken + entries
        for (index, stored) in current.objects.enumerated() {
            maps[index].restore(levels: stored.levels, root: stored.reference)
        }
        newDeltaSlots = []
        isChanged = true
        slots.takeBack()
        sectors.takeBack()
    }

    // MARK: Everything but the root

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
        let pages = try lock.withLock { () throws(StoreError) in try assignPages(frozen) }
        var writer = PageWriter(files: files, codec: codec, pagesMax: limits.pagesPerWrite)
        var references: [Reference] = []
        references.reserveCapacity(pages.count)
        for page in pages {
            let identity = PageIdentity.page(page.object, page.page)
            references.append(
                try page.bytes.withBytes { (bytes) throws(StoreError) in
                    try writer.add(bytes, as: identity, slot: page.slot, at: page.place)
                })
        }
        let root = try lock.withLock { () throws(StoreError) -> RootRecord in
            for (page, reference) in zip(pages, references) {
                maps[page.object.rawValue].set(page: page.page, reference)
            }
            return try writeMaps(frozen, durable: durable, &writer)
        }
        assert(
            frozen.slotsTaken.count <= frozen.slotsMax || frozen.inherited != nil,
            "a commit took \(frozen.slotsTaken.count) slots, and had reserved \(frozen.slotsMax)")
        try writer.flush()
        return root
    }

    /// Allocates a new slot for every changed page. Under `lock`.
    private func assignPages(_ frozen: FrozenCommit) throws(StoreError) -> [PageToWrite] {
        try ensureSlots(for: frozen)
        var pages: [PageToWrite] = []
        pages.reserveCapacity(frozen.storedCount)
        for (index, page) in frozen.pages {
            if page.isZero {
                try unassign(Int(index), frozen)
            } else {
                pages.append(try assign(.catalogue, Int(index), .buffer(page), frozen))
            }
        }
        for (page, bytes) in frozen.bitmaps {
            pages.append(try assign(.sectorBitmap, page, .array(bytes), frozen))
        }
        for (page, bytes) in frozen.counts { pages.append(try assign(.usage, page, .array(bytes), frozen)) }
        return pages
    }

    private func assign(
        _ object: MapObject, _ page: Int, _ bytes: PageSource, _ frozen: FrozenCommit
    ) throws(StoreError) -> PageToWrite {
        let old = try reference(object, page)
        try maps[object.rawValue].makeDirty(page: page, load: nodeLoader(object))
        free(old, frozen)
        maps[object.rawValue].pageCount = max(maps[object.rawValue].pageCount, UInt32(page) + 1)
        let slot = try takeSlot(frozen)
        unsyncedPages[object, default: []].insert(page)
        return PageToWrite(object: object, page: page, slot: slot, place: try place(slot), bytes: bytes)
    }

    /// Gives back the slot of a catalogue page of zeros, which is not stored.
    private func unassign(_ page: Int, _ frozen: FrozenCommit) throws(StoreError) {
        let object = MapObject.catalogue
        let old = try reference(object, page)
        // Also where it had no slot: after a failed sync its node is written again.
        try maps[object.rawValue].makeDirty(page: page, load: nodeLoader(object))
        free(old, frozen)
        maps[object.rawValue].set(page: page, .absent)
        unsyncedPages[object, default: []].insert(page)
    }

    private func takeSlot(_ frozen: FrozenCommit) throws(StoreError) -> UInt32 {
        if slots.freeSlots == 0 { try addSlots() }
        guard let slot = slots.take() else { throw .noRoom }
        frozen.slotsTaken.append(slot)
        return slot
    }

    private func free(_ old: Reference, _ frozen: FrozenCommit) {
        if old.isAbsent { return }
        // After a failed sync pages get places that the disk was not asked to write before.
        if !syncFailed, slots.replace(Int(old.slot)) { return }
        if let last = frozen.entries.last, last.kind == DeltaLayout.kindSlotsFreed,
            last.start + UInt64(last.count) == UInt64(old.slot)
        {
            frozen.entries[frozen.entries.count - 1].count += 1
        } else {
            frozen.entries.append(
                DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64(old.slot)))
        }
    }

    /// Upper bound of the slots that a commit takes. Under `lock`.
    private func slotsWanted(for frozen: FrozenCommit) -> Int {
        let zeros = frozen.pageCount - frozen.storedCount
        return commitSlots(
            stored: frozen.pages.count - zeros, zeros: zeros, bitmaps: frozen.bitmaps.count,
            counts: frozen.counts.count, entries: frozen.entries.count + (frozen.inherited?.count ?? 0))
    }

    /// Whether fewer slots are free than `count`, and than a third of all. Under `lock`.
    func isShortOfSlots(for count: Int) -> Bool { slots.freeSlots < min(count, slots.backedSlots / 3) }

    /// Whether so few slots are free that nothing is kept any more for readers of older states. Under `lock`.
    var isShortOfSlots: Bool { isShortOfSlots(for: enoughSlots) }

    private var enoughSlots: Int { min(16 * limits.slotsPerStep, slotsPerPair / 2) }

    /// Ensures, before anything is written, that there are slots for the commit's pages and maps.
    private func ensureSlots(for frozen: FrozenCommit) throws(StoreError) {
        let stored = frozen.storedCount
        let wanted = slotsWanted(for: frozen)
        ensurePreallocated()
        makePreferredSlots(wanted)
        while slots.freeSlots < wanted {
            do throws(StoreError) { try addSlots() } catch {
                // The estimate is generous: continue while the slots may still suffice.
                if slots.freeSlots > stored + 24 { break }
                throw error
            }
        }
        if grows { backAhead(of: wanted) }
    }

    /// In a vault that grows, backs more slots than the next commit needs while the host has room, so that deleting
    /// still works when it has none. With as many free slots as used ones, no commit has to become durable early.
    private func backAhead(of wanted: Int) {
        let pages = Int(maps[MapObject.catalogue.rawValue].pageCount)
        let kept = 2 * wanted + min(max(limits.slotsPerStep, pages / 2), 8 * limits.slotsPerStep)
        while slots.freeSlots < kept || (slots.freeSlots < slots.backedSlots / 2 && hasPlenty) {
            let isPairFull = slots.backedSlots == slots.slotCount
            if isPairFull && slots.freeSlots >= kept { return }
            guard (try? addSlots()) != nil else { return }
        }
    }

    private var hasPlenty: Bool {
        ((try? hostAvailable()) ?? 0) > Self.hostPlentyBytes
    }

    // MARK: Maps and deltas

    /// Writes the changed map nodes, the slot bitmap and the delta, and composes the root. Under `lock`.
    private func writeMaps(
        _ frozen: FrozenCommit, durable: Bool, _ writer: inout PageWriter
    ) throws(StoreError) -> RootRecord {
        for object in [MapObject.catalogue, .sectorBitmap, .usage] {
            let nodes = maps[object.rawValue].dirtyNodes
            for (key, node) in nodes {
                let old = try maps[object.rawValue].reference(ofNode: key, load: nodeLoader(object))
                free(old, frozen)
                try write(node, key, object, slot: takeSlot(frozen), &writer)
            }
        }
        freeOldDeltas(frozen)
        let delta = try writeSlotBitmap(frozen, &writer)
        return RootRecord(
            generation: frozen.generation, isDurable: durable, epoch: epoch,
            bootHash: durable ? [UInt8](repeating: 0, count: RootLayout.bootHashBytes) : bootHash,
            base: durableGeneration, released: released, peakSectors: peakSectors,
            objects: maps.map { .init(pageCount: $0.pageCount, levels: $0.levels, reference: $0.root) },
            delta: delta, pairs: pairs, evasion: evasion, format: current.format, room: current.room)
    }

    private func write(
        _ node: MapNode, _ key: NodeKey, _ object: MapObject, slot: UInt32, _ writer: inout PageWriter
    ) throws(StoreError) {
        let place = try place(slot)
        let reference = try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            plain.zero()
            for (index, reference) in node.references.enumerated() {
                reference.encode(
                    into: plain.slice(index * MapLayout.referenceBytes, MapLayout.referenceBytes))
            }
            return try writer.add(
                UnsafeRawBufferPointer(plain), as: .node(object, key), slot: slot, at: place)
        }
        maps[object.rawValue].set(node: key, reference)
    }

    /// Frees the delta pages that no mount will read again.
    private func freeOldDeltas(_ frozen: FrozenCommit) {
        frozen.entries += deltaPages.filter { isOld($0, frozen) }.map(\.entry)
    }

    /// Whether all entries of a delta page were released, or the commit's own delta takes them over.
    private func isOld(_ page: PendingFree, _ frozen: FrozenCommit) -> Bool {
        page.generation <= released || (frozen.inherited != nil && page.generation > durableGeneration)
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
            let dirty = slots.takeDirtyPages().filter { pageSlots[$0] == nil }
            for page in dirty.sorted() {
                free(try reference(object, page), frozen)
                try maps[object.rawValue].makeDirty(page: page, load: nodeLoader(object))
                pageSlots[page] = try takeSlot(frozen)
            }
            for (key, _) in maps[object.rawValue].dirtyNodes where nodeSlots[key] == nil {
                free(try maps[object.rawValue].reference(ofNode: key, load: nodeLoader(object)), frozen)
                nodeSlots[key] = try takeSlot(frozen)
            }
            let entryCount = frozen.entries.count + (frozen.inherited?.count ?? 0)
            let deltaPages = (entryCount + DeltaLayout.entriesPerPage - 1) / DeltaLayout.entriesPerPage
            while deltaSlots.count < deltaPages { deltaSlots.append(try takeSlot(frozen)) }
            if slots.dirtyPages.allSatisfy({ pageSlots[$0] != nil }) { break }
        }
        _ = slots.takeDirtyPages()
        for (page, slot) in pageSlots.sorted(by: { $0.value < $1.value }) {
            let source = PageSource.array(slots.bytes(ofPage: page))
            let place = try place(slot)
            let reference = try source.withBytes { (bytes) throws(StoreError) in
                try writer.add(bytes, as: .page(object, page), slot: slot, at: place)
            }
            maps[object.rawValue].set(page: page, reference)
        }
        maps[object.rawValue].pageCount = UInt32(
            (slotsPerPair * pairs.count + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage)
        for (key, node) in maps[object.rawValue].dirtyNodes {
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
            let place = try place(slot)
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
        newDeltaSlots = slotList
        return previous
    }

    // MARK: After the root

    /// Makes a published root the current one, and releases sectors and slots that no root needs any more. Under
    /// `lock`.
    private func didPublish(_ root: RootRecord, _ frozen: FrozenCommit) throws(StoreError) {
        for map in maps { for (_, node) in map.dirtyNodes { node.isDirty = false } }
        for entry in frozen.entries where entry.kind != DeltaLayout.kindExtentsWritten {
            pending.append(PendingFree(entry: entry, generation: root.generation))
        }
        deltaPages.removeAll { isOld($0, frozen) }
        for slot in newDeltaSlots {
            deltaPages.append(
                PendingFree(
                    entry: DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64(slot)),
                    generation: root.generation))
        }
        newDeltaSlots = []
        current = root
        hasPublished = true
        (frozenPages, frozenZeros) = ([:], 0)
        sectors.didPublish()
        slots.didPublish(durable: root.isDurable, mayReuse: isAlone)
        if root.isDurable {
            let releasable = durableGeneration
            durableGeneration = root.generation
            durableDelta = root.delta
            syncFailed = false
            unsyncedPages = [:]
            try release(through: releasable)
        }
        updateExcluded()
    }

    /// Whether neither a snapshot nor a backup may be reading an older soft state; or room is so short that it must do
    /// without.
    private var isAlone: Bool {
        isShortOfSlots
            || (held.isEmpty && kept.copy == nil && copies?.isBackupRunning != true)
    }

    /// Releases sectors and slots freed by commits up to `generation`: neither of the two newest durable roots refers
    /// to them.
    func release(through generation: UInt64) throws(StoreError) {
        let generation = releasable(through: generation)
        var count = 0
        while count < pending.count, pending[count].generation <= generation {
            try release(pending[count].entry)
            count += 1
        }
        pending.removeFirst(count)
        released = max(released, generation)
        releaseBackupHoldsIfShort()
    }

    /// Releases an entry that no root of this space needs, unless a running backup may need it.
    private func release(_ entry: DeltaEntry) throws(StoreError) {
        if entry.kind == DeltaLayout.kindSlotsFreed {
            for slot in entry.start..<entry.start + UInt64(entry.count) { try release(slot: slot) }
        } else if kept.copy != nil {
            kept.add(entry, sectorsPerSegment: files.sectorsPerSegment)
        } else if entry.isDestroyed {
            pendingErase.append(entry)
        } else {
            // An unreadable bitmap only leaks this room until it is rebuilt.
            try? sectors.release(entry.start, Int(entry.count))
            pendingSectors -= UInt64(entry.count)
        }
    }

    private func release(slot: UInt64) throws(StoreError) {
        guard kept.needs(slot: slot) else { return try slots.release(Int(slot)) }
        kept.add(
            DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: slot),
            sectorsPerSegment: files.sectorsPerSegment)
    }
}
