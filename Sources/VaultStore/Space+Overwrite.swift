import LinuxIO
import VaultCrypto
import VaultFormat

/// Sectors of destroyed photos are overwritten with random bytes before they are reused.
///
/// `free` marks them, and like all freed sectors they wait until no root refers to them. Then `release` adds them to
/// `pendingErase` instead of freeing them; only `overwriteFreed` removes them. A freeze adds the entries found there to
/// its commit's delta again, because its root marks older deltas as released; so after a crash at any moment they are
/// merely free.
extension Space {
    /// Whether some can be overwritten now.
    public var canOverwrite: Bool { lock.withLock { !pendingErase.isEmpty } }

    /// Whether some are left, even if a root still refers to them.
    public var hasDestroyed: Bool { lock.withLock { destroyedSectors > 0 } }

    /// Overwrites sectors that no root refers to, about `bytes` at most, and frees them.
    public func overwriteFreed(most bytes: UInt64) {
        // One thread at a time: no other thread may still write random bytes to sectors that were already freed.
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
            let first = entry.start + UInt64(entry.count) - count
            // A catalogue that cannot be read is no reason to keep them: makers of room would wait for ever.
            try? requireOwnFiles(first, Int(count))
            if writeStop != nil { return }
            overwrite(first, sectors: Int(count))
            lock.withLock { didOverwrite(entry, count) }
            left -= count
        }
    }

    private func overwrite(_ sector: UInt64, sectors: Int) {
        chunkBuffers.withBuffer { buffer in
            let bytes = buffer.slice(0, sectors * Geometry.sectorBytes)
            randomStream.fill(bytes)
            // If the disk refuses this write, it will also refuse the next one there.
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
        // An unreadable bitmap keeps them in use, like its whole segment.
        try? sectors.release(entry.start + UInt64(entry.count) - count, Int(count))
    }

    /// Overwrites all that are left, with the durable commits that this needs.
    func overwriteAll() throws(StoreError) {
        guard hasDestroyed else { return }
        releaseBackupHolds()
        overwriteFreed(most: UInt64(Int64.max))
        // After the second commit no root refers to sectors that the first freed.
        for _ in 0..<2 where hasDestroyed {
            try publish(freeze(), durable: true)
            overwriteFreed(most: UInt64(Int64.max))
        }
        try files.sync()
    }
}
