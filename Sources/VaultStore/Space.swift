import LinuxIO
import Synchronization
import VaultCrypto
public import VaultFormat

/// Freed sectors or slots that a root may still refer to.
struct PendingFree: Sendable {
    var entry: DeltaEntry
    /// Generation of the commit that freed it: no root from then on refers to it.
    var generation: UInt64
}

/// Capacity and use of a space, in bytes.
public struct SpaceUse: Sendable, Equatable {
    public var total: UInt64
    public var free: UInt64
    /// Bytes that a user may still write.
    public var available: UInt64
}

/// The keys of a space, derived from its one secret.
struct SpaceKeys: Sendable {
    let content: SealingKey
    let descriptor: SealingKey
    let page: SealingKey
    let boot: SecretBytes
    let claim: SecretBytes

    init(_ spaceKey: SecretBytes) {
        content = SealingKey(deriveKey(spaceKey, purpose: "obscura 1 content"))
        descriptor = SealingKey(deriveKey(spaceKey, purpose: "obscura 1 descriptor"))
        page = SealingKey(deriveKey(spaceKey, purpose: "obscura 1 page"))
        boot = deriveKey(spaceKey, purpose: "obscura 1 boot")
        claim = deriveKey(spaceKey, purpose: "obscura 1 claim")
    }
}

/// An open space: extents of content, pages of the catalogue, and the commits that publish both.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`. `freeze` and `publish` must not run concurrently (the
/// library's committer holds its own lock around the two). Locks nest in this order: the catalogue's, `lock`, those of
/// `files`.
public final class Space: PageStorage, @unchecked Sendable {
    let files: SegmentFiles
    let codec: PageCodec
    let keys: SpaceKeys
    public let isReadOnly: Bool
    /// True in a vault of one space: segments are made on demand.
    public let grows: Bool
    /// Random number of this mount.
    public let epoch: UInt64
    let bootHash: [UInt8]
    let slotsPerPair: Int
    /// The number of segments that every space of the vault has now.
    let segmentCountNow: @Sendable () -> Int
    let copies: BackupHold?
    /// Nil if nothing is written, and in tests of the space alone.
    let claim: ClaimKeeper?
    public let limits: Limits

    /// Returns whether the catalogue refers to sectors of a range, so that nothing may be written there. Called before
    /// each extent is written, with no lock held. Set once, before the first write.
    public var isReferenced: (@Sendable (Range<UInt64>) throws(StoreError) -> Bool)?

    /// Returns the first runs, at most so many, that the catalogue has in a range of sectors. Called with no lock held
    /// when a segment is first written. Set once, before the first write.
    public var firstRuns: (@Sendable (Range<UInt64>, _ limit: Int) throws(StoreError) -> [CheckedRun])?

    /// Called before every commit is published, as `wasPublished` is after: for tests of concurrent actions.
    var willPublish: (@Sendable () -> Void)?

    /// Called after every published commit, on the publishing thread, with no lock held: for tests that audit each
    /// state.
    var wasPublished: (@Sendable (Space) -> Void)?

