import LinuxIO
import VaultCrypto
import VaultFormat

/// A copy of a durable root that does not open, or is an older root, while the other copy opens.
struct TornRoot: Sendable {
    var slot: Int
    var copy: Int
    var root: RootRecord
}

/// The newer of a root slot's two copies.
struct FoundRoot: Sendable {
    var slot: Int
    var root: RootRecord
    /// The other copy, if it is not the same root.
    var tornCopy: Int?
    /// Whether the other copy is an older root of the slot.
    var isHalfWritten: Bool
}

/// Positions of the newest roots in the rings of root slots.
struct RootRings: Sendable {
    /// Slot of the newest durable root.
    var durable: Int
    /// Slot of the newest soft root, or of the last one written.
    var soft: Int
    /// Whether a soft root may be found in its ring.
    var hasSoft: Bool
    /// The durable slot to avoid; see `Evasion`.
    var avoided: Int?

    /// For a space that writes no root.
    static let none = RootRings(
        durable: RootLayout.durableSlots.lowerBound, soft: RootLayout.softSlots.lowerBound, hasSoft: false)

    var nextDurable: Int {
        let next = Self.next(durable, in: RootLayout.durableSlots)
        return next == avoided ? Self.next(next, in: RootLayout.durableSlots) : next
    }
    var nextSoft: Int { Self.next(soft, in: RootLayout.softSlots) }

    private static func next(_ slot: Int, in ring: Range<Int>) -> Int {
        slot + 1 < ring.upperBound ? slot + 1 : ring.lowerBound
    }
}

/// Reads and writes the roots of a space, two copies each, in the rings of root slots of segments 0 and 1.
///
/// Unchecked Sendable: its state is only changed by the publishing thread, and when a space is opened.
final class RootStore: @unchecked Sendable {
    private let disk: SpaceDisk
    private let codec: PageCodec
    private(set) var rings: RootRings
    /// Copies of durable roots that the next durable commit writes again.
    private var torn: [TornRoot]

    init(_ disk: SpaceDisk, _ codec: PageCodec, _ rings: RootRings, torn: [TornRoot]) {
        (self.disk, self.codec, self.rings, self.torn) = (disk, codec, rings, torn)
    }

    // MARK: Reading

    /// The roots of a space, and why others could not be read.
    struct Reading {
        /// The newer valid copy of every root slot.
        var found: [FoundRoot] = []
        /// The disk's error where neither copy of a slot can be read.
        var error: StoreError?
        /// The version of a root that a later release made.
        var newer: NewerVersion?
    }

    /// Reads the newer valid copy of every root slot. A power cut may leave one copy older. If the newer one were
    /// ignored now, it would reappear when the older copy is torn, after its pages were reused.
    static func read(_ disk: SpaceDisk, _ codec: PageCodec) -> Reading {
        var reading = Reading()
        let together = disk.host.readsTakeRoundTrips ? readTogether(disk) : []
        for slot in RootLayout.durableSlots.lowerBound..<RootLayout.softSlots.upperBound {
            var errors: [StoreError] = []
            let copies = (0..<2).map { copy -> RootRecord? in
                do throws(StoreError) {
                    return try read(disk, codec, slot: slot, copy: copy, together)
                } catch {
                    errors.append(error)
                    if case .newer(let version) = error { reading.newer = version }
                    return nil
                }
            }
            if errors.count == 2 { reading.error = errors.first { $0 != .damaged } ?? reading.error }
            let newest = copies.compactMap { $0 }.max { $0.generation < $1.generation }
            guard let newest else { continue }
            let torn = copies.firstIndex { $0?.generation != newest.generation }
            reading.found.append(
                FoundRoot(
                    slot: slot, root: newest, tornCopy: torn,
                    isHalfWritten: torn != nil && copies.allSatisfy { $0 != nil }))
        }
        return reading
    }

    /// The roots of `read`. Throws `newer` if a later release made any of them.
    static func known(_ disk: SpaceDisk, _ codec: PageCodec) throws(StoreError) -> [FoundRoot] {
        let reading = read(disk, codec)
        if let newer = reading.newer { throw .newer(newer) }
        return reading.found
    }

    /// Reads all roots again, as `read`.
    func found() -> [FoundRoot] { Self.read(disk, codec).found }

    /// The bytes of all slots, of each copy; nil of a copy that cannot be read as a whole. These are fewer bytes than a
    /// host keeps of a read, so each time shows what another mount has written meanwhile.
    private static func readTogether(_ disk: SpaceDisk) -> [[UInt8]?] {
        (0..<2).map { copy in
            var bytes = [UInt8](
                repeating: 0, count: RootLayout.softSlots.upperBound * Geometry.pageBytes)
            // Each slot is read by itself then, and the error found again.
            let isRead = bytes.withUnsafeMutableBytes {
                (try? disk.read(sector(0, copy: copy, disk), into: $0)) != nil
            }
            return isRead ? bytes : nil
        }
    }

