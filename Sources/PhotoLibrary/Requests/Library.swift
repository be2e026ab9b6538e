import CatalogueRows
public import FileRequests
import Glibc
import KernelNames
import LinuxIO
import Synchronization
public import VaultCatalogue
import VaultFormat
public import VaultStore

/// The photos of one space as a file tree: its requests. Every one may be called from any thread. For locks see
/// `TreeSession`.
public final class Library: @unchecked Sendable {
    package let options: LibraryOptions
    package let session: TreeSession
    package let search: PhotoSearch
    package let classifier: Classifier
    var deferredWork: DeferredWork { session.deferred }
    /// Nil without `.thumbs`.
    let virtual: VirtualTree?
    private let trashedBytes = TimedCache()
    /// The vault's lock, which also equalizes its files' times; nil in tests of the library alone.
    let unlocked: UnlockedSpace?
    /// Identifies this mount: a later one at the same place may get its device number.
    let mark = UInt64.random(in: 0...UInt64.max)
    /// The counts of `obscura status`, and the row changes when they were counted: each walks an index or a table.
    let countLines = Mutex<(changes: Int64, lines: [(String, String)])?>(nil)
    private let statusLock = Lock()
    /// Under `statusLock`.
    private var describeMount: (@Sendable () -> [(key: String, value: String)])?

    /// Maximum file size, so that offsets fit everywhere.
    public static let fileBytesMax: UInt64 = FileState.sizeMax

    /// Maximum number of notifications waiting for the kernel.
    public var waitingNoticesMax: Int { options.limits.waitingNotices }

    /// Whether this is the previous state of the space, because the newest cannot be read.
    public var isOlderState: Bool { !options.follows && session.space.opening.isOlderState }

    /// Opens the library in a space and its catalogue. Creates `moments` and `albums` in an empty one.
    public init(
        space: Space, catalogue: Catalogue, options: LibraryOptions, unlocked: UnlockedSpace? = nil
    ) throws(FileError) {
        tzset()
        var options = options
        options.limits = space.limits
        self.unlocked = unlocked
        self.options = options
        session = try TreeSession(space: space, catalogue: catalogue, options: options)
        search = PhotoSearch(session)
        classifier = Classifier(session, search, session.deferred)
        virtual =
            options.thumbnails == .off
            ? nil : VirtualTree(PhotoThumbnails(session, options.thumbnailSettings))
        session.background = virtual?.service.background
        try session.startCommits(
            byHand: options.commitsByHand, options.commitsSeldom ? .seldom : .prompt)
        if options.keepsTrash { session.makeTrash(of: options.shownOwner) }
    }

    deinit {
        session.committer.abort()
        deferredWork.cancel()
        virtual?.service.background.askToStop()
        unlocked?.cover?.cancel()
    }

    /// For walking the tree without a mount.
    public var walk: SpaceWalk { SpaceWalk(library: self) }

    /// Requests for ranges of a file.
    public var ranges: FileRanges { FileRanges(session: session) }

    /// Receives changes that the kernel does not know of. Set before the first request.
    public var observer: (any TreeObserver)? {
        get { session.observer }
        set { session.observer = newValue }
    }

    /// Lines of the mount in the answer to `obscura status`. Set before the first request.
    public var mountStatus: (@Sendable () -> [(key: String, value: String)])? {
        get { statusLock.withLock { describeMount } }
        set { statusLock.withLock { describeMount = newValue } }
    }

    /// Call once the mount is live: a separate thread takes up the unfinished work of an earlier session, and then the
    /// work that requests defer. `cancel` and `close` end it.
    public func startDeferredWork() {
        guard !options.readOnly else { return }
        deferredWork.start(for: self)
    }

