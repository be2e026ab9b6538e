package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import PhotoRules
import VaultCatalogue
package import VaultFormat
package import VaultStore

/// The trash: `.Trash-UID` at the root, as in the freedesktop specification. Its entries are plain POSIX. A photo that
/// was taken out of moments has its only names there, and a row that records its former names.
extension PhotoTree {
    /// How many names or photos change with a name in moments: all names of a photo, or all photos of a day.
    package func rowsChanging(with inode: Inode, in directory: Inode) -> Int {
        if inode.isDay { return Int(clamping: inode.row.size) }
        return directory.isDay && inode.isPhoto ? Int(inode.row.nlink) : 0
    }

    // MARK: Out of moments, and back

    /// Removes a photo and its copies from moments and all albums, and records their names in albums for a
    /// restore. `name`: the name in moments. The photo must already have a name in the trash; names there
    /// stay. A copy without one is left nameless. Its companions are noted: they go into the caller's trash.
    func removeToTrash(
        _ photo: Inode, named name: [UInt8], _ caller: Caller, now: Timestamp
    ) throws(FileError) {
        var lost: [DentryRow] = []
        for inode in [photo] + (try copies(of: photo)) {
            inode.dentries.mayBeStale = true
            for row in try sql(tables.dentries(of: inode.ino)) {
                let directory = try self.inode(row.parent)
                if !directory.isDay {
                    if try isInTrash(directory) { continue }
                    try sql(tables.addTrashName(row, of: photo.ino))
                }
                lost.append(row)
                try removeEntry(directory, row.id, inode, now: now)
                // Not `unlinked`: a nameless copy waits for its photo, not for its last user.
                inode.row.countLinks(by: -1)
                // The kernel itself removes the dentry of that name in a day.
                if !directory.isDay || row.name != name { noteLost(row, in: directory) }
            }
            inode.row.changed = now
            touch(inode)
            kernelNames.noteChange(of: inode.ino)
        }
        try sql(
            tables.store(TrashRow(ino: photo.ino, id: 0, since: clocks.wall(), name: name)))
        photo.row.flags.insert(.trashed)
        try noteCompanions(ofRemoved: photo, lost: lost, caller)
    }

    /// The trashed photo that a file is, or is a copy of.
    package func trashedPhoto(behind inode: Inode) throws(FileError) -> Inode? {
        guard let photo = try photo(representedBy: inode), photo.isTrashed else { return nil }
        return photo
    }

    /// Whether a nameless inode is a copy that will be restored into an album with its photo in the trash.
    func waitsForPhoto(_ inode: Inode) throws(FileError) -> Bool {
        guard inode.isCopy, let photo = try trashedPhoto(behind: inode) else { return false }
        return try sql(tables.trashNames(of: photo.ino)).contains { $0.ino == inode.ino }
    }

    /// Restores a photo that was taken out: to its own day, unless it was given a name in one, and to the albums that
    /// still exist. An open photo whose last name is gone is not restored: a copy of it that has a name is restored
    /// instead.
    package func restore(_ photo: Inode, now: Timestamp) throws(FileError) {
        guard photo.row.nlink > 0 else {
            let successor = try self.successor(of: photo)
            try leaveTrash(photo)
            if let successor { try restore(successor, now: now) }
            return
        }
        guard let kept = try sql(tables.trashRow(photo.ino, 0)) else { throw .damaged }
        var (names, companions): ([DentryRow], [DentryRow]) = ([], [])
        for row in try sql(tables.trashNames(of: photo.ino)) {
            let isCopy = try existing(row.ino)?.isCopy ?? false
            if isCopy || row.ino == photo.ino { names.append(row) } else { companions.append(row) }
        }
        try noteReturn(of: companions, with: photo, kept.name, names)
        try forgetTrashed(photo)
        photo.dentries.mayBeStale = false
        if try moment(of: photo) == nil {
            try addMoment(photo, day: try self.photo(photo).day, name: kept.name, now: now)
        }
        for row in names { try restoreName(row, now: now) }
        try orphanNameless(names)
        kernelNames.noteChange(of: photo.ino)
    }

