/// Tracks dentries that the kernel may still cache although they are outdated: the inodes that it may reach
/// by them, the threads that received ESTALE, each thread's last lookup, and the notices to be sent. See the
/// article.
///
/// Guarded by the lock of the tree that owns it. Inodes are numbers here; threads are numbered as by gettid(2).
public struct KernelNames: Sendable {
    private let threadsMax: Int
    private var retries: [Int32: Retry] = [:]
    /// Threads whose rename received ESTALE.
    private var renaming: Set<Int32> = []
    private var lookups: DayLookups
    private var virtualNames: VirtualNames
    /// Inodes that left memory while the kernel might cache an outdated dentry for them. They stay marked
    /// even after all notices: a request by the outdated name may already be on its way.
    private var staleInodes: RecentTable<UInt64, Void>
    /// Listings of directories that the kernel keeps.
    public var listings: KeptListings
    /// Notices for the kernel, oldest first: sent, and removed, when the lock is released.
    public private(set) var notices: [Notice] = []

    /// - Parameters:
    ///   - threadsMax: the number of threads that received ESTALE and are remembered at most.
    ///   - lookupsMin: the number of threads whose last lookup is remembered at least.
    ///   - listingsMax: the number of closed directories whose listings the kernel keeps at most.
    ///   - staleInodesMin: the number of inodes with outdated names, out of memory, that are remembered at least.
    ///   - virtualNamesMin: the number of inodes whose names in virtual directories are remembered at least.
    public init(
        threadsMax: Int, lookupsMin: Int, listingsMax: Int, staleInodesMin: Int, virtualNamesMin: Int
    ) {
        self.threadsMax = threadsMax
        lookups = DayLookups(threadsMax: lookupsMin)
        listings = KeptListings(directoriesMax: listingsMax)
        staleInodes = RecentTable(countMax: staleInodesMin)
        virtualNames = VirtualNames(inodesMin: virtualNamesMin)
    }

    /// The state of a thread that received ESTALE.
    private enum Retry: Equatable {
        /// It is expected to look the name up again.
        case refused
        /// It did: the name resolved to this inode.
        case found(UInt64)
    }

    /// A message that makes the kernel drop its cached copies. `isInDay`: the kernel looks the name up whenever it uses
    /// it, and keeps it otherwise.
    public enum Notice: Sendable, Equatable {
        /// The name may resolve to another inode: the kernel looks it up again when it is next used.
        case entry(parent: UInt64, name: [UInt8], isInDay: Bool)
        /// The name resolves to another inode or to none: the kernel drops it at once.
        case lostEntry(parent: UInt64, name: [UInt8], isInDay: Bool)
        /// The attributes of an inode changed.
        case attributes(UInt64)
        /// The bytes of an inode changed, or the names of a directory.
        case inode(UInt64)
    }

    // MARK: Requests

    /// Whether a request by a thread must fail with ESTALE, because it may have reached the inode by an outdated name.
    /// Even after a lookup of the right name, by this thread or another, the kernel may still use the outdated one.
    ///
    /// - Parameter isNotified: whether the kernel has received all notices. Evaluated for few inodes only.
    public mutating func mustRetry(
        _ ino: UInt64, _ dentries: inout DentryState, by thread: Int32,
        isNotified: @autoclosure () -> Bool
    ) -> Bool {
        let retry = retries.isEmpty ? nil : retries.removeValue(forKey: thread)
        if dentries.isUnconfirmed && isNotified() { dentries.isUnconfirmed = false }
        return dentries.mayBeStale || dentries.isUnconfirmed && retry != .found(ino)
    }

    /// Whether a rename must fail with ESTALE, once for each thread: the kernel renames the dentry that it caches, and
    /// if that is outdated, the kernel would give the new name to the inode that had the old name before, and no notice
    /// would correct it.
    ///
    /// - Parameter isNotified: whether the kernel has received all notices. Evaluated for few inodes only.
    public mutating func mustRetryRename(
        of dentries: inout DentryState, by thread: Int32, isNotified: @autoclosure () -> Bool
    ) -> Bool {
        let isRepeated = !renaming.isEmpty && renaming.remove(thread) != nil
        if dentries.hasNewNames && isNotified() { dentries.hasNewNames = false }
        guard dentries.hasNewNames, !isRepeated else { return false }
        // Entries of threads that ended meanwhile would never be removed.
        if renaming.count >= threadsMax { renaming = [] }
        renaming.insert(thread)
        return true
    }

    /// Notes that a thread received ESTALE: the kernel makes it look the name up again, once.
    public mutating func noteRefused(_ thread: Int32) {
        // Entries of threads that ended meanwhile would never be removed.
        if retries.count >= threadsMax { retries = [:] }
        retries[thread] = .refused
    }

    /// Notes a lookup of one of an inode's names.
    ///
    /// - Parameters:
    ///   - continuesPath: whether the kernel goes on from the inode: a directory or a symbolic link.
    ///   - isNotified: whether the kernel has received all notices.
    public mutating func noteLookup(
        of ino: UInt64, _ dentries: inout DentryState, continuesPath: Bool, by thread: Int32,
        isNotified: @autoclosure () -> Bool
    ) {
        if !retries.isEmpty { noteRetry(ino, dentries, continuesPath, thread) }
        guard dentries.mayBeStale || dentries.isUnconfirmed else { return }
        dentries.isUnconfirmed = !isNotified()
        dentries.mayBeStale = false
    }

