import LinuxIO
import VaultFormat

/// Checks that everything that the newest root refers to opens, each copy separately.
public struct StructureCheck: Sendable {
    private let space: Space
    private let disk: SpaceDisk
    private let codec: PageCodec
    private let reader: PageReader

    public init(of space: Space) {
        self.space = space
        (disk, codec, reader) = (space.parts.disk, space.parts.codec, space.parts.reader)
    }

    /// Checks roots, maps, pages and deltas of a space without concurrent changes.
    public func run() -> StructureReport {
        let root = space.commits.newest
        var walk = PageWalk(space, root)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        walk.collectDeltas()
        var report = openCopies(walk.found, pairs: root.pairs)
        report.damage += checkRoots()
        report.damage.sort { $0.part.text < $1.part.text }
        report.slots = walk.found.map(\.reference.slot)
        return report
    }

    /// As `run`, for a part of a space in use: these pages of the catalogue, or everything else if they lie
    /// beyond its last. Repeats if a commit was published meanwhile and something was found.
    public func runLive(_ pages: Range<Int>) -> StructureReport {
        var report = StructureReport()
        for _ in 0..<Self.liveAttemptsMax {
            let root = space.parts.lock.withLock {
                let root = space.commits.newestLocked
                space.parts.freed.hold(root.generation)
                return root
            }
            defer { _ = space.parts.freed.letGo(of: root.generation) }
            var walk = PageWalk(space, root)
            if pages.lowerBound < Int(root.objects[MapObject.catalogue.rawValue].pageCount) {
                walk.collect(.catalogue, pages)
            } else {
                for object in MapObject.allCases where object != .catalogue {
                    walk.collect(object, 0..<Int.max)
                }
                walk.collectDeltas()
            }
            report = openCopies(walk.found, pairs: root.pairs)
            let isStill = space.generation == root.generation
            if isStill || (report.damage.isEmpty && report.segments.isEmpty) { break }
        }
        return report
    }

    private static let liveAttemptsMax = 16

    // MARK: Roots

    /// Durable roots that are missing or have a torn copy.
    ///
    /// After a crash a torn root is no damage: the next durable commit repairs it. So only a closed space must have all
    /// roots whole.
    private func checkRoots() -> [StructureDamage] {
        let found = space.parts.roots.found()
        guard found.allSatisfy(\.root.isDurable) else { return [] }
        let newest = found.map(\.root.generation).max()
        var damage: [StructureDamage] = []
        for slot in RootLayout.durableSlots {
            if let root = found.first(where: { $0.slot == slot }) {
                guard let copy = root.tornCopy else { continue }
                // A process was killed in its first commit, between the two copies.
                if root.isHalfWritten, root.root.generation == newest { continue }
                damage.append(
                    StructureDamage(part: .root(slot: slot), isADamaged: copy == 0, isBDamaged: copy == 1))
            } else {
                damage.append(
                    StructureDamage(part: .root(slot: slot), isADamaged: true, isBDamaged: true))
            }
        }
        return damage.filter { damage in
            // A missing segment is reported once.
            let copies = [damage.isADamaged ? 0 : nil, damage.isBDamaged ? 1 : nil].compactMap { $0 }
            return !copies.allSatisfy { disk.fault(at: space.parts.roots.sector(0, copy: $0), 8) != nil }
        }
    }

    /// Whether the newest root of a closed space is missing from those found.
    func isNewestRootLost(of found: [FoundRoot]) -> Bool {
        guard found.allSatisfy(\.root.isDurable),
            !found.contains(where: { $0.slot == space.parts.roots.rings.nextDurable }),
            let newest = found.map(\.root.generation).max()
        else { return false }
        return hasDelta(after: newest)
    }

    /// Whether there is a delta of a commit after `generation`: in a closed space that commit had a root.
    private func hasDelta(after generation: UInt64) -> Bool {
        let (pairs, count) = space.parts.lock.withLock { (space.segments.pairs, space.parts.slots.count) }
        for slot in RootLayout.rootSlots..<count {
            let identity = PageIdentity(role: .delta, index: UInt32(slot))
            guard let place = try? reader.place(UInt32(slot), pairs: pairs) else { return false }
            for (copy, sector) in [place.sectorA, place.sectorB].enumerated() {
                let found = try? withUnsafeTemporaryPage { (sealed) throws(StoreError) -> UInt64? in
                    try disk.read(sector, into: sealed)
                    return try withUnsafeTemporaryPage { (plain) throws(StoreError) -> UInt64? in
                        let page = UnsafeRawBufferPointer(sealed)
                        guard codec.open(page, as: identity, copy: UInt8(copy), expected: nil, into: plain)
                        else { return nil }
                        return UnsafeRawBufferPointer(plain).number(DeltaLayout.generationOffset)
                    }
                }
                if let found, found > generation { return true }
            }
        }
        return false
    }

