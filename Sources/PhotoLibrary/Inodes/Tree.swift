package import CatalogueRows
package import FileRequests
package import KernelNames
package import LinuxIO
package import VaultCatalogue
import VaultFormat

/// The inodes and names of a space, and what there is about photos, a type for each concept. Only under the catalogue's
/// lock; all changes belong to its transaction.
package final class Tree {
    package let tables: Tables
    package let options: LibraryOptions
    var clocks: Clocks { options.clocks }
    package private(set) lazy var photos = Photos(self)
    package private(set) lazy var moments = Moments(self)
    package private(set) lazy var groups = Groups(self)
    package private(set) lazy var effects = Effects(self)
    package private(set) lazy var copies = Copies(self)
    package private(set) lazy var companions = Companions(self)
    package private(set) lazy var sidecars = Sidecars(self)
    package private(set) lazy var renames = Renames(self)
    package private(set) lazy var saves = Saves(self)
    package private(set) lazy var imports = Imports(self)
    package private(set) lazy var trash = Trash(self)
    package private(set) lazy var contents = Contents(self)
    package private(set) lazy var records = Records(self)
    package private(set) lazy var versions = Versions(self)
    package private(set) lazy var views = Views(self)
    package private(set) lazy var likenesses = Likenesses(self)
    package private(set) lazy var positions = Positions(self)
    package private(set) lazy var pendingPictures = PendingPictures(self)
    package private(set) lazy var pictureNames = PictureNames(self)
    package var counters: Counters
    private var storedCounters: Counters
    private var inodes: [UInt64: Inode] = [:]
    private var dirty: [Inode] = []
    package var orphans = Orphans()
    /// Inodes with this number and above were made since the library was opened.
    package let firstOfSession: UInt64
    /// Names in the kernel's cache, and notices for it, sent when the lock is released.
    package var kernelNames: KernelNames
    package var marks = RecordMarks()
    /// Marked inodes that lost a name in a day.
    package var hasLostMoment: Set<UInt64> = []
    /// The mount and the commit of the newest identity records when the space was opened.
    package let recorder: (epoch: UInt64, generation: UInt64)
    /// Files that changed since the newest durable root.
    package var unwritten: UnwrittenFiles
    /// Whether this session made the space's root directories.
    package var hasMadeRootDirectories = false

    package init(_ tables: Tables, _ options: LibraryOptions) throws(FileError) {
        (self.tables, self.options) = (tables, options)
        kernelNames = KernelNames(
            threadsMax: options.limits.retryingThreads, lookupsMin: options.limits.dayLookups,
            listingsMax: options.limits.keptListings, staleInodesMin: options.limits.staleInodes,
            virtualNamesMin: options.limits.virtualNames)
        unwritten = UnwrittenFiles(countMax: options.limits.unwrittenFiles)
        counters = try tables.counters.current()
        storedCounters = counters
        firstOfSession = counters.ino
        recorder = try tables.identities.recorder()
    }

    // MARK: Inodes

    /// The inode with that number. Throws `.stale` if there is none.
    package func inode(_ ino: UInt64) throws(FileError) -> Inode {
        if let known = inodes[ino] { return known }
        guard let row = try tables.inodes.row(ino) else { throw .stale }
        let inode = Inode(row, countedBytes: countedBytes(of: row))
        inode.dentries = kernelNames.loadedState(of: ino)
        remember(inode)
        return inode
    }

    /// As `inode`. Throws `.notDirectory` if it is not a directory.
    package func directory(_ ino: UInt64) throws(FileError) -> Inode {
        let inode = try inode(ino)
        guard inode.isDirectory else { throw .notDirectory }
        return inode
    }

    /// The inode with that number; nil if there is none.
    package func existing(_ ino: UInt64) throws(FileError) -> Inode? {
        do throws(FileError) { return try inode(ino) } catch {
            if error == .stale { return nil }
            throw error
        }
    }

    /// The inode if it is in memory.
    package func cached(_ ino: UInt64) -> Inode? { inodes[ino] }

    /// The open files that have one of the contents.
    package func openFiles(of contents: Set<UInt64>) -> [FileState] {
        inodes.values.compactMap { inode in
            inode.state.flatMap { contents.contains($0.content) ? $0 : nil }
        }
    }

    private func remember(_ inode: Inode) { inodes[inode.ino] = inode }

    /// Drops unused inodes from memory if there are many. Called between operations, never within one: an
    /// operation would get two objects for one inode. Inodes whose dentries may be outdated in the kernel
    /// stay.
    @inline(__always)
    package func trim(isKernelNotified: @autoclosure () -> Bool) {
        if inodes.count > options.limits.cachedInodes { dropHalf(isKernelNotified()) }
    }

    /// Inodes in memory.
    package var cachedInodeCount: Int { inodes.count }

    /// Writes the rows of changed inodes if there are so many that none could be dropped. An error recurs in
    /// the commit, which writes them otherwise.
    private func storeIfMany() {
        if dirty.count > options.limits.cachedInodes / 2 { try? storeChanges() }
    }

    private func dropHalf(_ isKernelNotified: Bool) {
        storeIfMany()
        // Half of them, in no order: a cache miss now and then is cheaper than an ordered list.
        var spare = inodes.count - options.limits.cachedInodes / 2
        inodes = inodes.filter { _, inode in
            if inode.isDirty || inode.state != nil || spare == 0 { return true }
            if !isKernelNotified && inode.dentries.isDoubtful { return true }
            spare -= 1
            kernelNames.noteEvicted(inode.ino, inode.dentries)
            return false
        }
    }

    /// A new inode without a name. Its owner depends on `caller` and the directory that it will be in.
    ///
    /// - Parameter content: the sealed content of a regular file; nil for a new one.
    package func makeInode(
        mode: UInt32, in directory: Inode, _ caller: Caller, now: Timestamp, content: UInt64? = nil
    ) -> Inode {
        let inherits = directory.row.mode & setGroupID != 0
        var mode = mode
        if inherits && mode & fileTypeMask == directoryType { mode |= setGroupID }
        let (uid, gid) = options.mountedByRoot ? (caller.uid, caller.gid) : options.owner
        var row = InodeRow(
            ino: counters.ino, mode: mode, uid: uid,
            gid: inherits && options.mountedByRoot ? directory.row.gid : gid, now: now)
        counters.ino += 1
        if mode & fileTypeMask == regularType { row.content = content ?? makeContent() }
        let inode = Inode(row, countedBytes: 0)
        if inode.isDirectory { inode.nameHashes = [] } else { inode.names = [] }
        remember(inode)
        touch(inode)
        return inode
    }

    package func makeContent() -> UInt64 {
        defer { counters.content += 1 }
        return counters.content
    }

    /// Notes that the inode's row must be written.
    @inline(__always)
    package func touch(_ inode: Inode) {
        guard !inode.isDirty else { return }
        inode.isDirty = true
        dirty.append(inode)
    }

    /// Whether changes are still only in memory.
    package var hasChanges: Bool { !dirty.isEmpty || counters != storedCounters }

    /// Inodes whose rows are to be written.
    package var changedInodes: Int { dirty.count }

    /// Files that changed since the newest durable root, including those changed only in memory.
    package var unwrittenInodes: Set<UInt64> {
        unwritten.inodes.union(dirty.filter { $0.isDirty && $0.isRegular }.map(\.ino))
    }

    /// Drops a destroyed inode.
    package func forgetDestroyed(_ inode: Inode) throws(FileError) {
        inode.isDirty = false
        count(inode, as: 0)
        inodes[inode.ino] = nil
        try orphans.forget(inode.ino, tables)
    }

    /// Writes rows and counters that are still only in memory: before the transaction ends, and before a query that
    /// selects inode rows by anything but their number.
    package func storeChanges() throws(FileError) {
        for inode in dirty where inode.isDirty {
            if inode.isRegular { unwritten.note(inode.ino) }
            try tables.inodes.store(inode.row)
            inode.isDirty = false
            count(inode, as: countedBytes(of: inode.row))
            marks.add(inode.ino)
        }
        dirty.removeAll(keepingCapacity: true)
        try orphans.store(tables)
        if counters != storedCounters {
            try tables.counters.store(counters)
            storedCounters = counters
        }
        if !marks.new.isEmpty { try views.settleViewNames() }
        try marks.store(tables)
    }

    /// Maintains the total of `countedBytes`.
    private func count(_ inode: Inode, as bytes: UInt64) {
        counters.photoBytes = counters.photoBytes &- inode.countedBytes &+ bytes
        inode.countedBytes = bytes
    }

    // MARK: Entries

    /// The directory's entry with that name.
    package func find(
        _ directory: Inode, _ name: [UInt8]
    ) throws(FileError) -> (id: UInt64, inode: Inode, isMember: Bool)? {
        guard try mayHave(directory, name), let found = try tables.dentries.entry(directory.ino, name)
        else { return nil }
        return (found.id, try inode(found.ino), found.isMember)
    }

    /// Adds a name. Maintains the link counts of directories and their parents; the caller maintains all others.
    package func addEntry(
        _ directory: Inode, _ name: [UInt8], _ child: Inode, isMember: Bool = false, isLink: Bool = false,
        now: Timestamp
    ) throws(FileError) {
        let row = DentryRow(
            parent: directory.ino, id: counters.dentry, name: name, ino: child.ino, isMember: isMember,
            isLink: isLink)
        try insert(row, in: directory, child)
        let wasUnlisted = directory.isUnlistedDay
        directory.row.countEntries(by: 1)
        if child.isDirectory {
            child.row.parent = directory.ino
            if isWorkingDirectoryName(name) {
                child.row.flags.insert(.working)
            } else {
                child.row.flags.remove(.working)
            }
            touch(child)
            if !child.isUnlistedDay { directory.row.countLinks(by: 1) }
        }
        directory.row.modified = now
        directory.row.changed = now
        touch(directory)
        if wasUnlisted { try listingChanged(by: 1, now) }
    }

    /// Removes a name; see `addEntry`.
    package func removeEntry(_ directory: Inode, _ id: UInt64, _ child: Inode, now: Timestamp)
        throws(FileError)
    {
        try tables.dentries.delete(directory.ino, id)
        kernelNames.noteNames(of: directory.ino)
        kernelNames.dropVirtualNames(of: child.ino)
        child.names?.removeAll { $0.id == id }
        marks.add(child.ino)
        if directory.isDay { hasLostMoment.insert(child.ino) }
        directory.row.countEntries(by: -1)
        if child.isDirectory && !child.isUnlistedDay { directory.row.countLinks(by: -1) }
        directory.row.modified = now
        directory.row.changed = now
        touch(directory)
        if directory.isUnlistedDay { try listingChanged(by: -1, now) }
    }

    /// Retargets a name to another file, not a directory.
    package func retarget(
        _ directory: Inode, _ id: UInt64, from old: Inode, to child: Inode, now: Timestamp
    ) throws(FileError) {
        old.names?.removeAll { $0.id == id }
        try tables.dentries.retarget(directory.ino, id, to: child.ino)
        kernelNames.noteNames(of: directory.ino)
        kernelNames.dropVirtualNames(of: old.ino)
        child.names = nil
        marks.add(old.ino)
        marks.add(child.ino)
        directory.row.modified = now
        directory.row.changed = now
        touch(directory)
    }

    /// Notes that a day was added to the listing of moments, or removed from it.
    private func listingChanged(by difference: Int, _ now: Timestamp) throws(FileError) {
        let moments = try inode(WellKnownInode.moments)
        moments.row.countLinks(by: difference)
        moments.row.modified = now
        moments.row.changed = now
        touch(moments)
        kernelNames.noteChange(of: WellKnownInode.moments)
    }

    /// Notes that a name of this inode was removed. Without any, it is an orphan that waits for its last user, or a
    /// copy that waits for its photo to be restored.
    package func removeLink(to inode: Inode, now: Timestamp) throws(FileError) {
        inode.row.countLinks(by: inode.isDirectory ? -Int(inode.row.nlink) : -1)
        inode.row.changed = now
        touch(inode)
        if inode.row.nlink == 0, try !trash.waitsForPhoto(inode) { orphans.add(inode.ino) }
    }

    /// The bytes of an inode that count into the total of photos, of which thumbnails may take a share.
    private func countedBytes(of row: InodeRow) -> UInt64 {
        row.flags.contains(.photo) ? row.countedBytes : 0
    }

    /// Notes a new name of this inode, which is not a directory.
    package func addLink(to inode: Inode, now: Timestamp) {
        inode.row.countLinks(by: 1)
        inode.row.changed = now
        touch(inode)
    }

    // MARK: Attributes

    /// The attributes for stat(2), including unsaved ones.
    package func attributes(_ inode: Inode) -> Attributes {
        var shown = attributes(of: inode.row)
        inode.state?.overlay(&shown)
        return shown
    }

    /// The attributes of an up-to-date row.
    package func attributes(of row: InodeRow) -> Attributes {
        var mode = row.mode
        if let umask = options.umask { mode &= ~(umask & permissionMask) }
        // Nothing can be made at the root: file managers then do not offer it.
        if row.ino == WellKnownInode.root { mode &= ~0o222 }
        let kept = options.mountedByRoot
        return Attributes(
            ino: row.ino, mode: mode, nlink: row.nlink,
            uid: options.uid ?? (kept ? row.uid : options.owner.uid),
            gid: options.gid ?? (kept ? row.gid : options.owner.gid), rdev: row.rdev,
            size: row.size, blocks: (row.allocated + 511) / 512, accessed: row.accessed,
            modified: row.modified,
            changed: row.changed)
    }

    /// The reply to a lookup of `inode` in that directory.
    package func entry(_ inode: Inode, in directory: Inode) throws(FileError) -> Entry {
        Entry(
            attributes: attributes(inode), entryTimeout: try entryTimeout(in: directory),
            attributeTimeout: Self.attributeTimeout(of: inode.row))
    }

    /// How long the kernel may cache names of a directory, in seconds: in days, `moments` and the trash not
    /// at all. The kernel keeps the time of a name that it moves out of the trash into a day. There a
    /// restored photo may get a numbered name, and the cached name be another file's.
    func entryTimeout(in directory: Inode) throws(FileError) -> Double {
        if directory.area == .moments || directory.isDay { return KernelTimeout.none }
        return try isInTrash(directory) ? KernelTimeout.none : KernelTimeout.long
    }

    /// How long the kernel may cache an inode's attributes, in seconds. For days and `moments` it is short or
    /// none: classification changes them so often that notices would cost more. A day is looked up at each
    /// use, and its attributes are needed right after, to check permissions.
    package static func attributeTimeout(of row: InodeRow) -> Double {
        if row.day != 0 { return KernelTimeout.brief }
        return row.ino == WellKnownInode.moments ? KernelTimeout.none : KernelTimeout.long
    }
}
