import LinuxIO
public import VaultFormat

/// Content: sealed chunk by chunk into extents of consecutive sectors.
extension Space {
    /// Seals `bytes` as part of `content` from `offset` (a multiple of a chunk) on, and writes them.
    ///
    /// The returned runs are *reserved*: their sectors are not allocated again, but only `adopt` makes them part of a
    /// commit. If this throws, nothing stays reserved.
    /// - Parameter near: the sector after the content's last run; allocation continues there if it is free.
    public func write(
        role: ExtentRole, content: UInt64, offset: UInt64, _ bytes: UnsafeRawBufferPointer, near: UInt64?,
        purpose: WritePurpose = .user
    ) throws(StoreError) -> [ExtentRun] {
        try extents.write(role: role, content: content, offset: offset, bytes, near: near, purpose)
    }

    /// Seals contents of at most one chunk each, and writes them: each is its own extent, but they lie in consecutive
    /// sectors and are written with few calls. Returns their runs in the same order, *reserved* as by `write`. If this
    /// throws, nothing stays reserved.
    ///
    /// As for a user's bytes, the system reserve is not used.
    public func writeBatch(
        role: ExtentRole, _ contents: [(content: UInt64, bytes: [UInt8])]
    ) throws(StoreError) -> [ExtentRun] {
        try extents.writeBatch(role: role, contents)
    }

    /// Seals the bytes of a run anew in other sectors. The runs are reserved, as by `write`; their rows take the place
    /// of the old one. If this throws, nothing stays reserved.
    public func sealElsewhere(_ run: ExtentRun, of content: UInt64) throws(StoreError) -> [ExtentRun] {
        try extents.sealElsewhere(run, of: content)
    }

    /// Releases reserved runs that were never adopted.
    public func abandon(_ runs: [ExtentRun]) { extents.abandon(runs) }

    /// Makes reserved runs part of the next commit. Called in the catalogue's critical section that inserts their rows.
    public func adopt(_ runs: [ExtentRun]) {
        parts.lock.withLock {
            for part in extents.parts(of: runs) {
                sectors.adopt(part.lowerBound, part.count)
                parts.freed.noteWritten(part.lowerBound, part.count)
            }
        }
    }

    /// Frees runs whose rows were deleted. Called in the catalogue's critical section that deleted them. Their sectors
    /// are reused once no root refers to them.
    ///
    /// - Parameter overwriting: overwrites them with random bytes before they are reused, to destroy their contents.
    public func free(_ runs: [ExtentRun], overwriting: Bool = false) {
        // Impossible runs free nothing.
        let freed = extents.parts(of: runs.filter { segments.isPossible($0) })
        parts.lock.withLock {
            for part in freed {
                parts.freed.noteFreed(part.lowerBound, part.count, isDestroyed: overwriting)
            }
        }
    }

    /// Makes extents that are written from now on differ from all of `runs` in their generation or epoch. A generation
    /// is left out if necessary.
    public func passGeneration(of runs: [ExtentRun]) {
        parts.lock.withLock {
            if runs.contains(where: { $0.epoch == epoch && $0.generation >= parts.next.generation }) {
                parts.next.skip()
            }
        }
    }

    // MARK: Reading

    /// Least bytes of a buffer for `read`: a stored chunk.
    public static let readBufferBytes = Geometry.sectorsPerChunk * Geometry.sectorBytes

    /// Opens one chunk of a run in `buffer` and returns the plaintext within it. One pread, no lock held.
    ///
    /// Throws `damaged` if the chunk is not the one of the row: then the contents of `buffer` are undefined.
    public func read(
        role: ExtentRole, content: UInt64, run: ExtentRun, chunk: Int,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(StoreError) -> UnsafeRawBufferPointer {
        try extents.read(role: role, content: content, run: run, chunk: chunk, into: buffer)
    }

    /// Whether each read waits for an answer from elsewhere; see `willRead`.
    public var readsTakeRoundTrips: Bool { parts.disk.host.readsTakeRoundTrips }

    /// Begins to read some chunks of a run, which will be read soon. Only advice.
    public func willRead(_ run: ExtentRun, chunks: Range<Int>) {
        // A forged row may tell of any sectors.
        guard segments.isPossible(run), chunks.upperBound <= run.chunkCount else { return }
        let end = chunks.upperBound == run.chunkCount ? run.endSector : run.sector(ofChunk: chunks.upperBound)
        parts.disk.willRead(run.sector(ofChunk: chunks.lowerBound)..<end)
    }

    /// Reads neighbouring chunks by one pread and opens each into its target. No lock held.
    ///
    /// Throws `damaged` if a chunk is not the one of its row: then the contents of the targets are undefined.
    ///
    /// - Parameter buffer: has room for all of them; see `areNeighbours`.
    public func read(
        role: ExtentRole, content: UInt64, _ chunks: [StoredChunk],
        through buffer: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        try extents.read(role: role, content: content, chunks, through: buffer)
    }

    /// Whether `chunk` lies just behind the last of `chunks` in the same segment, so that one call may read them
    /// together, and `buffer` has room for that. True if there are none.
    public func areNeighbours(
        _ chunks: [StoredChunk], _ chunk: StoredChunk, in buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        extents.areNeighbours(chunks, chunk, in: buffer)
    }
}
