import CatalogueRows
package import FileRequests
package import FileTree
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
    /// The classification of the source, if it was needed.
    package var classification: Classification
    package var now: Timestamp
    /// Whether the directories are in the trash.
    package var isFromTrash: Bool
    package var isIntoTrash: Bool
    package var caller: Caller
    /// The `.trashinfo` file for a photo that is removed; see `PhotoTree.isForTrash`.
    package var info: TrashInfo?
}

/// Effects of rename(2). Everything is read before anything is changed.
extension PhotoTree {
    /// Reads what a rename is about, and refuses renames that are never allowed; nil if there is nothing to do.
    package func prepareRename(
        _ parent: UInt64, _ name: [UInt8], _ newParent: UInt64, _ newName: [UInt8], _ flags: RenameFlags,
        _ caller: Caller
    ) throws(FileError) -> RenameRequest? {
        let from = try directory(parent)
        let to = try directory(newParent)
        guard let source = try find(from, name) else { throw .noEntry }
        let target = try find(to, newName)
        if flags.contains(.noReplace), target != nil { throw .exists }
        guard from.area != .root, to.area != .root else { throw .notPermitted }
        guard to.row.nlink > 0 else { throw .noEntry }
        if flags.contains(.exchange), target == nil { throw .noEntry }
        // Two names of one file: rename(2) does nothing.
        if let target, target.inode.ino == source.inode.ino { return nil }
        return RenameRequest(
            from: from, name: name, to: to, newName: newName, sourceID: source.id, source: source.inode,
            isMember: source.isMember, target: target.map { ($0.id, $0.inode) }, classification: .unknown,
            now: .now(), isFromTrash: try isInTrash(from), isIntoTrash: try isInTrash(to), caller: caller)
    }

    /// Whether the effect may depend on the classification of the source.
    package func needsClassification(_ request: RenameRequest) throws(FileError) -> Bool {
        guard request.source.isRegular, !request.source.isCopy, request.to.area != .moments,
            try isClassifiable(request.newName, in: request.to)
        else { return false }
        if !request.source.isPhoto { return true }
        // A program wrote it in the day itself, so it was classified there and pinned: the saved photo is dated anew.
        guard request.to.isDay, request.target?.inode.isPhoto == true else { return false }
        guard try photo(request.source).isPinned else { return false }
        return try isNewFile(request.source, named: request.sourceID, in: request.from)
    }

    package func rename(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let facts = RenameFacts(
            from: request.from.area, to: request.to.area,
            touchesTrash: request.isFromTrash || request.isIntoTrash, isDirectory: request.source.isDirectory)
        switch effect(of: facts) {
        case .moveDirectory: try renameDirectory(request)
        case .moveInAlbums: try renameInAlbums(request, space)
        case .moveIntoDay: try moveIntoDay(request, space)
        case .moveInDays: try renameInDays(request, space)
        case .addToAlbum: try addToAlbum(request, space)
        case .renameDay: try renameDay(request)
        case .copyDay: try copyDayToAlbum(request)
        case .moveTrashed: try renameTrashed(request, space)
        case .takeOut: try trashFromDay(request)
        case .takeOutDay: try trashDay(request)
        case .restoreIntoDay: try restoreIntoDay(request, space)
        case .restoreDay: try restoreDay(request, space)
        case nil: throw .notPermitted
        }
    }

    // MARK: Directories

