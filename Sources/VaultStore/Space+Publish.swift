import LinuxIO
import VaultFormat

/// The state of a space between two changes, taken in the catalogue's critical section, to be published.
public final class FrozenCommit: @unchecked Sendable {
    let generation: UInt64
    let pages: [(index: UInt32, page: PageBuffer)]
    let bitmaps: [(page: Int, bytes: [UInt8])]
    let counts: [(page: Int, bytes: [UInt8])]
    /// What changed up to the freeze, then what publishing itself gives back.
    var entries: [DeltaEntry]
    let entriesFrozen: Int
    /// Slots publishing took: given back if it fails.
    var slotsTaken: [UInt32] = []
    /// How many of the oldest delta pages this commit gives back.
    var oldDeltaCount = 0

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
}

/// Publishing: everything a commit refers to is written first, its root last.
extension Space {
    /// Takes everything changed since the last call. The caller holds the catalogue's lock, has ended its
    /// transaction, and publishes the result before it freezes again.
    public func freeze() -> FrozenCommit {
        lock.withLock {
            let (bitmaps, counts) = sectors.takeDirtyPages()
            let frozen = FrozenCommit(
                generation: nextGeneration,
                pages: staged.map { (index: $0.key, page: $0.value) }.sorted { $0.index < $1.index },
                bitmaps: bitmaps, counts: counts, entries: entries + doomed)
            frozenPages = staged
            staged = [:]
            entries = []
            doomed = []
            isChanged = false
            nextGeneration += 1
            peakSectors = max(peakSectors, sectors.usedSectors)
            return frozen
        }
    }

    /// Writes a frozen commit and its root; with `durable`, so that it survives a power cut.
    ///
    /// When this throws nothing was published, and the commit's content waits for the next freeze.
    public func publish(_ frozen: FrozenCommit, durable: Bool) throws(StoreError) {
        guard !isReadOnly else { throw .readOnly }
        // Slots come free only by durable roots, so few free ones ask for one.
        let durable = durable || lock.withLock { slots.freeSlots < slotsPerPair * pairs.count / 3 }
        do throws(StoreError) {
            if syncFailed && durable { try rewriteUnsynced(frozen) }
            let root = try writeCommit(frozen, durable: durable)
            if durable { try syncFiles() }
            try writeRoot(root)
            if durable { try syncFiles() }
            try lock.withLock { () throws(StoreError) in try didPublish(root, frozen) }
        } catch {
            lock.withLock { takeBack(frozen) }
            throw error
        }
    }

    private func syncFiles() throws(StoreError) {
        do throws(StoreError) { try files.sync() } catch {
            lock.withLock { syncFailed = true }
            throw error
        }
    }

    /// Puts an unpublished commit back among the changes. Under `lock`.
    private func takeBack(_ frozen: FrozenCommit) {
        for (index, page) in frozen.pages where staged[index] == nil { staged[index] = page }
        frozenPages = [:]
        // The root may have reached the disk all the same, so what it took is given back like anything else and
        // not simply free.
        let taken = frozen.slotsTaken.map {
            DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64($0))
        }
        entries = frozen.entries.prefix(frozen.entriesFrozen) + taken + entries
        for (index, stored) in current.objects.enumerated() {
            maps[index].restore(levels: stored.levels, root: stored.reference)
        }
        newDeltaSlots = []
        isChanged = true
        slots.markAllDirty()
        // A bitmap that cannot be loaded cannot have changed either.
        try? sectors.markDirty(bitmapPages: frozen.bitmaps.map(\.page), countPages: frozen.counts.map(\.page))
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

    /// Seals and writes the pages of a commit, then the maps that lead to them; returns the root to publish.
    private func writeCommit(_ frozen: FrozenCommit, durable: Bool) throws(StoreError) -> RootRecord {
        let pages = try lock.withLock { () throws(StoreError) in try assignPages(frozen) }
        var writer = PageWriter(files: files, codec: codec)
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
        try writer.flush()
        return root
    }

