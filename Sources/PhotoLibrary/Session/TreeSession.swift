import CatalogueRows
package import FileRequests
import Glibc
import KernelNames
import LinuxIO
import PhotoImaging
import PhotoRules
import Synchronization
package import VaultCatalogue
import VaultFormat
package import VaultStore

/// An open space: its tree under the catalogue's lock, its open files, and the committer of their changes. Every
/// operation may be called from any thread.
///
/// Locks, in the order in which they may be taken: a file's writer's lock, the catalogue's, a file's view. The
/// committer only tries writer's locks, so a thread that holds one may wait for a commit.
package final class TreeSession: @unchecked Sendable {
    package let space: Space
    package let catalogue: Catalogue
    package let options: LibraryOptions
    package let context: FileContext
    package let committer = Committer()
    package let clock: SessionClock
    /// Room for catalogue pages.
    package private(set) var room: PageRoom! = nil
    /// Virtual directories.
    package private(set) var views: ViewDirectories! = nil
    private(set) var versions: VersionDirectories! = nil
    /// Only under the catalogue's lock.
    let tree: Tree
    private let observerLock = Lock()
    private weak var watcher: (any TreeObserver)?
    /// Changes that the observer is still to be notified of.
    private let pendingNotices = Atomic<Int>(0)
    /// Work that requests defer.
    package let deferred: DeferredWork
    /// Makes thumbnails of new photos; nil without `.thumbs`. Set once, at the start.
    package var background: BackgroundThumbnailer?

    /// Opens the tree of a space and its catalogue. Creates `moments` and `albums` in an empty one.
    package init(space: Space, catalogue: Catalogue, options: LibraryOptions) throws(FileError) {
        self.space = space
        self.catalogue = catalogue
        self.options = options
        clock = SessionClock(options.clocks)
        deferred = DeferredWork(space.limits)
        context = FileContext(space)
        tree = try catalogue.locked { [options] tables throws(FileError) in
            let tree = try Tree(tables, options)
            if try tables.inodes.row(WellKnownInode.root) == nil {
                // Read-only, they stay in memory: the empty space is shown without being changed.
                try tree.makeRootDirectories()
            }
            return tree
        }
        space.rows = catalogue
        (room, views, versions) = (PageRoom(self), ViewDirectories(self), VersionDirectories(self))
        context.session = self
        committer.session = self
    }

    /// Starts commits.
    ///
    /// - Parameter byHand: only by fsync(2), close and `Committer.commitByHand`, for tests that choose the moments.
    package func startCommits(byHand: Bool, _ pace: CommitPace) throws(FileError) {
        if !options.readOnly { committer.start(byHand: byHand, pace) }
        // A state that only a soft root holds must become durable, whether it changes or not.
        let isSoft = !space.isClean
        let isBehind = try locked { tree throws(FileError) in
            try !tree.tables.identities.unrecorded(after: 0, limit: 1).isEmpty
        }
        committer.noteChange(if: try locked { $0.hasMadeRootDirectories } || isSoft || isBehind)
    }

    /// Receives changes that the kernel does not know of. Set before the first request.
    package var observer: (any TreeObserver)? {
        get { observerLock.withLock { watcher } }
        set { observerLock.withLock { watcher = newValue } }
    }

    /// Notes that a file has unsaved changes: the committer saves it within a second.
    func noteUnsaved() {
        committer.noteUnsaved()
        background?.noteWrite()
    }

    // MARK: Locking

    /// Runs `body`, which must not change anything, with the catalogue's lock held.
    @inline(__always)
    package func locked<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R {
        try catalogue.locked { _ throws(FileError) in
            tree.trim(isKernelNotified: isKernelNotified)
            return try body(tree)
        }
    }

    /// Runs `body`, which changes the tree, with the catalogue's lock held; then notifies the committer and the
    /// observer, and destroys what the change left. Before that waits until the next commit has room for the change;
    /// throws `.noRoom` if it cannot get any.
    ///
    /// - Parameters:
    ///   - thread: whose request it is; -1 if none of a client.
    ///   - pages: the most catalogue pages that the change changes.
    package func change<R>(
        by thread: Int32 = -1, for purpose: ChangePurpose = .change, pages: Int = PageRoom.pagesPerChange,
        _ body: (Change) throws(FileError) -> R
    ) throws(FileError) -> R {
        guard !isReadOnly else { throw .readOnly }
        guard room.awaitRoom(for: purpose, pages) else { throw space.failure(.noRoom) }
        return try changeNow(by: thread, body)
    }

    /// As `change`, for changes that the next commit makes anyway.
    func changeNow<R>(
        by thread: Int32 = -1, _ body: (Change) throws(FileError) -> R
    ) throws(FileError) -> R {
        var made: Change?
        var notices: [KernelNames.Notice] = []
        var isChanged = false
        var isWaiting = false
        defer {
            committer.noteChange(if: isChanged)
            if isWaiting { deferred.noteCompanionMoves() }
            if !notices.isEmpty { send(notices) }
            if made?.hasNewPhoto == true { background?.noteNew() }
            for ino in made?.inodesToDestroy ?? [] { forget(ino) }
        }
        return try catalogue.locked { tables throws(FileError) in
            guard tables.isIntact else { throw .damaged }
            tree.trim(isKernelNotified: isKernelNotified)
            let changeCount = tables.changeCount
            let change = Change(tree, by: thread)
            made = change
            defer {
                isChanged = tree.hasChanges || tables.changeCount != changeCount
                room.noteUnstagedPages(tables)
                notices = tree.kernelNames.takeNotices()
                change.inodesToDestroy += tree.saves.takeReleased()
                isWaiting =
                    !tree.companions.moves.isEmpty || tree.saves.hasWithheldPhotos || tree.sidecars.hasNoted
                if !notices.isEmpty { pendingNotices.wrappingAdd(1, ordering: .relaxed) }
            }
            return try body(change)
        }
    }

    /// Runs `body`, whose changes are part of the commit that is about to be made, with the catalogue's lock held.
    package func committing<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R {
        try catalogue.locked { tables throws(FileError) in
            guard tables.isIntact else { throw .damaged }
            tree.trim(isKernelNotified: isKernelNotified)
            return try body(tree)
        }
    }

    /// Whether the kernel has received all changes that it did not request. Under the catalogue's lock.
    package var isKernelNotified: Bool {
        pendingNotices.load(ordering: .acquiring) == 0 && observer?.hasUnsent != true
    }

    private func send(_ notices: [KernelNames.Notice]) {
        defer { pendingNotices.wrappingSubtract(1, ordering: .releasing) }
        let observer = self.observer
        for notice in notices {
            switch notice {
            case .entry(let parent, let name, let isInDay):
                observer?.invalidateEntry(parent: parent, name: Name(name), isInDay: isInDay)
            case .lostEntry(let parent, let name, let isInDay):
                observer?.dropEntry(parent: parent, name: Name(name), isInDay: isInDay)
            case .attributes(let ino): observer?.invalidateAttributes(ino)
            case .inode(let ino): observer?.invalidateInode(ino)
            }
        }
    }

    /// Applies pending companion moves, dates photos anew whose sidecars changed, and destroys removed photos that no
    /// program has saved anew. Call before a directory is listed.
    package func applyCompanionMoves() throws(FileError) {
        let isWithholding = try locked { tree throws(FileError) in tree.saves.hasWithheldPhotos }
        if isWithholding, !isReadOnly { try change { _ throws(FileError) in } }
        try redateNotedPhotos()
        // A companion may have some itself, as the video of a Live Photo its sidecars.
        for _ in 0..<Self.companionRounds {
            let isWaiting = try locked { tree throws(FileError) in !tree.companions.moves.isEmpty }
            guard isWaiting, !isReadOnly else { return }
            try applyNotedCompanionMoves()
        }
    }

    private static let companionRounds = 3

    private func redateNotedPhotos() throws(FileError) {
        guard try locked({ tree throws(FileError) in tree.sidecars.hasNoted }), !isReadOnly else { return }
        let photos = try change { change throws(FileError) in try change.tree.sidecars.takeNoted() }
        let classifier = Classifier(self, PhotoSearch(self), deferred)
        // The catalogue lists a photo that fails for the next session.
        for ino in photos { try? classifier.redate(ino) }
        try locked { tree throws(FileError) in tree.sidecars.forgetReturned() }
    }

    private func applyNotedCompanionMoves() throws(FileError) {
        // Files that go into the trash need a `.trashinfo` file, sealed before the catalogue is locked.
        let moves = try locked { tree throws(FileError) in tree.companions.moves }
        var infos: [UInt64: TrashInfo] = [:]
        defer { for info in infos.values { destroyUnused(info) } }
        var contents: [UInt64: Sidecar] = [:]
        for (ino, move) in moves {
            if let stem = sidecarStem(move.nameBesidePhoto) {
                // `IMG.jpg.xmp` describes IMG.jpg, whatever it says.
                contents[ino] = move.photoNames == [stem] ? Sidecar(dates: []) : sidecar(ino)
            }
            guard move.caller != nil else { continue }
            infos[ino] = try trashInfo(
                forRemoving: Name(move.name), from: move.directory, as: .companion)
        }
        try change { change throws(FileError) in
            try change.tree.companions.applyCompanionMoves(infos, contents, space, change)
        }
    }

    /// The contents of a sidecar. One without any, or that cannot be read, describes what it describes by its name.
    private func sidecar(_ ino: UInt64) -> Sidecar {
        let found = try? withState(of: ino) { file throws(FileError) in readSidecar(FileSource(file)) }
        return found ?? Sidecar(dates: [])
    }
}
