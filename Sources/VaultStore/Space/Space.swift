import LinuxIO
import VaultCrypto
public import VaultFormat

/// An open space: what callers read, write, freeze, publish and close. Its parts do the work, each with a state of its
/// own; see `SpaceParts`.
///
/// Unchecked Sendable: its variables are set while the space is opened, or by the publishing thread. `freeze` and
/// `publish` must not run concurrently (the library's committer holds its own lock around the two).
public final class Space: PageStorage, @unchecked Sendable {
    let parts: SpaceParts
    let keys: SpaceKeys
    let options: SpaceOptions
    public let isReadOnly: Bool
    /// True in a vault of one space: segments are made on demand.
    public let grows: Bool
    public let limits: Limits
    /// Random number of this mount.
    public let epoch: UInt64

    // Parts that callers use directly.

    /// The assignment of segments to pages and content.
    public let segments: SegmentRoles
    /// Room for content.
    public let sectors: SectorRoom
    /// Room for changes of the catalogue, and for files.
    public let ledger: RoomLedger
    /// Overwriting of destroyed photos.
    public let eraser: Eraser
    /// The cover writes of this session.
    public let cover: CoverWriter

    let references: ReferenceGuard
    let extents: ExtentStore
    let commits: CommitWriter
    let diskReturn: DiskReturn

    /// Called before every commit is published, as `wasPublished` is after: for tests of concurrent actions.
    var willPublish: (@Sendable () -> Void)?
    /// Called after every published commit, on the publishing thread, with no lock held: for tests that audit each
    /// state.
    var wasPublished: (@Sendable (Space) -> Void)?

    /// How the newest state was found.
    public internal(set) var opening: OpeningReport
    /// Segments that are read under other segments' names.
    public internal(set) var exchange: SegmentExchange?

    init(_ opened: OpenedRoot, disk: SpaceDisk, keys: SpaceKeys, options: SpaceOptions) throws(StoreError) {
        self.keys = keys
        self.options = options
        (isReadOnly, grows, limits) = (options.isReadOnly, options.grows, options.limits)
        epoch = randomNumber()
        opening = OpeningReport(unreadable: opened.unreadable)
        parts = try SpaceParts(opened, disk, keys, options)
        (segments, sectors, ledger) = (parts.segments, parts.sectors, parts.ledger)
        references = ReferenceGuard(
            disk, parts.gate, segments, sectors, parts.next, parts.extentCodec, grows: grows,
            lock: parts.lock)
        extents = ExtentStore(parts, references, grows: grows, epoch: epoch)
        commits = CommitWriter(
            opened, parts, epoch: epoch, bootHash: options.bootHash, pagesPerWrite: limits.pagesPerWrite)
        eraser = Eraser(parts, references)
        cover = CoverWriter(parts, references, commits, grows: grows)
        diskReturn = DiskReturn(parts, references, reservedSlots: limits.reservedSlots)
    }

    /// The rows of the catalogue above, by which sectors are recognised before they are written; nil in a space without
    /// one. Set before the first write.
    public var rows: (any ExtentRows)? {
        get { references.rows }
        set { references.rows = newValue }
    }

    // MARK: Pages of the catalogue

    public var pageCount: UInt32 { parts.pages.pageCount }

