import CatalogueRows
public import FileRequests
import FileTree
import Glibc
import KernelNames
import LinuxIO
import PhotoImaging
import PhotoTree
import Recovery
import Synchronization
import Thumbnails
public import VaultCatalogue
import VaultFormat
public import VaultStore

/// The photos of one space as a file tree. Every operation may be called from any thread.
///
/// Locks, in the order in which they may be taken: a file's writer's lock, the catalogue's, a file's view. The
/// committer only tries writer's locks, so a thread that holds one may wait for a commit.
public final class Library: @unchecked Sendable {
    package let space: Space
    let catalogue: Catalogue
    let options: LibraryOptions
    let context: FileContext
    let committer: Committer
    let thumbnails: ThumbnailService?
    /// The sector after the last thumbnail that was written: consecutive ones lie together.
    let thumbnailPlace = Mutex<UInt64?>(nil)
    let deferredWork: DeferredWork
    let clock: SessionClock
    private let trashedBytes = TimedCache()
    /// The vault's lock, which also equalizes its files' times; nil in tests of the library alone.
    let unlocked: UnlockedSpace?
    /// Only under the catalogue's lock.
    let tree: PhotoTree
    private let observerLock = Lock()
    private weak var watcher: (any LibraryObserver)?
    private var describeMount: (@Sendable () -> [(key: String, value: String)])?
    /// Changes that the observer is still to be notified of.
    private let pendingNotices = Atomic<Int>(0)

    /// Maximum file size, so that offsets fit everywhere.
    public static let fileBytesMax: UInt64 = FileState.sizeMax

    /// Maximum number of notifications waiting for the kernel.
    public var waitingNoticesMax: Int { options.limits.waitingNotices }

    /// Whether this is the previous state of the space, because the newest cannot be read.
    public var isOlderState: Bool { space.isOlderState }

    /// Opens the library in a space and its catalogue. Creates `moments` and `albums` in an empty one.
    public init(
        space: Space, catalogue: Catalogue, options: LibraryOptions, unlocked: UnlockedSpace? = nil
    ) throws(FileError) {
        tzset()
        var options = options
        options.limits = space.limits
        self.unlocked = unlocked
        self.space = space
        self.catalogue = catalogue
        self.options = options
        clock = SessionClock(options.clocks)
        context = FileContext(space)
        tree = try catalogue.locked { [options] tables throws(FileError) in
            let tree = try PhotoTree(
                tables, options.treeOptions, trashDays: options.trashDays, options.clocks)
            if try sql(tables.inode(WellKnownInode.root)) == nil {
                // Read-only, they stay in memory: the empty space is shown without being changed.
                try tree.makeRootDirectories()
            }
            return tree
        }
        space.isReferenced = { [weak catalogue] sectors throws(StoreError) in
            try catalogue?.isAnyNamed(sectors) ?? false
        }
        space.firstRuns = { [weak catalogue] sectors, limit throws(StoreError) in
            try catalogue?.firstRuns(in: sectors, limit: limit) ?? []
        }
        committer = Committer()
        thumbnails = options.thumbnails == .off ? nil : ThumbnailService(options.thumbnailSettings)
        deferredWork = DeferredWork(options.limits)
        committer.source = self
        deferredWork.library = self
        context.makeRoom = { [committer] in committer.makeRoom(bytes: $0) }
        context.waitForReusableSectors = { [committer] in committer.waitForReusableSectors() }
        context.unsharedContent = { [unowned self] file throws(FileError) in try unsharedContent(for: file) }
        context.noteUnsaved = { [committer, thumbnails] in
            committer.noteUnsaved()
            thumbnails?.background.noteWrite()
        }
        thumbnails?.background.make = { [weak self] photo in self?.makeInBackground(photo) }
        thumbnails?.background.findMore = { [weak self] last in self?.nextBackgroundBatch(last) }
        thumbnails?.background.rest = { [weak thumbnails] in thumbnails?.restInBackground() }
        if !options.readOnly {
            committer.start(byHand: options.commitsByHand, options.commitsSeldom ? .seldom : .prompt)
        }
        // A state that only a soft root holds must become durable, whether it changes or not.
        let isSoft = !space.isClean
        let isBehind = try locked { tree throws(FileError) in
            try !sql(tree.tables.unrecorded(after: 0, limit: 1)).isEmpty
        }
        committer.noteChange(if: try locked { $0.hasMadeRootDirectories } || isSoft || isBehind)
    }