    /// Gives every changed page a new slot. Under `lock`.
    private func assignPages(_ frozen: FrozenCommit) throws(StoreError) -> [PageToWrite] {
        try ensureSlots(for: frozen)
        var pages: [PageToWrite] = []
        pages.reserveCapacity(frozen.pages.count + frozen.bitmaps.count + frozen.counts.count)
        for (index, page) in frozen.pages {
            pages.append(try assign(.catalogue, Int(index), .buffer(page), frozen))
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
        return PageToWrite(object: object, page: page, slot: slot, place: try place(slot), bytes: bytes)
    }

    private func takeSlot(_ frozen: FrozenCommit) throws(StoreError) -> UInt32 {
        if slots.freeSlots == 0 { try addPair() }
        guard let slot = slots.take() else { throw .noRoom }
        writtenSlots.append(slot)
        frozen.slotsTaken.append(slot)
        return slot
    }

    private func free(_ old: Reference, _ frozen: FrozenCommit) {
        if old.isAbsent { return }
        if let last = frozen.entries.last, last.kind == DeltaLayout.kindSlotsFreed,
            last.start + UInt64(last.count) == UInt64(old.slot)
        {
            frozen.entries[frozen.entries.count - 1].count += 1
        } else {
            frozen.entries.append(
                DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64(old.slot)))
        }
    }

    /// Makes sure before anything is written that the commit's pages and maps will find slots.
    private func ensureSlots(for frozen: FrozenCommit) throws(StoreError) {
        let pages = frozen.pages.count + frozen.bitmaps.count + frozen.counts.count
        let wanted = pages + pages / 4 + 32 + (frozen.entries.count + pages) / DeltaLayout.entriesPerPage
        while slots.freeSlots < wanted {
            do throws(StoreError) { try addPair() } catch {
                // The estimate is generous: go on while it may still do.
                if slots.freeSlots > pages + 24 { break }
                throw error
            }
        }
        if grows { try preallocatePages(wanted) }
    }

    /// In a vault that grows, gives the slots about to be used disk blocks, so that a full disk is noticed here.
    private func preallocatePages(_ wanted: Int) throws(StoreError) {
        let step = 2 << 20
        let pair = pairs.count - 1
        let usedInLast = max(0, slots.usedSlots - pair * slotsPerPair) + wanted
        let bytes = min((usedInLast * Geometry.pageBytes / step + 2) * step, Int(files.segmentBytes))
        guard preallocated.pair != pair || preallocated.bytes < bytes else { return }
        try files.preallocate(Int(pairs[pair].a), bytes: UInt64(bytes))
        try files.preallocate(Int(pairs[pair].b), bytes: UInt64(bytes))
        preallocated = (pair, bytes)
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
            delta: delta, pairs: pairs)
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

    /// Delta pages that no mount will read again, because everything in them has been released.
    private func freeOldDeltas(_ frozen: FrozenCommit) {
        let old = deltaPages.prefix { $0.generation <= released }
        frozen.entries += old.map(\.entry)
        frozen.oldDeltaCount = old.count
    }

    /// Writes the slot bitmap and the delta. Giving them slots changes the bitmap itself, so slots are assigned
    /// until nothing new changes, and only then is anything sealed.
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
            let deltaPages =
                (frozen.entries.count + DeltaLayout.entriesPerPage - 1) / DeltaLayout.entriesPerPage
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
        var previous = current.delta
        for (number, slot) in slotList.enumerated() {
            let first = number * DeltaLayout.entriesPerPage
            let part = frozen.entries[first..<min(first + DeltaLayout.entriesPerPage, frozen.entries.count)]
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

    /// Makes a published root the current one, and frees what no root needs any more. Under `lock`.
    private func didPublish(_ root: RootRecord, _ frozen: FrozenCommit) throws(StoreError) {
        for map in maps { for (_, node) in map.dirtyNodes { node.isDirty = false } }
        for entry in frozen.entries where entry.kind != DeltaLayout.kindExtentsWritten {
            pending.append(PendingFree(entry: entry, generation: root.generation))
        }
        deltaPages.removeFirst(frozen.oldDeltaCount)
        for slot in newDeltaSlots {
            deltaPages.append(
                PendingFree(
                    entry: DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64(slot)),
                    generation: root.generation))
        }
        newDeltaSlots = []
        current = root
        frozenPages = [:]
        if root.isDurable {
            let releasable = durableGeneration
            durableGeneration = root.generation
            syncFailed = false
            writtenSlots = []
            try release(through: releasable)
        }
        updateExcluded()
    }

    /// Frees what commits up to `generation` gave back: neither of the two newest durable roots refers to it.
    func release(through generation: UInt64) throws(StoreError) {
        var count = 0
        while count < pending.count, pending[count].generation <= generation {
            let entry = pending[count].entry
            if entry.isDestroyed {
                doomed.append(entry)
            } else if entry.kind == DeltaLayout.kindSectorsFreed {
                try sectors.release(entry.start, Int(entry.count))
                pendingSectors -= UInt64(entry.count)
            } else {
                for slot in entry.start..<entry.start + UInt64(entry.count) { try slots.release(Int(slot)) }
            }
            count += 1
        }
        pending.removeFirst(count)
        released = max(released, generation)
    }
}