    private mutating func noteRetry(
        _ ino: UInt64, _ dentries: DentryState, _ continuesPath: Bool, _ thread: Int32
    ) {
        let found = Retry.found(ino)
        // Threads that found it before may have used a name that it has lost.
        if dentries.mayBeStale { retries = retries.filter { $0.value != found } }
        guard !continuesPath, let retry = retries[thread] else { return }
        // The kernel may look the name up twice; then it uses the result, or never does.
        retries[thread] = retry == .refused || retry == found ? found : nil
    }

    /// Notes by which kind of directory a thread found an inode: `isMarked` if its links are to be told apart.
    public mutating func noteLookup(of ino: UInt64, isInDayOrView isMarked: Bool, by thread: Int32) {
        lookups.note(ino, isMarked: isMarked, by: thread)
    }

    /// Whether the thread's last lookup of the inode was in a marked directory, for one link(2): that tells only the
    /// inode; the kernel looks its name up just before, in the same thread. A name in an album it has cached: without
    /// a lookup, a second link is of such a name.
    public mutating func takeLookupInDay(of ino: UInt64, by thread: Int32) -> Bool {
        lookups.take(ino, by: thread)
    }

    /// Notes another request of a thread: its last lookup was not for a link.
    @inline(__always)
    public mutating func noteUse(of ino: UInt64, by thread: Int32) { _ = lookups.take(ino, by: thread) }

    // MARK: Inodes in memory

    /// Notes that an inode leaves memory.
    public mutating func noteEvicted(_ ino: UInt64, _ dentries: DentryState) {
        if dentries.mayBeStale { staleInodes.insert((), for: ino) }
    }

    /// The state of an inode that comes into memory.
    public mutating func loadedState(of ino: UInt64) -> DentryState {
        var state = DentryState()
        if !staleInodes.isEmpty { state.mayBeStale = staleInodes.remove(ino) != nil }
        return state
    }

    // MARK: Changes

    /// Notes a name of an inode that the kernel does not know, or caches for longer than it may.
    public mutating func noteArrival(
        of dentries: inout DentryState, as name: [UInt8], in directory: UInt64, isInDay: Bool
    ) {
        notices.append(.entry(parent: directory, name: name, isInDay: isInDay))
        dentries.mayBeStale = true
    }

    /// Notes that a name was removed, or given to another inode, without a request of the kernel for that
    /// name.
    ///
    /// - Parameter isInDay: whether the kernel looks up names in this directory whenever it uses them.
    public mutating func noteLoss(of name: [UInt8], in directory: UInt64, isInDay: Bool) {
        notices.append(.lostEntry(parent: directory, name: name, isInDay: isInDay))
    }

    /// Notes that the kernel has looked an inode up by a name in a virtual directory, which is not among its names. The
    /// kernel keeps the name, and with it the inode, after the inode is gone.
    public mutating func noteVirtualName(_ name: [UInt8], in directory: UInt64, of ino: UInt64) {
        for lost in virtualNames.note(name, in: directory, of: ino) { notices.append(lost) }
    }

    /// Notes that an inode lost a name: it may be about to go.
    @inline(__always)
    public mutating func dropVirtualNames(of ino: UInt64) {
        if !virtualNames.isEmpty { notices += virtualNames.take(ino) }
    }

    /// Notes changed attributes.
    public mutating func noteChange(of ino: UInt64) { notices.append(.attributes(ino)) }

    /// Notes changed bytes.
    public mutating func noteNewBytes(of ino: UInt64) { notices.append(.inode(ino)) }

    /// Notes a name that was added to a directory, removed from it or given to another inode, by any request.
    public mutating func noteNames(of directory: UInt64) {
        if listings.change(directory) { notices.append(.inode(directory)) }
    }

    /// Returns all notices and forgets them.
    public mutating func takeNotices() -> [Notice] {
        defer { notices = [] }
        return notices
    }
}

/// How an inode's names in the kernel's cache relate to its real ones.
public struct DentryState: Sendable {
    /// The kernel may cache an outdated dentry for the inode: a name was removed, given to another inode or
    /// numbered without the kernel's request, or is cached for longer than it may. Cleared by the next lookup
    /// of the inode.
    public var mayBeStale = false
    /// Looked up since `mayBeStale` was set, but before the kernel had received all notices.
    public internal(set) var isUnconfirmed = false
    /// The inode took over another inode's name without a request of the kernel: the kernel may still resolve
    /// that name to the other inode. Cleared once the kernel has received all notices.
    public var hasNewNames = false

    public init() {}

    /// Whether the kernel may cache an outdated dentry for the inode or for one of its names.
    public var isDoubtful: Bool { mayBeStale || isUnconfirmed || hasNewNames }
}

/// For each thread the inode that it looked up last in a marked directory. Remembers between `threadsMax` and twice as
/// many of the newest threads.
struct DayLookups: Sendable {
    private var lookups: RecentTable<Int32, UInt64>

    init(threadsMax: Int) { lookups = RecentTable(countMax: threadsMax) }

    /// The inode that the thread last looked up in a marked directory, unless it has looked it up elsewhere since.
    subscript(thread: Int32) -> UInt64? { lookups[thread] }

    /// Whether the thread last looked that inode up in a marked directory, and has not used the lookup.
    mutating func take(_ ino: UInt64, by thread: Int32) -> Bool {
        guard !lookups.isEmpty, lookups[thread] == ino else { return false }
        lookups.remove(thread)
        return true
    }

    mutating func note(_ ino: UInt64, isMarked: Bool, by thread: Int32) {
        if isMarked {
            lookups.insert(ino, for: thread)
        } else if lookups[thread] == ino {
            lookups.remove(thread)
        }
    }
}
