import LibraryFixtures
import LinuxIO
import Synchronization
import TestFixtures
import TestSupport
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultCatalogue
@testable import VaultStore

/// A disk as a crash left it, and the trees that a mount may find there.
struct CrashState {
    var disk: DiskState
    /// The tree that a mount finds now; nil for a vault that was never mounted.
    var found: PublishedCommit?
    /// The tree that it finds after a power cut.
    var durable: PublishedCommit?
    /// Durable commits after that one which failed, and may count after a power cut all the same.
    var tried: [PublishedCommit] = []
    /// The password that opens the vault, and the other where one is being replaced: it may after a power cut.
    var passwords = ["one"]
}

/// Mounts of a vault in memory of which everything is recorded. Commits are made where the work says, and where a
/// request needs page slots, so that the same seed does the same. Each is recorded with its own tree, whoever asked for
/// it.
final class CrashSession: LibraryUser {
    /// Something that a later crash must respect, and the number of events before it.
    struct Moment {
        enum Fact {
            case published(PublishedCommit, Certainty)
            /// From now on one of these opens the vault.
            case passwords([String])
        }
        var at: Int
        var fact: Fact
    }

    /// How certain it is that a root counts, if its boot is right.
    enum Certainty: Comparable {
        /// Its commit failed; it may have been written.
        case tried
        /// It was written, and not synced if it is a durable one.
        case written
        /// If it is a durable one, it was synced.
        case published
    }

    let vault: MemoryVault
    let start: DiskState
    let disk: MemoryDisk
    /// Through which all of the disk is used.
    let calls: FaultyCalls
    let caller = Caller(uid: 0, gid: 0)
    private(set) var moments: [Moment] = []
    private(set) var password: String
    private var opened: Library?
    private var seenGeneration: UInt64 = 0
    /// The commit being made, or the newest that failed.
    private var begun: BegunCommit?
    /// The tree of the newest commit that was published since `publish` began.
    private var newestTree: TreeDump?
    /// What was thrown while a commit was recorded, or by others who worked meanwhile.
    private var failure: (any Error)?
    /// Called, once, when a commit's contents are decided, and nothing of it is written.
    private var whenBegun: (() throws -> Void)?
    /// A commit whose contents are decided. SQLite may stage pages of later changes before it is published.
    private struct BegunCommit {
        let generation: UInt64
        let epoch: UInt64
        let tree: TreeDump
        let runs: [ExtentRun]
    }
    private let clock: Clock
    private final class Clock: Sendable {
        private let seconds = Mutex<Int64>(1_764_000_000)
        func withLock<R>(_ body: (inout Int64) -> R) -> R { seconds.withLock { body(&$0) } }
    }
    /// The wall clock of its mounts.
    var seconds: Int64 {
        get { clock.withLock { $0 } }
        set { clock.withLock { $0 = newValue } }
    }
    private let maker = StandInMaker()
    /// Whether there is little room.
    let isPressed: Bool
    /// Whether the rules of a space are checked at every mount and commit.
    let isAuditing: Bool
    /// Done to the space after every commit: the effect of a planted fault.
    var sabotage: (Space) throws -> Void = { _ in }

    var library: Library {
        guard let opened else { preconditionFailure("the session is unmounted") }
        return opened
    }
    var space: Space { library.session.space }
    var isMounted: Bool { opened != nil }

    /// Mounts a disk that a crash left; it must be as it was when the root that counts was published.
    init(
        _ vault: MemoryVault, _ state: CrashState, isPressed: Bool = false, isAuditing: Bool = true,
        ignoring syncs: MemoryDisk.SyncKinds = [], seed: UInt64 = 1
    ) throws {
        self.vault = vault
        self.isPressed = isPressed
        self.isAuditing = isAuditing
        start = state.disk
        disk = MemoryDisk(state.disk)
        disk.ignoreSyncs(syncs)
        if vault.host == .cluster { disk.pool.order(by: seed) }
        calls = FaultyCalls(disk)
        clock = Clock()
        password = state.passwords[0]
        if let durable = state.durable { note(.published(durable, .published)) }
        for commit in state.tried { note(.published(commit, .tried)) }
        if let found = state.found {
            note(.published(found, found === state.durable ? .published : .written))
        }
        note(.passwords(state.passwords))
        try mount(expecting: state.found?.tree)
        // A mount makes the header's copies alike.
        note(.passwords([password]))
        // A state that is found may be relied on as soon as it is mounted, unless the sync of its very root has failed:
        // who did that was told, and killed, and a third misfortune is too much.
        if let found = state.found, found.isDurable, !found.isTried { note(.published(found, .published)) }
    }

