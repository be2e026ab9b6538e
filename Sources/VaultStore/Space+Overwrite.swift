import LinuxIO
import VaultCrypto
import VaultFormat

/// Sectors of destroyed photos: overwritten with random bytes before anybody gets them again.
///
/// `free` marks them, and they wait like all that is given back until no root refers to them. Then `release` puts
/// them into `pendingErase` rather than among the free ones; only `overwriteFreed` takes them out. What a freeze finds
/// there goes into that commit's delta once more, because its root says that older deltas are done
/// with; so a crash at any moment leaves them merely free.
extension Space {
    /// True while some could be overwritten now.
    public var canOverwrite: Bool { lock.withLock { !pendingErase.isEmpty } }

    /// True while some are left, whether a root still refers to them or not.
    public var hasDestroyed: Bool { lock.withLock { destroyedSectors > 0 } }

    /// Overwrites sectors that no root refers to, about `bytes` at most, and makes them free.
    public func overwriteFreed(most bytes: UInt64) {
        // One at a time: nobody may still be writing random bytes where another has freed the sectors.
        overwriting.lock()
        defer { overwriting.unlock() }
        guard (try? requireWritable()) != nil else { return }
        var left = bytes / UInt64(Geometry.sectorBytes) + 1
        while left > 0 {
            let most = min(left, UInt64(chunkBuffers.bufferBytes / Geometry.sectorBytes))
            guard
                let (entry, count) = lock.withLock({
                    pendingErase.last.map { ($0, min(UInt64($0.count), most)) }
                })
            else { return }
            overwrite(entry.start + UInt64(entry.count) - count, sectors: Int(count))
            lock.withLock { didOverwrite(entry, count) }
            left -= count
        }
    }

    private func overwrite(_ sector: UInt64, sectors: Int) {
        chunkBuffers.withBuffer { buffer in
            let bytes = buffer.slice(0, sectors * Geometry.sectorBytes)
            randomStream.fill(bytes)
            // Where the disk refuses, what is next written there will be refused as well.
            try? files.write(sector, UnsafeRawBufferPointer(bytes))
        }
    }

    /// Frees the last sectors of an entry, unless a freeze has taken it meanwhile. Under `lock`.
    private func didOverwrite(_ entry: DeltaEntry, _ count: UInt64) {
        guard pendingErase.last == entry else { return }
        if UInt64(entry.count) == count {
            pendingErase.removeLast()
        } else {
            pendingErase[pendingErase.count - 1].count -= UInt32(count)
        }
        pendingSectors -= count
        destroyedSectors -= count
        // A bitmap that cannot be read keeps them taken, as it does all of its segment.
        try? sectors.release(entry.start + UInt64(entry.count) - count, Int(count))
    }

    /// Overwrites all that is left, with the durable commits that this needs.
    func overwriteAll() throws(StoreError) {
        guard hasDestroyed else { return }
        giveUpCopies()
        overwriteFreed(most: UInt64(Int64.max))
        // What the first commit gives back nobody refers to after the second.
        for _ in 0..<2 where hasDestroyed {
            try publish(freeze(), durable: true)
            overwriteFreed(most: UInt64(Int64.max))
        }
        try files.sync()
    }
}
