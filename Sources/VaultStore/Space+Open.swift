import LinuxIO
import VaultCrypto
import VaultFormat

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

/// The root that a mount starts from.
struct OpenedRoot: Sendable {
    var root: RootRecord
    var rings: RootRings
    /// The highest generation of all roots; new ones are higher.
    var newestGeneration: UInt64
    /// Sectors and slots freed by commits up to this generation, the second newest durable root's, may be reused.
    var releaseLimit: UInt64
    /// Delta of the newest durable root.
    var durableDelta: Reference
    /// Copies of durable roots that differ from the other copy.
    var torn: [TornRoot]
    /// Newer states that could not be read.
    var unreadable: [UnreadableState]
}

/// A state of a space that could not be read.
struct UnreadableState: Sendable {
    var generation: UInt64
    /// Whether it was durable. No crash makes such a state unreadable.
    var isDurable: Bool
    var error: StoreError

    /// Whether writing to an older state could lose it for good: it was durable, or the error may pass. A soft state
    /// with bytes that do not open is one whose disk was cut off.
    var mustStay: Bool { isDurable || error != .damaged }
}

extension UnreadableState {
    init(_ root: RootRecord, _ error: StoreError, _ files: SegmentFiles) {
        self.init(generation: root.generation, isDurable: root.isDurable, error: error)
        guard error == .damaged else { return }
        // A page in a missing segment does not open.
        let missing = root.pairs.flatMap { [Int($0.a), Int($0.b)] }.first { !files.hasFile($0) }
        if let missing { self.error = .segmentMissing(missing) }
    }
}

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

/// Options for opening a space.
struct SpaceOptions: Sendable {
    var isReadOnly: Bool
    var grows: Bool
    var bootHash: [UInt8]
    var segmentCountNow: @Sendable () -> Int
    /// Nil if nothing is written.
    var copies: BackupHold?
    /// Nil if nothing is written, or no other mount can write.
    var claim: ClaimKeeper?
    var limits = Limits.production
    /// Whether a soft state counts although some of its photos do not open; only for reading.
    var acceptsDamagedPhotos = false
}

extension Space {
    /// Opens the newest state of a space: the newest soft root of this boot if everything in it opens, else the newest
    /// durable one. Throws `damaged` if there is none.
    static func open(files: SegmentFiles, keys: SpaceKeys, options: SpaceOptions) throws(StoreError) -> Space
    {
        let (found, error, newer) = readRoots(files: files, codec: PageCodec(key: keys.page))
        if let newer { throw .newer(newer) }
        let space = try open(found, files: files, keys: keys, options: options)
        space.hasLostNewestRoot = space.isNewestRootLost(of: found)
        space.rootError = error
        space.missingRootCopy = (0..<2).first { copy in
            found.allSatisfy { $0.tornCopy == copy && !$0.isHalfWritten }
        }
        space.attachClaim(found)
        if options.claim?.hasTakenOver == true { space.keepAway(from: found) }
        return space
    }

    private static func open(
        _ found: [FoundRoot], files: SegmentFiles, keys: SpaceKeys, options: SpaceOptions
    ) throws(StoreError) -> Space {
        let newest = found.map(\.root.generation).max() ?? 0
        let durables = found.filter(\.root.isDurable).sorted { $0.root.generation > $1.root.generation }
        let softs = found.filter { !$0.root.isDurable }.sorted { $0.root.generation > $1.root.generation }
        var rings = RootRings(
            durable: durables.first?.slot ?? RootLayout.durableSlots.lowerBound,
            soft: softs.first?.slot ?? RootLayout.softSlots.lowerBound, hasSoft: !softs.isEmpty)
        let torn = durables.compactMap { found in
            found.tornCopy.map { TornRoot(slot: found.slot, copy: $0, root: found.root) }
        }
        var unreadable = lostBase(softs, durables).map { [$0] } ?? []
        // A durable root newer than the soft one's base is that of a commit whose last sync failed.
        if let soft = softs.first?.root, let newestDurable = durables.first?.root,
            soft.generation > newestDurable.generation, soft.bootHash == options.bootHash,
            let base = durables.first(where: { $0.root.generation == soft.base })?.root
        {
            let opened = OpenedRoot(
                root: soft, rings: rings, newestGeneration: newest, releaseLimit: base.base,
                durableDelta: base.delta, torn: torn, unreadable: [])
            do throws(StoreError) {
                return try twice { () throws(StoreError) in
                    let space = try Space(opened, files: files, keys: keys, options: options)
                    try space.openEverything(since: base, photos: !options.acceptsDamagedPhotos)
                    space.markUnsynced(since: base.generation)
                    // Its writer may have seen a failed sync, after which the kernel treats lost pages as clean.
                    space.syncFailed = true
                    return space
                }
            } catch {
                unreadable.append(UnreadableState(soft, error, files))
            }
        }
        // A root may be intact while its pages are damaged: an older root is better than none.
        for durable in durables {
            rings.durable = durable.slot
            let opened = OpenedRoot(
                root: durable.root, rings: rings, newestGeneration: newest, releaseLimit: durable.root.base,
                durableDelta: durable.root.delta, torn: torn, unreadable: unreadable)
            do throws(StoreError) {
                let space = try twice { () throws(StoreError) in
                    try Space(opened, files: files, keys: keys, options: options)
                }
                if !options.isReadOnly { space.syncFoundRoot() }
                return space
            } catch {
                unreadable.append(UnreadableState(durable.root, error, files))
            }
        }
        throw .damaged
    }