    deinit { abandon() }

    private func note(_ fact: Moment.Fact) { moments.append(Moment(at: disk.eventCount, fact: fact)) }

    // MARK: Mounts

    func mount(expecting tree: TreeDump? = nil) throws {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.pictureMaker = maker
        options.settleMilliseconds = 1 << 40
        options.commitsByHand = true
        options.clocks.wall = { [clock] in clock.withLock { $0 } }
        options.clocks.boot = options.clocks.wall
        let unlocked = try vault.unlock(calls)
        let space = try unlocked.openSpace(readOnly: false, limits: vault.limits)
        if isAuditing {
            try audit(space)
            try space.auditSlots()
        }
        let catalogue = try Catalogue(
            storage: space, readOnly: false, cacheKibibytes: vault.limits.catalogueCacheKibibytes)
        let library = try Library(space: space, catalogue: catalogue, options: options, unlocked: unlocked)
        seenGeneration = space.generation
        // No commit is to come in the middle of an operation, with half a tree.
        library.session.committer.makesRoom = false
        opened = library
        recordCommits(of: space)
        try press()
        library.didGoLive()
        if let tree {
            let found = try dump()
            if found != tree { throw CrashFailure("the tree is another: \(found.difference(from: tree))") }
        } else if moments.count == 1 {
            note(
                .published(try PublishedCommit(space, try dump(), since: 0, on: disk.state.live), .published))
            try commit(durable: true)
        }
    }

    /// As `umount`. The commits that closing needs are made before, as far as they can be foreseen.
    func unmount() throws {
        try library.session.locked { tree in tree.releaseAll() }
        try library.session.reapAllOrphans()
        try library.session.dropEmptyDays { false }
        let tree = try dump()
        for _ in 0..<4 where !space.isClean || space.eraser.hasDestroyed {
            space.eraser.overwrite(most: .max / 2)
            try commit(durable: true)
        }
        defer { abandon() }
        try publish(tree) { try library.close() }
        // On a cluster its lock is given up.
        opened = nil
        disk.closeAll()
    }

    /// As `kill -9`: nothing more is written.
    func abandon() {
        guard let opened else { return }
        opened.abandonUnsaved()
        disk.closeAll()
        self.opened = nil
    }

    /// Leaves little of the space, in pieces, so that freed sectors are soon used again.
    private func press() throws {
        guard isPressed else { return }
        if vault.spaceCount == 1 {
            disk.setCapacity(disk.usedBytes + 1 << 20 + 512 << 10)
            return
        }
        try space.parts.lock.withLock {
            var pieces: [(sector: UInt64, count: Int)] = []
            while let piece = try space.sectors.allocator.take(least: 1, most: 300, near: nil) {
                pieces.append(piece)
            }
            var left = Int(FixedSpace.reservedSectors) + 1200
            for piece in pieces where left > 0 {
                try space.sectors.allocator.abandon(piece.sector, piece.count)
                left -= piece.count
            }
        }
    }

    /// Lets the next writes lie in one of a few segments of a space that has hundreds: more than have their bits
    /// in memory, and so few that each is soon used again.
    func scatter(_ random: inout RandomSource) {
        guard isMounted, vault.spaceCount > 1, vault.limits == .least, !isPressed else { return }
        space.parts.lock.withLock {
            let segments = Array(stride(from: 3, to: space.sectors.allocator.segmentCount, by: 40))
            space.sectors.allocator.begin(atSegment: segments.randomElement(using: &random) ?? 0)
        }
    }

    // MARK: Commits

    /// Has every commit recorded with the tree that it has.
    private func recordCommits(of space: Space) {
        let session = Recorded(session: self)
        space.willPublish = { session.session?.noteBegun() }
        space.wasPublished = { session.session?.notePublished($0) }
    }

    private struct Recorded: @unchecked Sendable { weak var session: CrashSession? }

    private func noteBegun() {
        noteFailed()
        record {
            begun = try calls.withoutFaults {
                BegunCommit(
                    generation: space.parts.lock.withLock { space.parts.next.generation - 1 },
                    epoch: space.epoch,
                    tree: try dump(asSaved: true), runs: try space.allRuns())
            }
            let others = whenBegun
            whenBegun = nil
            try others?()
        }
    }

