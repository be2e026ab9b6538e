import LinuxIO
import VaultCrypto
public import VaultFormat

/// An extent found by its own descriptor.
public struct FoundExtent: Sendable {
    public var descriptor: Descriptor
    /// Linear number of its first sector.
    public var sector: UInt64
}

/// Finding extents without a catalogue, by the descriptor at the start of each.
extension Space {
    /// The segments in which extents may lie: all except those that a readable root uses for pages.
    public var segmentsToScan: [Int] {
        lock.withLock {
            let pages = isBlank ? [] : Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
            return (0..<sectors.segmentCount).filter { !pages.contains($0) }
        }
    }

    /// Checks every sector of a segment for an extent that begins there and opens as a whole, and continues behind it.
    /// Skips unreadable sectors. Thread-safe.
    ///
    /// - Parameter found: called with each extent and its plaintext; nil if only its descriptor opens.
    public func scan(segment: Int, _ found: (FoundExtent, UnsafeRawBufferPointer?) -> Void) {
        let window = chunkBuffers.take()
        let extent = chunkBuffers.take()
        defer {
            chunkBuffers.give(window)
            chunkBuffers.give(extent)
        }
        let perSegment = files.sectorsPerSegment
        // A missing file has no sectors.
        let end = min(perSegment, (try? files.writtenSectors(segment)) ?? 0)
        var loaded = 0..<0
        var index = 0
        while index < end {
            if !loaded.contains(index) { loaded = load(segment, index..<end, into: window) }
            var count = 1
            let head = sectors(index, in: loaded, of: window, 1)
            if let descriptor = descriptorUnlessEmpty(head) {
                let taken = Geometry.sectors(forPlaintext: Int(descriptor.length))
                if index + taken > loaded.upperBound, loaded.lowerBound < index {
                    loaded = load(segment, index..<end, into: window)
                }
                let place = FoundExtent(
                    descriptor: descriptor, sector: UInt64(segment * perSegment + index))
                if index + taken <= loaded.upperBound,
                    let plain = open(
                        descriptor, sectors(index, in: loaded, of: window, taken), copyingInto: extent)
                {
                    found(place, plain)
                    count = taken
                } else {
                    found(place, nil)
                }
            }
            index += count
        }
    }

    /// Opens an extent in a copy, because the scan reads the sectors again if it does not open.
    private func open(
        _ descriptor: Descriptor, _ sectors: UnsafeRawBufferPointer,
        copyingInto extent: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        extent.copyMemory(from: sectors)
        let whole = extent.slice(0, Int(descriptor.length) + Geometry.extentOverheadBytes)
        guard openExtent(descriptor, whole) else { return nil }
        return UnsafeRawBufferPointer(whole.slice(Geometry.extentHeaderBytes, Int(descriptor.length)))
    }