    /// Nil if no root opens there.
    ///
    /// - Parameter together: see `readTogether`; empty if each slot is read by itself.
    private static func read(
        _ disk: SpaceDisk, _ codec: PageCodec, slot: Int, copy: Int, _ together: [[UInt8]?]
    ) throws(StoreError) -> RootRecord? {
        let identity = PageIdentity(role: .root, index: UInt32(slot))
        return try withUnsafeTemporaryPage { (sealed) throws(StoreError) -> RootRecord? in
            if let bytes = together.isEmpty ? nil : together[copy] {
                sealed.copyBytes(from: bytes[slot * Geometry.pageBytes..<(slot + 1) * Geometry.pageBytes])
            } else {
                try disk.read(sector(slot, copy: copy, disk), into: sealed)
            }
            return try withUnsafeTemporaryPage { (plain) throws(StoreError) -> RootRecord? in
                let isOpen = codec.open(
                    UnsafeRawBufferPointer(sealed), as: identity, copy: UInt8(copy), expected: nil,
                    into: plain)
                return isOpen ? try RootRecord.decode(UnsafeRawBufferPointer(plain)) : nil
            }
        }
    }

    /// The first sector of a slot's copy. The first pair is always segments 0 and 1.
    static func sector(_ slot: Int, copy: Int, _ disk: SpaceDisk) -> UInt64 {
        UInt64(copy * disk.sectorsPerSegment + slot * Geometry.sectorsPerPage)
    }

    func sector(_ slot: Int, copy: Int) -> UInt64 { Self.sector(slot, copy: copy, disk) }

    // MARK: Writing

    /// Writes a root into a slot, both copies or the given ones.
    private static func write(
        _ root: RootRecord, slot: Int, copies: Range<Int> = 0..<2, _ disk: SpaceDisk, _ codec: PageCodec
    ) throws(StoreError) {
        let identity = PageIdentity(role: .root, index: UInt32(slot))
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            root.encode(into: plain)
            for copy in copies {
                try withUnsafeTemporaryPage { (sealed) throws(StoreError) in
                    _ = codec.seal(
                        UnsafeRawBufferPointer(plain), as: identity, copy: UInt8(copy), into: sealed)
                    try disk.write(sector(slot, copy: copy, disk), UnsafeRawBufferPointer(sealed))
                }
            }
        }
    }

    /// Writes a commit's root into the next slot of its ring.
    func write(_ root: RootRecord) throws(StoreError) {
        let slot = root.isDurable ? rings.nextDurable : rings.nextSoft
        if !root.isDurable { rings.hasSoft = true }
        try Self.write(root, slot: slot, disk, codec)
        if root.isDurable { mend(but: slot) }
        if root.isDurable { rings.durable = slot } else { rings.soft = slot }
    }

    /// Rewrites the torn copies of roots that have one valid copy left. Best effort: each root is readable as it is.
    private func mend(but slot: Int) {
        for torn in torn where torn.slot != slot {
            let copies = torn.copy..<torn.copy + 1
            try? Self.write(torn.root, slot: torn.slot, copies: copies, disk, codec)
        }
        torn = []
    }

    /// Whether the next durable commit writes copies of older roots again.
    var hasTorn: Bool { !torn.isEmpty }

    /// Has the next sync cover the newest durable root: its writer may have been killed before its own.
    func markNewestUnsynced() {
        for copy in 0..<2 { disk.markUnsynced(sector(rings.durable, copy: copy)) }
    }

    /// Avoids, from now on, the slot that the next durable root of another mount would use; see `Evasion`.
    func avoidNextDurable() { rings.avoided = rings.nextDurable }

    /// Overwrites the soft roots, once everything is durable.
    func eraseSoft() throws(StoreError) {
        guard rings.hasSoft else { return }
        for slot in RootLayout.softSlots {
            for copy in 0..<2 {
                try withUnsafeTemporaryPage { (bytes) throws(StoreError) in
                    fillRandom(bytes)
                    try disk.write(sector(slot, copy: copy), UnsafeRawBufferPointer(bytes))
                }
            }
        }
        try disk.sync()
        rings.hasSoft = false
    }

    /// Writes the first roots of an empty space: only the first pair of segments is in use.
    static func format(_ disk: SpaceDisk, _ codec: PageCodec, grows: Bool) throws(StoreError) {
        if grows {
            for number in 0..<2 {
                try disk.create(number)
                try disk.reserve(number, bytes: min(2 << 20, disk.segmentBytes))
            }
        }
        var root = RootRecord(
            generation: 0, isDurable: true, epoch: randomNumber(),
            bootHash: [UInt8](repeating: 0, count: RootLayout.bootHashBytes), base: 0, released: 0,
            peakSectors: 0, objects: MapObject.allCases.map { _ in .init() }, delta: .absent,
            pairs: [SegmentPair(a: 0, b: 1)])
        // The whole ring is written, so that a slot without a root is always damage.
        for slot in RootLayout.durableSlots {
            (root.base, root.generation) = (root.generation, root.generation + 1)
            try write(root, slot: slot, disk, codec)
        }
        try disk.sync()
    }

    #if DEBUG
        /// For tests that put a space into a rare state.
        func setRings(_ change: (inout RootRings) -> Void) { change(&rings) }
    #endif
}
