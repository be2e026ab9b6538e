import LinuxIO
import VaultFormat

/// The parts of which an open space is made, each with its own state behind one lock. A part uses only those above it
/// in this list.
struct SpaceParts: Sendable {
    /// Guards the mutable state of all parts. Locks nest in this order: the catalogue's, this one, those of the host.
    let lock = Lock()
    let disk: SpaceDisk
    let codec: PageCodec
    let extentCodec: ExtentCodec
    let buffers: BufferPool
    let gate: WriteGate
    let reader: PageReader
    let host: HostRoom
    let next: NextCommit
    let segments: SegmentRoles
    let pages: PageStore
    let sectors: SectorRoom
    let slots: SlotRoom
    let freed: FreedRoom
    let ledger: RoomLedger
    let unsynced: UnsyncedState
    let roots: RootStore

    /// Makes the parts for a root, and reads what is allocated in its state.
    init(
        _ opened: OpenedRoot, _ disk: SpaceDisk, _ keys: SpaceKeys, _ options: SpaceOptions
    ) throws(StoreError) {
        let (root, limits, grows) = (opened.root, options.limits, options.grows)
        self.disk = disk
        codec = PageCodec(key: keys.page)
        extentCodec = ExtentCodec(keys)
        buffers = BufferPool(
            bufferBytes: ExtentStore.chunksPerWrite * Geometry.sectorsPerChunk * Geometry.sectorBytes,
            keptMax: limits.chunkBuffers)
        gate = WriteGate(isReadOnly: options.isReadOnly, claim: options.claim)
        reader = PageReader(disk, codec, notesHalved: !options.isReadOnly)
        host = HostRoom(disk)
        next = NextCommit(after: opened.newestGeneration)
        let allocator = SectorAllocator(
            sectorsPerSegment: disk.sectorsPerSegment, usedCounts: [], limits: limits)
        segments = SegmentRoles(
            root.pairs, disk, allocator, grows: grows, lock: lock, count: options.segmentCount,
            countNow: options.segmentCountNow)
        pages = PageStore(root, reader, segments, next, lock, nodesMax: limits.mapNodes)
        sectors = SectorRoom(
            root, disk, allocator, segments, host, grows: grows, limits: limits, lock: lock)
        slots = SlotRoom(root, disk, segments, host, grows: grows, limits: limits)
        freed = FreedRoom(released: root.released, sectors, slots, next, options.copies, lock: lock)
        ledger = RoomLedger(
            segments, sectors, slots, pages, freed, host, gate, grows: grows, limits: limits, lock: lock)
        unsynced = UnsyncedState(disk, reader, pages, extentCodec, buffers)
        var rings = opened.rings
        rings.avoided = root.evasion.root
        roots = RootStore(disk, codec, rings, torn: opened.torn)
        // A snapshot, which is read beside the writable space, does not set it.
        if !options.isReadOnly { disk.gate = gate }
        try slots.load(from: pages)
        try sectors.load(from: pages)
        slots.updateSegments()
        freed.load(from: root.delta, pairs: root.pairs, reader)
        if !options.isReadOnly { try freed.release(through: opened.releaseLimit) }
    }
}
