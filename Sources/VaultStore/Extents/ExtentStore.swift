import LinuxIO
import VaultFormat

/// Writes and reads content: sealed chunk by chunk into extents of consecutive sectors.
///
/// Has no state of its own but buffers.
final class ExtentStore: Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let gate: WriteGate
    private let sectors: SectorRoom
    private let host: HostRoom
    private let next: NextCommit
    private let codec: ExtentCodec
    private let references: ReferenceGuard
    private let reserve: CuttingReserve
    private let buffers: BufferPool
    private let grows: Bool
    /// Random number of this mount.
    private let epoch: UInt64

    /// Chunks sealed and written by one call.
    static let chunksPerWrite = 4
    /// Sectors written by one call.
    private static let sectorsPerWrite = chunksPerWrite * Geometry.sectorsPerChunk

    init(_ parts: SpaceParts, _ references: ReferenceGuard, grows: Bool, epoch: UInt64) {
        (lock, disk, gate, sectors, host) = (parts.lock, parts.disk, parts.gate, parts.sectors, parts.host)
        (next, codec, buffers) = (parts.next, parts.extentCodec, parts.buffers)
        (self.references, self.grows, self.epoch) = (references, grows, epoch)
        reserve = CuttingReserve(parts, references)
    }

    // MARK: Writing

    /// See `Space.write`.
    func write(
        role: ExtentRole, content: UInt64, offset: UInt64, _ bytes: UnsafeRawBufferPointer, near: UInt64?,
        _ purpose: WritePurpose
    ) throws(StoreError) -> [ExtentRun] {
        precondition(offset % UInt64(Geometry.chunkBytes) == 0 && bytes.count > 0)
        try gate.requireOpen()
        // The mount that this one took over from may still be writing there.
        let near = gate.claim?.hasTakenOver == true ? nil : near
        guard grows else { return try write(role, content, offset, bytes, near, purpose, .anywhere) }
        if purpose == .user { reserve.fill(before: bytes.count) }
        do throws(StoreError) {
            let isFresh = try host.reserve(bytes.count, purpose)
            defer { if isFresh { host.release(bytes.count) } }
            if isFresh { return try write(role, content, offset, bytes, near, purpose, .anywhere) }
        } catch {
            guard error == .noRoom else { throw error }
        }
        // The host is full. Sectors that were written once and freed since still have disk blocks.
        sectors.rewind()
        return try write(role, content, offset, bytes, nil, purpose, .onDisk)
    }

    private func write(
        _ role: ExtentRole, _ content: UInt64, _ offset: UInt64, _ bytes: UnsafeRawBufferPointer,
        _ near: UInt64?, _ purpose: WritePurpose, _ area: WriteArea
    ) throws(StoreError) -> [ExtentRun] {
        var runs: [ExtentRun] = []
        do throws(StoreError) {
            var done = 0
            while done < bytes.count {
                let next = runs.last.map(\.endSector) ?? near
                let run = try reserve(
                    offset: offset + UInt64(done), plainBytes: bytes.count - done, near: next, purpose, area)
                try references.requireUnnamed(run.sector, run.sectorCount)
                runs.append(run)
                try seal(role, content, run, bytes.slice(done, Int(run.length)))
                done += Int(run.length)
            }
        } catch {
            abandon(runs)
            throw error
        }
        return runs
    }

    /// Reserves sectors for as many bytes as fit into one run: whole chunks, or a piece of a chunk if no free run holds
    /// a whole one.
    private func reserve(
        offset: UInt64, plainBytes: Int, near: UInt64?, _ purpose: WritePurpose, _ area: WriteArea
    ) throws(StoreError) -> ExtentRun {
        let chunk = Geometry.chunkBytes
        let toBoundary = chunk - Int(offset % UInt64(chunk))
        let isAligned = toBoundary == chunk
        let whole = min(plainBytes, toBoundary)
        let least = Geometry.sectors(forPlaintext: whole)
        let lastBytes = plainBytes % chunk
        let most =
            isAligned
            ? plainBytes / chunk * Geometry.sectorsPerChunk
                + (lastBytes > 0 ? Geometry.sectors(forPlaintext: lastBytes) : 0)
            : least
        return try lock.withLock { () throws(StoreError) -> ExtentRun in
            let reserved = try sectors.reserve(least: least, most: most, near: near, purpose, area)
            guard let (sector, count) = reserved else {
                return try reservePiece(offset: offset, whole: whole, area)
            }
            let length = isAligned ? trimReservation(sector, count, plainBytes) : whole
            return run(offset, length, sector)
        }
    }

    private func run(_ offset: UInt64, _ length: Int, _ sector: UInt64) -> ExtentRun {
        ExtentRun(
            offset: offset, length: UInt64(length), sector: sector, generation: next.generation, epoch: epoch)
    }

    /// Returns how many plaintext bytes fit into `count` reserved sectors as whole chunks and a last short one.
    /// Abandons the remaining sectors. Under the lock.
    private func trimReservation(_ sector: UInt64, _ count: Int, _ plainBytes: Int) -> Int {
        let chunks = min(count / Geometry.sectorsPerChunk, plainBytes / Geometry.chunkBytes)
        var used = chunks * Geometry.sectorsPerChunk
        var length = chunks * Geometry.chunkBytes
        let rest = plainBytes - length
        if rest > 0 && rest < Geometry.chunkBytes {
            let sectors = Geometry.sectors(forPlaintext: rest)
            if used + sectors <= count {
                used += sectors
                length += rest
            }
        }
        if used < count { sectors.abandon(sector + UInt64(used), count - used) }
        return length
    }

    /// Reserves a run that is too short for the chunk, for a piece of it: one of the longest that are free, down to a
    /// single sector, so that no free room is unusable. Under the lock.
    private func reservePiece(
        offset: UInt64, whole: Int, _ area: WriteArea
    ) throws(StoreError) -> ExtentRun {
        let most = Geometry.sectors(forPlaintext: whole)
        var least = most
        while least > 1 {
            least = (least + 1) / 2
            let reserved = try sectors.reserve(least: least, most: most, .system, area, mayGrow: false)
            guard let (sector, count) = reserved else { continue }
            let length = min(whole, count * Geometry.sectorBytes - Geometry.extentOverheadBytes)
            return run(offset, length, sector)
        }
        throw .noRoom
    }

    /// Seals the chunks of a run and writes them, several in one call.
    private func seal(
        _ role: ExtentRole, _ content: UInt64, _ run: ExtentRun, _ bytes: UnsafeRawBufferPointer
    ) throws(StoreError) {
        try buffers.withBuffer { (buffer) throws(StoreError) in
            var chunk = 0
            while chunk < run.chunkCount {
                let last = min(chunk + Self.chunksPerWrite, run.chunkCount)
                var end = 0
                for index in chunk..<last {
                    let plain = bytes.slice(index * Geometry.chunkBytes, run.plainBytes(ofChunk: index))
                    let length = Geometry.sectors(forPlaintext: plain.count) * Geometry.sectorBytes
                    codec.seal(Descriptor(role, content, run, index), plain, into: buffer.slice(end, length))
                    end += length
                }
                try disk.write(
                    run.sector(ofChunk: chunk), UnsafeRawBufferPointer(buffer.slice(0, end)),
                    run.offset == 0 && chunk == 0 ? .head : .body)
                chunk = last
            }
        }
    }

    /// Releases reserved runs that were never adopted.
    func abandon(_ runs: [ExtentRun]) {
        lock.withLock {
            for part in parts(of: runs) { sectors.abandon(part.lowerBound, part.count) }
        }
    }

    /// The sectors of runs, segment by segment.
    func parts(of runs: [ExtentRun]) -> [Range<UInt64>] {
        runs.flatMap { disk.split($0.sector..<$0.endSector) }
    }

    /// Seals the bytes of a run anew in other sectors. See `Space.sealElsewhere`.
    func sealElsewhere(_ run: ExtentRun, of content: UInt64) throws(StoreError) -> [ExtentRun] {
        try gate.requireOpen()
        var runs: [ExtentRun] = []
        do throws(StoreError) {
            try buffers.withBuffer { (buffer) throws(StoreError) in
                for chunk in 0..<run.chunkCount {
                    let (role, bytes) = try readAnyRole(content, run, chunk, into: buffer)
                    let offset = run.offset + UInt64(chunk * Geometry.chunkBytes)
                    let near = runs.last?.endSector
                    runs += try write(role, content, offset, bytes, near, .user, .anywhere)
                }
            }
        } catch {
            abandon(runs)
            throw error
        }
        return ExtentRun.joined(runs)
    }

    /// Reads a chunk of a file or of a picture: a row does not tell of which.
    private func readAnyRole(
        _ content: UInt64, _ run: ExtentRun, _ chunk: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(StoreError) -> (ExtentRole, UnsafeRawBufferPointer) {
        for role in CheckedRun(content: content, run: run).roles {
            do throws(StoreError) {
                return (role, try read(role: role, content: content, run: run, chunk: chunk, into: buffer))
            } catch {
                guard error == .damaged else { throw error }
            }
        }
        throw .damaged
    }

    // MARK: Several at once

    /// Seals small contents into consecutive sectors, each as its own extent. See `Space.writeBatch`.
    func writeBatch(
        role: ExtentRole, _ contents: [(content: UInt64, bytes: [UInt8])]
    ) throws(StoreError) -> [ExtentRun] {
        try gate.requireOpen()
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
            try references.requireUnnamed(sector, count)
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
            if try host.reserve(bytes, .user) { host.release(bytes) } else { area = .onDisk }
        }
        // Of a full host's disk they may have what is kept for cutting files: they are small.
        let purpose = grows ? WritePurpose.system : .user
        return try lock.withLock { () throws(StoreError) in
            try sectors.reserve(least: count, most: count, purpose, area)?.sector
        }
    }

    private func seal(
        _ role: ExtentRole, _ group: ArraySlice<(content: UInt64, bytes: [UInt8])>, at sector: UInt64,
        _ count: Int
    ) throws(StoreError) -> [ExtentRun] {
        let generation = lock.withLock { next.generation }
        var runs: [ExtentRun] = []
        do throws(StoreError) {
            try buffers.withBuffer { (buffer) throws(StoreError) in
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
                    bytes.withUnsafeBytes { codec.seal(descriptor, $0, into: extent) }
                    runs.append(run)
                    end += extent.count
                }
                try disk.write(sector, UnsafeRawBufferPointer(buffer.slice(0, end)), .head)
            }
        } catch {
            lock.withLock { sectors.abandon(sector, count) }
            throw error
        }
        return runs
    }

    // MARK: Reading

    /// See `Space.read`.
    func read(
        role: ExtentRole, content: UInt64, run: ExtentRun, chunk: Int,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(StoreError) -> UnsafeRawBufferPointer {
        precondition(chunk < run.chunkCount && buffer.count >= Space.readBufferBytes)
        let plainBytes = run.plainBytes(ofChunk: chunk)
        let extent = buffer.slice(0, plainBytes + Geometry.extentOverheadBytes)
        let plain = extent.slice(Geometry.extentHeaderBytes, plainBytes)
        let descriptor = Descriptor(role, content, run, chunk)
        let sector = run.sector(ofChunk: chunk)
        let lent = try disk.lend(sector, extent.count, readingOnTo: run.endSector) {
            codec.open(descriptor, $0, into: plain)
        }
        if lent == nil { try disk.read(sector, into: extent, readingOnTo: run.endSector) }
        guard lent ?? codec.open(descriptor, extent) else { throw .damaged }
        return UnsafeRawBufferPointer(plain)
    }

    /// See `Space.areNeighbours`.
    func areNeighbours(
        _ chunks: [StoredChunk], _ chunk: StoredChunk, in buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let first = chunks.first?.sectors, let last = chunks.last?.sectors else { return true }
        let (next, perSegment) = (chunk.sectors, UInt64(disk.sectorsPerSegment))
        return next.lowerBound == last.upperBound
            && next.lowerBound / perSegment == first.lowerBound / perSegment
            && (next.upperBound - first.lowerBound) * UInt64(Geometry.sectorBytes) <= UInt64(buffer.count)
    }

    /// See `Space.read`.
    func read(
        role: ExtentRole, content: UInt64, _ chunks: [StoredChunk],
        through buffer: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        guard let first = chunks.first?.sectors.lowerBound, let last = chunks.last else { return }
        let lastOffset = Int(last.sectors.lowerBound - first) * Geometry.sectorBytes
        let (count, end) = (lastOffset + last.extentBytes, last.run.endSector)
        func openAll(_ bytes: UnsafeRawBufferPointer) -> Bool {
            chunks.allSatisfy { chunk in
                let offset = Int(chunk.sectors.lowerBound - first) * Geometry.sectorBytes
                return open(
                    chunk, Descriptor(role, content, chunk.run, chunk.chunk),
                    bytes.slice(offset, chunk.extentBytes), through: buffer.slice(offset, chunk.extentBytes))
            }
        }
        let lent = try disk.lend(first, count, readingOnTo: end, to: openAll)
        if lent == nil { try disk.read(first, into: buffer.slice(0, count), readingOnTo: end) }
        guard lent ?? openAll(UnsafeRawBufferPointer(buffer)) else { throw .damaged }
    }

    /// Opens the part of a chunk that is wanted into its target.
    ///
    /// - Parameter buffer: as long as the extent, or the extent itself.
    private func open(
        _ chunk: StoredChunk, _ descriptor: Descriptor, _ extent: UnsafeRawBufferPointer,
        through buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        if chunk.isWhole { return codec.open(descriptor, extent, into: chunk.target) }
        let plain = buffer.slice(
            Geometry.extentHeaderBytes, extent.count - Geometry.extentOverheadBytes)
        guard codec.open(descriptor, extent, into: plain) else { return false }
        chunk.target.copyMemory(from: UnsafeRawBufferPointer(plain.slice(chunk.first, chunk.target.count)))
        return true
    }
}