    let lock = Lock()
    let sectors: SectorAllocator
    var slots: SlotAllocator
    var maps: [PageMap]
    var pairs: [SegmentPair]
    var staged: [UInt32: PageBuffer] = [:]
    var frozenPages: [UInt32: PageBuffer] = [:]
    /// Pages of zeros in `staged` and in `frozenPages`.
    var stagedZeros = 0
    var frozenZeros = 0
    var entries: [DeltaEntry] = []
    var pending: [PendingFree] = []
    var pendingSectors: UInt64 = 0
    /// Sectors of destroyed photos that no root refers to and that are to be overwritten. See `overwriteFreed`.
    var pendingErase: [DeltaEntry] = []
    /// Sectors and slots kept for a backup that is reading the vault.
    var kept = KeptRoom()
    /// Generations of held snapshots; see `holdSnapshot`.
    var held: [UInt64] = []
    /// Content segments whose files were present, and those whose files were missing, at the first write to them.
    var foundSegments: Set<Int> = []
    var lostSegments: Set<Int> = []
    /// Segments that are being emptied, and those of which something cannot be moved; see `beginVacating`.
    var vacating: Set<Int> = []
    var unvacatable: Set<Int> = []
    /// Segments whose files are known to be their own; see `requireOwnFiles`.
    var comparedSegments: Set<Int> = []
    /// Sectors in `pendingErase`, and those that will be moved there.
    var destroyedSectors: UInt64 = 0
    /// Slots of delta pages that a newer root may still need, oldest first.
    var deltaPages: [PendingFree] = []
    var current: RootRecord
    var rings: RootRings
    var nextGeneration: UInt64
    /// Placement of this mount's writes, and of the next mounts'.
    var evasion: Evasion
    var isChanged = false
    var syncFailed = false
    /// Whether this mount has published a root.
    var hasPublished = false
    var peakSectors: UInt64
    /// Generation of the newest durable root.
    var durableGeneration: UInt64
    /// Sectors and slots freed by commits up to this generation are allocatable.
    var released: UInt64
    /// Slots of the delta pages of the commit being written.
    var newDeltaSlots: [UInt32] = []
    /// Delta of the newest durable root.
    var durableDelta: Reference
    /// Copies of durable roots that the next durable commit writes again.
    var tornRoots: [TornRoot]
    /// Unreadable states that are newer than the opened one.
    let unreadableStates: [UnreadableState]
    /// The error of the disk because of which neither copy of some root can be read.
    var rootError: StoreError?
    /// Segments that are read under other segments' names.
    public internal(set) var exchange: SegmentExchange?
    /// The root copy, 0 or 1, of which no root opens at its place; nil if there is none.
    var missingRootCopy: Int?
    /// Whether at least one root has both copies, so that mounts may write.
    public var missesNoRoots: Bool { missingRootCopy == nil }
    /// Parts of which one copy was found not to open. The next commits write them anew.
    let halved = Mutex<Set<StructurePart>>([])
    /// Whether the newest root of a closed space is lost: a delta is newer than all roots found.
    public internal(set) var hasLostNewestRoot = false
    /// Whether newer states than the opened one, or roots that may be theirs, could not be read.
    public var hasUnreadableStates: Bool { !unreadableStates.isEmpty || rootError != nil }
    /// Whether a newer state than the opened one existed.
    public var isOlderState: Bool { hasUnreadableStates || hasLostNewestRoot }
    /// Whether writing could lose a newer state for good.
    var mustKeepNewerState: Bool { rootError != nil || unreadableStates.contains(where: \.mustStay) }
    /// The fault of a segment because of which the newest state cannot be read; nil if it is another reason.
    public var newestStateFault: SegmentFault? {
        unreadableStates.lazy.compactMap { SegmentFault($0.error) }.first
    }
    /// Pages written since the newest durable root. They are rewritten elsewhere if a sync fails.
    var unsyncedPages: [MapObject: Set<Int>] = [:]
    /// Whether the space was opened to build a new state and no root could be read; see `openBlank`.
    var isBlank = false
    /// Whether free sectors keep their bytes: a repair neither overwrites them nor gives them back, because they may
    /// belong to a newer state whose roots are away and come back later. The next mount gives them back.
    var keepsFreeSectors = false
    /// All roots that were found.
    var foundRoots: [FoundRoot] = []
    /// Whether this mount has preallocated all slots that should have disk blocks; see `ensurePreallocated`.
    var isPreallocated = false
    /// Users' bytes in flight to places that may have no disk blocks yet.
    var freshBytes: UInt64 = 0

    /// The host's last reported available bytes, and the monotonic time in milliseconds until which they are used.
    let hostKnown = Mutex<(bytes: UInt64, until: Int64)?>(nil)
    /// The same, however old.
    let lastHostBytes = Atomic<UInt64>(.max)

    /// Why writing has stopped; see `writeStop`.
    let stop = Mutex<WriteStop?>(nil)

    /// Held while overwriting; taken before `lock`.
    let overwriting = Lock()
    let randomStream = RandomStream()

    /// Held while cover writes are written; taken before `lock`, and guards `coverWrites`.
    let coverLock = Lock()
    var coverWrites = CoverWrites()

    let chunkBuffers: BufferPool
    /// Chunks sealed and written by one call.
    static let chunksPerWrite = 4

