import LinuxIO
import Synchronization
import VaultFormat

/// The two places of a slot: linear sectors of copy A and copy B.
struct SlotPlace: Sendable, Equatable {
    var sectorA: UInt64
    var sectorB: UInt64
}

/// A decoded delta page.
struct DeltaPage {
    var generation: UInt64
    var previous: Reference
    var entries: [DeltaEntry]
}

/// Reads and opens pages, nodes of maps and deltas, copy A or else copy B, and notes parts of which one copy does not
/// open. Needs no lock: the references of a published state, and its pairs of segments, do not change.
final class PageReader: Sendable {
    private let disk: SpaceDisk
    private let codec: PageCodec
    private let notes: Bool
    /// Slots of one pair of segments.
    let slotsPerPair: Int
    private let halved = Mutex<Set<StructurePart>>([])

    /// - Parameter notesHalved: false where nothing is written.
    init(_ disk: SpaceDisk, _ codec: PageCodec, notesHalved: Bool) {
        (self.disk, self.codec, notes) = (disk, codec, notesHalved)
        slotsPerPair = disk.slotsPerPair
    }

    /// The sectors of a slot's two copies.
    func place(_ slot: UInt32, pairs: [SegmentPair]) throws(StoreError) -> SlotPlace {
        let pair = Int(slot) / slotsPerPair
        guard pair < pairs.count else { throw .damaged }
        let offset = UInt64(Int(slot) % slotsPerPair * Geometry.sectorsPerPage)
        let sectorsPerSegment = UInt64(disk.sectorsPerSegment)
        return SlotPlace(
            sectorA: UInt64(pairs[pair].a) * sectorsPerSegment + offset,
            sectorB: UInt64(pairs[pair].b) * sectorsPerSegment + offset)
    }

    /// Whether each read waits for an answer from elsewhere.
    var readsTakeRoundTrips: Bool { disk.host.readsTakeRoundTrips }

    /// Begins to read the pages, or nodes, of references, of each copy A. Only advice.
    func willRead(_ references: [Reference], pairs: [SegmentPair]) {
        disk.willReadPages(
            references.compactMap { $0.isAbsent ? nil : try? place($0.slot, pairs: pairs).sectorA })
    }

    /// Opens copy A, else copy B.
    func openPage(
        _ reference: Reference, at place: SlotPlace, as identity: PageIdentity,
        into plain: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        try withUnsafeTemporaryPage { (sealed) throws(StoreError) in
            for (copy, sector, tag) in [
                (UInt8(0), place.sectorA, reference.tagA), (1, place.sectorB, reference.tagB),
            ] {
                do throws(StoreError) { try disk.read(sector, into: sealed) } catch {
                    if copy == 0 { continue }
                    throw error
                }
                let page = UnsafeRawBufferPointer(sealed)
                if codec.open(page, as: identity, copy: copy, expected: tag, into: plain) {
                    if copy == 1 { noteHalved(identity, place) }
                    return
                }
            }
            throw .damaged
        }
    }

    /// Opens a node of a map in the given pairs of segments.
    func openNode(
        _ object: MapObject, _ key: NodeKey, _ reference: Reference, pairs: [SegmentPair]
    ) throws(StoreError) -> MapNode {
        let node = MapNode()
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            let place = try place(reference.slot, pairs: pairs)
            try openPage(reference, at: place, as: .node(object, key), into: plain)
            for index in 0..<MapLayout.fanout {
                node.references[index] = Reference(
                    decoding: UnsafeRawBufferPointer(plain).slice(
                        index * MapLayout.referenceBytes, MapLayout.referenceBytes))
            }
        }
        return node
    }

    func readDelta(_ reference: Reference, pairs: [SegmentPair]) throws(StoreError) -> DeltaPage {
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            let identity = PageIdentity(role: .delta, index: reference.slot)
            try openPage(reference, at: place(reference.slot, pairs: pairs), as: identity, into: plain)
            let bytes = UnsafeRawBufferPointer(plain)
            let count = Int(bytes.number(DeltaLayout.countOffset, as: UInt32.self))
            guard count <= DeltaLayout.entriesPerPage else { throw .damaged }
            let entries = (0..<count).map { index in
                DeltaEntry(
                    decoding: bytes.slice(
                        DeltaLayout.entriesOffset + index * DeltaLayout.entryBytes, DeltaLayout.entryBytes))
            }
            let slotCount = slotsPerPair * pairs.count
            let arePlausible = entries.allSatisfy {
                $0.isPlausible(sectorsPerSegment: disk.sectorsPerSegment, slotCount: slotCount)
            }
            guard arePlausible else { throw .damaged }
            return DeltaPage(
                generation: bytes.number(DeltaLayout.generationOffset),
                previous: Reference(
                    decoding: bytes.slice(DeltaLayout.previousOffset, MapLayout.referenceBytes)),
                entries: entries)
        }
    }

    /// Visits the deltas of commits after `generation`, from the given one back, newest first.
    func forEachDelta(
        from delta: Reference, pairs: [SegmentPair], after generation: UInt64,
        _ body: (_ slot: UInt32, _ generation: UInt64, [DeltaEntry]) -> Void
    ) throws(StoreError) {
        var reference = delta
        var seen: Set<UInt32> = []
        while !reference.isAbsent {
            // An author who knows the key can make a cycle.
            guard seen.insert(reference.slot).inserted else { throw .damaged }
            let page = try readDelta(reference, pairs: pairs)
            if page.generation <= generation { return }
            body(reference.slot, page.generation, page.entries)
            reference = page.previous
        }
    }

    // MARK: Parts with one copy

    /// Notes parts of which one copy does not open. The next commits write them anew.
    func noteHalved(_ parts: [StructurePart]) {
        if notes && !parts.isEmpty { halved.withLock { $0.formUnion(parts) } }
    }

    /// Notes a page of which only copy B opens, unless the segment of copy A is missing or cut: a mount does not write
    /// then.
    private func noteHalved(_ identity: PageIdentity, _ place: SlotPlace) {
        guard notes, let part = StructurePart(identity),
            disk.fault(at: place.sectorA, Geometry.sectorsPerPage) == nil
        else { return }
        noteHalved([part])
    }

    var hasHalved: Bool { halved.withLock { !$0.isEmpty } }

    /// Whether a delta is among the noted parts.
    var hasHalvedDelta: Bool {
        halved.withLock { $0.contains { if case .delta = $0 { true } else { false } } }
    }

    /// Returns the noted parts, which are noted no more.
    func takeHalved() -> Set<StructurePart> {
        halved.withLock { parts in
            defer { parts = [] }
            return parts
        }
    }
}

/// Calls `body` with 4096 temporary bytes.
func withUnsafeTemporaryPage<R>(
    _ body: (UnsafeMutableRawBufferPointer) throws(StoreError) -> R
) throws(StoreError) -> R {
    var result: Result<R, StoreError>?
    withUnsafeTemporaryAllocation(byteCount: Geometry.pageBytes, alignment: 16) { bytes in
        do throws(StoreError) { result = .success(try body(bytes)) } catch { result = .failure(error) }
    }
    guard let result else { preconditionFailure("the body ran") }
    return try result.get()
}