    private func restoreName(_ row: DentryRow, now: Timestamp) throws(FileError) {
        guard let inode = try existing(row.ino), let album = try existing(row.parent), album.isDirectory,
            !album.isDay, album.row.nlink > 0
        else { return }
        inode.dentries.mayBeStale = false
        // It may have been restored to this very place.
        if let there = try find(album, row.name), there.inode.ino == inode.ino { return }
        let name = try freeName(album, row.name)
        try addEntry(album, name, inode, isMember: row.isMember, isLink: row.isLink, now: now)
        addLink(to: inode, now: now)
        kernelNames.noteChange(of: album.ino)
        kernelNames.noteChange(of: inode.ino)
    }

    /// Makes copies that got no name back orphans.
    private func orphanNameless(_ names: [DentryRow]) throws(FileError) {
        for ino in Set(names.map(\.ino)) {
            guard let inode = try existing(ino), inode.row.nlink == 0, !orphans.contains(ino) else {
                continue
            }
            makeOrphan(inode)
            inodesToDestroy.append(ino)
        }
    }

    /// Deletes the record of a photo's names before it was taken out.
    private func forgetTrashed(_ inode: Inode) throws(FileError) {
        try sql(tables.deleteTrash(inode.ino, 0))
        try sql(tables.deleteTrashNames(of: inode.ino))
        inode.row.flags.remove(.trashed)
        touch(inode)
    }

    /// Call before a photo in the trash becomes a plain file or is destroyed. A copy of it that has a name there
    /// becomes the photo; without such a copy, nameless copies become orphans.
    func leaveTrash(_ photo: Inode) throws(FileError) {
        guard photo.isTrashed, let kept = try sql(tables.trashRow(photo.ino, 0)) else { return }
        let names = try sql(tables.trashNames(of: photo.ino))
        let isGiven = photo.row.flags.contains(.namedInMoments)
        try forgetTrashed(photo)
        guard let successor = try successor(of: photo) else {
            try orphanNameless(names)
            return
        }
        var row = try self.photo(photo)
        row.ino = successor.ino
        try handOver(photo, to: successor)
        try moveVersions(of: photo.ino, to: successor.ino, now: .now())
        try storePhoto(successor, row)
        setNameGivenInMoments(successor, isGiven: isGiven)
        try sql(tables.store(TrashRow(ino: successor.ino, id: 0, since: kept.since, name: kept.name)))
        for name in names where name.ino != photo.ino {
            try sql(tables.addTrashName(name, of: successor.ino))
        }
        successor.row.flags.insert(.trashed)
    }

    /// The copy that takes the photo's place: the first that has a name.
    private func successor(of photo: Inode) throws(FileError) -> Inode? {
        try copies(of: photo).first { $0.row.nlink > 0 }
    }

    // MARK: Removal by programs without trash support

    /// Whether the trash must keep a file if its name in that directory is removed: a photo of moments, or a file that
    /// was a photo.
    package func isForTrash(_ inode: Inode, in directory: Inode) throws(FileError) -> Bool {
        guard trashDays > 0 else { return false }
        if directory.isDay && inode.isPhoto { return true }
        return try isFormerPhoto(inode, in: directory)
    }

    /// Whether a file outside the trash was a photo, until a program emptied it or wrote something else into it, and
    /// would take the photo's versions along with its only name, which is in that directory.
    func isFormerPhoto(_ inode: Inode, in directory: Inode) throws(FileError) -> Bool {
        guard inode.isRegular, !inode.isPhoto, !inode.isVersion, inode.row.nlink == 1,
            try versionsDirectory(of: inode.ino) != nil
        else { return false }
        return try !isInTrash(directory)
    }

