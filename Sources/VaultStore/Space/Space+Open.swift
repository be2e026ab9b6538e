import LinuxIO
import VaultFormat

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

/// Options for opening a space.
struct SpaceOptions: Sendable {
    var isReadOnly: Bool
    var grows: Bool
    var bootHash: [UInt8]
    /// The number of segments that every space of the vault has when this one is opened.
    var segmentCount: Int
    /// As `segmentCount`, at any later time; nil if the host does not tell.
    var segmentCountNow: @Sendable () -> Int?
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
    static func open(disk: SpaceDisk, keys: SpaceKeys, options: SpaceOptions) throws(StoreError) -> Space {
        let roots = RootStore.read(disk, PageCodec(key: keys.page))
        if let newer = roots.newer { throw .newer(newer) }
        let space = try open(roots.found, disk: disk, keys: keys, options: options)
        space.opening.hasLostNewestRoot = StructureCheck(of: space).isNewestRootLost(of: roots.found)
        space.opening.rootError = roots.error
        space.opening.missingRootCopy = (0..<2).first { copy in
            roots.found.allSatisfy { $0.tornCopy == copy && !$0.isHalfWritten }
        }
        space.attachClaim(roots.found)
        if options.claim?.hasTakenOver == true { space.keepAway(from: roots.found) }
        return space
    }

    private static func open(
        _ found: [FoundRoot], disk: SpaceDisk, keys: SpaceKeys, options: SpaceOptions
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
                    let space = try Space(opened, disk: disk, keys: keys, options: options)
                    let unsynced = space.parts.unsynced
                    try unsynced.open(soft, since: base, photos: !options.acceptsDamagedPhotos)
                    try unsynced.mark(soft, since: base)
                    return space
                }
            } catch {
                unreadable.append(UnreadableState(soft, error, disk))
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
                    try Space(opened, disk: disk, keys: keys, options: options)
                }
                if !options.isReadOnly { space.syncFoundRoot() }
                return space
            } catch {
                unreadable.append(UnreadableState(durable.root, error, disk))
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
        parts.roots.markNewestUnsynced()
        if (try? parts.disk.sync()) == nil { parts.lock.withLock { parts.next.noteChange() } }
    }
}
