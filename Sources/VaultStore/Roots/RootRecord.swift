import VaultFormat

/// A pair of segments for pages: slot s of the pair lies at the same offset in both.
struct SegmentPair: Sendable, Hashable {
    var a: UInt32
    var b: UInt32
}

/// Placement of writes after the space was taken over from a mount that may still be writing. See the article on
/// claims.
struct Evasion: Sendable, Hashable {
    /// Slot of the durable ring that the other mount's next root would use: it is avoided.
    var root: Int?
    /// The first pair above the split: the other mount uses slots on one side of it; 0: on both.
    var splitPair: UInt16 = 0
    /// Whether pages go to the pairs from `splitPair` on, else to those before it.
    var isAbove = false
    /// Content is allocated from this segment on; from the first on if there is no such segment.
    var segment: UInt32 = 0

    /// For a space that was never taken over.
    static let none = Evasion()
}

/// The record that publishes a commit. See the format specification, *Roots*.
struct RootRecord: Sendable {
    struct Object: Sendable {
        var pageCount: UInt32 = 0
        var levels: Int = 0
        var reference = Reference.absent
    }

    var generation: UInt64
    var isDurable: Bool
    var epoch: UInt64
    /// Keyed hash of the boot id, in a soft root; zeros in a durable one.
    var bootHash: [UInt8]
    /// Generation of the previous durable root.
    var base: UInt64
    /// Sectors and slots freed by commits up to this generation are free in this root's bitmaps.
    var released: UInt64
    var peakSectors: UInt64
    var objects: [Object]
    var delta: Reference
    var pairs: [SegmentPair]
    var evasion = Evasion.none
    var format = SpaceFormat()
    /// The room for extensions, copied from root to root; empty if all of its bytes are zeros.
    var room: [UInt8] = []

    func encode(into bytes: UnsafeMutableRawBufferPointer) {
        bytes.zero()
        bytes.setNumber(generation, RootLayout.generationOffset)
        bytes.setNumber(isDurable ? RootLayout.kindDurable : RootLayout.kindSoft, RootLayout.kindOffset)
        bytes.setNumber(epoch, RootLayout.epochOffset)
        bytes.slice(RootLayout.bootHashOffset, RootLayout.bootHashBytes).copyBytes(from: bootHash)
        bytes.setNumber(base, RootLayout.baseOffset)
        bytes.setNumber(released, RootLayout.releasedOffset)
        bytes.setNumber(UInt32(pairs.count), RootLayout.pairCountOffset)
        bytes.setNumber(peakSectors, RootLayout.peakSectorsOffset)
        bytes.setNumber(UInt8(evasion.root.map { $0 + 1 } ?? 0), RootLayout.avoidedRootOffset)
        bytes.setNumber(evasion.splitPair, RootLayout.splitPairOffset)
        bytes.setNumber(UInt8(evasion.isAbove ? 1 : 0), RootLayout.isAboveOffset)
        bytes.setNumber(evasion.segment, RootLayout.startSegmentOffset)
        format.encode(intoRoot: bytes)
        for (index, object) in objects.enumerated() {
            let part = bytes.slice(
                RootLayout.objectsOffset + index * RootLayout.objectBytes, RootLayout.objectBytes)
            part.setNumber(object.pageCount, RootLayout.objectPagesOffset)
            part.setNumber(UInt32(object.levels), RootLayout.objectLevelsOffset)
            object.reference.encode(
                into: part.slice(RootLayout.objectReferenceOffset, MapLayout.referenceBytes))
        }
        delta.encode(into: bytes.slice(RootLayout.deltaOffset, MapLayout.referenceBytes))
        precondition(pairs.count <= (room.isEmpty ? RootLayout.pairsMax : RootLayout.pairsMaxWithRoom))
        if !room.isEmpty { bytes.slice(RootLayout.roomOffset, RootLayout.roomBytes).copyBytes(from: room) }
        for (index, pair) in pairs.enumerated() {
            bytes.setNumber(pair.a, RootLayout.pairsOffset + index * RootLayout.pairBytes)
            bytes.setNumber(pair.b, RootLayout.pairsOffset + index * RootLayout.pairBytes + 4)
        }
    }