    func renameDirectory(_ request: RenameRequest) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if try isInside(request.to, source) { throw .invalid }
        try replaceDirectory(request)
        try removeEntry(request.from, request.sourceID, source, now: now)
        try addEntry(request.to, request.newName, source, now: now)
        source.row.changed = now
        touch(source)
    }

    /// Removes the empty directory that a directory is renamed over.
    func replaceDirectory(_ request: RenameRequest) throws(FileError) {
        guard let target = request.target else { return }
        guard target.inode.isDirectory else { throw .notDirectory }
        guard target.inode.row.size == 0 else { throw .notEmpty }
        try removeEntry(request.to, target.id, target.inode, now: request.now)
        try unlinked(target.inode, now: request.now)
    }

    /// Gives a day, and all of its photos, another date.
    private func renameDay(_ request: RenameRequest) throws(FileError) {
        guard let number = dayNumber(named: request.newName) else { throw .notPermitted }
        let (day, moments, now) = (request.source, request.to, request.now)
        try replaceDirectory(request)
        try removeEntry(moments, request.sourceID, day, now: now)
        day.row.day = number
        day.row.changed = now
        try addEntry(moments, request.newName, day, now: now)
        guard day.row.size > 0 else { return }
        var sample = PhotoRow(ino: 0, day: 0)
        sample.pin(to: number)
        try sql(
            tables.redatePhotos(in: day.ino, to: number, midnight: sample.captured, source: sample.source))
    }

    /// A day that is moved into an album becomes an album; the day stays. The kernel moves the inode that it knows, so
    /// that becomes the album, and the day gets a new one.
    private func copyDayToAlbum(_ request: RenameRequest) throws(FileError) {
        let (album, now) = (request.source, request.now)
        try replaceDirectory(request)
        let wasListed = !album.isUnlistedDay
        let number = album.row.day
        let day = makeInode(
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
        try sql(tables.retargetDentry(WellKnownInode.moments, request.sourceID, to: day.ino))
        try sql(tables.makeMembers(in: album.ino))
        var photos: [DentryRow] = []
        try sql(
            tables.eachPhoto(in: album.ino, after: 0) {
                photos.append($0)
                return true
            })
        for photo in photos {
            let inode = try inode(photo.ino)
            inode.names = nil
            try insert(
                DentryRow(parent: day.ino, id: counters.dentry, name: photo.name, ino: photo.ino), in: day,
                inode)
            linked(inode, now: now)
            kernelNames.noteChange(of: photo.ino)
        }
        day.row.size = UInt64(photos.count)
        if wasListed && day.isUnlistedDay { request.from.row.countLinks(by: -1) }
        request.from.row.changed = now
        touch(request.from)
        try addEntry(request.to, request.newName, album, now: now)
        album.row.changed = now
        touch(album)
        kernelNames.noteChange(of: album.ino)
    }

    // MARK: Files

    /// Renames within albums: plain POSIX, except for the effects on photos.
    func renameInAlbums(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if let target = request.target {
            guard !target.inode.isDirectory else { throw .isDirectory }
            if try save(request, space) { return }
            try removeEntry(request.to, target.id, target.inode, now: now)
            try unlinked(target.inode, now: now)
            kernelNames.noteChange(of: target.inode.ino)
        }
        let isNew =
            request.isFromTrash
            ? false : try isNewFile(source, named: request.sourceID, in: request.from)
        try move(request)
        if source.isPhoto {
            guard isNew, try isClassifiable(request.newName, in: request.to),
                let backup = try backup(of: request.newName, in: request.to, besides: source),
                let staying = try staying(of: backup, savedAs: request.newName, in: request.to)
            else { return }
            try takeOver(
                from: backup, to: source, try photo(source), besides: staying, in: request.to,
                named: request.newName, space, now: now)
        } else {
            try apply(request.classification, to: source, space, now: now)
        }
    }

    /// From an album into a day: the photo's album link is removed, and its new name becomes its moment.
    func moveIntoDay(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        guard source.isRegular else { throw .notPermitted }
        if try save(request, space) { return }
        var request = request
        if source.isCopy, let photo = try photo(representedBy: source) {
            try exchangeRoles(source, photo, space, now: now)
            // The photo's own name in moments is gone; it may have been the target.
            request.target = try find(request.to, request.newName).map { ($0.id, $0.inode) }
        }
        request = try makeWay(request, space)
        guard source.isPhoto else {
            try move(request)
            try apply(request.classification, to: source, space, now: now)
            return
        }
        var row = try photo(source)
        if let own = try moment(of: source) {
            try noteCompanions(
                of: source, own.row.name, in: own.directory, captured: row.captured, to: request.to.row.day)
            try withdraw(own.row, in: own.directory, source, now: now)
            source.row.countLinks(by: -1)
        }
        try move(request)
        try keepOnlyArrived(request)
        kernelNames.noteChange(of: source.ino)
        if row.day != request.to.row.day {
            row.pin(to: request.to.row.day)
            try storePhoto(source, row)
        }
    }

    /// Within a day, or from one to another, which re-dates and pins.
    private func renameInDays(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if try save(request, space) { return }
        let request = try makeWay(request, space)
        let isNew = try isNewFile(source, named: request.sourceID, in: request.from)
        if source.isPhoto {
            try noteCompanions(
                of: source, request.name, in: request.from, captured: try photo(source).captured,
                to: request.to.row.day)
        }
        companionMoves[source.ino] = nil
        try move(request)
        guard source.isPhoto else {
            try apply(request.classification, to: source, space, now: now)
            return
        }
        var row = try photo(source)
        if isNew, try isClassifiable(request.newName, in: request.to),
            let backup = try backup(of: request.newName, in: request.to, besides: source),
            let staying = try staying(of: backup, savedAs: request.newName, in: request.to)
        {
            try takeOver(
                from: backup, to: source, row, besides: staying, in: request.to, named: request.newName,
                space, now: now)
            return
        }
        row.former = backupOriginal(request.newName) == request.name ? request.name : nil
        if request.from.ino != request.to.ino {
            try keepOnlyArrived(request)
            row.pin(to: request.to.row.day)
        }
        try storePhoto(source, row)
    }

    /// Removes the moved photo's names in other days: a photo whose album links stay with its old bytes has a backup
    /// name next to its own.
    private func keepOnlyArrived(_ request: RenameRequest) throws(FileError) {
        let own = try names(of: request.source).first {
            $0.parent == request.to.ino && $0.name == request.newName
        }
        if let own { try keepOnly(own, amongDaysOf: request.source, now: request.now) }
    }

    /// Clears the target of a file moved over another in a day. A photo from elsewhere never replaces a photo, but is
    /// numbered; within the day, or by a plain file, a photo is overwritten as by rm.
    func makeWay(_ request: RenameRequest, _ space: Space) throws(FileError) -> RenameRequest {
        var request = request
        guard let target = request.target else { return request }
        guard !target.inode.isDirectory else { throw .isDirectory }
        if target.inode.isPhoto {
            if request.from.ino != request.to.ino, try isToBePhoto(request) {
                request.newName = try freeName(request.to, request.newName)
            } else {
                try removePhoto(
                    target.inode, named: request.newName, in: request.to, request.info, request.caller, space,
                    now: request.now)
            }
        } else {
            try removeEntry(request.to, target.id, target.inode, now: request.now)
            try unlinked(target.inode, now: request.now)
        }
        request.target = nil
        return request
    }

    private func isToBePhoto(_ request: RenameRequest) throws(FileError) -> Bool {
        if case .media = request.classification { return true }
        return request.source.isPhoto
    }

    /// Removes the file that has the new name, if there is one; throws `isDirectory` for a directory.
    func removeTarget(of request: RenameRequest) throws(FileError) {
        guard let target = request.target else { return }
        guard !target.inode.isDirectory else { throw .isDirectory }
        try removeEntry(request.to, target.id, target.inode, now: request.now)
        try unlinked(target.inode, now: request.now)
        kernelNames.noteChange(of: target.inode.ino)
    }

    /// From a day into an album: a photo is added to the album and stays in its day; a plain file moves.
    private func addToAlbum(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        try removeTarget(of: request)
        if source.isPhoto {
            try addEntry(request.to, request.newName, source, isMember: true, now: now)
            linked(source, now: now)
            kernelNames.noteChange(of: source.ino)
        } else {
            try move(request)
            try apply(request.classification, to: source, space, now: now)
        }
    }

    /// If the rename saves a new version of a photo, retargets its moment and memberships. Returns false if it does
    /// not.
    private func save(_ request: RenameRequest, _ space: Space) throws(FileError) -> Bool {
        guard let target = request.target, target.inode.isPhoto, let row = try rowOfSaved(request),
            let staying = try staying(of: target.inode, savedAs: request.newName, in: request.to)
        else { return false }
        try removeEntry(request.from, request.sourceID, request.source, now: request.now)
        request.source.row.countLinks(by: -1)
        let probe: MediaProbe? = if case .media(let seen) = request.classification { seen } else { nil }
        try takeOver(
            from: target.inode, to: request.source, row, besides: staying, in: request.to,
            named: request.newName, seen: probe, space, now: request.now)
        // The saved bytes may be those of another photo.
        if let probe {
            _ = try becomeCopy(
                request.source, probe, named: request.newName, in: request.to, space, now: request.now)
        }
        return true
    }

    /// The source's row as a photo, if the rename saves it over one; see `isSave`.
    private func rowOfSaved(_ request: RenameRequest) throws(FileError) -> PhotoRow? {
        let source = request.source
        guard source.isRegular, !request.isFromTrash else { return nil }
        let facts = SaveFacts(
            isPhoto: source.isPhoto, hadWorkingName: try !isClassifiable(request.name, in: request.from),
            getsPhotoName: try isClassifiable(request.newName, in: request.to),
            isNew: try isNewFile(source, named: request.sourceID, in: request.from),
            isBeside: request.from.ino == request.to.ino)
        guard isSave(facts) else { return nil }
        if case .media(let probe) = request.classification {
            return PhotoRow(source.row, probe, named: request.newName, now: request.now)
        }
        return source.isPhoto ? try photo(source) : nil
    }

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
        kernelNames.noteArrival(of: &inode.dentries, as: name, in: directory.ino)
    }

    /// Moves the name itself.
    func move(_ request: RenameRequest) throws(FileError) {
        try removeEntry(request.from, request.sourceID, request.source, now: request.now)
        let isMember = request.isMember && request.to.area == .album
        try addEntry(request.to, request.newName, request.source, isMember: isMember, now: request.now)
        request.source.row.changed = request.now
        touch(request.source)
    }
}
