import LinuxIO
import VaultCrypto
import VaultFormat

/// Reading the deltas of commits: freed sectors and slots, and the extents and pages written since a durable root.
extension Space {
    /// A decoded delta page.
    struct DeltaPage {
        var generation: UInt64
        var previous: Reference
        var entries: [DeltaEntry]
    }

    func readDelta(_ reference: Reference, pairs: [SegmentPair]) throws(StoreError) -> DeltaPage {
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            let identity = PageIdentity(role: .delta, index: reference.slot)
            try openPage(reference, at: place(reference.slot, pairs: pairs), as: identity, into: plain)
            let bytes = UnsafeRawBufferPointer(plain)
            let count = Int(bytes.number(DeltaLayout.countOffset, as: UInt32.self))
            guard count <= DeltaLayout.entriesPerPage else { throw .damaged }
            let entries = (0..<count).map { index in
                DeltaEntry(
                    decoding: bytes.slice(
                        DeltaLayout.entriesOffset + index * DeltaLayout.entryBytes, DeltaLayout.entryBytes))
            }
            let slotCount = slotsPerPair * pairs.count
            let arePlausible = entries.allSatisfy {
                $0.isPlausible(sectorsPerSegment: files.sectorsPerSegment, slotCount: slotCount)
            }
            guard arePlausible else { throw .damaged }
            return DeltaPage(
                generation: bytes.number(DeltaLayout.generationOffset),
                previous: Reference(
                    decoding: bytes.slice(DeltaLayout.previousOffset, MapLayout.referenceBytes)),
                entries: entries)
        }
    }

    /// Visits the deltas of commits after `generation`, newest first.
    private func forEachDelta(
        after generation: UInt64, _ body: (_ slot: UInt32, _ generation: UInt64, [DeltaEntry]) -> Void
    ) throws(StoreError) {
        var reference = current.delta
        var seen: Set<UInt32> = []
        while !reference.isAbsent {
            // An author who knows the key can make a cycle.
            guard seen.insert(reference.slot).inserted else { throw .damaged }
            let page = try readDelta(reference, pairs: pairs)
            if page.generation <= generation { return }
            body(reference.slot, page.generation, page.entries)
            reference = page.previous
        }
    }

    /// Reads from the deltas which sectors and slots the last commits freed.
    func loadDeltas() throws(StoreError) {
        var found: [PendingFree] = []
        do throws(StoreError) {
            try forEachDelta(after: released) { slot, generation, entries in
                deltaPages.append(
                    PendingFree(
                        entry: DeltaEntry(kind: DeltaLayout.kindSlotsFreed, count: 1, start: UInt64(slot)),
                        generation: generation))
                for entry in entries where entry.kind != DeltaLayout.kindExtentsWritten {
                    found.append(PendingFree(entry: entry, generation: generation))
                    if entry.kind == DeltaLayout.kindSectorsFreed { pendingSectors += UInt64(entry.count) }
                }
            }
        } catch {
            // A damaged delta only leaks the room that its entries freed.
        }
        deltaPages.reverse()
        pending = found.reversed()
    }

    /// Opens everything written since the durable root `base`, so that this soft root is valid. Throws `damaged` if
    /// something does not open, else the error of a segment's file.
    func openEverything(since base: RootRecord, photos: Bool) throws(StoreError) {
        var inUse: [Range<UInt64>] = []
        var freed = RangeSet<UInt64>()
        // The newest comes first: sectors that it freed may have any bytes by now, and may be in another segment's
        // file.
        try forEachDelta(after: base.generation) { _, _, entries in
            freed.formUnion(RangeSet(entries.compactMap { $0.sectors(ifOf: DeltaLayout.kindSectorsFreed) }))
            let written = RangeSet(entries.compactMap { $0.sectors(ifOf: DeltaLayout.kindExtentsWritten) })
            inUse += written.subtracting(freed).ranges
        }
        if photos { for sectors in inUse { try openExtents(sectors) } }
        for (map, old) in zip(maps, base.objects) {
            try openChanged(map, old)
        }
    }

    /// Opens consecutive extents; the length in each descriptor gives the start of the next.
    private func openExtents(_ sectors: Range<UInt64>) throws(StoreError) {
        var sector = sectors.lowerBound
        let perSegment = UInt64(files.sectorsPerSegment)
        while sector < sectors.upperBound {
            // No extent crosses the end of its segment.
            let limit = min(sectors.upperBound - sector, perSegment - sector % perSegment)
            sector += UInt64(try openWholeExtent(at: sector, limit: Int(limit)))
        }
    }

    /// Opens the extent that begins at a sector. Returns its number of sectors.
    private func openWholeExtent(at sector: UInt64, limit: Int) throws(StoreError) -> Int {
        let buffer = chunkBuffers.take()
        defer { chunkBuffers.give(buffer) }
        let extent = buffer.slice(0, min(limit, Geometry.sectorsPerChunk) * Geometry.sectorBytes)
        func fault() -> StoreError {
            segmentFault(sector, extent.count / Geometry.sectorBytes).map { StoreError($0) } ?? .damaged
        }
        do throws(StoreError) { try files.read(sector, into: extent) } catch {
            throw error == .damaged ? fault() : error
        }
        guard let descriptor = openDescriptor(UnsafeRawBufferPointer(extent)) else { throw fault() }
        let length = Int(descriptor.length) + Geometry.extentOverheadBytes
        guard length <= extent.count, openExtent(descriptor, extent.slice(0, length)) else { throw fault() }
        return Geometry.sectors(forPlaintext: Int(descriptor.length))
    }

    /// Opens every node and page of a map that an older map of the same object does not refer to.
    private func openChanged(_ map: PageMap, _ old: RootRecord.Object) throws(StoreError) {
        let before = old.levels == map.levels ? old.reference : .absent
        try openChanged(map.object, NodeKey(level: map.levels - 1, index: 0), map.root, before)
    }

    private func openChanged(
        _ object: MapObject, _ key: NodeKey, _ new: Reference, _ old: Reference
    ) throws(StoreError) {
        if new == old || new.isAbsent { return }
        let load = nodeLoader(object)
        let node = try load(key, new)
        let before = old.isAbsent ? nil : try? load(key, old)
        for (place, reference) in node.references.enumerated() {
            let index = key.index * MapLayout.fanout + place
            let oldReference = before?.references[place] ?? .absent
            if reference == oldReference { continue }
            if reference.isAbsent {
                if key.level == 0 { unsyncedPages[object, default: []].insert(index) }
            } else if key.level > 0 {
                try openChanged(object, NodeKey(level: key.level - 1, index: index), reference, oldReference)
            } else {
                try withUnsafeTemporaryPage { (plain) throws(StoreError) in
                    try openPage(reference, as: .page(object, index), into: plain)
                }
                unsyncedPages[object, default: []].insert(index)
            }
        }
    }

    /// Marks everything that an earlier mount wrote since the durable root as unsynced.
    func markUnsynced(since generation: UInt64) {
        for pair in pairs {
            files.markUnsynced(UInt64(Int(pair.a) * files.sectorsPerSegment))
            files.markUnsynced(UInt64(Int(pair.b) * files.sectorsPerSegment))
        }
        try? forEachDelta(after: generation) { _, _, entries in
            for entry in entries where entry.kind == DeltaLayout.kindExtentsWritten {
                files.markUnsynced(entry.start)
            }
        }
    }

    /// Entries of a large delta with adjacent ones joined, sectors written before those freed: as many small files or
    /// pieces are removed, their sectors become few runs.
    func joined(_ entries: [DeltaEntry]) -> [DeltaEntry] {
        guard entries.count > DeltaLayout.entriesPerPage else { return entries }
        let perSegment = UInt64(files.sectorsPerSegment)
        func order(_ entry: DeltaEntry) -> (UInt8, UInt8, UInt64) {
            (entry.kind, entry.isDestroyed ? 1 : 0, entry.start)
        }
        var joined: [DeltaEntry] = []
        for entry in entries.sorted(by: { order($0) < order($1) }) {
            if let last = joined.last, order(last) < order(entry), last.kind == entry.kind,
                last.isDestroyed == entry.isDestroyed,
                last.start + UInt64(last.count) == entry.start,
                entry.kind == DeltaLayout.kindSlotsFreed
                    || last.start / perSegment == entry.start / perSegment
            {
                joined[joined.count - 1].count += entry.count
            } else {
                joined.append(entry)
            }
        }
        return joined
    }

    // MARK: After a failed sync

    /// After a failed fdatasync the kernel may treat lost pages as clean, so everything written since the newest
    /// durable root is rewritten before the next sync. If something no longer opens, the commit fails again.
    ///
    /// Pages and deltas become part of `frozen` and so get new slots: an unwritable slot does not block the commit.
    /// Extents are opened and rewritten in place, because only the catalogue's rows know their places.
    func rewriteUnsynced(_ frozen: FrozenCommit) throws(StoreError) {
        var inherited: [DeltaEntry] = []
        try forEachDelta(after: durableGeneration) { _, _, entries in inherited += entries }
        for entry in frozen.entries + inherited {
            guard let sectors = entry.sectors(ifOf: DeltaLayout.kindExtentsWritten) else { continue }
            do throws(StoreError) { try openExtents(sectors) } catch { throw .damaged }
            try rewrite(entry.start, sectors: Int(entry.count))
        }
        try lock.withLock { () throws(StoreError) in
            for (object, pages) in unsyncedPages {
                for page in pages.sorted() { try readAgain(object, page, frozen) }
            }
        }
        frozen.inherited = inherited
    }

    /// Adds the newest root's version of a page to a commit that does not change it. Under `lock`.
    private func readAgain(_ object: MapObject, _ page: Int, _ frozen: FrozenCommit) throws(StoreError) {
        // The whole slot bitmap is rewritten anyway.
        guard object != .slotBitmap, page < Int(maps[object.rawValue].pageCount) else { return }
        let reference = try reference(object, page)
        if reference.isAbsent, object != .catalogue { return }
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            if reference.isAbsent {
                plain.zero()
            } else {
                try openPage(reference, as: .page(object, page), into: plain)
            }
            frozen.addUnlessChanged(object, page, UnsafeRawBufferPointer(plain))
        }
    }

    private func rewrite(_ sector: UInt64, sectors: Int) throws(StoreError) {
        try chunkBuffers.withBuffer { (buffer) throws(StoreError) in
            var done = 0
            while done < sectors {
                let count = min(sectors - done, buffer.count / Geometry.sectorBytes)
                let bytes = buffer.slice(0, count * Geometry.sectorBytes)
                try files.read(sector + UInt64(done), into: bytes)
                try files.write(sector + UInt64(done), UnsafeRawBufferPointer(bytes))
                done += count
            }
        }
    }
}
