import LinuxIO
import Synchronization
public import VaultFormat

/// Repairing the findings of a structure check, by ordinary commits: a crash leaves the old state or the new one.
extension Space {
    /// Adds parts that have one copy left to the next commit, which writes both copies elsewhere. Skips deltas and
    /// roots, because commits replace them.
    public func rewrite(_ parts: [StructurePart]) throws(StoreError) {
        for part in parts {
            switch part {
            case .root, .delta: continue
            case .page(.catalogue, let page): try restage(UInt32(page))
            case .page(let object, let page): try markDirty(object, page: page)
            case .node(let object, let level, let index):
                try lock.withLock { () throws(StoreError) in
                    let page = index * MapLayout.span(level: level + 1)
                    try maps[object.rawValue].makeDirty(page: page, load: nodeLoader(object))
                }
            }
        }
        lock.withLock { isChanged = true }
    }

    // MARK: While the space is in use

    /// Notes parts of which one copy does not open. Ignored where nothing is written.
    public func noteHalved(_ parts: [StructurePart]) {
        if !isReadOnly && !parts.isEmpty { halved.withLock { $0.formUnion(parts) } }
    }

    /// Notes a page of which only copy B opens, unless the segment of copy A is missing or cut: a mount does not write
    /// then.
    func noteHalved(_ identity: PageIdentity, _ place: SlotPlace) {
        guard !isReadOnly, let part = StructurePart(identity),
            segmentFault(place.sectorA, Geometry.sectorsPerPage) == nil
        else { return }
        noteHalved([part])
    }

    var hasHalved: Bool { halved.withLock { !$0.isEmpty } }

    /// Adds the noted parts to the next commit, which writes both copies elsewhere. The caller holds the catalogue's
    /// lock, and has not ended its transaction.
    public func renewHalved() {
        let parts = halved.withLock { parts in
            defer { parts = [] }
            return parts
        }
        for part in parts {
            // The catalogue may have become smaller since. What cannot be read again is damage, which a check tells.
            if case .page(.catalogue, let page) = part, page >= Int(pageCount) { continue }
            try? rewrite([part])
        }
    }

    /// At the end of a session: writes anew what has one copy left, roots and deltas too.
    func renewAtEnd() throws(StoreError) {
        if writeStop != nil { return halved.withLock { $0 = [] } }
        let hasDelta = halved.withLock { $0.contains { if case .delta = $0 { true } else { false } } }
        renewHalved()
        if hasDelta {
            try publishMended()
        } else if !tornRoots.isEmpty {
            try publish(freeze(), durable: true)
        }
    }

    private func restage(_ page: UInt32) throws(StoreError) {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Geometry.pageBytes, alignment: 16)
        defer { bytes.deallocate() }
        try readPage(page, into: bytes)
        stagePage(page, UnsafeRawBufferPointer(bytes))
    }

    private func markDirty(_ object: MapObject, page: Int) throws(StoreError) {
        try lock.withLock { () throws(StoreError) in
            switch object {
            case .sectorBitmap where page / sectors.pagesPerSegment >= sectors.segmentCount: break
            case .sectorBitmap: try sectors.markDirty(bitmapPage: page)
            case .usage: sectors.markDirty(countPage: page)
            case .catalogue, .slotBitmap: slots.markAllDirty()
            }
        }
    }

    /// Rewrites the damaged descriptor of an extent whose payload opens, with the bytes that were sealed there. Returns
    /// false if that is impossible.
    ///
    /// The extent is read once, and the descriptor is sealed under the very nonce that opened the payload: storage that
    /// returns other bytes on a second read cannot choose the nonce.
    public func mendDescriptor(of checked: CheckedRun, at sector: UInt64, role: ExtentRole) -> Bool {
        guard !isReadOnly, isPossible(checked.run),
            let number = (0..<checked.run.chunkCount).first(where: {
                checked.run.sector(ofChunk: $0) == sector
            })
        else { return false }
        let descriptor = descriptor(role, checked.content, checked.run, number)
        let length = Int(descriptor.length) + Geometry.extentOverheadBytes
        return chunkBuffers.withBuffer { buffer in
            let extent = buffer.slice(0, length)
            do throws(StoreError) {
                try files.read(sector, into: extent)
                // Opened in place: nonce and descriptor stay as they were read.
                guard openExtent(descriptor, extent) else { return false }
                let head = extent.slice(0, Geometry.extentHeaderBytes)
                // The same key, nonce and plaintext give the same bytes again.
                sealDescriptor(descriptor, into: head)
                try files.write(sector, UnsafeRawBufferPointer(head))
                try files.read(sector, into: extent)
                return openDescriptor(UnsafeRawBufferPointer(extent)) == descriptor
                    && openExtent(descriptor, extent)
            } catch {
                return false
            }
        }
    }

    /// Segments of pages.
    public var pageSegments: Set<Int> { lock.withLock { Set(pairs.flatMap { [Int($0.a), Int($0.b)] }) } }

    /// In a vault that grows, creates missing segments again, so that they can be written: those given, and if
    /// `fillsGaps` all before the last one that stays.
    public func remakeSegments(_ numbers: [Int], fillsGaps: Bool) throws(StoreError) {
        guard grows else { return }
        // A segment that may hold a newer state stays at the end: the gaps before it are filled as well.
        let stays = { [self] (number: Int) in !sectors.isUnused(number) || mayHoldNewerState(number) }
        let last = !fillsGaps ? 0 : lock.withLock { (0..<sectors.segmentCount).last(where: stays) } ?? 0
        for number in numbers + (0..<last).filter({ !files.hasFile($0) }) { try files.create(number) }
        lock.withLock {
            lostSegments.subtract(numbers)
            updateExcluded()
        }
    }

    /// Publishes the repairs so that they survive a power cut and the freed sectors are free.
    public func publishMended() throws(StoreError) {
        // The third commit replaces deltas and roots that the first two still depend on.
        for _ in 0..<3 { try publish(freeze(), durable: true) }
    }

    /// In a vault that grows, removes the segments at the end that are not in use and empty: some before them may be
    /// missing.
    public func removeUnusedEnd() throws(StoreError) {
        guard grows else { return }
        removeLastSegments()
        try files.sync()
    }
}
