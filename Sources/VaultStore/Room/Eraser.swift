import LinuxIO
import VaultCrypto
import VaultFormat

/// Overwrites sectors of destroyed photos with random bytes before they are reused.
///
/// `Space.free` marks them, and like all freed sectors they wait until no root refers to them. Then `FreedRoom` keeps
/// them instead of releasing them. A freeze adds the entries that are left to its commit's delta again, because its
/// root marks older deltas as released; so after a crash at any moment they are merely free.
public final class Eraser: Sendable {
    private let disk: SpaceDisk
    private let gate: WriteGate
    private let freed: FreedRoom
    private let references: ReferenceGuard
    private let buffers: BufferPool
    private let random = RandomStream()
    /// Held while overwriting; taken before the space's lock.
    private let running = Lock()

    init(_ parts: SpaceParts, _ references: ReferenceGuard) {
        (disk, gate, freed, buffers) = (parts.disk, parts.gate, parts.freed, parts.buffers)
        self.references = references
    }

    /// Whether some sectors can be overwritten now.
    public var canOverwrite: Bool { freed.canErase }

    /// Whether some are left to overwrite, even if a root still refers to them.
    public var hasDestroyed: Bool { freed.hasDestroyed }

    /// Overwrites sectors that no root refers to, about `bytes` at most, and frees them.
    public func overwrite(most bytes: UInt64) {
        // One thread at a time: no other thread may still write random bytes to sectors that were already freed.
        running.lock()
        defer { running.unlock() }
        guard (try? gate.requireOpen()) != nil else { return }
        var left = bytes / UInt64(Geometry.sectorBytes) + 1
        while left > 0 {
            let most = min(left, UInt64(buffers.bufferBytes / Geometry.sectorBytes))
            guard let (entry, count) = freed.nextToErase(most: most) else { return }
            let first = entry.end - count
            // A catalogue that cannot be read is no reason to keep them: makers of room would wait for ever.
            try? references.requireOwnFiles(first, Int(count))
            if gate.stopped != nil { return }
            overwrite(first, sectors: Int(count))
            freed.didErase(entry, count)
            left -= count
        }
    }

    private func overwrite(_ sector: UInt64, sectors: Int) {
        buffers.withBuffer { buffer in
            let bytes = buffer.slice(0, sectors * Geometry.sectorBytes)
            random.fill(bytes)
            // If the disk refuses this write, it will also refuse the next one there.
            try? disk.write(sector, UnsafeRawBufferPointer(bytes))
        }
    }
}