    /// Moves a plain file into the caller's trash: a sidecar, or with its versions a file that was a photo.
    package func removePlainFile(
        _ inode: Inode, _ id: UInt64, named name: [UInt8], in directory: Inode, _ info: TrashInfo?,
        _ caller: Caller, _ space: Space, now: Timestamp
    ) throws(FileError) {
        companionMoves[inode.ino] = nil
        try putIntoTrash(named: name, info, caller, space, now: now) { files, kept throws(FileError) in
            try removeEntry(directory, id, inode, now: now)
            try addEntry(files, kept, inode, now: now)
            try storeTrashAge(of: inode.ino, named: kept, in: files)
        }
        inode.row.changed = now
        touch(inode)
        kernelNames.noteChange(of: inode.ino)
    }

    /// Removes a photo from its day and from all albums: into the caller's trash, with a `.trashinfo` file from which a
    /// file manager restores it, or for good if no trash is kept. Its companions are noted. If the photo has a backup
    /// name next to its own, only this name is removed: an editor tidies up.
    package func removePhoto(
        _ inode: Inode, named name: [UInt8], in directory: Inode, _ info: TrashInfo?, _ caller: Caller,
        _ space: Space,
        now: Timestamp
    ) throws(FileError) {
        let moments = try moments(of: inode)
        if moments.count > 1,
            let one = moments.first(where: { $0.directory.ino == directory.ino && $0.row.name == name })
        {
            try removeEntry(directory, one.row.id, inode, now: now)
            try removeLink(to: inode, now: now)
            kernelNames.noteChange(of: inode.ino)
            return
        }
        guard trashDays > 0 else {
            var lost = try names(of: inode)
            for copy in try copies(of: inode) { lost += try names(of: copy) }
            try removePhoto(inode, now: now)
            try noteCompanions(ofRemoved: inode, lost: lost, caller)
            return
        }
        try putIntoTrash(named: name, info, caller, space, now: now) { files, kept throws(FileError) in
            try addEntry(files, kept, inode, now: now)
            addLink(to: inode, now: now)
            try removeToTrash(inode, named: name, caller, now: now)
        }
    }

    /// Calls `body` with `files` of the caller's trash and a free name in it, and adds the `.trashinfo` file.
    private func putIntoTrash(
        named name: [UInt8], _ info: TrashInfo?, _ caller: Caller, _ space: Space, now: Timestamp,
        _ body: (_ files: Inode, _ kept: [UInt8]) throws(FileError) -> Void
    ) throws(FileError) {
        let (files, infos) = try trashPlace(caller, now: now)
        let kept = try freeTrashName(name, files, infos)
        try body(files, kept)
        if let info { try add(info, named: kept + infoSuffix, to: infos, caller, space, now: now) }
        for directory in [files, infos] { kernelNames.noteChange(of: directory.ino) }
    }

    /// The name of a caller's trash in the root.
    package func trashName(of caller: Caller) -> [UInt8] {
        trashPrefix + Array(String(options.mountedByRoot ? caller.uid : options.owner.uid).utf8)
    }

    /// Makes the caller's trash if it is missing.
    package func makeTrash(of caller: Caller) throws(FileError) { _ = try trashPlace(caller, now: .now()) }

    /// Whether the caller has a trash.
    package func hasTrash(of caller: Caller) throws(FileError) -> Bool {
        try find(inode(WellKnownInode.root), trashName(of: caller)) != nil
    }

    /// `files` and `info` of the caller's trash, made if missing.
    private func trashPlace(
        _ caller: Caller, now: Timestamp
    ) throws(FileError) -> (files: Inode, infos: Inode) {
        let top = try privateDirectory(
            trashName(of: caller), in: inode(WellKnownInode.root), caller, now)
        return (
            try privateDirectory(filesName, in: top, caller, now),
            try privateDirectory(infosName, in: top, caller, now)
        )
    }