    /// Tries again if opening fails: a read error may be transient, and giving up would lose everything newer than the
    /// previous root.
    private static func twice(_ open: () throws(StoreError) -> Space) throws(StoreError) -> Space {
        do throws(StoreError) { return try open() } catch { return try open() }
    }

    /// A lost durable root: a soft root of any boot builds on it, so it was synced, but all durable roots found are
    /// older.
    private static func lostBase(_ softs: [FoundRoot], _ durables: [FoundRoot]) -> UnreadableState? {
        guard let base = softs.map(\.root.base).max(), base > durables.first?.root.generation ?? 0 else {
            return nil
        }
        return UnreadableState(generation: base, isDurable: true, error: .damaged)
    }

    /// Syncs the durable root that was found: its writer may have been killed before its sync, and no later sync would
    /// cover it. If the sync fails, another root is due.
    private func syncFoundRoot() {
        for copy in 0..<2 { files.markUnsynced(Self.rootSector(rings.durable, copy: copy, files: files)) }
        if (try? files.sync()) == nil { isChanged = true }
    }

    /// Reads the newer valid copy of every root slot. A power cut may leave one copy older. If the newer one were
    /// ignored now, it would reappear when the older copy is torn, after its pages were reused.
    static func findRoots(files: SegmentFiles, codec: PageCodec) -> [FoundRoot] {
        readRoots(files: files, codec: codec).found
    }

    /// As `findRoots`. Throws `newer` if a later release made any of them.
    static func knownRoots(files: SegmentFiles, codec: PageCodec) throws(StoreError) -> [FoundRoot] {
        let (found, _, newer) = readRoots(files: files, codec: codec)
        if let newer { throw .newer(newer) }
        return found
    }

    /// As `findRoots`.
    ///
    /// - Returns: also the disk's error where neither copy of a slot can be read, and the version of a root that a
    ///   later release made; nil if there is none.
    private static func readRoots(
        files: SegmentFiles, codec: PageCodec
    ) -> (found: [FoundRoot], error: StoreError?, newer: NewerVersion?) {
        var found: [FoundRoot] = []
        var newer: NewerVersion?
        var unread: StoreError?
        for slot in RootLayout.durableSlots.lowerBound..<RootLayout.softSlots.upperBound {
            var errors: [StoreError] = []
            let copies = (0..<2).map { copy -> RootRecord? in
                do throws(StoreError) {
                    return try readRoot(files: files, codec: codec, slot: slot, copy: copy)
                } catch {
                    errors.append(error)
                    if case .newer(let version) = error { newer = version }
                    return nil
                }
            }
            if errors.count == 2 { unread = errors.first { $0 != .damaged } ?? unread }
            let newest = copies.compactMap { $0 }.max { $0.generation < $1.generation }
            guard let newest else { continue }
            let torn = copies.firstIndex { $0?.generation != newest.generation }
            found.append(
                FoundRoot(
                    slot: slot, root: newest, tornCopy: torn,
                    isHalfWritten: torn != nil && copies.allSatisfy { $0 != nil }))
        }
        return (found, unread, newer)
    }

    static func rootSector(_ slot: Int, copy: Int, files: SegmentFiles) -> UInt64 {
        // The first pair is always segments 0 and 1.
        UInt64(copy * files.sectorsPerSegment + slot * Geometry.sectorsPerPage)
    }

