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

    /// Writes the first sector of an extent again, whose payload opens and whose descriptor does not: the bytes that
    /// were sealed there. False where nothing could be done.
    public func mendDescriptor(of checked: CheckedRun, at sector: UInt64, role: ExtentRole) -> Bool {
        let number = (0..<checked.run.chunkCount).first { checked.run.sector(ofChunk: $0) == sector }
        guard !isReadOnly, let number else { return false }
        let descriptor = descriptor(role, checked.content, checked.run, number)
        return chunkBuffers.withBuffer { buffer in
            let extent = buffer.slice(0, Int(descriptor.length) + Geometry.extentOverheadBytes)
            let first = buffer.slice(Geometry.readBufferBytes, Geometry.sectorBytes)
            do throws(StoreError) {
                try files.read(sector, into: first)
                try files.read(sector, into: extent)
                guard openExtent(descriptor, extent) else { return false }
                // The same key, nonce and plaintext give the same bytes again.
                sealDescriptor(descriptor, into: first)
                try files.write(sector, UnsafeRawBufferPointer(first))
                return true
            } catch {
                return false
            }
        }
    }

    /// Makes the segments anew that are missing in a vault that grows, so that something can be written there.
    public func remakeSegments(_ numbers: [Int]) throws(StoreError) {
        guard grows else { return }
        for number in numbers { try files.create(number) }
    }

    /// Publishes what was mended so that it survives a power cut and what was given back is free.
    public func publishMended() throws(StoreError) {
        // The third makes deltas and roots new on which the first two still lean.
        for _ in 0..<3 { try publish(freeze(), durable: true) }
    }
}

extension Geometry {
    /// A whole chunk as it is stored.
    fileprivate static let readBufferBytes = sectorsPerChunk * sectorBytes
}