    /// Takes up the unfinished work of an earlier session. Runs on the calling thread: that of `DeferredWork`
    /// in a mount, the caller's without one.
    public func didGoLive() {
        guard !isReadOnly else { return }
        unlocked?.blurBeginning()
        // No answer depends on this work: failed and cancelled work is retried by the next mount.
        func attempt(_ body: () throws(FileError) -> Void) {
            if !deferredWork.isCancelled { try? body() }
        }
        attempt { () throws(FileError) in try session.reapOrphans { deferredWork.isCancelled } }
        attempt { () throws(FileError) in
            try session.dropEmptyDays {
                // Lets requests go first: the mount has just become live.
                usleep(1000)
                return deferredWork.isCancelled
            }
        }
        attempt { () throws(FileError) in try classifier.classifyPendingFiles() }
        if deferredWork.isCancelled { return }
        if session.expire(until: MonotonicClock.milliseconds + 200) { session.committer.noteTrash() }
        if let virtual, (try? virtual.thumbnails.hasBackgroundThumbnails()) == true {
            virtual.service.background.noteNew()
        }
    }

    /// Tells mounts elsewhere that have the password where this one is; see `UnlockedSpace.share`. Best effort: without
    /// it they are told only that the vault is in use.
    public func share(handOver: (@Sendable () -> Void)?) { try? unlocked?.share(handOver: handOver) }

    /// Call after `close`, before the process ends. Files that were open when a mount ended are never released, and
    /// keep the vault.
    public func giveUpVault() { unlocked?.giveUp() }

    /// Call before the first request of a session, with a mount or without: it then leaves the same traces on the host
    /// whether it writes or not. Does nothing in a vault of one space.
    ///
    /// - Parameter withWrites: whether it also hides how much it writes.
    public func startCoverTraffic(withWrites: Bool = true) {
        guard !options.readOnly else { return }
        if !withWrites { session.space.cover.omit() }
        unlocked?.cover?.start(
            isWanted: { [weak self] in self?.isReadOnly == false },
            writeSome: { [weak self] in self?.session.space.cover.write(most: Self.coverStepBytes) })
    }

    /// Cover writes of one step, of which there are at most ten a second.
    private static let coverStepBytes: UInt64 = 4 << 20
    /// The time at the end of a session for the cover writes that are left.
    private static let coverEndMilliseconds: Int64 = 1000

    /// Writes the rest of the session's cover writes, while the traffic that hides their times goes on.
    private func finishCover() {
        guard unlocked?.cover?.isActive == true, !isReadOnly else { return }
        session.space.cover.finish(
            milliseconds: Self.coverEndMilliseconds, isWriting: session.hasUnwritten)
    }

    /// Cancels long tasks, now and later, because the mount is about to end. Thumbnails are then unavailable; the next
    /// session takes up pending classification.
    public func cancelLongTasks() {
        deferredWork.cancel()
        virtual?.service.close()
    }

    /// Saves all files, destroys unreachable inodes, and makes everything durable. Every step is tried even after an
    /// error; the first error is thrown.
    ///
    /// - Parameter isPatient: retry failures within the limits of the options.
    public func close(isPatient: Bool = false) throws(FileError) {
        // First of all, so that nothing waits for work without a client.
        cancelLongTasks()
        deferredWork.awaitEnd()
        guard !options.readOnly else {
            unlocked?.dropPageCache()
            return
        }
        finishCover()
        let syncsBefore = unlocked?.cover?.beginEnd() ?? 0
        if isPatient { session.flushAtEnd() }
        if isReadOnly { return try closeStopped() }
        var failed: FileError?
        func attempt(_ body: () throws(FileError) -> Void) {
            do throws(FileError) { try body() } catch { failed = failed ?? error }
        }
        for file in session.context.unsavedFiles {
            file.writer.lock()
            defer { file.writer.unlock() }
            attempt { () throws(FileError) in try session.save(file) }
        }
        attempt { () throws(FileError) in try session.applyCompanionMoves() }
        attempt { () throws(FileError) in try session.locked { tree in tree.releaseAll() } }
        attempt { () throws(FileError) in try session.reapAllOrphans() }
        attempt { () throws(FileError) in try session.dropEmptyDays { false } }
        attempt { () throws(FileError) in try session.committer.stop() }
        attempt { () throws(FileError) in try stored(session.space.close()) }
        unlocked?.cover?.end(syncsBefore: syncsBefore)
        unlocked?.blurTraces()
        if let failed { throw failed }
    }

    /// Gives up unwritten changes: `close` then writes nothing, and does not fail.
    public func giveUp() { session.space.stopWriting(.givenUp) }

