import LinuxIO
public import VaultFormat

/// Batched writing of small contents: each is its own extent, but they lie in consecutive sectors and are written with
/// few calls.
extension Space {
    /// Sectors written by one call.
    private static let sectorsPerWrite = chunksPerWrite * Geometry.sectorsPerChunk

    /// Seals contents of at most one chunk each, and writes them. Returns their runs in the same order, *reserved* as
    /// by `write`. If this throws, nothing stays reserved.
    ///
    /// As for a user's bytes, the system reserve is not used.
    public func writeBatch(
        role: ExtentRole, _ contents: [(content: UInt64, bytes: [UInt8])]
    ) throws(StoreError) -> [ExtentRun] {
        try requireWritable()
        var runs: [ExtentRun] = []
        do throws(StoreError) {
            var rest = contents[...]
            while !rest.isEmpty {
                let group = rest.prefix(firstGroup(rest))
                runs += try writeGroup(role, group)
                rest = rest.dropFirst(group.count)
            }
        } catch {
            abandon(runs)
            throw error
        }
        return runs
    }

    private static func sectors(_ bytes: [UInt8]) -> Int {
        precondition(!bytes.isEmpty && bytes.count <= Geometry.chunkBytes)
        return Geometry.sectors(forPlaintext: bytes.count)
    }

    /// The number of contents that fit into one write.
    private func firstGroup(_ contents: ArraySlice<(content: UInt64, bytes: [UInt8])>) -> Int {
        var (count, sectors) = (0, 0)
        for content in contents {
            sectors += Self.sectors(content.bytes)
            if count > 0, sectors > Self.sectorsPerWrite { break }
            count += 1
        }
        return count
    }

    /// Writes a group into one run of sectors; if no run is long enough, each half of it.
    private func writeGroup(
        _ role: ExtentRole, _ group: ArraySlice<(content: UInt64, bytes: [UInt8])>
    ) throws(StoreError) -> [ExtentRun] {
        let count = group.reduce(0) { $0 + Self.sectors($1.bytes) }
        if let sector = try reserveTogether(count) {
            try requireUnnamed(sector, count)
            return try seal(role, group, at: sector, count)
        }
        guard group.count > 1 else { throw .noRoom }
        let half = group.count / 2
        let first = try writeGroup(role, group.prefix(half))
        do throws(StoreError) {
            return first + (try writeGroup(role, group.dropFirst(half)))
        } catch {
            abandon(first)
            throw error
        }
    }

    private func reserveTogether(_ count: Int) throws(StoreError) -> UInt64? {
        let bytes = count * Geometry.sectorBytes
        var area = WriteArea.anywhere
        if grows {
            if try reserveHostRoom(bytes, .user) { releaseHostRoom(bytes) } else { area = .onDisk }
        }
        return try lock.withLock { () throws(StoreError) in
            if !grows {
                if freeSectors < UInt64(count) + systemReserveSectors { noticeGrowth() }
                guard freeSectors >= UInt64(count) + systemReserveSectors else { throw .noRoom }
            }
            return try takeSectors(least: count, most: count, near: nil, area)?.0
        }
    }

    private func seal(
        _ role: ExtentRole, _ group: ArraySlice<(content: UInt64, bytes: [UInt8])>, at sector: UInt64,
        _ count: Int
    ) throws(StoreError) -> [ExtentRun] {
        let generation = lock.withLock { nextGeneration }
        var runs: [ExtentRun] = []
        do throws(StoreError) {
            try chunkBuffers.withBuffer { (buffer) throws(StoreError) in
                var end = 0
                for (content, bytes) in group {
                    let run = ExtentRun(
                        offset: 0, length: UInt64(bytes.count),
                        sector: sector + UInt64(end / Geometry.sectorBytes), generation: generation,
                        epoch: epoch)
                    let extent = buffer.slice(end, run.sectorCount * Geometry.sectorBytes)
                    let descriptor = Descriptor(
                        role: role, content: content, offset: 0, length: UInt32(bytes.count),
                        generation: generation, epoch: epoch)
                    bytes.withUnsafeBytes { sealExtent(descriptor, $0, into: extent) }
                    runs.append(run)
                    end += extent.count
                }
                try files.write(sector, UnsafeRawBufferPointer(buffer.slice(0, end)), .head)
            }
        } catch {
            // The segment's bits are in memory, so loading cannot fail.
            lock.withLock { try? sectors.abandon(sector, count) }
            throw error
        }
        return runs
    }
}
