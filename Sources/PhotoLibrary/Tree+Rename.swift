import LinuxIO
import VaultCatalogue
import VaultStore

/// One rename(2), as the rules see it.
struct RenameRequest {
    var from: Inode
    var name: [UInt8]
    var to: Inode
    var newName: [UInt8]
    var sourceID: UInt64
    var source: Inode
    /// Whether the source's name puts a photo of moments into an album.
    var isMember: Bool
    var target: (id: UInt64, inode: Inode)?
    /// What a look at the source's bytes found, where it was worth one.
    var classification: Classification
    var now: Timestamp
    /// Whether the directories lie in the trash.
    var isFromTrash: Bool
    var isIntoTrash: Bool
    var caller: Caller
    /// What is to be written where a photo is removed; see `Tree.isForTrash`.
    var info: TrashInfo?
}

/// What renaming means. All has been read before anything is changed.
extension Tree {
    /// Finds what a rename is about and refuses what is refused everywhere; nil where nothing is to be done.
    func prepareRename(
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

    /// Whether the answer may depend on what the source's bytes are.
    func needsClassification(_ request: RenameRequest) throws(FileError) -> Bool {
        guard request.source.isRegular, !request.source.isCopy, request.to.area != .moments,
            try isClassifiable(request.newName, in: request.to)
        else { return false }
        if !request.source.isPhoto { return true }
        // Filed already where a program wrote it, in the day itself, and so pinned to it: what is saved is dated anew.
        guard request.to.isDay, request.target?.inode.isPhoto == true else { return false }
        guard try photo(request.source).isPinned else { return false }
        return try isNewFile(request.source, named: request.sourceID, in: request.from)
    }

    func rename(_ request: RenameRequest, _ space: Space) throws(FileError) {
        if try renameInTrash(request, space) { return }
        switch (request.from.area, request.to.area) {
        case (.moments, .moments): try renameDay(request)
        case (.moments, .album): try copyDayToAlbum(request)
        case (.album, .album) where request.source.isDirectory: try renameDirectory(request)
        case (.album, .album): try renameInAlbums(request, space)
        case (.album, .day): try moveIntoDay(request, space)
        case (.day, .day): try renameInDays(request, space)
        case (.day, .album): try addToAlbum(request, space)
        default: throw .notPermitted
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

    /// A day gets another date, and all of its photos with it.
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

    /// A day moved into an album makes an album of it; the day stays. The kernel moves the node it knows, so
    /// that becomes the album, and the day gets a new number.
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
            notices.append(.attributes(photo.ino))
        }
        day.row.size = UInt64(photos.count)
        if wasListed && day.isUnlistedDay { request.from.row.countLinks(by: -1) }
        request.from.row.changed = now
        touch(request.from)
        try addEntry(request.to, request.newName, album, now: now)
        album.row.changed = now
        touch(album)
        notices.append(.attributes(album.ino))
    }

    // MARK: Files

    /// From one name in albums to another, plain POSIX but for what becomes of photos.
    func renameInAlbums(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if let target = request.target {
            guard !target.inode.isDirectory else { throw .isDirectory }
            if try save(request, space) { return }
            try removeEntry(request.to, target.id, target.inode, now: now)
            try unlinked(target.inode, now: now)
            notices.append(.attributes(target.inode.ino))
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
            try file(source, request.classification, space, now: now)
        }
    }

    /// From an album into a day: a photo's album link goes, and its moment is this from now on.
    func moveIntoDay(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        guard source.isRegular else { throw .notPermitted }
        if try save(request, space) { return }
        var request = request
        if source.isCopy, let photo = try photoStanding(for: source) {
            try exchangeRoles(source, photo, space, now: now)
            // The photo's own place in moments is gone, which may have been the target.
            request.target = try find(request.to, request.newName).map { ($0.id, $0.inode) }
        }
        request = try makeWay(request, space)
        guard source.isPhoto else {
            try move(request)
            try file(source, request.classification, space, now: now)
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
        notices.append(.attributes(source.ino))
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
            try file(source, request.classification, space, now: now)
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

    /// A photo that has a backup's name beside its own, because its links in albums stay with the old bytes, leaves it
    /// behind in no other day.
    private func keepOnlyArrived(_ request: RenameRequest) throws(FileError) {
        let own = try names(of: request.source).first {
            $0.parent == request.to.ino && $0.name == request.newName
        }
        if let own { try keepOnly(own, amongDaysOf: request.source, now: request.now) }
    }

    /// Makes room for a file moved over another in a day. A photo that comes from elsewhere never replaces one, but is
    /// numbered; within the day, or by a plain file, one is overwritten as by rm.
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

    /// From a day into an album: a photo is added to the album and stays in its day; a plain file moves.
    private func addToAlbum(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if let target = request.target {
            guard !target.inode.isDirectory else { throw .isDirectory }
            try removeEntry(request.to, target.id, target.inode, now: now)
            try unlinked(target.inode, now: now)
            notices.append(.attributes(target.inode.ino))
        }
        if source.isPhoto {
            try addEntry(request.to, request.newName, source, isMember: true, now: now)
            linked(source, now: now)
            notices.append(.attributes(source.ino))
        } else {
            try move(request)
            try file(source, request.classification, space, now: now)
        }
    }

    /// Where the rename saves a new version of a photo, does so: its moment and memberships follow. False where it does
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
        // Saved as what another photo is.
        if let probe {
            _ = try becomeCopy(
                request.source, probe, named: request.newName, in: request.to, space, now: request.now)
        }
        return true
    }

    /// What the source is as a photo, where the rename means saving it over one: it is new and lay beside it, or had a
    /// working name, and gets a name that photos have.
    private func rowOfSaved(_ request: RenameRequest) throws(FileError) -> PhotoRow? {
        let source = request.source
        guard source.isRegular, !request.isFromTrash, try isClassifiable(request.newName, in: request.to)
        else {
            return nil
        }
        // rsync links what it has to a working name, to rename that over another.
        let isWorking = try !isClassifiable(request.name, in: request.from)
        if !source.isPhoto || !isWorking {
            guard try isNewFile(source, named: request.sourceID, in: request.from) else { return nil }
            // Programs write beside what they replace: a photo that comes from elsewhere is another one.
            guard isWorking || request.from.ino == request.to.ino else { return nil }
        }
        if case .media(let probe) = request.classification {
            return PhotoRow(source, probe, named: request.newName, now: request.now)
        }
        return source.isPhoto ? try photo(source) : nil
    }

    /// Notes a name that was moved, where it came into a day: also from another where the kernel had not heard yet that
    /// it came into that, and what it will hear is about a name that is gone.
    func noteArrival(_ request: RenameRequest) {
        let (source, isInDay) = (request.source, request.to.area == .day || request.to.area == .moments)
        guard isInDay, request.from.area == .album || source.mayHaveStaleDentry || source.hasUnconfirmedDentry
        else { return }
        noteArrival(of: source, as: request.newName, in: request.to)
    }

    /// The kernel keeps the node of a name that it moved for as long as it was told where that lay before; of what
    /// comes into a day, perhaps under another name, it must keep nothing.
    func noteArrival(of inode: Inode, as name: [UInt8], in directory: Inode) {
        notices.append(.entry(parent: directory.ino, name: name))
        inode.mayHaveStaleDentry = true
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
