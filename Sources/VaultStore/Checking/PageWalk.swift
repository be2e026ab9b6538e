import LinuxIO
import VaultFormat

/// A reference to a page, and the identity that the page must have.
struct ReferredPage: Sendable {
    var part: StructurePart
    var identity: PageIdentity
    var reference: Reference
}

/// Follows the references of one root. No lock is needed: a published state does not change. The slots of a durable one
/// are reused two durable commits later at the earliest, those of another as soon as the next is published, unless it
/// is held (`Space.held`).
struct PageWalk {
    let space: Space
    let root: RootRecord

    /// The pages found so far.
    private(set) var found: [ReferredPage] = []
    /// Whether every node could be opened.
    private(set) var isWhole = true

    init(_ space: Space, _ root: RootRecord) {
        self.space = space
        self.root = root
    }

    /// Collects the pages of an object in a range, and the nodes that lead to them.
    mutating func collect(_ object: MapObject, _ pages: Range<Int>) {
        let stored = root.objects[object.rawValue]
        guard stored.levels > 0 else { return }
        descend(object, NodeKey(level: stored.levels - 1, index: 0), stored.reference, pages)
    }

    private mutating func descend(
        _ object: MapObject, _ key: NodeKey, _ reference: Reference, _ pages: Range<Int>
    ) {
        if reference.isAbsent { return }
        let part = StructurePart.node(object, level: key.level, index: key.index)
        found.append(ReferredPage(part: part, identity: .node(object, key), reference: reference))
        // A lost node is reported when its copies are opened; the pages below it are unknown.
        guard let node = try? space.openNode(object, key, reference, pairs: root.pairs) else {
            isWhole = false
            return
        }
        let span = MapLayout.span(level: key.level)
        for (place, child) in node.references.enumerated() where !child.isAbsent {
            let index = key.index * MapLayout.fanout + place
            guard pages.overlaps(index * span..<(index + 1) * span) else { continue }
            if key.level == 0 {
                found.append(
                    ReferredPage(
                        part: .page(object, index), identity: .page(object, index), reference: child))
            } else {
                descend(object, NodeKey(level: key.level - 1, index: index), child, pages)
            }
        }
    }

    /// Collects the deltas that a mount would read: those whose entries are not all released.
    ///
    /// The chain continues to delta pages that were freed since; an unreadable one of these is no damage.
    mutating func collectDeltas() {
        var reference = root.delta
        var givenBack = BitRow(count: space.slotsPerPair * root.pairs.count)
        var seen: Set<UInt32> = []
        // An author who knows the key can make a cycle.
        while !reference.isAbsent, seen.insert(reference.slot).inserted {
            let slot = reference.slot
            let identity = PageIdentity(role: .delta, index: slot)
            let page = try? space.readDelta(reference, pairs: root.pairs)
            if let page, page.generation <= root.released { return }
            let isGivenBack = Int(slot) < givenBack.count && givenBack[Int(slot)]
            if page == nil, isGivenBack || !space.isUsed(slot: slot) { return }
            found.append(ReferredPage(part: .delta(slot: slot), identity: identity, reference: reference))
            guard let page else { return }
            for entry in page.entries where entry.kind == DeltaLayout.kindSlotsFreed {
                givenBack.add(Int(entry.start)..<Int(entry.start) + Int(entry.count))
            }
            reference = page.previous
        }
    }
}

extension MapLayout {
    /// Number of pages below one reference of a node of that level.
    static func span(level: Int) -> Int {
        (0..<level).reduce(1) { pages, _ in pages * fanout }
    }
}

extension Space {
    /// Opens both copies of pages, on all cores and in slot order.
    ///
    /// - Parameter pairs: the pairs of the root that refers to the pages.
    func openCopies(_ pages: [ReferredPage], pairs: [SegmentPair]) -> StructureReport {
        let sorted = pages.sorted { $0.reference.slot < $1.reference.slot }
        let groups = Self.groups(sorted, slotsPerPair: slotsPerPair)
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
        guard let place = try? place(first.reference.slot, pairs: pairs) else {
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
            let isRead = (try? files.read(sector, into: buffer)) != nil
            for (index, page) in pages.enumerated() {
                let sealed = buffer.slice(index * Geometry.pageBytes, Geometry.pageBytes)
                damaged[index][copy] = !(isRead && opens(sealed, page, copy))
                if damaged[index][copy] { tally.add(page: sector + UInt64(index * Geometry.sectorsPerPage)) }
            }
            if damaged.contains(where: { $0[copy] }) {
                faults[copy] = segmentFault(sector, pages.count * Geometry.sectorsPerPage)
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

    /// The fault of a segment's file that makes these sectors unavailable; nil if there is none.
    func segmentFault(_ sector: UInt64, _ count: Int) -> SegmentFault? {
        let number = Int(sector / UInt64(files.sectorsPerSegment))
        do throws(StoreError) {
            let end = Int(sector % UInt64(files.sectorsPerSegment)) + count
            return try files.writtenSectors(number) < end ? .short(number) : nil
        } catch {
            return error == .damaged ? .missing(number) : nil
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