    private func notePublished(_ space: Space) {
        record {
            guard let begun else { return }
            self.begun = nil
            try calls.withoutFaults {
                if isAuditing {
                    auditPublished(space)
                    try space.auditSlots()
                }
                let commit = try PublishedCommit(
                    space, begun.tree, begun.runs, since: seenGeneration, on: disk.state.live)
                seenGeneration = space.generation
                newestTree = begun.tree
                note(.published(commit, .published))
                try sabotage(space)
            }
        }
    }

    /// Notes a commit that was begun and not published: its root may be written.
    private func noteFailed() {
        guard let begun else { return }
        self.begun = nil
        let commit = PublishedCommit(
            tried: begun.generation, since: seenGeneration, epoch: begun.epoch, begun.tree)
        seenGeneration = begun.generation
        note(.published(commit, .tried))
    }

    /// Keeps what `body` throws for `settle`: a commit that is being made knows no errors of tests.
    private func record(_ body: () throws -> Void) {
        do { try body() } catch { failure = failure ?? error }
    }

    /// Notes a commit that failed, and throws what was thrown while commits were made.
    func settle() throws {
        noteFailed()
        defer { failure = nil }
        if let failure { throw failure }
    }

    func commit(durable: Bool) throws {
        try publish(try dump()) { library.session.committer.commitByHand(durable: durable) }
    }

    /// When others work while a commit is made.
    enum Interval: CaseIterable {
        /// Once its contents are decided, and before anything is written.
        case unwritten
        /// Once everything is written, and before it is synced or has a root.
        case unsynced
    }

    /// Commits while `body` changes the tree.
    func commit(durable: Bool, _ interval: Interval, during body: @escaping () throws -> Void) throws {
        // Not while the claim is being made: other writers wait for that.
        try space.parts.gate.requireOpen()
        let tree = try dump()
        whenBegun = interval == .unwritten ? body : { [unowned self] in beforeSync(durable: durable, body) }
        defer {
            whenBegun = nil
            disk.interrupt(nil)
        }
        try publish(tree) { library.session.committer.commitByHand(durable: durable) }
    }

    /// Has `body` called when the commit being made is written, and not synced.
    private func beforeSync(durable: Bool, _ body: @escaping () throws -> Void) {
        let work = Unchecked { [unowned self] in record(body) }
        disk.interrupt { [disk, library] call in
            // Roots are written, and files synced, without a lock. A durable commit begins with identity records, which
            // may lie where roots lie in other files.
            if case .write(_, let offset) = call, durable || offset >= 65_536 { return }
            // With few files open, one may be synced and closed for another that is read with a lock held.
            guard library.session.catalogue.lock.tryLock() else { return }
            library.session.catalogue.lock.unlock()
            guard library.session.space.parts.lock.tryLock() else { return }
            library.session.space.parts.lock.unlock()
            disk.interrupt(nil)
            work.body()
        }
    }

    private struct Unchecked: @unchecked Sendable {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    /// Publishes roots, or tries to; the last has this tree.
    func publish(_ tree: TreeDump, _ body: () throws -> Void) throws {
        newestTree = nil
        var failure: (any Error)?
        do { try body() } catch { failure = error }
        calls.injectNothing()
        try settle()
        if let newestTree, newestTree != tree {
            throw CrashFailure("a commit has another tree: \(newestTree.difference(from: tree))")
        }
        if let failure { throw failure }
    }

    /// A durable commit of which a sync fails after `count` that do not, unless it has fewer. Its root may be written.
    func failToCommit(afterSyncs count: Int) throws {
        disk.failSync(after: count)
        defer { disk.failSync(after: nil) }
        try commit(durable: true)
    }

    // MARK: The vault as a whole

    /// As `obscura passwd`; the vault is unmounted.
    func changePassword() throws {
        let new = password == "one" ? "two" : "one"
        note(.passwords([password, new]))
        try Vault.changePassword(
            vault.path, old: MemoryVault.password(password), new: MemoryVault.password(new),
            calls: calls)
        password = new
        note(.passwords([new]))
    }

    /// As `obscura grow` by a segment, mounted or not.
    func grow() throws {
        guard vault.spaceCount > 1 else { return }
        var count: UInt64 = 0
        while MemoryVault.segment(Int(count), of: vault.layout, in: disk.state.live) != nil { count += 1 }
        try Vault.grow(
            vault.path, bytesPerSpace: (count + 1) * vault.segmentBytes, calls: calls
        ) { _, _ in }
    }
}

/// A violation, in words.
struct CrashFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
