import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
package import PhotoRules
import VaultCatalogue
package import VaultStore

/// One rename(2), with the facts that its rules depend on.
package struct RenameRequest {
    package var from: Inode
    package var name: [UInt8]
    package var to: Inode
    package var newName: [UInt8]
    var sourceID: UInt64
    package var source: Inode
    /// Whether the source's name is a photo's membership in an album.
    package var isMember: Bool
    package var target: (id: UInt64, inode: Inode)?
    /// Whether the caller gave another name; `newName` may be numbered since.
    var changesName: Bool
    /// The classification of the source, if it was needed.
    package var classification: Classification
    package var now: Timestamp
    /// Whether the directories are in the trash.
    package var isFromTrash: Bool
    package var isIntoTrash: Bool
    package var caller: Caller
    /// The `.trashinfo` file for a photo that is removed; see `Tree.isForTrash`.
    package var info: TrashInfo?

    var movedFile: MovedFile {
        if source.isTrashed { return .trashedPhoto }
        if source.isPhoto { return .photo }
        if source.isCopy { return .copy }
        return source.isRegular ? .plain : .special
    }
}

/// Effects of rename(2). Everything is read before anything is changed.
package final class Renames {
    unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// Reads the entries of a rename, and refuses renames that are never allowed; nil if there is nothing to do.
    package func prepareRename(
        _ parent: UInt64, _ name: [UInt8], _ newParent: UInt64, _ newName: [UInt8], _ flags: RenameFlags,
        _ caller: Caller, now: Timestamp
    ) throws(FileError) -> RenameRequest? {
        let from = try tree.directory(parent)
        let to = try tree.directory(newParent)
        guard let source = try tree.find(from, name) else { throw .noEntry }
        let target = try tree.find(to, newName)
        if flags.contains(.noReplace), target != nil { throw .exists }
        guard from.area != .root, to.area != .root else { throw .notPermitted }
        guard to.row.nlink > 0 else { throw .noEntry }
        if flags.contains(.exchange), target == nil { throw .noEntry }
        // Two names of one file: rename(2) does nothing.
        if let target, target.inode.ino == source.inode.ino { return nil }
        return RenameRequest(
            from: from, name: name, to: to, newName: newName, sourceID: source.id, source: source.inode,
            isMember: source.isMember, target: target.map { ($0.id, $0.inode) }, changesName: name != newName,
            classification: .unknown,
            now: now, isFromTrash: try tree.isInTrash(from), isIntoTrash: try tree.isInTrash(to),
            caller: caller)
    }

    /// Whether the effect may depend on the classification of the source.
    package func needsClassification(_ request: RenameRequest) throws(FileError) -> Bool {
        guard request.source.isRegular, !request.source.isCopy, request.to.area != .moments,
            try tree.effects.isClassifiable(request.newName, in: request.to)
        else { return false }
        if !request.source.isPhoto { return true }
        // A program wrote it in the day itself, so it was classified there and pinned: the saved photo is dated anew.
        guard request.to.isDay, try tree.photos.photo(request.source).isPinned,
            try tree.saves.isNewFile(request.source, named: request.sourceID, in: request.from)
        else { return false }
        if let target = request.target { return target.inode.isPhoto }
        if try tree.saves.removedPhoto(request) != nil { return true }
        return try tree.saves.backup(of: request.newName, in: request.to, except: request.source) != nil
    }

    package func rename(_ request: RenameRequest, _ space: Space, _ change: Change) throws(FileError) {
        let trash: TrashMove =
            request.isIntoTrash ? .into : request.isFromTrash ? .outOf : .outside
        let facts = RenameFacts(
            from: request.from.area, to: request.to.area, trash: trash,
            isDirectory: request.source.isDirectory)
        guard let effect = effect(of: facts) else { throw .notPermitted }
        guard request.source.isDirectory else { return try moveFile(request, effect, space, change) }
        switch effect {
        case .moveDirectory: try renameDirectory(request)
        case .renameDay: try renameDay(request)
        case .copyDay: try copyDayToAlbum(request)
        case .moveToTrash:
            try renameDirectory(request)
            try noteTrashAge(request)
        case .restoreToAlbum:
            try renameDirectory(request)
            try forgetTrashAge(request)
        case .removeDayToTrash: try trashDay(request, change)
        case .restoreDay: try restoreDay(request, space, change)
        case .moveInAlbums, .moveIntoDay, .moveInDays, .addToAlbum, .removeToTrash, .restoreIntoDay:
            throw .notPermitted
        }
    }

    // MARK: Directories

    func renameDirectory(_ request: RenameRequest) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if try tree.isInside(request.to, source) { throw .invalid }
        try replaceDirectory(request)
        try tree.removeEntry(request.from, request.sourceID, source, now: now)
        try tree.addEntry(request.to, request.newName, source, now: now)
        source.row.changed = now
        tree.touch(source)
    }

    /// Removes the empty directory that a directory is renamed over.
    func replaceDirectory(_ request: RenameRequest) throws(FileError) {
        guard let target = request.target else { return }
        guard target.inode.isDirectory else { throw .notDirectory }
        guard target.inode.row.size == 0 else { throw .notEmpty }
        try tree.removeEntry(request.to, target.id, target.inode, now: request.now)
        try tree.removeLink(to: target.inode, now: request.now)
    }

    /// Gives a day, and all of its photos, another date.
    private func renameDay(_ request: RenameRequest) throws(FileError) {
        guard let number = dayNumber(named: request.newName) else { throw .notPermitted }
        let (day, moments, now) = (request.source, request.to, request.now)
        try replaceDirectory(request)
        try tree.removeEntry(moments, request.sourceID, day, now: now)
        day.row.day = number
        day.row.changed = now
        try tree.addEntry(moments, request.newName, day, now: now)
        guard day.row.size > 0 else { return }
        var sample = PhotoRow(ino: 0, day: 0)
        sample.pin(to: number)
        try tree.tables.photos.redate(
            in: day.ino, to: number, midnight: sample.captured, source: sample.source)
    }

    /// A day that is moved into an album becomes an album; the day stays. The kernel moves the inode that it knows, so
    /// that becomes the album, and the day gets a new one.
    private func copyDayToAlbum(_ request: RenameRequest) throws(FileError) {
        let (album, now) = (request.source, request.now)
        try replaceDirectory(request)
        let wasListed = !album.isUnlistedDay
        let number = album.row.day
        let day = tree.makeInode(
            mode: album.row.mode & ~setGroupID, in: request.from,
            Caller(uid: album.row.uid, gid: album.row.gid), now: now)
        day.row.gid = album.row.gid
        day.row.mode = album.row.mode
        day.row.nlink = 2
        day.row.day = number
        day.row.parent = WellKnownInode.moments
        day.row.modified = album.row.modified
        if album.row.flags.contains(.madeByHand) { day.row.flags.insert(.madeByHand) }
        album.row.day = 0
        album.row.flags.remove(.madeByHand)
        try tree.tables.dentries.retarget(WellKnownInode.moments, request.sourceID, to: day.ino)
        try tree.tables.dentries.makeMembers(in: album.ino)
        var photos: [DentryRow] = []
        try tree.tables.dentries.eachPhoto(in: album.ino, after: 0) {
            photos.append($0)
            return true
        }
        for photo in photos {
            let inode = try tree.inode(photo.ino)
            inode.names = nil
            try tree.insert(
                DentryRow(parent: day.ino, id: tree.counters.dentry, name: photo.name, ino: photo.ino),
                in: day,
                inode)
            tree.addLink(to: inode, now: now)
            tree.kernelNames.noteChange(of: photo.ino)
        }
        day.row.size = UInt64(photos.count)
        if wasListed && day.isUnlistedDay { request.from.row.countLinks(by: -1) }
        request.from.row.changed = now
        tree.touch(request.from)
        try tree.addEntry(request.to, request.newName, album, now: now)
        album.row.changed = now
        tree.touch(album)
        tree.kernelNames.noteChange(of: album.ino)
    }

    // MARK: The kernel's names

    /// Notifies the kernel of a name that was moved into a day. Also for a move from one day to another while the
    /// notification about the first is pending: by then its name is gone.
    package func noteArrival(_ request: RenameRequest) {
        let (source, isInDay) = (request.source, request.to.area == .day || request.to.area == .moments)
        guard isInDay, request.from.area == .album || source.dentries.isDoubtful
        else { return }
        noteArrival(of: source, as: request.newName, in: request.to)
    }

    /// The kernel caches the dentry of a moved name for as long as its old place allowed. In a day, where the name may
    /// also be a different one, it must cache nothing.
    package func noteArrival(of inode: Inode, as name: [UInt8], in directory: Inode) {
        tree.kernelNames.noteArrival(
            of: &inode.dentries, as: name, in: directory.ino, isInDay: directory.isDay)
    }
}
