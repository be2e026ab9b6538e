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
/// is held (`FreedRoom.hold`).
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
        guard let node = try? space.parts.reader.openNode(object, key, reference, pairs: root.pairs) else {
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
        var givenBack = BitRow(count: space.parts.reader.slotsPerPair * root.pairs.count)
        var seen: Set<UInt32> = []
        // An author who knows the key can make a cycle.
        while !reference.isAbsent, seen.insert(reference.slot).inserted {
            let slot = reference.slot
            let identity = PageIdentity(role: .delta, index: slot)
            let page = try? space.parts.reader.readDelta(reference, pairs: root.pairs)
            if let page, page.generation <= root.released { return }
            let isGivenBack = Int(slot) < givenBack.count && givenBack[Int(slot)]
            if page == nil, isGivenBack || !space.parts.lock.withLock({ space.parts.slots.isUsed(slot) }) {
                return
            }
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
