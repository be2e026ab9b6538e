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
    var target: (id: UInt64, inode: Inode)?
    /// What a look at the source's bytes found, where it was worth one.
    var verdict: Verdict
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
            target: target, verdict: .unknown, now: .now(), isFromTrash: try isInTrash(from),
            isIntoTrash: try isInTrash(to), caller: caller)
    }

    /// Whether the answer may depend on what the source's bytes are.
    func wantsLook(_ request: RenameRequest) throws(FileError) -> Bool {
        guard request.source.isRegular, !request.source.isPhoto, request.to.area != .moments else {
            return false
        }
        return try isFileable(request.newName, in: request.to)
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
        unlinked(target.inode, now: request.now)
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
        day.row.parent = Place.moments
        day.row.modified = album.row.modified
        if album.row.flags.contains(.madeByHand) { day.row.flags.insert(.madeByHand) }
        album.row.day = 0
        album.row.flags.remove(.madeByHand)
        try sql(tables.retargetDentry(Place.moments, request.sourceID, to: day.ino))
        var photos: [DentryRow] = []
        try sql(
            tables.eachPhoto(in: album.ino, after: 0) {
                photos.append($0)
                return true
            })
        for photo in photos {
            let inode = try inode(photo.ino)
            try sql(
                tables.insert(
                    DentryRow(parent: day.ino, id: counters.dentry, name: photo.name, ino: photo.ino)))
            counters.dentry += 1
            linked(inode, now: now)
            notices.append(.attributes(photo.ino))
        }
        day.row.size = UInt64(photos.count)
        if wasListed && day.isUnlistedDay { request.from.row.nlink -= 1 }
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
            if let row = try rowForTakeOver(request) {
                try leave(request)
                try takeOver(
                    from: target.inode, to: source, row, in: request.to, named: request.newName, space,
                    now: now)
                return
            }
            try removeEntry(request.to, target.id, target.inode, now: now)
            unlinked(target.inode, now: now)
            notices.append(.attributes(target.inode.ino))
        }
        let isNew =
            request.isFromTrash
            ? false : try isNewFile(source, named: request.sourceID, in: request.from)
        try move(request)
        if source.isPhoto {
            guard isNew, try isFileable(request.newName, in: request.to),
                let backup = try backup(of: request.newName, in: request.to, besides: source)
            else { return }
            try takeOver(
                from: backup, to: source, try photo(source), in: request.to, named: request.newName, space,
                now: now)
        } else {
            try file(source, request.verdict, space, now: now)
        }
    }

    /// From an album into a day: a photo's album link goes, and its moment is this from now on.
    func moveIntoDay(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        guard source.isRegular else { throw .notPermitted }
        if try replaceInDay(request, space) { return }
        guard source.isPhoto else {
            try move(request)
            try file(source, request.verdict, space, now: now)
            return
        }
        var row = try photo(source)
        if let own = try moment(of: source) {
            try removeEntry(own.directory, own.row.id, source, now: now)
            source.row.nlink -= 1
        }
        try move(request)
        notices.append(.attributes(source.ino))
        if row.day != request.to.row.day {
            row.pin(to: request.to.row.day)
            try storePhoto(source, row)
        }
    }

    /// Within a day, or from one to another, which re-dates and pins.
    private func renameInDays(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if try replaceInDay(request, space) { return }
        let isNew = try isNewFile(source, named: request.sourceID, in: request.from)
        try move(request)
        guard source.isPhoto else {
            try file(source, request.verdict, space, now: now)
            return
        }
        var row = try photo(source)
        if isNew, try isFileable(request.newName, in: request.to),
            let backup = try backup(of: request.newName, in: request.to, besides: source)
        {
            try takeOver(
                from: backup, to: source, row, in: request.to, named: request.newName,
                space,
                now: now)
            return
        }
        row.former = backupOriginal(request.newName) == request.name ? request.name : nil
        if request.from.ino != request.to.ino { row.pin(to: request.to.row.day) }
        try storePhoto(source, row)
    }

    /// Makes room for a file moved over another in a day. True if that was a save, which is done then.
    private func replaceInDay(_ request: RenameRequest, _ space: Space) throws(FileError) -> Bool {
        guard let target = request.target else { return false }
        guard !target.inode.isDirectory else { throw .isDirectory }
        if let row = try rowForTakeOver(request) {
            try leave(request)
            if request.source.isPhoto, request.from.area == .album, let own = try moment(of: request.source) {
                try removeEntry(own.directory, own.row.id, request.source, now: request.now)
                request.source.row.nlink -= 1
            }
            try takeOver(
                from: target.inode, to: request.source, row, in: request.to, named: request.newName, space,
                now: request.now)
            return true
        }
        try removeTarget(request, space)
        return false
    }

    /// Removes what a file is moved over in a day: a photo as by rm.
    func removeTarget(_ request: RenameRequest, _ space: Space) throws(FileError) {
        guard let target = request.target else { return }
        guard !target.inode.isDirectory else { throw .isDirectory }
        if target.inode.isPhoto {
            try removePhoto(
                target.inode, named: request.newName, request.info, request.caller, space, now: request.now)
        } else {
            try removeEntry(request.to, target.id, target.inode, now: request.now)
            unlinked(target.inode, now: request.now)
        }
    }

    /// From a day into an album: a photo is added to the album and stays in its day; a plain file moves.
    private func addToAlbum(_ request: RenameRequest, _ space: Space) throws(FileError) {
        let (source, now) = (request.source, request.now)
        if let target = request.target {
            guard !target.inode.isDirectory else { throw .isDirectory }
            try removeEntry(request.to, target.id, target.inode, now: now)
            unlinked(target.inode, now: now)
            notices.append(.attributes(target.inode.ino))
        }
        if source.isPhoto {
            try addEntry(request.to, request.newName, source, now: now)
            linked(source, now: now)
            notices.append(.attributes(source.ino))
        } else {
            try move(request)
            try file(source, request.verdict, space, now: now)
        }
    }

    /// What the source is as a photo, where the rename saves it over one: the source is new, the target a
    /// photo, and the name one that photos have.
    private func rowForTakeOver(_ request: RenameRequest) throws(FileError) -> PhotoRow? {
        guard let target = request.target, target.inode.isPhoto, request.source.isRegular,
            !request.isFromTrash,
            try isNewFile(request.source, named: request.sourceID, in: request.from),
            try isFileable(request.newName, in: request.to)
        else { return nil }
        if request.source.isPhoto { return try photo(request.source) }
        guard case .media(let facts, let sidecar) = request.verdict else { return nil }
        return PhotoRow(request.source, facts, sidecar, named: request.newName, now: request.now)
    }

    /// Takes the source's name away; others are about to be given to it.
    private func leave(_ request: RenameRequest) throws(FileError) {
        try removeEntry(request.from, request.sourceID, request.source, now: request.now)
        request.source.row.nlink -= 1
    }

    /// Moves the name itself.
    func move(_ request: RenameRequest) throws(FileError) {
        try removeEntry(request.from, request.sourceID, request.source, now: request.now)
        try addEntry(request.to, request.newName, request.source, now: request.now)
        request.source.row.changed = request.now
        touch(request.source)
    }
}