    deinit {
        committer.abort()
        deferredWork.cancel()
        thumbnails?.background.askToStop()
        unlocked?.cover?.cancel()
    }

    /// Receives changes that the kernel does not know of. Set before the first request.
    public var observer: (any LibraryObserver)? {
        get { observerLock.withLock { watcher } }
        set { observerLock.withLock { watcher = newValue } }
    }

    /// What the mount adds to the answer to `obscura status`. Set before the first request.
    public var mountStatus: (@Sendable () -> [(key: String, value: String)])? {
        get { observerLock.withLock { describeMount } }
        set { observerLock.withLock { describeMount = newValue } }
    }

    /// Call once the mount is live: a separate thread takes up the unfinished work of an earlier session, and then the
    /// work that requests defer. `cancel` and `close` end it.
    public func startDeferredWork() {
        if !options.readOnly { deferredWork.start() }
    }

    /// Takes up the unfinished work of an earlier session on the calling thread: that of `DeferredWork`, or without a
    /// mount the caller's.
    public func didGoLive() {
        guard !isReadOnly else { return }
        unlocked?.blurBeginning()
        // No answer depends on this work: what fails or is called off is retried by the next mount.
        func attempt(_ body: () throws(FileError) -> Void) {
            if !deferredWork.isCancelled { try? body() }
        }
        attempt { () throws(FileError) in try reapOrphans(ofThisSession: false) }
        attempt { () throws(FileError) in try dropEmptyDays() }
        attempt { () throws(FileError) in try classifyPendingFiles() }
        if deferredWork.isCancelled { return }
        if expireTrash(until: MonotonicClock.milliseconds + 200) { committer.noteTrash() }
        if let background = thumbnails?.background, (try? hasBackgroundThumbnails()) == true {
            background.noteNew()
        }
    }

    /// Call before the first request of a session, with a mount or without: it then leaves the same traces on the host
    /// whether it writes or not. Does nothing in a vault of one space.
    public func startCoverTraffic() {
        guard !options.readOnly else { return }
        unlocked?.cover?.start { [weak self] in self?.isReadOnly == false }
    }