    private func sectors(
        _ index: Int, in loaded: Range<Int>, of window: UnsafeMutableRawBufferPointer, _ count: Int
    ) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            window.slice((index - loaded.lowerBound) * Geometry.sectorBytes, count * Geometry.sectorBytes))
    }

    /// Opens a descriptor; nil also for sectors that were never written: no nonce is all zeros.
    private func descriptorUnlessEmpty(_ head: UnsafeRawBufferPointer) -> Descriptor? {
        if head.number(0, as: UInt64.self) == 0, head.number(8, as: UInt64.self) == 0 { return nil }
        return openDescriptor(head)
    }

    /// Reads as many sectors of a range as fit into the window; unreadable ones become zeros.
    private func load(
        _ segment: Int, _ range: Range<Int>, into window: UnsafeMutableRawBufferPointer
    ) -> Range<Int> {
        let count = min(range.count, window.count / Geometry.sectorBytes)
        let first = UInt64(segment * files.sectorsPerSegment + range.lowerBound)
        let bytes = window.slice(0, count * Geometry.sectorBytes)
        do throws(StoreError) { try files.read(first, into: bytes) } catch {
            for step in stride(from: 0, to: count, by: Geometry.sectorsPerPage) {
                let length = min(Geometry.sectorsPerPage, count - step)
                let part = bytes.slice(step * Geometry.sectorBytes, length * Geometry.sectorBytes)
                do throws(StoreError) { try files.read(first + UInt64(step), into: part) } catch {
                    part.zero()
                }
            }
        }
        return range.lowerBound..<range.lowerBound + count
    }

    /// Sectors in use in each segment.
    public var usedSectors: [Int] { lock.withLock { sectors.usedCounts.map(Int.init) } }

    /// In a vault that grows, counts segments that have no file as part of the space.
    public func countSegments(through last: Int) {
        guard grows, last < Geometry.segmentsMax else { return }
        lock.withLock { sectors.addSegments(to: last + 1) }
    }

    /// In a vault that grows, creates missing segments, so that the new state can use them: those of pages, and if
    /// `all` those below the vault's own count, even if a forged root names more.
    private func replaceMissingSegments(all: Bool) {
        guard grows else { return }
        let ofPages = pairs.flatMap { [Int($0.a), Int($0.b)] }
        let own = all ? min(sectors.segmentCount, segmentCountNow()) : 0
        for number in Set(0..<own).union(ofPages).sorted()
        where (try? files.writtenSectors(number)) == nil {
            // Its contents are lost. If the disk is full, later writes to it fail and report that.
            try? files.create(number)
        }
    }

    // MARK: A new state beside the old one

    /// Opens a space as empty, to build a new state from the extents of a scan. The old root stays valid until the new
    /// state is published.
    static func openBlank(
        files: SegmentFiles, keys: SpaceKeys, options: SpaceOptions
    ) throws(StoreError) -> Space {
        let found = try knownRoots(files: files, codec: PageCodec(key: keys.page))
        let newest = found.max { $0.root.generation < $1.root.generation }?.root
        let durable = found.filter(\.root.isDurable).max { $0.root.generation < $1.root.generation }
        let generation = newest?.generation ?? 0
        let blank = RootRecord(
            generation: generation, isDurable: true, epoch: 0,
            bootHash: [UInt8](repeating: 0, count: RootLayout.bootHashBytes), base: generation,
            released: generation, peakSectors: newest?.peakSectors ?? 0,
            objects: MapObject.allCases.map { _ in .init() }, delta: .absent,
            pairs: newest?.pairs ?? [SegmentPair(a: 0, b: 1)], format: newest?.format ?? SpaceFormat(),
            room: newest?.room ?? [])
        let rings = RootRings(
            // Without durable roots the first root goes to the first slot.
            durable: durable?.slot ?? RootLayout.durableSlots.upperBound - 1,
            soft: RootLayout.softSlots.lowerBound, hasSoft: found.contains { !$0.root.isDurable })
        let opened = OpenedRoot(
            root: blank, rings: rings, newestGeneration: generation, releaseLimit: generation,
            durableDelta: .absent, torn: [], unreadable: [])
        let space = try Space(opened, files: files, keys: keys, options: options)
        space.isBlank = newest == nil
        space.foundRoots = found
        return space
    }

    /// Makes the sectors of a found or known-damaged extent part of the new state. Returns false if some of them are
    /// already in use, or no extent can lie there.
    public func allocate(_ run: ExtentRun) throws(StoreError) -> Bool {
        let perSegment = UInt64(files.sectorsPerSegment)
        let (segment, last) = (
            run.sector / perSegment, (run.endSector - 1) / perSegment
        )
        return try lock.withLock { () throws(StoreError) in
            guard segment == last, segment < UInt64(sectors.segmentCount),
                !pairs.contains(where: { UInt64($0.a) == segment || UInt64($0.b) == segment })
            else { return false }
            isChanged = true
            return try sectors.allocate(at: run.sector, run.sectorCount)
        }
    }

    /// Frees allocated sectors that the new state does not refer to. They are not overwritten until it is complete.
    public func free(_ ranges: [Range<UInt64>]) {
        let perSegment = UInt64(files.sectorsPerSegment)
        lock.withLock {
            for range in ranges {
                var first = range.lowerBound
                while first < range.upperBound {
                    let end = min(range.upperBound, (first / perSegment + 1) * perSegment)
                    entries.append(
                        DeltaEntry(
                            kind: DeltaLayout.kindSectorsFreed, count: UInt32(end - first), start: first))
                    pendingSectors += end - first
                    first = end
                }
            }
        }
    }

    /// Called once all found extents are claimed. Later writes get higher generations than all of them (`newest` is the
    /// highest found) and do not overwrite the old state's pages. If no two segments are free for pages, the old
    /// state's are overwritten: then the old state is lost before the new one is complete, but no extent of the new one
    /// is. Without a root nothing leads to the old pages, and the new ones take their place: the numbers behind the
    /// last segment that was found may be those of segments that are away.
    ///
    /// - Parameter replacingMissing: whether missing segments are created, empty; else only those of pages are.
    public func beginState(after newest: UInt64, replacingMissing: Bool) {
        replaceMissingSegments(all: replacingMissing)
        // Not earlier: the claim's own segments may have been missing.
        attachClaim(foundRoots)
        lock.withLock {
            nextGeneration = max(nextGeneration, newest + 1)
            if isBlank { return updateExcluded() }
            let old = slots.takeAll()
            do throws(StoreError) {
                try addSlots()
                entries.append(
                    DeltaEntry(
                        kind: DeltaLayout.kindSlotsFreed, count: UInt32(old.count),
                        start: UInt64(old.lowerBound)))
            } catch {
                slots.releaseAll(old)
            }
            updateExcluded()
        }
    }
}

extension UnlockedSpace {
    /// Opens the space for building a new state; see `Space.openBlank`.
    ///
    /// - Parameter readOnly: only to look for extents, whoever writes to the space.
    public func openBlankSpace(readOnly: Bool = false) throws(VaultError) -> Space {
        var (files, keys, options) = try parts(readOnly: readOnly)
        countSegments(through: try vault.highestNumber(layout), &options)
        try begin(options.claim)
        let space: Space
        do throws(StoreError) {
            space = try Space.openBlank(files: files, keys: keys, options: options)
            space.keepsFreeSectors = true
        } catch { throw VaultError(error, doing: "the space's segments cannot be read") }
        guard let stop = space.formatStop, !readOnly else { return space }
        space.giveUpClaim()
        throw .notWritable(stop)
    }
}