    /// Ends a session that takes no more writes. Throws if changes are lost that the user did not give up.
    private func closeStopped() throws(FileError) {
        let isLost = session.hasUnwritten && session.space.writeStop != .givenUp
        // `isLost` tells already whether something could not be written.
        try? session.committer.stop()
        session.space.giveUpClaim()
        // The mount that has claimed the space is responsible for its files' times.
        if session.space.writeStop != .claimLost { unlocked?.blurTraces() }
        if isLost { throw .readOnly }
    }

    /// Whether nothing may be changed: opened read-only, or writing has stopped.
    public var isReadOnly: Bool { session.isReadOnly }

    /// Why nothing may be changed, in a space that was opened for writing.
    public var writeStop: WriteStop? { session.space.writeStop }

    /// Whether there are accepted changes that only the user can save, or give up: such an idle mount is not ended.
    public var holdsUnwritten: Bool { session.space.writeStop != nil && session.hasUnwritten }

    /// Saves all files and makes all changes durable.
    public func flushAll() throws(FileError) { try session.flushAll() }

    /// Returns once everything added so far is on the disk.
    public func makeDurable() throws(FileError) { try session.committer.makeDurable() }

    /// FORGET: the kernel no longer holds the inode. This only matters if the inode has no name left.
    public func forget(_ ino: UInt64, count: UInt64 = 1) {
        switch Node(ino) {
        case .real(let ino): session.forget(ino)
        case .thumbnail(let number): virtual?.service.nodes.forget(number, count: count)
        case .version, .view: break
        }
    }

    /// Takes back the reference to an inode that came with an entry, because the kernel did not receive the answer.
    public func takeBack(_ ino: UInt64) {
        // Of other inodes references are not counted.
        if case .thumbnail(let number) = Node(ino) { virtual?.service.nodes.forget(number, count: 1) }
    }

    /// Tells the kernel that the attributes of files that changed lately may not be those that it has: for a change
    /// whose answer it did not receive.
    public func announceUnwritten() {
        let inodes = (try? session.locked { tree in tree.unwrittenInodes }) ?? []
        for ino in inodes { session.observer?.invalidateAttributes(ino) }
    }

    /// Call with each request that shows that the files are in use: background thumbnails then wait, and cover traffic
    /// goes on.
    @inline(__always)
    public func noteRequest() {
        virtual?.service.background.noteRequest()
        unlocked?.cover?.noteUse()
    }

    /// Bytes of the space, as users see them. Trash and versions are purged on demand, so they count as free.
    var room: (total: UInt64, free: UInt64, available: UInt64, files: UInt64) {
        let use = session.space.sectors.capacity
        let trashed = trashedBytes.value { [self] in
            let found = try? session.locked { tree throws(FileError) in
                try tree.tables.trash.photoBytes() + tree.tables.versions.totals().bytes
                    + tree.saves.withheldBytes()
            }
            return found ?? 0
        }
        let room = session.space.ledger.fileRoom(
            besides: session.context.reservedRoom, purgeable: trashed)
        return (use.total, min(use.total, use.free + trashed), min(use.total, room.bytes), room.files)
    }

    /// Few photos are smaller.
    private static let leastPhotoBytes: UInt64 = 1 << 20

    /// Whether no photo can be written, or the newest commit found no room.
    var isFull: Bool { session.committer.isOutOfRoom || room.available < Self.leastPhotoBytes }

    /// statvfs(3).
    public func statistics() -> FilesystemStatistics {
        let room = room
        let blockBytes: UInt64 = 4096
        let made = (try? session.locked { tree throws(FileError) in tree.counters.ino }) ?? 0
        return FilesystemStatistics(
            blockBytes: blockBytes, blocks: room.total / blockBytes, free: room.free / blockBytes,
            available: room.available / blockBytes, files: made + room.files, filesFree: room.files,
            nameBytesMax: UInt64(nameBytesMax))
    }

    /// Whether all changes so far survive any end of this process.
    public var isCommitted: Bool { session.context.unsavedFiles.isEmpty && session.committer.isCommitted }

    /// Used bytes of the space, including the trash and kept thumbnails.
    public var usedBytes: UInt64 {
        let use = session.space.sectors.capacity
        return use.total - min(use.free, use.total)
    }
}