    /// Cancels long tasks, now and later, because the mount is about to end. Thumbnails are then unavailable; the next
    /// session takes up pending classification.
    public func cancelLongTasks() {
        deferredWork.cancel()
        thumbnails?.close()
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
            unlocked?.forget()
            return
        }
        let syncsBefore = unlocked?.cover?.syncCount ?? 0
        defer { unlocked?.cover?.stop() }
        if isPatient { settleForTheLastTime() }
        if isReadOnly { return try closeStopped() }
        var failed: FileError?
        func attempt(_ body: () throws(FileError) -> Void) {
            do throws(FileError) { try body() } catch { failed = failed ?? error }
        }
        for file in context.unsavedFiles {
            file.writer.lock()
            defer { file.writer.unlock() }
            attempt { () throws(FileError) in try save(file) }
        }
        attempt { () throws(FileError) in try applyCompanionMoves() }
        attempt { () throws(FileError) in try locked { tree in tree.releaseAll() } }
        attempt { () throws(FileError) in try reapOrphans(ofThisSession: true) }
        attempt { () throws(FileError) in try dropEmptyDays() }
        attempt { () throws(FileError) in try committer.stop() }
        attempt { () throws(FileError) in try stored(space.close()) }
        unlocked?.cover?.end(syncsBefore: syncsBefore)
        unlocked?.blurTraces()
        if let failed { throw failed }
    }

    // MARK: Locking

    /// Runs `body`, which must not change anything, with the catalogue's lock held.
    @inline(__always)
    func locked<R>(_ body: (PhotoTree) throws(FileError) -> R) throws(FileError) -> R {
        try catalogue.locked { _ throws(FileError) in
            tree.trim(isKernelNotified: isKernelNotified)
            return try body(tree)
        }
    }

    /// Runs `body`, which changes the tree, with the catalogue's lock held; then notifies the committer and the
    /// observer.
    func changing<R>(_ body: (PhotoTree) throws(FileError) -> R) throws(FileError) -> R {
        guard !isReadOnly else { throw .readOnly }
        var notices: [KernelNames.Notice] = []
        var hasNewPhoto = false
        var abandoned: [UInt64] = []
        var isChanged = false
        defer {
            committer.noteChange(if: isChanged)
            if !notices.isEmpty { send(notices) }
            if hasNewPhoto { thumbnails?.background.noteNew() }
            for ino in abandoned { forget(ino) }
        }
        return try catalogue.locked { tables throws(FileError) in
            guard tables.isIntact else { throw .damaged }
            tree.trim(isKernelNotified: isKernelNotified)
            let changeCount = tables.changeCount
            defer {
                tree.actor = -1
                isChanged = tree.hasChanges || tables.changeCount != changeCount
                notices = tree.kernelNames.takeNotices()
                swap(&hasNewPhoto, &tree.hasNewPhoto)
                if !notices.isEmpty { pendingNotices.wrappingAdd(1, ordering: .relaxed) }
                swap(&abandoned, &tree.abandoned)
            }
            return try body(tree)
        }
    }

    /// Whether the kernel has received all changes that it did not request. Under the catalogue's lock.
    var isKernelNotified: Bool {
        pendingNotices.load(ordering: .acquiring) == 0 && observer?.hasUnsent != true
    }

    private func send(_ notices: [KernelNames.Notice]) {
        defer { pendingNotices.wrappingSubtract(1, ordering: .releasing) }
        let observer = self.observer
        for notice in notices {
            switch notice {
            case .entry(let parent, let name): observer?.invalidateEntry(parent: parent, name: Name(name))
            case .lostEntry(let parent, let name): observer?.dropEntry(parent: parent, name: Name(name))
            case .attributes(let ino): observer?.invalidateAttributes(ino)
            case .inode(let ino): observer?.invalidateInode(ino)
            }
        }
    }

    /// Call with each request that shows that the files are in use: background thumbnails then wait, and cover traffic
    /// goes on.
    @inline(__always)
    public func noteRequest() {
        thumbnails?.background.noteRequest()
        unlocked?.cover?.noteUse()
    }

    /// statvfs(3).
    public func statistics() -> FilesystemStatistics {
        let use = space.capacity
        let blockBytes: UInt64 = 4096
        // Inodes are rows: as many as there is room for, at some 512 bytes each.
        let made = (try? locked { tree throws(FileError) in tree.counters.ino }) ?? 0
        // Trash is purged on demand, so it counts as free.
        let trashed = trashedBytes.value { [self] in
            (try? locked { tree throws(FileError) in try sql(tree.tables.trashedPhotoBytes()) }) ?? 0
        }
        return FilesystemStatistics(
            blockBytes: blockBytes, blocks: use.total / blockBytes,
            free: min(use.total, use.free + trashed) / blockBytes,
            available: min(use.total, use.available + trashed) / blockBytes, files: made + use.free / 512,
            filesFree: use.free / 512,
            nameBytesMax: UInt64(nameBytesMax))
    }

    /// Whether all changes so far survive the end of this process, for whatever reason it ends.
    public var isCommitted: Bool { context.unsavedFiles.isEmpty && committer.isCommitted }

    /// Number of photos in the space, for `status`, without those in the trash.
    public func photoCount() throws(FileError) -> Int {
        try locked { tree throws(FileError) in
            Int(try sql(tree.tables.photoCount()) - sql(tree.tables.trashedPhotoCount()))
        }
    }

    /// Number of photos in the trash.
    public func trashedPhotoCount() throws(FileError) -> Int {
        try locked { tree throws(FileError) in Int(try sql(tree.tables.trashedPhotoCount())) }
    }

    /// Used bytes of the space, including the trash and kept thumbnails.
    public var usedBytes: UInt64 {
        let use = space.capacity
        return use.total - min(use.free, use.total)
    }
}