    /// Nil if the bytes, though authentic, are no valid root of a version that this program knows.
    init?(decoding bytes: UnsafeRawBufferPointer) {
        format = SpaceFormat(ofRoot: bytes)
        guard format.obstacle == nil else { return nil }
        let kind: UInt8 = bytes.number(RootLayout.kindOffset)
        let pairCount = Int(bytes.number(RootLayout.pairCountOffset, as: UInt32.self))
        guard kind == RootLayout.kindDurable || kind == RootLayout.kindSoft,
            pairCount >= 1, pairCount <= RootLayout.pairsMax
        else { return nil }
        generation = bytes.number(RootLayout.generationOffset)
        isDurable = kind == RootLayout.kindDurable
        epoch = bytes.number(RootLayout.epochOffset)
        bootHash = [UInt8](bytes.slice(RootLayout.bootHashOffset, RootLayout.bootHashBytes))
        base = bytes.number(RootLayout.baseOffset)
        released = bytes.number(RootLayout.releasedOffset)
        peakSectors = bytes.number(RootLayout.peakSectorsOffset)
        let avoided = Int(bytes.number(RootLayout.avoidedRootOffset, as: UInt8.self)) - 1
        evasion = Evasion(
            root: RootLayout.durableSlots.contains(avoided) ? avoided : nil,
            splitPair: bytes.number(RootLayout.splitPairOffset),
            isAbove: bytes.number(RootLayout.isAboveOffset, as: UInt8.self) == 1,
            segment: bytes.number(RootLayout.startSegmentOffset))
        objects = []
        for index in 0..<MapObject.allCases.count {
            let part = bytes.slice(
                RootLayout.objectsOffset + index * RootLayout.objectBytes, RootLayout.objectBytes)
            let levels = Int(part.number(RootLayout.objectLevelsOffset, as: UInt32.self))
            guard levels <= MapLayout.levelsMax else { return nil }
            objects.append(
                Object(
                    pageCount: part.number(RootLayout.objectPagesOffset), levels: levels,
                    reference: Reference(
                        decoding: part.slice(RootLayout.objectReferenceOffset, MapLayout.referenceBytes))))
        }
        delta = Reference(decoding: bytes.slice(RootLayout.deltaOffset, MapLayout.referenceBytes))
        pairs = (0..<pairCount).map { index in
            SegmentPair(
                a: bytes.number(RootLayout.pairsOffset + index * RootLayout.pairBytes),
                b: bytes.number(RootLayout.pairsOffset + index * RootLayout.pairBytes + 4))
        }
        if pairCount <= RootLayout.pairsMaxWithRoom {
            let room = bytes.slice(RootLayout.roomOffset, RootLayout.roomBytes)
            if room.contains(where: { $0 != 0 }) { self.room = Array(room) }
        }
        guard isPlausible else { return nil }
    }

    /// As `init(decoding:)`, but throws `newer` for a root that a later release made.
    static func decode(_ bytes: UnsafeRawBufferPointer) throws(StoreError) -> RootRecord? {
        if let obstacle = SpaceFormat(ofRoot: bytes).obstacle { throw .newer(obstacle) }
        return RootRecord(decoding: bytes)
    }

    /// Whether its numbers are in the range that any version of this program writes. An author who knows the key can
    /// write others, and later arithmetic relies on the range.
    private var isPlausible: Bool {
        let segments = pairs.flatMap { [Int($0.a), Int($0.b)] }
        let countPages = Geometry.segmentsMax / MapLayout.countsPerPage + 1
        let sectorsMax = Geometry.segmentsMax * Int(Geometry.segmentBytesMax) / Geometry.sectorBytes
        return generation <= Geometry.numberMax && base <= generation && released <= generation
            && peakSectors <= UInt64(sectorsMax)
            && pairs[0] == SegmentPair(a: 0, b: 1) && Set(segments).count == segments.count
            && segments.allSatisfy { $0 < Geometry.segmentsMax }
            && objects.allSatisfy { $0.pageCount <= MapLayout.pagesMax }
            && objects.allSatisfy { $0.levels > 0 || $0.reference.isAbsent }
            && objects[MapObject.usage.rawValue].pageCount <= countPages
    }

    init(
        generation: UInt64, isDurable: Bool, epoch: UInt64, bootHash: [UInt8], base: UInt64, released: UInt64,
        peakSectors: UInt64, objects: [Object], delta: Reference, pairs: [SegmentPair],
        evasion: Evasion = .none, format: SpaceFormat = SpaceFormat(), room: [UInt8] = []
    ) {
        self.generation = generation
        self.isDurable = isDurable
        self.epoch = epoch
        self.bootHash = bootHash
        self.base = base
        self.released = released
        self.peakSectors = peakSectors
        self.objects = objects
        self.delta = delta
        self.pairs = pairs
        self.evasion = evasion
        self.format = format
        self.room = room
    }
}

/// One entry of a delta: sectors or slots that a commit allocated or freed.
struct DeltaEntry: Sendable, Hashable {
    var kind: UInt8
    var count: UInt32
    /// First linear sector, or slot.
    var start: UInt64
    /// Whether freed sectors are to be overwritten first. Only in memory.
    var isDestroyed = false

    func encode(into bytes: UnsafeMutableRawBufferPointer) {
        bytes.zero()
        bytes.setNumber(kind, 0)
        bytes.setNumber(count, 4)
        bytes.setNumber(start, 8)
    }

    init(kind: UInt8, count: UInt32, start: UInt64) {
        self.kind = kind
        self.count = count
        self.start = start
    }

    init(decoding bytes: UnsafeRawBufferPointer) {
        self.init(kind: bytes.number(0), count: bytes.number(4), start: bytes.number(8))
    }

    /// Whether the next entry can be joined to this one: it begins at its end. No entry of sectors crosses the end of a
    /// segment.
    func isContinued(by next: DeltaEntry, sectorsPerSegment: Int) -> Bool {
        kind == next.kind && isDestroyed == next.isDestroyed && end == next.start
            && (kind == DeltaLayout.kindSlotsFreed
                || start / UInt64(sectorsPerSegment) == next.start / UInt64(sectorsPerSegment))
    }

    /// Its sectors; nil if it is of another kind.
    func sectors(ifOf kind: UInt8) -> Range<UInt64>? {
        self.kind == kind ? start..<start + UInt64(count) : nil
    }

    /// Whether it lies within one segment, or within the slots.
    func isPlausible(sectorsPerSegment: Int, slotCount: Int) -> Bool {
        guard count > 0, start < UInt64(Geometry.segmentsMax * sectorsPerSegment) else { return false }
        switch kind {
        case DeltaLayout.kindExtentsWritten, DeltaLayout.kindSectorsFreed:
            return Int(start) % sectorsPerSegment + Int(count) <= sectorsPerSegment
        case DeltaLayout.kindSlotsFreed:
            return Int(start) + Int(count) <= slotCount
        default:
            return false
        }
    }
}
