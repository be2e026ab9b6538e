package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import PhotoRules
package import VaultCatalogue
package import VaultFormat
package import VaultStore

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

/// The trash: `.Trash-UID` at the root, as in the freedesktop specification. Its entries are plain POSIX. A photo that
/// was taken out of moments has its only names there, and a row that records its former names.
package final class Trash {
    private unowned let tree: Tree
    /// How many days removed entries stay in the trash; 0: a photo removed from moments is destroyed at once.
    var days: Int { tree.options.trashDays }

    init(_ tree: Tree) { self.tree = tree }

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
        _ photo: Inode, named name: [UInt8], _ caller: Caller, _ change: Change
    ) throws(FileError) {
        var lost: [DentryRow] = []
        for inode in [photo] + (try tree.copies.copies(of: photo)) {
            inode.dentries.mayBeStale = true
            for row in try tree.tables.dentries.names(of: inode.ino) {
                let directory = try tree.inode(row.parent)
                if !directory.isDay {
                    if try tree.isInTrash(directory) { continue }
                    try tree.tables.trash.addName(row, of: photo.ino)
                }
                lost.append(row)
                try tree.removeEntry(directory, row.id, inode, now: change.now)
                // Not `unlinked`: a nameless copy waits for its photo, not for its last user.
                inode.row.countLinks(by: -1)
                // The kernel itself removes the dentry of that name in a day.
                if !directory.isDay || row.name != name { tree.noteLost(row, in: directory) }
            }
            inode.row.changed = change.now
            tree.touch(inode)
            tree.kernelNames.noteChange(of: inode.ino)
        }
        try tree.tables.trash.store(TrashRow(ino: photo.ino, id: 0, since: tree.clocks.wall(), name: name))
        photo.row.flags.insert(.trashed)
        try tree.companions.noteCompanions(ofRemoved: photo, lost: lost, caller, change)
    }

    /// The trashed photo that a file is, or is a copy of.
    package func trashedPhoto(behind inode: Inode) throws(FileError) -> Inode? {
        guard let photo = try tree.copies.photo(representedBy: inode), photo.isTrashed else { return nil }
        return photo
    }

    /// Whether a nameless inode is a copy that will be restored into an album with its photo in the trash.
    func waitsForPhoto(_ inode: Inode) throws(FileError) -> Bool {
        guard inode.isCopy, let photo = try trashedPhoto(behind: inode) else { return false }
        return try tree.tables.trash.names(of: photo.ino).contains { $0.ino == inode.ino }
    }

    /// Restores a photo that was taken out: to its own day, unless it was given a name in one, and to the albums that
    /// still exist. An open photo whose last name is gone is not restored: a copy of it that has a name is restored
    /// instead.
    package func restore(_ photo: Inode, _ change: Change) throws(FileError) {
        guard photo.row.nlink > 0 else {
            let successor = try self.successor(of: photo)
            try leaveTrash(photo, change)
            if let successor { try restore(successor, change) }
            return
        }
        guard let kept = try tree.tables.trash.row(photo.ino, 0) else { throw .damaged }
        var (names, companions): ([DentryRow], [DentryRow]) = ([], [])
        for row in try tree.tables.trash.names(of: photo.ino) {
            let isCopy = try tree.existing(row.ino)?.isCopy ?? false
            if isCopy || row.ino == photo.ino { names.append(row) } else { companions.append(row) }
        }
        try tree.companions.noteReturn(of: companions, with: photo, kept.name, names, change)
        try forgetTrashed(photo)
        // In the trash it lost the hash of its picture.
        try tree.pendingPictures.noteThumbnailPending(photo.ino)
        change.hasNewPhoto = true
        photo.dentries.mayBeStale = false
        if try tree.moments.moment(of: photo) == nil {
            try tree.moments.addMoment(
                photo, day: try tree.photos.photo(photo).day, name: kept.name, now: change.now)
        }
        for row in names { try restoreName(row, now: change.now) }
        try orphanNameless(names, change)
        try tree.sidecars.noteReturn(ofPhoto: photo, by: change.thread)
        tree.kernelNames.noteChange(of: photo.ino)
    }

    private func restoreName(_ row: DentryRow, now: Timestamp) throws(FileError) {
        guard let inode = try tree.existing(row.ino), let album = try tree.existing(row.parent),
            album.isDirectory,
            !album.isDay, album.row.nlink > 0
        else { return }
        inode.dentries.mayBeStale = false
        // It may have been restored to this very place.
        if let there = try tree.find(album, row.name), there.inode.ino == inode.ino { return }
        let name = try tree.freeName(album, row.name)
        try tree.addEntry(album, name, inode, isMember: row.isMember, isLink: row.isLink, now: now)
        tree.addLink(to: inode, now: now)
        tree.kernelNames.noteChange(of: album.ino)
        tree.kernelNames.noteChange(of: inode.ino)
    }

    /// Makes copies that got no name back orphans.
    private func orphanNameless(_ names: [DentryRow], _ change: Change) throws(FileError) {
        for ino in Set(names.map(\.ino)) {
            guard let inode = try tree.existing(ino), inode.row.nlink == 0, !tree.orphans.contains(ino) else {
                continue
            }
            tree.orphans.add(inode.ino)
            change.inodesToDestroy.append(ino)
        }
    }

    /// Deletes the record of a photo's names before it was taken out.
    private func forgetTrashed(_ inode: Inode) throws(FileError) {
        try tree.tables.trash.delete(inode.ino, 0)
        try tree.tables.trash.deleteNames(of: inode.ino)
        inode.row.flags.remove(.trashed)
        tree.touch(inode)
    }

    /// Call before a photo in the trash becomes a plain file or is destroyed. A copy of it that has a name there
    /// becomes the photo; without such a copy, nameless copies become orphans.
    func leaveTrash(_ photo: Inode, _ change: Change) throws(FileError) {
        guard photo.isTrashed, let kept = try tree.tables.trash.row(photo.ino, 0) else { return }
        let names = try tree.tables.trash.names(of: photo.ino)
        let isGiven = photo.row.flags.contains(.namedInMoments)
        try forgetTrashed(photo)
        guard let successor = try successor(of: photo) else {
            try orphanNameless(names, change)
            return
        }
        var row = try tree.photos.photo(photo)
        row.ino = successor.ino
        try tree.copies.handOver(photo, to: successor)
        try tree.versions.moveVersions(of: photo.ino, to: successor.ino, change)
        try tree.photos.storePhoto(successor, row, change)
        tree.moments.setNameGivenInMoments(successor, isGiven: isGiven)
        try tree.tables.trash.store(TrashRow(ino: successor.ino, id: 0, since: kept.since, name: kept.name))
        for name in names where name.ino != photo.ino {
            try tree.tables.trash.addName(name, of: successor.ino)
        }
        successor.row.flags.insert(.trashed)
    }

    /// The copy that takes the photo's place: the first that has a name.
    private func successor(of photo: Inode) throws(FileError) -> Inode? {
        try tree.copies.copies(of: photo).first { $0.row.nlink > 0 }
    }

    // MARK: Removal by programs without trash support

    /// Whether the trash must keep a file if its name in that directory is removed: a photo of moments, or a file that
    /// was a photo.
    package func isForTrash(_ inode: Inode, in directory: Inode) throws(FileError) -> Bool {
        guard days > 0 else { return false }
        if directory.isDay && inode.isPhoto { return true }
        return try isFormerPhoto(inode, in: directory)
    }

    /// Whether a file outside the trash was a photo, until a program emptied it or wrote something else into it, and
    /// would take the photo's versions along with its only name, which is in that directory.
    func isFormerPhoto(_ inode: Inode, in directory: Inode) throws(FileError) -> Bool {
        guard inode.isRegular, !inode.isPhoto, !inode.isVersion, inode.row.nlink == 1,
            try tree.versions.versionsDirectory(of: inode.ino) != nil
        else { return false }
        return try !tree.isInTrash(directory)
    }

    /// Moves a plain file into the caller's trash: a sidecar, or with its versions a file that was a photo.
    package func removePlainFile(
        _ inode: Inode, _ id: UInt64, named name: [UInt8], in directory: Inode, _ info: TrashInfo?,
        _ caller: Caller, _ space: Space, now: Timestamp
    ) throws(FileError) {
        tree.companions.forget(inode.ino)
        let described = try photos(besideRemoved: name, in: directory)
        try putIntoTrash(named: name, info, caller, space, now: now) { files, kept throws(FileError) in
            try tree.removeEntry(directory, id, inode, now: now)
            try tree.addEntry(files, kept, inode, now: now)
            try storeTrashAge(of: inode.ino, named: kept, in: files, describing: described)
        }
        inode.row.changed = now
        tree.touch(inode)
        tree.kernelNames.noteChange(of: inode.ino)
    }

    /// Removes a photo from its day and from all albums: into the caller's trash, with a `.trashinfo` file from which a
    /// file manager restores it, or for good if no trash is kept. Its companions are noted. If the photo has a backup
    /// name next to its own, only this name is removed: an editor tidies up.
    package func removePhoto(
        _ inode: Inode, named name: [UInt8], in directory: Inode, _ info: TrashInfo?, _ caller: Caller,
        _ space: Space,
        _ change: Change
    ) throws(FileError) {
        let moments = try tree.moments.moments(of: inode)
        if moments.count > 1,
            let one = moments.first(where: { $0.directory.ino == directory.ino && $0.row.name == name })
        {
            try tree.removeEntry(directory, one.row.id, inode, now: change.now)
            try tree.removeLink(to: inode, now: change.now)
            tree.kernelNames.noteChange(of: inode.ino)
            return
        }
        guard days > 0 else {
            var lost = try tree.names(of: inode)
            for copy in try tree.copies.copies(of: inode) { lost += try tree.names(of: copy) }
            try tree.photos.removePhoto(inode, now: change.now)
            try tree.companions.noteCompanions(ofRemoved: inode, lost: lost, caller, change)
            return
        }
        try putIntoTrash(named: name, info, caller, space, now: change.now) { files, kept throws(FileError) in
            try tree.addEntry(files, kept, inode, now: change.now)
            tree.addLink(to: inode, now: change.now)
            try removeToTrash(inode, named: name, caller, change)
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
        for directory in [files, infos] { tree.kernelNames.noteChange(of: directory.ino) }
    }

    /// The name of a caller's trash in the root.
    package func trashName(of caller: Caller) -> [UInt8] {
        trashPrefix + Array(String(tree.options.mountedByRoot ? caller.uid : tree.options.owner.uid).utf8)
    }

    /// Whether that name in the root is of the trash that options keep there, even if it is empty.
    package func isKept(_ name: [UInt8]) -> Bool {
        tree.options.keepsTrash && name == trashName(of: tree.options.shownOwner)
    }

    /// Makes the caller's trash if it is missing.
    package func makeTrash(of caller: Caller) throws(FileError) { _ = try trashPlace(caller, now: .now()) }

    /// Whether the caller has a trash.
    package func hasTrash(of caller: Caller) throws(FileError) -> Bool {
        try tree.find(tree.inode(WellKnownInode.root), trashName(of: caller)) != nil
    }

    /// `files` and `info` of the caller's trash, made if missing.
    private func trashPlace(
        _ caller: Caller, now: Timestamp
    ) throws(FileError) -> (files: Inode, infos: Inode) {
        let top = try privateDirectory(
            trashName(of: caller), in: tree.inode(WellKnownInode.root), caller, now)
        return (
            try privateDirectory(filesName, in: top, caller, now),
            try privateDirectory(infosName, in: top, caller, now)
        )
    }

    private func privateDirectory(
        _ name: [UInt8], in parent: Inode, _ caller: Caller, _ now: Timestamp
    ) throws(FileError) -> Inode {
        if let found = try tree.find(parent, name) {
            if found.inode.isDirectory { return found.inode }
            guard parent.ino != WellKnownInode.root else { throw .notDirectory }
            // A user's file of this name must not prevent the removal of photos: it is renamed.
            let row = DentryRow(parent: parent.ino, id: found.id, name: name, ino: found.inode.ino)
            let other = try tree.freeName(parent, name)
            try tree.withdraw(row, in: parent, found.inode, now: now)
            try tree.addEntry(parent, other, found.inode, now: now)
        }
        let made = tree.makeInode(mode: directoryType | 0o700, in: parent, caller, now: now)
        made.row.nlink = 2
        try tree.addEntry(parent, name, made, now: now)
        tree.kernelNames.noteChange(of: parent.ino)
        return made
    }

    /// The name, or a numbered form of it, that is free in both directories.
    private func freeTrashName(
        _ name: [UInt8], _ files: Inode, _ infos: Inode
    ) throws(FileError) -> [UInt8] {
        try firstFreeName(name, bytesMax: nameBytesMax - infoSuffix.count) { candidate throws(FileError) in
            guard try tree.tables.dentries.entry(files.ino, candidate) == nil else { return false }
            return try tree.tables.dentries.entry(infos.ino, candidate + infoSuffix) == nil
        }
    }

    private func add(
        _ info: TrashInfo, named name: [UInt8], to directory: Inode, _ caller: Caller, _ space: Space,
        now: Timestamp
    ) throws(FileError) {
        guard !info.runs.isEmpty else { return }
        let file = tree.makeInode(mode: regularType | 0o600, in: directory, caller, now: now)
        file.row.nlink = 1
        file.row.content = info.content
        file.row.size = UInt64(info.byteCount)
        file.row.allocated = UInt64(info.byteCount)
        try tree.addEntry(directory, name, file, now: now)
        for run in info.runs { try tree.tables.extents.insert(run, of: info.content) }
        space.adopt(info.runs)
        info.isAdopted = true
    }

    /// The directory of `.trashinfo` files and such a file's entry in it; nil for a name elsewhere, or without one.
    func info(
        of name: [UInt8], in files: Inode
    ) throws(FileError) -> (directory: Inode, row: DentryRow)? {
        guard let top = try trash(withFiles: files), let infos = try tree.find(top, infosName)?.inode,
            infos.isDirectory, let found = try tree.find(infos, name + infoSuffix), found.inode.isRegular
        else { return nil }
        let row = DentryRow(parent: infos.ino, id: found.id, name: name + infoSuffix, ino: found.inode.ino)
        return (infos, row)
    }

    /// Whether a name in the trash has a `.trashinfo` file.
    package func hasInfo(of name: [UInt8], in files: Inode) throws(FileError) -> Bool {
        try info(of: name, in: files) != nil
    }

    /// Puts another `.trashinfo` file in the place of the one that a program made.
    package func replaceInfo(
        of name: [UInt8], in files: Inode, by info: TrashInfo, _ caller: Caller, _ space: Space,
        _ change: Change
    ) throws(FileError) {
        guard !info.runs.isEmpty, let present = try self.info(of: name, in: files) else { return }
        try drop(present.row, in: present.directory, change)
        try add(info, named: present.row.name, to: present.directory, caller, space, now: change.now)
        tree.kernelNames.noteChange(of: present.directory.ino)
    }

    /// Removes a name in the trash of a photo that was restored without a rename of that name, or of its copy. The
    /// `.trashinfo` file is left to the program that restores.
    package func removeRestored(
        _ row: DentryRow, in directory: Inode, _ change: Change
    ) throws(FileError) {
        try tree.tables.trash.delete(row.ino, row.id)
        try drop(row, in: directory, change)
    }

    // MARK: Removal without a request of the kernel

    /// Removes a name in the trash, and its `.trashinfo` file. An inode that has no name left is
    /// destroyed.
    package func discard(_ row: DentryRow, _ change: Change) throws(FileError) {
        let directory = try tree.inode(row.parent)
        try drop(row, in: directory, change)
        guard let top = try trash(withFiles: directory), let infos = try tree.find(top, infosName)?.inode,
            infos.isDirectory,
            let info = try tree.find(infos, row.name + infoSuffix), !info.inode.isDirectory
        else { return }
        let infoRow = DentryRow(
            parent: infos.ino, id: info.id, name: row.name + infoSuffix, ino: info.inode.ino)
        try drop(infoRow, in: infos, change)
    }

    /// The trash whose `files` a directory is; nil for all other directories.
    func trash(withFiles directory: Inode) throws(FileError) -> Inode? {
        guard let top = try tree.existing(directory.row.parent), top.row.parent == WellKnownInode.root,
            try tree.find(top, filesName)?.inode.ino == directory.ino
        else { return nil }
        return top
    }

    private func drop(
        _ row: DentryRow, in directory: Inode, _ change: Change
    ) throws(FileError) {
        let inode = try tree.inode(row.ino)
        try tree.withdraw(row, in: directory, inode, now: change.now)
        try tree.removeLink(to: inode, now: change.now)
        tree.kernelNames.noteChange(of: inode.ino)
        guard inode.row.nlink == 0 else { return }
        inode.dentries.mayBeStale = true
        change.inodesToDestroy.append(inode.ino)
    }

    /// The name in the trash that a row is about; nil if it is gone.
    package func trashedName(_ row: TrashRow) throws(FileError) -> DentryRow? {
        guard let name = try tree.tables.dentries.names(of: row.ino).first(where: { $0.id == row.id }),
            try tree.isInTrash(tree.inode(name.parent))
        else { return nil }
        return name
    }

    /// Removes the entry of a row and the row, if the entry came into the trash at `limit` or before.
    package func discard(
        _ row: TrashRow, since limit: Int64, _ change: Change
    ) throws(FileError) {
        if row.id != 0 {
            if let name = try trashedName(row) {
                try discard(name, since: limit, change)
            } else {
                try tree.tables.trash.delete(row.ino, row.id)
            }
            return
        }
        guard let inode = try tree.existing(row.ino), inode.isTrashed, row.since <= limit else { return }
        let names = try tree.tables.dentries.names(of: row.ino)
        for name in names {
            guard try tree.isInTrash(tree.inode(name.parent)) else {
                // A directory was restored, but the daemon was killed before it reached this file.
                try restore(inode, change)
                return
            }
        }
        for name in names { try discard(name, change) }
    }

    /// Removes a name in the trash, unless its inode came there after `limit` or is a non-empty directory.
    package func discard(
        _ name: DentryRow, since limit: Int64, _ change: Change
    ) throws(FileError) {
        // Removed since it was read.
        guard try tree.tables.dentries.entry(name.parent, name.name)?.id == name.id else { return }
        let inode = try tree.inode(name.ino)
        if inode.isDirectory && inode.row.size > 0 { return }
        if let row = try tree.tables.trash.row(name.ino, name.id), row.since > limit { return }
        if inode.isTrashed, let row = try tree.tables.trash.row(name.ino, 0), row.since > limit { return }
        try tree.tables.trash.delete(name.ino, name.id)
        try discard(name, change)
    }

    /// Whether removing a name by unlink(2) must put the file into the trash: see `isForTrash`; also a sidecar in a day
    /// next to its photo, and one that is about to go with its photo. Programs remove all files of a day in any order.
    package func goesIntoTrash(
        _ inode: Inode, named name: [UInt8], in directory: Inode
    ) throws(FileError) -> Bool {
        if try isForTrash(inode, in: directory) { return true }
        guard days > 0, tree.companions.isPlainFile(inode), inode.row.nlink == 1 else { return false }
        if let move = tree.companions.moves[inode.ino], move.caller != nil,
            move.directory == directory.ino, move.name == name
        {
            return true
        }
        guard directory.isDay, inode.row.size > 0 else { return false }
        return try tree.companions.hasPhoto(describedBy: name, in: directory)
    }

    /// Records that a name is in the trash from now on.
    ///
    /// - Parameter photos: those that the file described as a sidecar.
    func storeTrashAge(
        of ino: UInt64, named name: [UInt8], in directory: Inode, describing photos: [UInt64] = []
    ) throws(FileError) {
        guard let id = try tree.tables.dentries.entry(directory.ino, name)?.id else { throw .damaged }
        let described = photos.isEmpty && isSidecarName(name) ? [0] : photos
        try tree.tables.trash.store(
            TrashRow(ino: ino, id: id, since: tree.clocks.wall(), describing: described))
    }

    /// The photos beside a file that is about to leave a day for the trash, if it is a sidecar.
    func photos(besideRemoved name: [UInt8], in directory: Inode) throws(FileError) -> [UInt64] {
        directory.isDay ? try tree.sidecars.photos(beside: name, in: directory) : []
    }
}

private let filesName = Array("files".utf8)
private let infosName = Array("info".utf8)
private let infoSuffix = TrashInfoText.suffix
