import LinuxIO
import VaultFormat

/// Renewing parts of which one copy is left, by ordinary commits: a crash leaves the old state or the new one.
extension Space {
    /// Adds parts that have one copy left to the next commit, which writes both copies elsewhere. Skips deltas and
    /// roots, because commits replace them.
    public func rewrite(_ damaged: [StructurePart]) throws(StoreError) {
        for part in damaged {
            switch part {
            case .root, .delta: continue
            case .page(.catalogue, let page): try parts.pages.restage(UInt32(page))
            case .page(let object, let page): try markChanged(object, page)
            case .node(let object, let level, let index):
                try parts.lock.withLock { () throws(StoreError) in
                    try parts.pages.markChanged(object, index * MapLayout.span(level: level + 1))
                }
            }
        }
        parts.lock.withLock { parts.next.noteChange() }
    }

    private func markChanged(_ object: MapObject, _ page: Int) throws(StoreError) {
        try parts.lock.withLock { () throws(StoreError) in
            switch object {
            case .sectorBitmap: try sectors.markDirty(bitmapPage: page)
            case .usage: sectors.markDirty(countPage: page)
            case .catalogue, .slotBitmap: parts.slots.markAllChanged()
            }
        }
    }

    /// Notes parts of which one copy does not open. Ignored where nothing is written.
    public func noteHalved(_ halved: [StructurePart]) { parts.reader.noteHalved(halved) }

    /// Adds the noted parts to the next commit, which writes both copies elsewhere. The caller holds the catalogue's
    /// lock, and has not ended its transaction.
    public func renewHalved() {
        for part in parts.reader.takeHalved() {
            // The catalogue may have become smaller since. What cannot be read again is damage, which a check tells.
            if case .page(.catalogue, let page) = part, page >= Int(pageCount) { continue }
            try? rewrite([part])
        }
    }

    /// At the end of a session: writes anew what has one copy left, roots and deltas too.
    func renewAtEnd() throws(StoreError) {
        if writeStop != nil {
            _ = parts.reader.takeHalved()
            return
        }
        let hasDelta = parts.reader.hasHalvedDelta
        renewHalved()
        if hasDelta {
            try publishMended()
        } else if parts.roots.hasTorn {
            try publish(freeze(), durable: true)
        }
    }
}
