import LinuxIO
public import VaultFormat

/// Building a new state from the extents that a scan finds, beside the old one.
extension Space {
    /// Opens a space as empty. The old root stays valid until the new state is published.
    ///
    /// - Returns: also all roots that were found.
    static func openBlank(
        disk: SpaceDisk, keys: SpaceKeys, options: SpaceOptions
    ) throws(StoreError) -> NewState {
        let found = try RootStore.known(disk, PageCodec(key: keys.page))
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
        let space = try Space(opened, disk: disk, keys: keys, options: options)
        return NewState(space: space, roots: found)
    }
}

/// A space that was opened as empty, to build a new state in it.
public struct NewState: Sendable {
    public let space: Space
    /// All roots that were found.
    let roots: [FoundRoot]
    /// Whether no root could be read.
    private var isBlank: Bool { roots.isEmpty }

    /// The segments in which extents may lie: all except those that a readable root uses for pages.
    public var segmentsToScan: [Int] {
        let pages = isBlank ? [] : space.segments.pageSegments
        return (0..<space.segments.count).filter { !pages.contains($0) }
    }

    /// Makes the sectors of a found or known-damaged extent part of the new state. Returns false if some of them are
    /// already in use, or no extent can lie there.
    public func allocate(_ run: ExtentRun) throws(StoreError) -> Bool {
        let disk = space.parts.disk
        guard disk.segment(of: run.sector) == disk.segment(of: run.endSector - 1) else { return false }
        return try space.parts.lock.withLock { () throws(StoreError) in
            guard try space.sectors.allocate(at: run.sector, run.sectorCount) else { return false }
            space.parts.next.noteChange()
            return true
        }
    }

    /// Frees allocated sectors that the new state does not refer to. They are not overwritten until it is complete.
    public func free(_ ranges: [Range<UInt64>]) {
        space.parts.lock.withLock {
            for part in ranges.flatMap(space.parts.disk.split) {
                space.parts.freed.noteFreed(part.lowerBound, part.count)
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
    public func begin(after newest: UInt64, replacingMissing: Bool) {
        space.segments.replaceMissing(all: replacingMissing)
        // Not earlier: the claim's own segments may have been missing.
        space.attachClaim(roots)
        let (slots, freed) = (space.parts.slots, space.parts.freed)
        space.parts.lock.withLock {
            space.parts.next.skip(through: newest)
            if isBlank { return slots.updateSegments() }
            let old = slots.takeAll()
            do throws(StoreError) {
                try slots.add()
                freed.noteFreed(slots: old)
            } catch {
                slots.releaseAll(old)
            }
            slots.updateSegments()
        }
    }
}

extension UnlockedSpace {
    /// Opens the space as empty, for building a new state.
    ///
    /// - Parameter readOnly: only to look for extents, whoever writes to the space.
    public func openNewState(readOnly: Bool = false) throws(VaultError) -> NewState {
        var (disk, keys, options) = try parts(readOnly: readOnly)
        countSegments(through: try vault.highestNumber(layout), &options)
        try begin(options.claim)
        let state: NewState
        do throws(StoreError) {
            state = try Space.openBlank(disk: disk, keys: keys, options: options)
            state.space.segments.keepsFreeSectors = true
        } catch { throw VaultError(error, doing: "the space's segments cannot be read") }
        guard let stop = state.space.formatStop, !readOnly else { return state }
        state.space.giveUpClaim()
        throw .notWritable(stop)
    }
}