    private func privateDirectory(
        _ name: [UInt8], in parent: Inode, _ caller: Caller, _ now: Timestamp
    ) throws(FileError) -> Inode {
        if let found = try find(parent, name) {
            if found.inode.isDirectory { return found.inode }
            guard parent.ino != WellKnownInode.root else { throw .notDirectory }
            // A user's file of this name must not prevent the removal of photos: it is renamed.
            let row = DentryRow(parent: parent.ino, id: found.id, name: name, ino: found.inode.ino)
            let other = try freeName(parent, name)
            try withdraw(row, in: parent, found.inode, now: now)
            try addEntry(parent, other, found.inode, now: now)
        }
        let made = makeInode(mode: directoryType | 0o700, in: parent, caller, now: now)
        made.row.nlink = 2
        try addEntry(parent, name, made, now: now)
        kernelNames.noteChange(of: parent.ino)
        return made
    }

    /// The name, or a numbered form of it, that is free in both directories.
    private func freeTrashName(
        _ name: [UInt8], _ files: Inode, _ infos: Inode
    ) throws(FileError) -> [UInt8] {
        try firstFreeName(name, bytesMax: nameBytesMax - infoSuffix.count) { candidate throws(FileError) in
            guard try sql(tables.dentry(files.ino, candidate)) == nil else { return false }
            return try sql(tables.dentry(infos.ino, candidate + infoSuffix)) == nil
        }
    }

    private func add(
        _ info: TrashInfo, named name: [UInt8], to directory: Inode, _ caller: Caller, _ space: Space,
        now: Timestamp
    ) throws(FileError) {
        guard !info.runs.isEmpty else { return }
        let file = makeInode(mode: regularType | 0o600, in: directory, caller, now: now)
        file.row.nlink = 1
        file.row.content = info.content
        file.row.size = UInt64(info.byteCount)
        file.row.allocated = UInt64(info.byteCount)
        try addEntry(directory, name, file, now: now)
        for run in info.runs { try sql(tables.insert(run, of: info.content)) }
        space.adopt(info.runs)
        info.isAdopted = true
    }

    // MARK: Removal without a request of the kernel

    /// Removes a name in the trash, and its `.trashinfo` file. Appends inodes that have no name left to
    /// `namelessInodes`.
    package func discard(_ row: DentryRow, now: Timestamp, _ namelessInodes: inout [UInt64]) throws(FileError)
    {
        let directory = try inode(row.parent)
        try drop(row, in: directory, now: now, &namelessInodes)
        guard let top = try trash(withFiles: directory), let infos = try find(top, infosName)?.inode,
            infos.isDirectory,
            let info = try find(infos, row.name + infoSuffix), !info.inode.isDirectory
        else { return }
        let infoRow = DentryRow(
            parent: infos.ino, id: info.id, name: row.name + infoSuffix, ino: info.inode.ino)
        try drop(infoRow, in: infos, now: now, &namelessInodes)
    }

    /// The trash whose `files` a directory is; nil for all other directories.
    func trash(withFiles directory: Inode) throws(FileError) -> Inode? {
        guard let top = try existing(directory.row.parent), top.row.parent == WellKnownInode.root,
            try find(top, filesName)?.inode.ino == directory.ino
        else { return nil }
        return top
    }

    private func drop(
        _ row: DentryRow, in directory: Inode, now: Timestamp, _ namelessInodes: inout [UInt64]
    ) throws(FileError) {
        let inode = try self.inode(row.ino)
        try withdraw(row, in: directory, inode, now: now)
        try removeLink(to: inode, now: now)
        kernelNames.noteChange(of: inode.ino)
        guard inode.row.nlink == 0 else { return }
        inode.dentries.mayBeStale = true
        namelessInodes.append(inode.ino)
    }
}

/// A `.trashinfo` file of a photo, sealed before the catalogue is locked. Empty if there was no room for it: the photo
/// is kept all the same.
package final class TrashInfo {
    package let content: UInt64
    package let runs: [ExtentRun]
    package let byteCount: Int
    /// Whether it is in the tree, so that its sectors must not be freed.
    package var isAdopted = false

    package init(content: UInt64, runs: [ExtentRun], byteCount: Int) {
        (self.content, self.runs, self.byteCount) = (content, runs, byteCount)
    }
}

private let filesName = Array("files".utf8)
private let infosName = Array("info".utf8)
private let infoSuffix = TrashInfoText.suffix