    init(_ opened: OpenedRoot, files: SegmentFiles, keys: SpaceKeys, options: SpaceOptions) throws(StoreError)
    {
        self.files = files
        self.keys = keys
        codec = PageCodec(key: keys.page)
        isReadOnly = options.isReadOnly
        grows = options.grows
        bootHash = options.bootHash
        segmentCountNow = options.segmentCountNow
        copies = options.copies
        claim = options.claim
        limits = options.limits
        chunkBuffers = BufferPool(
            bufferBytes: Space.chunksPerWrite * Geometry.sectorsPerChunk * Geometry.sectorBytes,
            keptMax: limits.chunkBuffers)
        epoch = randomNumber()
        slotsPerPair = Int(files.segmentBytes) / Geometry.pageBytes
        current = opened.root
        rings = opened.rings
        rings.avoided = opened.root.evasion.root
        nextGeneration = opened.newestGeneration + 1
        peakSectors = opened.root.peakSectors
        evasion = opened.root.evasion
        durableGeneration = opened.root.isDurable ? opened.root.generation : opened.root.base
        durableDelta = opened.durableDelta
        tornRoots = opened.torn
        unreadableStates = opened.unreadable
        released = opened.root.released
        pairs = opened.root.pairs
        maps = zip(MapObject.allCases, opened.root.objects).map { object, stored in
            PageMap(
                object: object, pageCount: stored.pageCount, levels: stored.levels, root: stored.reference,
                nodesMax: options.limits.mapNodes)
        }
        slots = SlotAllocator(slotsPerPair: slotsPerPair, pairCount: pairs.count, words: [], backed: 0)
        sectors = SectorAllocator(
            sectorsPerSegment: files.sectorsPerSegment, usedCounts: [], limits: options.limits)
        noteEnd()
        // A snapshot, which is read beside the writable space, does not set it.
        if !isReadOnly { files.noteRefusal = { [weak self] in self?.stopWriting(.io($0)) } }
        try loadAllocation(releaseLimit: opened.releaseLimit)
    }

    /// Reads the state of allocation: slot bits, usage counts, and the deltas of the last commits.
    private func loadAllocation(releaseLimit: UInt64) throws(StoreError) {
        sectors.loadPage = { [unowned self] (page: Int) throws(StoreError) in
            try loadWords(.sectorBitmap, page, count: MapLayout.bitmapBytes / 8)
        }
        guard slotsPerPair * pairs.count <= RootLayout.slotsMax else { throw .damaged }
        let slotPages = (slotsPerPair * pairs.count + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage
        var words: [UInt64] = []
        for page in 0..<slotPages {
            words += try loadWords(.slotBitmap, page, count: MapLayout.bitmapBytes / 8)
        }
        slots = SlotAllocator(
            slotsPerPair: slotsPerPair, pairCount: pairs.count, words: words, backed: backedSlots())
        slots.prefer(preferredSlots)
        sectors.load(counts: try loadCounts())
        sectors.begin(atSegment: Int(evasion.segment))
        updateExcluded()
        try loadDeltas()
        if !isReadOnly { try release(through: releaseLimit) }
    }

    /// The number of slots with disk blocks. In a vault that grows, they end with the files of the last pair.
    private func backedSlots() -> Int {
        guard grows, let last = pairs.last else { return slotsPerPair * pairs.count }
        // A missing file is damage, which reading its pages reports.
        let sectors = [last.a, last.b].map { (try? files.writtenSectors(Int($0))) ?? 0 }.min() ?? 0
        return slotsPerPair * (pairs.count - 1) + sectors / Geometry.sectorsPerPage
    }

    /// Sectors in use in every segment. Includes segments whose file is missing but whose count is not 0, so that their
    /// numbers are never reused.
    private func loadCounts() throws(StoreError) -> [UInt32] {
        let lastOfPairs = Int(pairs.map { max($0.a, $0.b) }.max() ?? 0)
        let present = max(segmentCountNow(), lastOfPairs + 1)
        let perPage = MapLayout.countsPerPage
        let pages = max(Int(maps[MapObject.usage.rawValue].pageCount), (present + perPage - 1) / perPage)
        var counts: [UInt32] = []
        let most = UInt32(files.sectorsPerSegment)
        for page in 0..<pages {
            for pair in try loadWords(.usage, page, count: perPage / 2) {
                counts.append(min(UInt32(truncatingIfNeeded: pair), most))
                counts.append(min(UInt32(pair >> 32), most))
            }
        }
        let lastUsed = counts.lastIndex { $0 > 0 } ?? 0
        return Array(counts.prefix(max(present, lastUsed + 1)))
    }

    private func loadWords(_ object: MapObject, _ page: Int, count: Int) throws(StoreError) -> [UInt64] {
        let reference = try reference(object, page)
        var words = [UInt64](repeating: 0, count: count)
        if reference.isAbsent { return words }
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            try openPage(reference, as: .page(object, page), into: plain)
            for index in 0..<count { words[index] = UnsafeRawBufferPointer(plain).number(index * 8) }
        }
        return words
    }

    // MARK: Pages

    /// Reference to a page. Under `lock`.
    func reference(_ object: MapObject, _ page: Int) throws(StoreError) -> Reference {
        try maps[object.rawValue].reference(ofPage: page, load: nodeLoader(object))
    }

