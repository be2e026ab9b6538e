import LinuxIO
import VaultFormat

/// The pages and extents written since the newest durable root. A soft root counts only if all of them open; after a
/// failed sync all of them are written again.
///
/// Unchecked Sendable: everything mutable is under the space's lock. Functions marked so are called with it held.
final class UnsyncedState: @unchecked Sendable {
    private let disk: SpaceDisk
    private let reader: PageReader
    private let store: PageStore
    private let extents: ExtentCodec
    private let buffers: BufferPool
    /// Pages written since. Under the lock.
    private(set) var pages: [MapObject: Set<Int>] = [:]
    /// Whether the disk may have lost some of it: a sync failed, here or in an earlier mount. Under the lock.
    private(set) var isLost = false

    init(
        _ disk: SpaceDisk, _ reader: PageReader, _ store: PageStore, _ extents: ExtentCodec,
        _ buffers: BufferPool
    ) {
        (self.disk, self.reader, self.store) = (disk, reader, store)
        (self.extents, self.buffers) = (extents, buffers)
    }

    /// Notes a page. Under the lock.
    func note(_ object: MapObject, _ page: Int) { pages[object, default: []].insert(page) }

    /// Notes that the disk may have lost some of it. Under the lock.
    func noteLost() { isLost = true }

    /// Notes that all of it is durable. Under the lock.
    func clear() { (pages, isLost) = ([:], false) }

    // MARK: A soft root that was found

    /// Opens everything written since the durable root `base`, so that this soft root is valid. Throws `damaged` if
    /// something does not open, else the error of a segment's file.
    func open(_ soft: RootRecord, since base: RootRecord, photos: Bool) throws(StoreError) {
        var inUse: [Range<UInt64>] = []
        var freed = RangeSet<UInt64>()
        // The newest comes first: sectors that it freed may have any bytes by now, and may be in another segment's
        // file.
        try reader.forEachDelta(from: soft.delta, pairs: soft.pairs, after: base.generation) {
            _, _, entries in
            freed.formUnion(RangeSet(entries.compactMap { $0.sectors(ifOf: DeltaLayout.kindSectorsFreed) }))
            let written = RangeSet(entries.compactMap { $0.sectors(ifOf: DeltaLayout.kindExtentsWritten) })
            inUse += written.subtracting(freed).ranges
        }
        if photos { for sectors in inUse { try openExtents(sectors) } }
        for (object, old) in zip(MapObject.allCases, base.objects) {
            let (levels, root) = store.root(of: object)
            let before = old.levels == levels ? old.reference : .absent
            try openChanged(object, NodeKey(level: levels - 1, index: 0), root, before)
        }
    }

    /// Marks everything that an earlier mount wrote since the durable root as unsynced. Its writer may have seen a
    /// failed sync, after which the kernel treats lost pages as clean.
    func mark(_ soft: RootRecord, since base: RootRecord) throws(StoreError) {
        for pair in soft.pairs {
            disk.markUnsynced(disk.sectors(of: Int(pair.a)).lowerBound)
            disk.markUnsynced(disk.sectors(of: Int(pair.b)).lowerBound)
        }
        try reader.forEachDelta(from: soft.delta, pairs: soft.pairs, after: base.generation) {
            [disk] _, _, entries in
            for entry in entries where entry.kind == DeltaLayout.kindExtentsWritten {
                disk.markUnsynced(entry.start)
            }
        }
        noteLost()
    }

    /// Opens consecutive extents; the length in each descriptor gives the start of the next.
    private func openExtents(_ sectors: Range<UInt64>) throws(StoreError) {
        var sector = sectors.lowerBound
        let perSegment = UInt64(disk.sectorsPerSegment)
        while sector < sectors.upperBound {
            // No extent crosses the end of its segment.
            let limit = min(sectors.upperBound - sector, perSegment - sector % perSegment)
            sector += UInt64(try openWholeExtent(at: sector, limit: Int(limit)))
        }
    }

    /// Opens the extent that begins at a sector. Returns its number of sectors.
    private func openWholeExtent(at sector: UInt64, limit: Int) throws(StoreError) -> Int {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        let extent = buffer.slice(0, min(limit, Geometry.sectorsPerChunk) * Geometry.sectorBytes)
        func fault() -> StoreError {
            disk.fault(at: sector, extent.count / Geometry.sectorBytes).map { StoreError($0) } ?? .damaged
        }
        do throws(StoreError) { try disk.read(sector, into: extent) } catch {
            throw error == .damaged ? fault() : error
        }
        guard let descriptor = extents.openDescriptor(UnsafeRawBufferPointer(extent)) else { throw fault() }
        let length = Int(descriptor.length) + Geometry.extentOverheadBytes
        guard length <= extent.count, extents.open(descriptor, extent.slice(0, length)) else { throw fault() }
        return Geometry.sectors(forPlaintext: Int(descriptor.length))
    }

    /// Opens every node and page of a map that an older map of the same object does not refer to, and notes the pages.
    private func openChanged(
        _ object: MapObject, _ key: NodeKey, _ new: Reference, _ old: Reference
    ) throws(StoreError) {
        if new == old || new.isAbsent { return }
        let node = try store.openNode(object, key, new)
        let before = old.isAbsent ? nil : try? store.openNode(object, key, old)
        for (place, reference) in node.references.enumerated() {
            let index = key.index * MapLayout.fanout + place
            let oldReference = before?.references[place] ?? .absent
            if reference == oldReference { continue }
            if reference.isAbsent {
                if key.level == 0 { note(object, index) }
            } else if key.level > 0 {
                try openChanged(object, NodeKey(level: key.level - 1, index: index), reference, oldReference)
            } else {
                try withUnsafeTemporaryPage { (plain) throws(StoreError) in
                    try store.openPage(reference, as: .page(object, index), into: plain)
                }
                note(object, index)
            }
        }
    }

    // MARK: After a failed sync

    /// Opens all extents written since the durable root of that generation, and writes them once more in place. Throws
    /// `damaged` if one does not open. No lock is held.
    ///
    /// - Parameter entries: those of the commit under way.
    /// - Returns: the entries of earlier soft commits.
    func rewriteExtents(
        _ entries: [DeltaEntry], from delta: Reference, pairs: [SegmentPair], after durable: UInt64
    ) throws(StoreError) -> [DeltaEntry] {
        var inherited: [DeltaEntry] = []
        try reader.forEachDelta(from: delta, pairs: pairs, after: durable) { _, _, entries in
            inherited += entries
        }
        for entry in entries + inherited {
            guard let sectors = entry.sectors(ifOf: DeltaLayout.kindExtentsWritten) else { continue }
            do throws(StoreError) { try openExtents(sectors) } catch { throw .damaged }
            try rewrite(entry.start, sectors: Int(entry.count))
        }
        return inherited
    }

    private func rewrite(_ sector: UInt64, sectors: Int) throws(StoreError) {
        try buffers.withBuffer { (buffer) throws(StoreError) in
            var done = 0
            while done < sectors {
                let count = min(sectors - done, buffer.count / Geometry.sectorBytes)
                let bytes = buffer.slice(0, count * Geometry.sectorBytes)
                try disk.read(sector + UInt64(done), into: bytes)
                try disk.write(sector + UInt64(done), UnsafeRawBufferPointer(bytes))
                done += count
            }
        }
    }
}