    public func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        try parts.pages.readPage(index, into: bytes)
    }

    public func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {
        parts.pages.stagePage(index, bytes)
    }

    public func truncatePages(to count: UInt32) { parts.pages.truncatePages(to: count) }

    public func willReadPages(_ soon: ArraySlice<UInt32>, later: ArraySlice<UInt32>) {
        parts.pages.willReadPages(soon, later: later)
    }

    /// Changed pages that wait for the next commit. The catalogue's cache holds others.
    public var stagedPages: Int { parts.pages.stagedPages }

    /// As `stagedPages`, with those of a commit under way.
    public var unwrittenPages: Int { parts.pages.unwrittenPages }

    // MARK: Commits

    /// Takes all changes since the last call. The caller holds the catalogue's lock, has ended its transaction, and
    /// publishes the result before it freezes again.
    public func freeze() -> FrozenCommit { commits.freeze() }

    /// Writes a frozen commit and its root. With `durable` it survives a power cut.
    ///
    /// If this throws, nothing was published, and the next freeze contains the commit's changes.
    public func publish(_ frozen: FrozenCommit, durable: Bool) throws(StoreError) {
        willPublish?()
        try commits.publish(frozen, durable: durable)
        wasPublished?(self)
    }

    /// Publishes repairs so that they survive a power cut and the freed sectors are free.
    public func publishMended() throws(StoreError) {
        // The third commit replaces deltas and roots that the first two still depend on.
        for _ in 0..<3 { try publish(freeze(), durable: true) }
    }

    /// Generation of the newest published commit.
    public var generation: UInt64 { commits.newest.generation }

    /// Generation of the newest durable commit, which no power cut can undo.
    public var newestDurable: UInt64 { commits.newestDurable }

    /// Whether the newest root is durable and nothing has changed since.
    public var isClean: Bool { commits.isClean && !parts.reader.hasHalved }

    // MARK: Writing at all

    /// Why writing has stopped; nil while it goes on.
    public var writeStop: WriteStop? { parts.gate.stopped }

    /// Features of the space because of which this program must not change it; nil if there are none.
    var formatStop: WriteStop? { commits.newest.format.writingObstacle.map { .newer($0) } }

    /// Stops writing: from now on all writes throw `StoreError.readOnly`. The first reason stays, except that `givenUp`
    /// replaces it.
    public func stopWriting(_ reason: WriteStop) { parts.gate.close(for: reason) }

    /// Accepts writes again after a stop whose cause may have passed. Files are reopened, and everything written since
    /// the newest durable root is read and rewritten before the next one. If some of it was lost, that commit fails.
    ///
    /// - Returns: false if the stop is permanent, or there is none.
    public func resumeWriting() -> Bool {
        guard !isReadOnly, writeStop?.mayPass == true else { return false }
        parts.lock.withLock { parts.unsynced.noteLost() }
        parts.disk.reopenAll()
        return parts.gate.reopen()
    }

    // MARK: Older states

    /// Opens the newest published state as another space, for reading, and holds it until `letGo`. Sectors and slots of
    /// a held state are not reused. If room runs out, the hold is given up: earlier reads stay valid, and later
    /// failures to read are no damage.
    public func holdSnapshot() throws(StoreError) -> Space {
        let opened = parts.lock.withLock {
            let root = commits.newestLocked
            parts.freed.hold(root.generation)
            return OpenedRoot(
                root: root, rings: .none, newestGeneration: root.generation, releaseLimit: root.released,
                durableDelta: commits.newestDurableDelta, torn: [], unreadable: [])
        }
        let options = SpaceOptions(
            isReadOnly: true, grows: grows, bootHash: options.bootHash,
            segmentCount: options.segmentCountNow() ?? parts.segments.count,
            segmentCountNow: options.segmentCountNow, limits: limits)
        do throws(StoreError) {
            return try Space(opened, disk: parts.disk, keys: keys, options: options)
        } catch {
            if !parts.freed.letGo(of: opened.root.generation) { throw .noRoom }
            throw error
        }
    }

    /// Ends the hold on a snapshot; returns false if it was given up meanwhile.
    @discardableResult
    public func letGo(_ snapshot: Space) -> Bool { parts.freed.letGo(of: snapshot.generation) }

    /// Gives up backups and snapshots because room has run out: they must start again. Two durable commits later
    /// everything kept is free.
    public func releaseBackupHolds() { parts.freed.giveUpReaders() }

    // MARK: Unused disk

    /// Whether the host did not tell its free room when it was asked last. What finds no room then fails because of the
    /// host, and nothing may be destroyed to make room.
    public var isHostSilent: Bool { parts.host.isSilent }

    /// Whether more freed bytes than `Limits.backlogBytes` allows await reuse, so that writers should wait.
    public var isBacklogged: Bool {
        // While a backup or a snapshot reads an older state, nothing becomes reusable.
        grows && parts.lock.withLock { parts.freed.keepsNothing && sectors.isBacklogged }
    }

    /// Returns unused disk to the host if there is enough of it. Best effort: a host that cannot punch holes keeps it.
    ///
    /// - Parameter commit: makes a durable commit of all changes.
    public func giveBack(_ commit: () throws(StoreError) -> Void) throws(StoreError) {
        guard grows, diskReturn.isWorthwhile else { return }
        releaseBackupHolds()
        eraser.overwrite(most: .max / 2)
        // After the second commit no root refers to sectors that the first freed; the third's bitmaps have them free.
        for _ in 0..<3 {
            sectors.lowerPeak()
            try commit()
            eraser.overwrite(most: .max / 2)
        }
        try diskReturn.run()
    }

    /// Returns the disk of free sectors to a host that is full, so that the catalogue can have it. Returns whether the
    /// catalogue can have more then. Best effort.
    public func giveBackForSlots() -> Bool { grows && diskReturn.runForSlots() }

    /// Bytes that a check reads: sectors in use and both copies of all pages.
    public var storedBytes: UInt64 {
        parts.lock.withLock {
            sectors.used * UInt64(Geometry.sectorBytes)
                + 2 * parts.pages.storedPages * UInt64(Geometry.pageBytes)
        }
    }

    // MARK: Closing

    /// Closes the space: makes all changes durable, then erases the soft roots and gives up the claim.
    public func close() throws(StoreError) {
        guard !isReadOnly else { return }
        // It renews copies that are damaged; their others can be read.
        try? renewAtEnd()
        // A mount may have started from a soft root and changed nothing: then only that root refers to its state.
        if !isClean { try publish(freeze(), durable: true) }
        // Everything is durable by now, so a failure here loses nothing: the remaining sectors are free for the next
        // mount.
        if !segments.keepsFreeSectors { try? overwriteAll() }
        if commits.hasWritten && writeStop == nil && !segments.keepsFreeSectors {
            try? giveBack { () throws(StoreError) in try publish(freeze(), durable: true) }
        }
        do throws(StoreError) {
            if writeStop == nil { try parts.roots.eraseSoft() }
        } catch {
            // If another mount writes by now, the soft roots are its own.
            if writeStop == nil { throw error }
        }
        giveUpClaim()
    }

    /// Overwrites all destroyed photos that are left, with the durable commits that this needs.
    func overwriteAll() throws(StoreError) {
        guard eraser.hasDestroyed else { return }
        releaseBackupHolds()
        eraser.overwrite(most: UInt64(Int64.max))
        // After the second commit no root refers to sectors that the first freed.
        for _ in 0..<2 where eraser.hasDestroyed {
            try publish(freeze(), durable: true)
            eraser.overwrite(most: UInt64(Int64.max))
        }
        try parts.disk.sync()
    }
}