    func nodeLoader(_ object: MapObject) -> PageMap.NodeLoader {
        { [unowned self] (key: NodeKey, reference: Reference) throws(StoreError) in
            try openNode(object, key, reference, pairs: pairs)
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

    /// The sectors of a slot's two copies. Under `lock`, or while no pair can be added.
    func place(_ slot: UInt32) throws(StoreError) -> SlotPlace { try place(slot, pairs: pairs) }

    func place(_ slot: UInt32, pairs: [SegmentPair]) throws(StoreError) -> SlotPlace {
        let pair = Int(slot) / slotsPerPair
        guard pair < pairs.count else { throw .damaged }
        let offset = UInt64(Int(slot) % slotsPerPair * Geometry.sectorsPerPage)
        let sectorsPerSegment = UInt64(files.sectorsPerSegment)
        return SlotPlace(
            sectorA: UInt64(pairs[pair].a) * sectorsPerSegment + offset,
            sectorB: UInt64(pairs[pair].b) * sectorsPerSegment + offset)
    }

    func openPage(
        _ reference: Reference, as identity: PageIdentity, into plain: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        try openPage(reference, at: place(reference.slot), as: identity, into: plain)
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
                do throws(StoreError) { try files.read(sector, into: sealed) } catch {
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

    public var pageCount: UInt32 { lock.withLock { maps[MapObject.catalogue.rawValue].pageCount } }

    public func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        precondition(bytes.count == Geometry.pageBytes)
        var last: Reference?
        while true {
            let place = try locatePage(index, into: bytes)
            guard let (reference, place) = place else { return }
            do throws(StoreError) {
                try openPage(reference, at: place, as: .page(.catalogue, Int(index)), into: bytes)
                break
            } catch {
                // Concurrent commits may have moved the page and reused its slot. Retried unless the reference stayed
                // the same.
                if reference == last { throw error }
                last = reference
            }
        }
        bytes.slice(Geometry.pagePlainBytes, Geometry.pageBytes - Geometry.pagePlainBytes).zero()
    }

    /// Reference and place of a catalogue page; nil if the page is only in memory or was never written: then `bytes`
    /// has it.
    private func locatePage(
        _ index: UInt32, into bytes: UnsafeMutableRawBufferPointer
    ) throws(StoreError) -> (Reference, SlotPlace)? {
        try lock.withLock { () throws(StoreError) -> (Reference, SlotPlace)? in
            if let page = staged[index] ?? frozenPages[index] {
                bytes.copyMemory(from: UnsafeRawBufferPointer(page.bytes))
                return nil
            }
            let reference = try reference(.catalogue, Int(index))
            if reference.isAbsent {
                bytes.zero()
                return nil
            }
            return (reference, try place(reference.slot))
        }
    }

    public func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {
        let page = PageBuffer(bytes)
        lock.withLock {
            stage(index, page)
            let count = maps[MapObject.catalogue.rawValue].pageCount
            maps[MapObject.catalogue.rawValue].pageCount = max(count, index + 1)
            isChanged = true
        }
    }

    /// Changed pages that wait for the next commit. The catalogue's cache holds others.
    public var stagedPages: Int { lock.withLock { staged.count } }

    /// As `stagedPages`, with those of a commit under way.
    public var unwrittenPages: Int { lock.withLock { staged.count + frozenPages.count } }

    /// Puts a page into the next commit. Under `lock`.
    func stage(_ index: UInt32, _ page: PageBuffer) {
        if staged.updateValue(page, forKey: index)?.isZero == true { stagedZeros -= 1 }
        if page.isZero { stagedZeros += 1 }
    }

    public func truncatePages(to count: UInt32) {
        lock.withLock {
            staged = staged.filter { $0.key < count }
            stagedZeros = staged.values.count { $0.isZero }
            maps[MapObject.catalogue.rawValue].pageCount = count
            isChanged = true
        }
    }

    /// Freed bytes that two durable commits would make allocatable.
    public var pendingBytes: UInt64 { lock.withLock { pendingSectors * UInt64(Geometry.sectorBytes) } }

    /// Generation of the newest published commit.
    public var generation: UInt64 { lock.withLock { current.generation } }

    /// Generation of the newest durable commit, which no power cut can undo.
    public var newestDurable: UInt64 { lock.withLock { durableGeneration } }

    /// Whether the newest root is durable and nothing has changed since.
    public var isClean: Bool { lock.withLock { current.isDurable && !isChanged } && !hasHalved }
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