    /// Compares the slot bitmap of a space without concurrent changes with the slots that its root refers to; nil if a
    /// map node is unreadable.
    public func compareSlots() -> AllocationReport? {
        var walk = PageWalk(space, space.commits.newest)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        walk.collectDeltas()
        guard walk.isWhole else { return nil }
        var structure = StructureReport()
        structure.slots = walk.found.map(\.reference.slot)
        return AllocationCheck(of: space).compareSlots(structure)
    }

    // MARK: Both copies

    /// Opens both copies of pages, on all cores and in slot order.
    ///
    /// - Parameter pairs: the pairs of the root that refers to the pages.
    private func openCopies(_ pages: [ReferredPage], pairs: [SegmentPair]) -> StructureReport {
        let sorted = pages.sorted { $0.reference.slot < $1.reference.slot }
        let groups = Self.groups(sorted, slotsPerPair: reader.slotsPerPair)
        let tally = StructureTally()
        onAllCores(groups.count) { [self] number in
            openCopies(sorted[groups[number]], pairs, tally)
        }
        return tally.result
    }

    /// Ranges of pages with consecutive slots, each to be read by one call.
    private static func groups(_ sorted: [ReferredPage], slotsPerPair: Int) -> [Range<Int>] {
        var groups: [Range<Int>] = []
        var first = 0
        for index in sorted.indices {
            let (slot, start) = (Int(sorted[index].reference.slot), Int(sorted[first].reference.slot))
            let isNext = slot == start + index - first && slot / slotsPerPair == start / slotsPerPair
            if !isNext || index - first == pagesPerRead {
                groups.append(first..<index)
                first = index
            }
        }
        if first < sorted.count { groups.append(first..<sorted.count) }
        return groups
    }

    private static let pagesPerRead = 64

    private func openCopies(
        _ pages: ArraySlice<ReferredPage>, _ pairs: [SegmentPair], _ tally: StructureTally
    ) {
        guard let first = pages.first else { return }
        guard let place = try? reader.place(first.reference.slot, pairs: pairs) else {
            // A slot outside all pairs: authentic but invalid.
            for page in pages {
                tally.add(StructureDamage(part: page.part, isADamaged: true, isBDamaged: true), [])
            }
            return
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: pages.count * Geometry.pageBytes, alignment: 4096)
        defer { buffer.deallocate() }
        var damaged = [[Bool]](repeating: [false, false], count: pages.count)
        var faults: [SegmentFault?] = [nil, nil]
        for (copy, sector) in [place.sectorA, place.sectorB].enumerated() {
            let isRead = (try? disk.read(sector, into: buffer)) != nil
            for (index, page) in pages.enumerated() {
                let sealed = buffer.slice(index * Geometry.pageBytes, Geometry.pageBytes)
                damaged[index][copy] = !(isRead && opens(sealed, page, copy))
                if damaged[index][copy] { tally.add(page: sector + UInt64(index * Geometry.sectorsPerPage)) }
            }
            if damaged.contains(where: { $0[copy] }) {
                faults[copy] = disk.fault(at: sector, pages.count * Geometry.sectorsPerPage)
            }
        }
        tally.add(bytes: UInt64(2 * buffer.count))
        for (page, copies) in zip(pages, damaged) where copies != [false, false] {
            tally.add(
                StructureDamage(part: page.part, isADamaged: copies[0], isBDamaged: copies[1]), faults)
        }
    }

    private func opens(_ sealed: UnsafeMutableRawBufferPointer, _ page: ReferredPage, _ copy: Int) -> Bool {
        let tag = copy == 0 ? page.reference.tagA : page.reference.tagB
        return withUnsafeTemporaryAllocation(byteCount: Geometry.pagePlainBytes, alignment: 16) { plain in
            codec.open(
                UnsafeRawBufferPointer(sealed), as: page.identity, copy: UInt8(copy), expected: tag,
                into: plain)
        }
    }
}

/// Collects the findings of a check's threads.
private final class StructureTally: @unchecked Sendable {
    private let lock = Lock()
    // Under `lock`.
    private var report = StructureReport()

    var result: StructureReport { lock.withLock { report } }

    func add(page sector: UInt64) {
        lock.withLock { report.damagedSectors.append(sector..<sector + UInt64(Geometry.sectorsPerPage)) }
    }

    func add(bytes: UInt64) { lock.withLock { report.bytes += bytes } }

    /// - Parameter faults: the faults of copy A's and copy B's segments.
    func add(_ damage: StructureDamage, _ faults: [SegmentFault?]) {
        lock.withLock {
            report.segments.formUnion(faults.compactMap { $0 })
            let isExplained =
                (faults.first ?? nil) != nil && damage.isADamaged
                || (faults.last ?? nil) != nil && damage.isBDamaged
            if isExplained && !damage.isLost {
                report.halved.append(damage.part)
            } else {
                report.damage.append(damage)
            }
        }
    }
}
