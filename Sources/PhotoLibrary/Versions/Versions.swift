package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat

/// Versions of edited photos; see *Versions* in `Tree.md` of `PhotoLibrary`.
package final class Versions {
    private unowned let tree: Tree
    var policy: VersionPolicy { tree.options.versions }
    /// When the newest versions were taken, by the photos' inodes.
    private var lastKept: RecentTable<UInt64, Int64>

    init(_ tree: Tree) {
        self.tree = tree
        lastKept = RecentTable(countMax: tree.options.limits.formerPhotos)
    }

    // MARK: Making

    /// Keeps the saved bytes of a photo that is about to be changed, or replaced by another file, if they are due: see
    /// `needsVersion`. Those of another photo, taken at another time than the last, are always kept. The version gets a
    /// snapshot of the photo's content, or shares that content, which then must not change any more.
    ///
    /// - Parameters:
    ///   - ino: the inode that is the photo from now on.
    ///   - rowsMax: the most rows of a snapshot; 0 if the photo is about to lose all of its bytes.
    /// - Returns: whether there is a new version.
    package func keepVersion(
        of photo: Inode, for ino: UInt64, snapshotRows rowsMax: Int = 0, now: Timestamp
    ) throws(FileError) -> Bool {
        guard policy != .off, photo.isRegular, !photo.isVersion, photo.row.size > 0 else { return false }
        let present = try versionsDirectory(of: ino)
        let replaced = tree.clocks.wall()
        var last: Int64?
        // Without an original the version is always kept, as the original.
        if let present, try tree.has(present, originalName) { last = try lastReplaced(in: present) }
        let captured = photo.isPhoto ? try tree.photos.photo(photo).captured : nil
        let isAnother = captured != nil && lastKept[ino] != nil && captured != lastKept[ino]
        guard isAnother || needsVersion(lastReplaced: last, now: replaced) else { return false }
        let snapshot = try newSnapshot(of: photo, rowsMax: rowsMax)
        let isSaved = snapshot == nil ? photo.state?.share() : photo.state?.isSaved
        guard isSaved ?? true else { return false }
        let directory =
            if let present { present } else { try makeVersionsDirectory(of: ino, like: photo, now: now) }
        let name = last == nil ? originalName : versionName(replaced: replaced)
        let free = present == nil ? name : try tree.freeName(directory, name)
        try addVersion(of: photo, snapshot, named: free, to: directory, replaced: replaced, now: now)
        if let captured { lastKept.insert(captured, for: ino) }
        return true
    }

    /// A number for a snapshot of a photo's content; nil if the content must be shared instead.
    private func newSnapshot(of photo: Inode, rowsMax: Int) throws(FileError) -> UInt64? {
        let content = photo.row.content
        guard rowsMax > 0, photo.row.allocated > 0, try tree.tables.copies.users(of: content) == 1,
            let id = SnapshotID.make(of: content, number: tree.counters.content),
            try tree.tables.extents.firstRuns(of: content, limit: rowsMax + 1).count <= rowsMax
        else { return nil }
        _ = tree.makeContent()
        return id
    }

    private func addVersion(
        of photo: Inode, _ snapshot: UInt64?, named name: [UInt8], to directory: Inode, replaced: Int64,
        now: Timestamp
    ) throws(FileError) {
        let content = photo.row.content
        let version = tree.makeInode(
            mode: photo.row.mode, in: directory, Caller(uid: photo.row.uid, gid: photo.row.gid), now: now,
            content: snapshot ?? content)
        var row = photo.row
        (row.ino, row.nlink, row.content) = (version.ino, 1, version.row.content)
        row.flags = snapshot == nil ? [.version, .shared] : .version
        // The time of access is that of the note that it is too old; see `VersionExpiry`.
        (row.accessed, row.changed) = (Timestamp(seconds: 0), Timestamp(seconds: replaced))
        version.row = row
        try tree.addEntry(directory, name, version, now: now)
        if let snapshot { return try tree.tables.snapshots.store(snapshot) }
        photo.row.flags.insert(.shared)
        tree.touch(photo)
        try tree.tables.copies.store(users: try tree.tables.copies.users(of: content) + 1, of: content)
    }

    /// Makes an imported file, which has no name yet, a version of a photo.
    package func adoptVersion(
        _ file: Inode, named name: [UInt8], of photo: UInt64, replaced: Int64, now: Timestamp
    ) throws(FileError) {
        var directory = try versionsDirectory(of: photo)
        if directory == nil {
            directory = try makeVersionsDirectory(of: photo, like: try tree.inode(photo), now: now)
        }
        guard let directory else { return }
        file.row.flags.insert(.version)
        (file.row.accessed, file.row.changed) = (Timestamp(seconds: 0), Timestamp(seconds: replaced))
        try tree.addEntry(directory, try tree.freeName(directory, name), file, now: now)
        file.row.nlink = 1
        tree.touch(file)
    }

    /// When the bytes of the newest version in a directory were replaced.
    private func lastReplaced(in directory: Inode) throws(FileError) -> Int64 {
        var last: UInt64?
        try tree.tables.dentries.each(in: directory.ino, after: 0) {
            last = $0.ino
            return true
        }
        guard let last else { return Int64.min }
        return try tree.inode(last).row.changed.seconds
    }

    // MARK: Directories

    /// The directory of a file's own versions; nil if it has none.
    package func versionsDirectory(of ino: UInt64) throws(FileError) -> Inode? {
        guard let root = try tree.existing(WellKnownInode.versions), root.isDirectory, root.row.size > 0,
            let found = try tree.find(root, versionsDirectoryName(of: ino))?.inode, found.isDirectory
        else { return nil }
        return found
    }

    /// The directory of the versions that are shown for a file: its own, or those of the photo that it is a copy of.
    package func versionsDirectory(shownFor file: Inode) throws(FileError) -> Inode? {
        guard file.isRegular else { return nil }
        if let own = try versionsDirectory(of: file.ino) { return own }
        guard file.isCopy, let photo = try tree.copies.photo(representedBy: file) else { return nil }
        return try versionsDirectory(of: photo.ino)
    }

    /// Whether a file in a directory has versions.
    package func hasVersions(in directory: Inode) throws(FileError) -> Bool {
        guard let root = try tree.existing(WellKnownInode.versions), root.row.size > 0 else { return false }
        var isFound = false
        try tree.tables.versions.eachFile(in: directory.ino, after: 0) { _ in
            isFound = true
            return false
        }
        return isFound
    }

    private func makeVersionsDirectory(
        of ino: UInt64, like photo: Inode, now: Timestamp
    ) throws(FileError) -> Inode {
        let root = try versionsRoot()
        let made = tree.makeInode(
            mode: directoryType | 0o700, in: root, Caller(uid: photo.row.uid, gid: photo.row.gid), now: now)
        made.row.nlink = 2
        try tree.addEntry(root, versionsDirectoryName(of: ino), made, now: now)
        return made
    }

    /// Makes the versions of a file those of another, which takes its place.
    func moveVersions(of old: UInt64, to new: UInt64, _ change: Change) throws(FileError) {
        guard old != new, let directory = try versionsDirectory(of: old) else { return }
        let root = try versionsRoot()
        if let other = try versionsDirectory(of: new) {
            try renameOriginal(in: other, now: change.now)
            for row in try tree.rows(of: other) {
                let file = try tree.inode(row.ino)
                try tree.removeEntry(other, row.id, file, now: change.now)
                try tree.addEntry(directory, try tree.freeName(directory, row.name), file, now: change.now)
            }
            try removeDirectory(other, change)
        }
        for row in try tree.tables.dentries.names(of: directory.ino) {
            try tree.removeEntry(root, row.id, directory, now: change.now)
        }
        try tree.addEntry(root, versionsDirectoryName(of: new), directory, now: change.now)
        if let captured = lastKept.remove(old) { lastKept.insert(captured, for: new) }
    }

    /// Keeps the bytes of a photo that another file replaces, and makes its versions those of the other. The original
    /// of both is that of the photo.
    ///
    /// - Parameter isSame: whether both have the same bytes.
    func handOverVersions(of old: Inode, to new: Inode, isSame: Bool, _ change: Change) throws(FileError) {
        if try versionsDirectory(of: old.ino) != nil {
            try moveVersions(of: old.ino, to: new.ino, change)
        } else if let own = try versionsDirectory(of: new.ino) {
            try renameOriginal(in: own, now: change.now)
        }
        if !isSame { _ = try keepVersion(of: old, for: new.ino, now: change.now) }
    }

    /// Renames the `original` in a directory after its time, because an older version becomes the original.
    func renameOriginal(in directory: Inode, now: Timestamp) throws(FileError) {
        guard let (id, file, _) = try tree.find(directory, originalName) else { return }
        let name = try tree.freeName(directory, versionName(replaced: file.row.changed.seconds))
        try tree.removeEntry(directory, id, file, now: now)
        try tree.addEntry(directory, name, file, now: now)
    }

    /// Removes an empty directory of versions.
    private func removeDirectory(_ directory: Inode, _ change: Change) throws(FileError) {
        for row in try tree.tables.dentries.names(of: directory.ino) {
            try tree.removeEntry(try tree.inode(row.parent), row.id, directory, now: change.now)
        }
        try tree.removeLink(to: directory, now: change.now)
        change.inodesToDestroy.append(directory.ino)
    }

    // MARK: Giving up

    /// Removes the versions of a file that is destroyed.
    package func removeVersions(of ino: UInt64, _ change: Change) throws(FileError) {
        guard let directory = try versionsDirectory(of: ino) else { return }
        for row in try tree.rows(of: directory) { try discardVersion(row, change) }
    }

    /// Removes a version, if it still has that name; and the directory with the last one. Once the lock is released it
    /// is destroyed, unless it is open.
    package func discardVersion(_ row: DentryRow, _ change: Change) throws(FileError) {
        guard try tree.tables.dentries.entry(row.parent, row.name)?.id == row.id else { return }
        let (directory, file) = (try tree.inode(row.parent), try tree.inode(row.ino))
        try tree.removeEntry(directory, row.id, file, now: change.now)
        try tree.removeLink(to: file, now: change.now)
        if file.row.nlink == 0 { change.inodesToDestroy.append(file.ino) }
        if directory.row.size == 0 { try removeDirectory(directory, change) }
    }

    // MARK: Showing

    /// The photo that a version is of.
    package func file(ofVersion version: Inode) throws(FileError) -> Inode? {
        guard let name = try tree.names(of: version).first,
            let directory = try tree.tables.dentries.names(of: name.parent).first,
            let ino = versionedFile(named: directory.name)
        else { return nil }
        return try tree.existing(ino)
    }

    /// The attributes of a version: its size and times, with owner and permissions of its photo, but not writable.
    package func versionAttributes(_ version: Inode) throws(FileError) -> Attributes {
        var shown = tree.attributes(version)
        if let file = try file(ofVersion: version) {
            let like = tree.attributes(file)
            (shown.uid, shown.gid, shown.mode) = (like.uid, like.gid, like.mode)
        }
        shown.mode = regularType | shown.mode & 0o444
        shown.accessed = shown.modified
        return shown
    }

    /// The attributes of `.versions` beside photos: as the directory's.
    package func attributes(ofVersionsIn directory: Inode) -> Attributes {
        var shown = tree.attributes(directory)
        shown.mode = directoryType | shown.mode & 0o555
        (shown.nlink, shown.size) = (2, 0)
        return shown
    }

    /// The attributes of the directory of a file's versions. Read permission for the file permits entering
    /// it.
    package func attributes(ofVersionsOf file: Inode, in directory: Inode) -> Attributes {
        var shown = tree.attributes(file)
        let read = shown.mode & 0o444
        shown.mode = directoryType | read | read >> 2
        (shown.nlink, shown.size, shown.blocks) = (2, 0, 0)
        (shown.modified, shown.changed) = (directory.row.modified, directory.row.modified)
        return shown
    }

    /// The name of a file from which the shown names of its versions get their extension.
    package func nameForVersions(of file: Inode) throws(FileError) -> [UInt8] {
        if let own = try tree.moments.moment(of: file) { return own.row.name }
        return try tree.names(of: file).first?.name ?? []
    }

    /// The parent of the directories of versions, made if it is missing.
    package func versionsRoot() throws(FileError) -> Inode {
        if let found = try tree.existing(WellKnownInode.versions) { return found }
        var row = InodeRow(
            ino: WellKnownInode.versions, mode: directoryType | 0o700, uid: tree.options.owner.uid,
            gid: tree.options.owner.gid, now: .now())
        row.nlink = 2
        row.parent = WellKnownInode.root
        // So that nothing below it is classified.
        row.flags.insert(.working)
        try tree.tables.inodes.store(row)
        return try tree.inode(WellKnownInode.versions)
    }
}
