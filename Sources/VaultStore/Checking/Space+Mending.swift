import LinuxIO
public import VaultFormat

/// Setting right what a check of the structure found, by commits like any other: a crash leaves the old state or the
/// new one.
extension Space {
    /// Takes parts of which one copy is left into the next commit, which writes both copies elsewhere. Deltas and roots
    /// need nothing: commits replace them.
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

    /// Writes the descriptor of an extent again, whose payload opens and whose descriptor does not: the bytes that were
    /// sealed there. False where nothing could be done.
    ///
    /// The extent is read once. What is written is sealed under the nonce with which the payload opened, and no other:
    /// storage that answers twice differently cannot choose one.
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

    /// Makes the segments anew that are missing in a vault that grows, so that something can be written there.
    public func remakeSegments(_ numbers: [Int]) throws(StoreError) {
        guard grows else { return }
        for number in numbers { try files.create(number) }
        lock.withLock {
            lostSegments.subtract(numbers)
            updateExcluded()
        }
    }

    /// Publishes what was mended so that it survives a power cut and what was given back is free.
    public func publishMended() throws(StoreError) {
        // The third makes deltas and roots new on which the first two still lean.
        for _ in 0..<3 { try publish(freeze(), durable: true) }
    }
}