    /// Nil if no root opens there.
    private static func readRoot(
        files: SegmentFiles, codec: PageCodec, slot: Int, copy: Int
    ) throws(StoreError) -> RootRecord? {
        let identity = PageIdentity(role: .root, index: UInt32(slot))
        return try withUnsafeTemporaryPage { (sealed) throws(StoreError) -> RootRecord? in
            try files.read(rootSector(slot, copy: copy, files: files), into: sealed)
            return try withUnsafeTemporaryPage { (plain) throws(StoreError) -> RootRecord? in
                let isOpen = codec.open(
                    UnsafeRawBufferPointer(sealed), as: identity, copy: UInt8(copy), expected: nil,
                    into: plain)
                return isOpen ? try RootRecord.decode(UnsafeRawBufferPointer(plain)) : nil
            }
        }
    }

    /// Writes a root into a slot, both copies or the given ones.
    private static func writeRoot(
        _ root: RootRecord, slot: Int, copies: Range<Int> = 0..<2, files: SegmentFiles, codec: PageCodec
    ) throws(StoreError) {
        let identity = PageIdentity(role: .root, index: UInt32(slot))
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            root.encode(into: plain)
            for copy in copies {
                try withUnsafeTemporaryPage { (sealed) throws(StoreError) in
                    _ = codec.seal(
                        UnsafeRawBufferPointer(plain), as: identity, copy: UInt8(copy), into: sealed)
                    try files.write(
                        rootSector(slot, copy: copy, files: files), UnsafeRawBufferPointer(sealed))
                }
            }
        }
    }

    /// Rewrites the torn copies of roots that have one valid copy left. Best effort: each root is readable as it is.
    private func mendRoots(but slot: Int) {
        for torn in tornRoots where torn.slot != slot {
            let copies = torn.copy..<torn.copy + 1
            try? Self.writeRoot(torn.root, slot: torn.slot, copies: copies, files: files, codec: codec)
        }
        tornRoots = []
    }

    /// Writes a commit's root into the next slot of its ring.
    func writeRoot(_ root: RootRecord) throws(StoreError) {
        let slot = root.isDurable ? rings.nextDurable : rings.nextSoft
        if !root.isDurable { rings.hasSoft = true }
        try Self.writeRoot(root, slot: slot, files: files, codec: codec)
        if root.isDurable { mendRoots(but: slot) }
        if root.isDurable { rings.durable = slot } else { rings.soft = slot }
    }

    /// Writes the first roots of an empty space: only the first pair of segments is in use.
    static func format(files: SegmentFiles, keys: SpaceKeys, grows: Bool) throws(StoreError) {
        if grows {
            for number in 0..<2 {
                try files.create(number)
                try files.preallocate(number, bytes: min(2 << 20, files.segmentBytes))
            }
        }
        var root = RootRecord(
            generation: 0, isDurable: true, epoch: randomNumber(),
            bootHash: [UInt8](repeating: 0, count: RootLayout.bootHashBytes), base: 0, released: 0,
            peakSectors: 0, objects: MapObject.allCases.map { _ in .init() }, delta: .absent,
            pairs: [SegmentPair(a: 0, b: 1)])
        let codec = PageCodec(key: keys.page)
        // The whole ring is written, so that a slot without a root is always damage.
        for slot in RootLayout.durableSlots {
            (root.base, root.generation) = (root.generation, root.generation + 1)
            try writeRoot(root, slot: slot, files: files, codec: codec)
        }
        try files.sync()
    }

    /// Closes the space: makes all changes durable, then erases the soft roots and gives up the claim.
    public func close() throws(StoreError) {
        guard !isReadOnly else { return }
        try? renewAtEnd()
        // A mount may have started from a soft root and changed nothing: then only that root refers to its state.
        if !isClean { try publish(freeze(), durable: true) }
        // Everything is durable by now, so a failure here loses nothing: the remaining sectors are free for the next
        // mount.
        if !keepsFreeSectors { try? overwriteAll() }
        if hasPublished && writeStop == nil && !keepsFreeSectors {
            try? giveBack { () throws(StoreError) in try publish(freeze(), durable: true) }
        }
        do throws(StoreError) {
            if writeStop == nil { try eraseSoftRoots() }
        } catch {
            // If another mount writes by now, the soft roots are its own.
            if writeStop == nil { throw error }
        }
        giveUpClaim()
    }

    private func eraseSoftRoots() throws(StoreError) {
        guard rings.hasSoft else { return }
        for slot in RootLayout.softSlots {
            for copy in 0..<2 {
                try withUnsafeTemporaryPage { (bytes) throws(StoreError) in
                    fillRandom(bytes)
                    try files.write(
                        Self.rootSector(slot, copy: copy, files: files), UnsafeRawBufferPointer(bytes))
                }
            }
        }
        try files.sync()
        rings.hasSoft = false
    }
}
