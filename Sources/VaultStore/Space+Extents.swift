import LinuxIO
import VaultCrypto
public import VaultFormat

/// The purpose of an allocation.
public enum WritePurpose: Sendable {
    /// A user's bytes: refused when only the system reserve is left.
    case user
    /// Writes needed for deleting and truncating: may use the reserve.
    case system
}

/// A part of a stored chunk that is to be read.
public struct StoredChunk {
    let run: ExtentRun
    let chunk: Int
    /// Its first byte in the chunk's plaintext.
    let first: Int
    let target: UnsafeMutableRawBufferPointer

    /// - Parameters:
    ///   - first: the first byte of the chunk's plaintext that is wanted.
    ///   - target: as long as the wanted part; where it is written.
    public init(
        run: ExtentRun, chunk: Int, from first: Int, into target: UnsafeMutableRawBufferPointer
    ) {
        precondition(chunk < run.chunkCount && first + target.count <= run.plainBytes(ofChunk: chunk))
        (self.run, self.chunk, self.first, self.target) = (run, chunk, first, target)
    }

    var sectors: Range<UInt64> {
        let start = run.sector(ofChunk: chunk)
        return start..<start + UInt64(Geometry.sectors(forPlaintext: run.plainBytes(ofChunk: chunk)))
    }
    var extentBytes: Int { run.plainBytes(ofChunk: chunk) + Geometry.extentOverheadBytes }
    var isWhole: Bool { first == 0 && target.count == run.plainBytes(ofChunk: chunk) }
}

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
        precondition(offset % UInt64(Geometry.chunkBytes) == 0 && bytes.count > 0)
        try requireWritable()
        // The mount that this one took over from may still be writing there.
        let near = claim?.hasTakenOver == true ? nil : near
        guard grows else { return try writeOnce(role, content, offset, bytes, near, purpose, .anywhere) }
        do throws(StoreError) {
            let isFresh = try reserveHostRoom(bytes.count, purpose)
            defer { if isFresh { releaseHostRoom(bytes.count) } }
            if isFresh { return try writeOnce(role, content, offset, bytes, near, purpose, .anywhere) }
        } catch {
            guard error == .noRoom else { throw error }
        }
        // The host is full. Sectors that were written once and freed since still have disk blocks.
        lock.withLock { sectors.rewind() }
        return try writeOnce(role, content, offset, bytes, nil, purpose, .onDisk)
    }

    /// The area for content in a vault that grows.
    enum WriteArea {
        case anywhere
        /// Only sectors that have disk blocks.
        case onDisk
    }

    /// Whether the host has room for `count` bytes of a user and the catalogue's reserve. If so, they count as in
    /// flight until `releaseHostRoom`.
    func reserveHostRoom(_ count: Int, _ purpose: WritePurpose) throws(StoreError) -> Bool {
        try lock.withLock { () throws(StoreError) in
            let wanted = freshBytes + UInt64(count) + UInt64(count) / 64 + 64 << 10
            if purpose == .user, try hostAvailable() < Self.hostReserveBytes + wanted {
                return false
            }
            freshBytes += UInt64(count)
            return true
        }
    }

    func releaseHostRoom(_ count: Int) { lock.withLock { freshBytes -= UInt64(count) } }

    func writeOnce(
        _ role: ExtentRole, _ content: UInt64, _ offset: UInt64, _ bytes: UnsafeRawBufferPointer,
        _ near: UInt64?,
        _ purpose: WritePurpose, _ area: WriteArea
    ) throws(StoreError) -> [ExtentRun] {
        var runs: [ExtentRun] = []
        do throws(StoreError) {
            var done = 0
            while done < bytes.count {
                let next = runs.last.map { $0.sector + UInt64($0.sectorCount) } ?? near
                let run = try reserve(
                    offset: offset + UInt64(done), plainBytes: bytes.count - done, near: next, purpose, area)
                try requireUnnamed(run.sector, run.sectorCount)
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
            var most = most
            if purpose == .user && area == .onDisk {
                let taken = UInt64(least * Geometry.sectorBytes)
                guard reusableBytes >= taken + Self.usedReserveBytes else { throw .noRoom }
            }
            if purpose == .user && !grows {
                if freeSectors < UInt64(most) + systemReserveSectors { noticeGrowth() }
                guard freeSectors >= UInt64(least) + systemReserveSectors else { throw .noRoom }
                most = Int(min(UInt64(most), freeSectors - systemReserveSectors))
            }
            if let (sector, count) = try takeSectors(least: least, most: most, near: near, area) {
                let length = isAligned ? try trimReservation(sector, count, plainBytes) : whole
                return run(offset, length, sector)
            }
            return try reservePiece(offset: offset, whole: whole, area)
        }
    }

    private func run(_ offset: UInt64, _ length: Int, _ sector: UInt64) -> ExtentRun {
        ExtentRun(
            offset: offset, length: UInt64(length), sector: sector, generation: nextGeneration, epoch: epoch)
    }

    /// Returns how many plaintext bytes fit into `count` reserved sectors as whole chunks and a last short one.
    /// Abandons the remaining sectors. Under `lock`.
    private func trimReservation(_ sector: UInt64, _ count: Int, _ plainBytes: Int) throws(StoreError) -> Int
    {
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
        if used < count { try sectors.abandon(sector + UInt64(used), count - used) }
        return length
    }

    /// Reserves a run that is too short for the chunk, for a piece of it: one of the longest that are free, down to a
    /// single sector, so that no free room is unusable. Under `lock`.
    private func reservePiece(
        offset: UInt64, whole: Int, _ area: WriteArea
    ) throws(StoreError) -> ExtentRun {
        let most = Geometry.sectors(forPlaintext: whole)
        var least = most
        while least > 1 {
            least = (least + 1) / 2
            guard
                let (sector, count) = try takeSectors(
                    least: least, most: most, near: nil, area, mayGrow: false)
            else { continue }
            let length = min(whole, count * Geometry.sectorBytes - Geometry.extentOverheadBytes)
            return run(offset, length, sector)
        }
        throw .noRoom
    }

    /// Allocates sectors of a segment that has a file; creates a segment if needed in a vault that grows. Under `lock`.
    func takeSectors(
        least: Int, most: Int, near: UInt64?, _ area: WriteArea, mayGrow: Bool = true
    ) throws(StoreError) -> (UInt64, Int)? {
        while true {
            guard let (sector, count) = try takeAny(least: least, most: most, near: near, area, mayGrow)
            else { return nil }
            let segment = Int(sector / UInt64(files.sectorsPerSegment))
            if foundSegments.contains(segment) || files.hasRoom(for: segment) {
                foundSegments.insert(segment)
                return (sector, count)
            }
            try sectors.abandon(sector, count)
            lostSegments.insert(segment)
            updateExcluded()
        }
    }

    private func takeAny(
        least: Int, most: Int, near: UInt64?, _ area: WriteArea, _ mayGrow: Bool
    ) throws(StoreError) -> (UInt64, Int)? {
        if area == .onDisk {
            return try sectors.take(least: least, most: most, near: nil) {
                [files] (number, first) throws(StoreError) in
                try files.storedSectors(number, from: first)
            }
        }
        if let found = try sectors.take(least: least, most: most, near: near) { return found }
        guard mayGrow else { return nil }
        noticeGrowth()
        if grows {
            guard try hostAvailable() > Self.hostReserveBytes + 64 << 10 else { return nil }
            let number = sectors.segmentCount
            guard number < Geometry.segmentsMax else { return nil }
            try files.create(number)
            comparedSegments.insert(number)
            sectors.addSegments(to: number + 1)
        }
        return try sectors.take(least: least, most: most, near: nil)
    }

    /// Seals the chunks of a run and writes them, several in one call.
    private func seal(
        _ role: ExtentRole, _ content: UInt64, _ run: ExtentRun, _ bytes: UnsafeRawBufferPointer
    ) throws(StoreError) {
        try chunkBuffers.withBuffer { (buffer) throws(StoreError) in
            var chunk = 0
            while chunk < run.chunkCount {
                let last = min(chunk + Self.chunksPerWrite, run.chunkCount)
                var end = 0
                for index in chunk..<last {
                    let plain = bytes.slice(index * Geometry.chunkBytes, run.plainBytes(ofChunk: index))
                    let length = Geometry.sectors(forPlaintext: plain.count) * Geometry.sectorBytes
                    sealExtent(descriptor(role, content, run, index), plain, into: buffer.slice(end, length))
                    end += length
                }
                try files.write(
                    run.sector(ofChunk: chunk), UnsafeRawBufferPointer(buffer.slice(0, end)),
                    run.offset == 0 && chunk == 0 ? .head : .body)
                chunk = last
            }
        }
    }

    /// Throws `damaged` if the catalogue refers to any of these just reserved sectors: then they are marked as in use,
    /// and the write fails instead of overwriting a photo.
    func requireUnnamed(_ sector: UInt64, _ count: Int) throws(StoreError) {
        guard let isReferenced else { return }
        do throws(StoreError) {
            try requireOwnFiles(sector, count)
            guard try isReferenced(sector..<sector + UInt64(count)) else { return }
        } catch {
            lock.withLock { try? sectors.abandon(sector, count) }
            throw error
        }
        try lock.withLock { () throws(StoreError) in
            try sectors.adopt(sector, count)
            isChanged = true
        }
        throw .damaged
    }

    /// The descriptor of a run's chunk. The extents of a snapshot are those of its source.
    func descriptor(
        _ role: ExtentRole, _ content: UInt64, _ run: ExtentRun, _ chunk: Int
    ) -> Descriptor {
        Descriptor(
            role: role, content: role == .content ? SnapshotID.source(content) : content,
            offset: run.offset + UInt64(chunk * Geometry.chunkBytes),
            length: UInt32(run.plainBytes(ofChunk: chunk)), generation: run.generation, epoch: run.epoch)
    }

    /// Makes extents that are written from now on differ from all of `runs` in their generation or epoch. A generation
    /// is left out if necessary.
    public func passGeneration(of runs: [ExtentRun]) {
        lock.withLock {
            if runs.contains(where: { $0.epoch == epoch && $0.generation >= nextGeneration }) {
                nextGeneration += 1
            }
        }
    }

    /// Fills one extent: nonce, sealed descriptor, sealed payload, and random bytes to the end of its last sector.
    func sealExtent(
        _ descriptor: Descriptor, _ plain: UnsafeRawBufferPointer, into extent: UnsafeMutableRawBufferPointer
    ) {
        let nonce = extent.slice(0, Geometry.nonceBytes)
        fillRandom(nonce)
        sealDescriptor(descriptor, into: extent)
        withUnsafeTemporaryAllocation(byteCount: Descriptor.associatedBytes, alignment: 8) { associated in
            descriptor.encodeAssociatedData(into: associated)
            let payload = extent.slice(Geometry.extentHeaderBytes, plain.count)
            let tagOffset = Geometry.extentHeaderBytes + plain.count
            keys.content.seal(
                plain, into: payload, tag: extent.slice(tagOffset, Geometry.tagBytes),
                nonce: UnsafeRawBufferPointer(nonce), associated: UnsafeRawBufferPointer(associated))
            let end = tagOffset + Geometry.tagBytes
            fillRandom(extent.slice(end, extent.count - end))
        }
    }

    /// Seals a descriptor into the beginning of an extent, under the nonce already there.
    func sealDescriptor(_ descriptor: Descriptor, into extent: UnsafeMutableRawBufferPointer) {
        withUnsafeTemporaryAllocation(byteCount: Descriptor.associatedBytes, alignment: 8) { associated in
            descriptor.encodeAssociatedData(into: associated)
            keys.descriptor.seal(
                UnsafeRawBufferPointer(associated.slice(2, Geometry.descriptorBytes)),
                into: extent.slice(Geometry.nonceBytes, Geometry.descriptorBytes),
                tag: extent.slice(Geometry.nonceBytes + Geometry.descriptorBytes, Geometry.tagBytes),
                nonce: UnsafeRawBufferPointer(extent.slice(0, Geometry.nonceBytes)),
                associated: UnsafeRawBufferPointer(associated.slice(0, 2)))
        }
    }

    /// Releases reserved runs that were never adopted.
    public func abandon(_ runs: [ExtentRun]) {
        lock.withLock {
            forEachPart(of: runs) { sector, count in
                // The bits of segments with reserved sectors are in memory, so loading cannot fail.
                try? sectors.abandon(sector, count)
            }
        }
    }

    /// Makes reserved runs part of the next commit. Called in the catalogue's critical section that inserts their rows.
    public func adopt(_ runs: [ExtentRun]) {
        lock.withLock {
            forEachPart(of: runs) { sector, count in
                do throws(StoreError) { try sectors.adopt(sector, count) } catch {
                    preconditionFailure("the bits of reserved sectors are in memory")
                }
                note(DeltaLayout.kindExtentsWritten, sector, count)
            }
        }
    }

    /// Frees runs whose rows were deleted. Called in the catalogue's critical section that deleted them. Their sectors
    /// are reused once no root refers to them.
    ///
    /// - Parameter overwriting: overwrites them with random bytes before they are reused, to destroy their contents.
    public func free(_ runs: [ExtentRun], overwriting: Bool = false) {
        // Impossible runs free nothing.
        let runs = runs.filter { isPossible($0) }
        lock.withLock {
            forEachPart(of: runs) { sector, count in
                note(DeltaLayout.kindSectorsFreed, sector, count, isDestroyed: overwriting)
                pendingSectors += UInt64(count)
                if overwriting { destroyedSectors += UInt64(count) }
            }
        }
    }

    /// Visits the sectors of runs, segment by segment: no extent crosses the end of a segment, but a joined run may
    /// span the end of one and the start of the next.
    private func forEachPart(of runs: [ExtentRun], _ body: (_ sector: UInt64, _ count: Int) -> Void) {
        let perSegment = UInt64(files.sectorsPerSegment)
        for run in runs {
            var sector = run.sector
            let end = run.endSector
            while sector < end {
                let next = min(end, (sector / perSegment + 1) * perSegment)
                body(sector, Int(next - sector))
                sector = next
            }
        }
    }

    /// Adds an entry to the next commit's delta, or extends the last one if it is contiguous. Under `lock`.
    private func note(_ kind: UInt8, _ sector: UInt64, _ count: Int, isDestroyed: Bool = false) {
        isChanged = true
        let perSegment = UInt64(files.sectorsPerSegment)
        if let last = entries.last, last.kind == kind, last.isDestroyed == isDestroyed,
            last.start + UInt64(last.count) == sector,
            last.start / perSegment == sector / perSegment
        {
            entries[entries.count - 1].count += UInt32(count)
        } else {
            var entry = DeltaEntry(kind: kind, count: UInt32(count), start: sector)
            entry.isDestroyed = isDestroyed
            entries.append(entry)
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
        precondition(chunk < run.chunkCount && buffer.count >= Self.readBufferBytes)
        let plainBytes = run.plainBytes(ofChunk: chunk)
        let extent = buffer.slice(0, plainBytes + Geometry.extentOverheadBytes)
        try files.read(run.sector(ofChunk: chunk), into: extent, readingOnTo: run.endSector)
        guard openExtent(descriptor(role, content, run, chunk), extent) else { throw .damaged }
        return UnsafeRawBufferPointer(extent.slice(Geometry.extentHeaderBytes, plainBytes))
    }

    /// Whether `chunk` lies just behind the last of `chunks` in the same segment, so that one call may read them
    /// together, and `buffer` has room for that. True if there are none.
    public func areNeighbours(
        _ chunks: [StoredChunk], _ chunk: StoredChunk, in buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let first = chunks.first?.sectors, let last = chunks.last?.sectors else { return true }
        let (next, perSegment) = (chunk.sectors, UInt64(files.sectorsPerSegment))
        return next.lowerBound == last.upperBound
            && next.lowerBound / perSegment == first.lowerBound / perSegment
            && (next.upperBound - first.lowerBound) * UInt64(Geometry.sectorBytes) <= UInt64(buffer.count)
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
        guard let first = chunks.first?.sectors.lowerBound, let last = chunks.last else { return }
        let lastOffset = Int(last.sectors.lowerBound - first) * Geometry.sectorBytes
        try files.read(
            first, into: buffer.slice(0, lastOffset + last.extentBytes), readingOnTo: last.run.endSector)
        for chunk in chunks {
            let offset = Int(chunk.sectors.lowerBound - first) * Geometry.sectorBytes
            let extent = buffer.slice(offset, chunk.extentBytes)
            let descriptor = descriptor(role, content, chunk.run, chunk.chunk)
            if chunk.isWhole {
                guard openExtent(descriptor, extent, into: chunk.target) else { throw .damaged }
            } else {
                guard openExtent(descriptor, extent) else { throw .damaged }
                chunk.target.copyMemory(
                    from: UnsafeRawBufferPointer(
                        extent.slice(Geometry.extentHeaderBytes + chunk.first, chunk.target.count)))
            }
        }
    }

    /// Opens an extent's payload in place, or into `target`, which does not overlap it.
    func openExtent(
        _ descriptor: Descriptor, _ extent: UnsafeMutableRawBufferPointer,
        into target: UnsafeMutableRawBufferPointer? = nil
    ) -> Bool {
        let payload = extent.slice(Geometry.extentHeaderBytes, extent.count - Geometry.extentOverheadBytes)
        return withUnsafeTemporaryAllocation(byteCount: Descriptor.associatedBytes, alignment: 8) {
            associated in
            descriptor.encodeAssociatedData(into: associated)
            return keys.content.open(
                UnsafeRawBufferPointer(payload), into: target ?? payload,
                tag: UnsafeRawBufferPointer(
                    extent.slice(extent.count - Geometry.tagBytes, Geometry.tagBytes)),
                nonce: UnsafeRawBufferPointer(extent.slice(0, Geometry.nonceBytes)),
                associated: UnsafeRawBufferPointer(associated))
        }
    }

    /// Opens an extent's descriptor from its first 80 bytes; nil if it does not belong to this space.
    func openDescriptor(_ extent: UnsafeRawBufferPointer) -> Descriptor? { keys.openDescriptor(extent) }
}

extension SpaceKeys {
    /// As `Space.openDescriptor`.
    func openDescriptor(_ extent: UnsafeRawBufferPointer) -> Descriptor? {
        withUnsafeTemporaryAllocation(byteCount: Geometry.descriptorBytes + 2, alignment: 8) { plain in
            plain.setNumber(formatVersion, 0)
            let bytes = plain.slice(2, Geometry.descriptorBytes)
            let tagOffset = Geometry.nonceBytes + Geometry.descriptorBytes
            guard
                descriptor.open(
                    extent.slice(Geometry.nonceBytes, Geometry.descriptorBytes), into: bytes,
                    tag: extent.slice(tagOffset, Geometry.tagBytes),
                    nonce: extent.slice(0, Geometry.nonceBytes),
                    associated: UnsafeRawBufferPointer(plain.slice(0, 2)))
            else { return nil }
            return Descriptor(decoding: UnsafeRawBufferPointer(bytes))
        }
    }
}
