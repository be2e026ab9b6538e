import Glibc

/// renameat2(2) by the contract.
extension ModelTree {
    struct Renaming {
        let from: ModelNode
        let row: ModelNode.Name
        let source: ModelNode
        let to: ModelNode
        var newName: String
        var target: (row: ModelNode.Name, node: ModelNode)?
        var isFromTrash: Bool
        var isIntoTrash: Bool
        /// Whether the target was in the trash until now.
        var isTargetRestored = false
    }

    /// A program removes a file and renames another, which lay beside it, onto its name: that is one rename.
    func replace(_ path: String, by temporary: String) -> Int32 {
        let (directory, name, _) = place(path)
        let (from, oldName, error) = place(temporary)
        let removed = entry(directory, name)
        let failed = remove(path)
        if failed != 0 { return failed }
        passing()
        guard isReplacedAtOnce, error == 0, from === directory, !isInTrash(directory), let removed,
            removed.node.isPhoto, (directory.day != nil) == (removed.node.trashed != nil),
            let (row, source) = entry(from, oldName), source !== removed.node
        else { return rename(temporary, path, .plain) }
        let renaming = Renaming(
            from: from, row: row, source: source, to: directory, newName: name, target: nil,
            isFromTrash: false, isIntoTrash: false)
        guard photoOfSaved(renaming) != nil else { return rename(temporary, path, .plain) }
        let isRestored = removed.node.trashed != nil
        if isRestored {
            restoreRemoved(removed.node)
        } else {
            add(
                directory, name, removed.node, isMember: removed.name.isMember, isLink: removed.name.isLink)
        }
        return rename(temporary, path, .plain, isTargetRestored: isRestored)
    }

    func rename(
        _ oldPath: String, _ newPath: String, _ way: ModelOperation.Way, isTargetRestored: Bool = false
    ) -> Int32 {
        let (from, name, error) = place(oldPath)
        if error != 0 { return error }
        let (to, newName, otherError) = place(newPath)
        if otherError != 0 { return otherError }
        guard let (row, source) = entry(from, name) else { return ENOENT }
        let target = entry(to, newName)
        let refused = kernelRefusal(from, source, to, target?.node, way)
        if refused != 0 || target?.node === source { return refused }
        if from === top || to === top { return EPERM }
        let renaming = Renaming(
            from: from, row: row, source: source, to: to, newName: newName,
            target: target.map { ($0.0, $0.1) },
            isFromTrash: isInTrash(from), isIntoTrash: isInTrash(to), isTargetRestored: isTargetRestored)
        if way == .exchange { return exchange(renaming) }
        let wasWorking = source.isDirectory && isInWorkingDirectory(source)
        let failed = perform(renaming)
        guard failed == 0, wasWorking else { return failed }
        let isRestored = renaming.isFromTrash && !renaming.isIntoTrash
        if isRestored || !isInWorkingDirectory(source) { classifyBelow(source) }
        return 0
    }

    /// Renames that the kernel refuses before it asks a file system; rename(2).
    private func kernelRefusal(
        _ from: ModelNode, _ source: ModelNode, _ to: ModelNode, _ target: ModelNode?,
        _ way: ModelOperation.Way
    ) -> Int32 {
        if way == .noReplace && target != nil { return EEXIST }
        if way == .exchange && target == nil { return ENOENT }
        if source.isDirectory && isInside(to, source) { return EINVAL }
        if let target, target.isDirectory, from !== target, isInside(from, target) {
            return way == .exchange ? EINVAL : ENOTEMPTY
        }
        if let target, from === target { return way == .exchange ? EINVAL : ENOTEMPTY }
        guard let target, target !== source, way != .exchange else { return 0 }
        if source.isDirectory && !target.isDirectory { return ENOTDIR }
        if !source.isDirectory && target.isDirectory { return EISDIR }
        return 0
    }

    private func perform(_ it: Renaming) -> Int32 {
        let (fromMoments, intoMoments) = (it.from === moments, it.to === moments)
        let (fromDay, intoDay) = (it.from.day != nil, it.to.day != nil)
        if it.isFromTrash && intoMoments { return restoreDay(it) }
        if it.isFromTrash && intoDay { return restoreIntoDay(it) }
        if fromMoments && intoMoments { return renameDay(it) }
        if fromMoments && intoDay || fromDay && intoMoments { return EPERM }
        if intoMoments { return EPERM }
        if fromMoments { return it.isIntoTrash ? trashDay(it) : copyDayToAlbum(it) }
        if it.source.isDirectory { return intoDay ? EPERM : renameDirectory(it) }
        if intoDay { return fromDay ? renameInDays(it) : moveIntoDay(it) }
        if fromDay { return it.isIntoTrash ? trashFromDay(it) : addToAlbum(it) }
        renameInAlbums(it)
        return 0
    }

    private func exchange(_ it: Renaming) -> Int32 {
        guard let (row, second) = it.target else { return ENOENT }
        let inAlbums = [it.from, it.to].allSatisfy { (node: ModelNode) in node.day == nil && node !== moments
        }
        guard inAlbums || (it.from.day != nil && it.from === it.to), it.isFromTrash == it.isIntoTrash else {
            return EPERM
        }
        let directories = [it.source, second].filter(\.isDirectory)
        let wereWorking = directories.filter { isInWorkingDirectory($0) }
        for (name, node) in [(it.row, it.source), (row, second)] {
            name.directory.entries[name.name] = nil
            node.names.removeAll { $0.id == name.id }
        }
        add(it.from, it.row.name, second, isMember: row.isMember, isLink: row.isLink)
        add(it.to, it.newName, it.source, isMember: it.row.isMember, isLink: it.row.isLink)
        for node in [it.source, second] where !node.isDirectory { classifyIfNeeded(node) }
        if it.from.day != nil { for node in [it.source, second] { node.photo?.isNamed = true } }
        for directory in wereWorking where !isInWorkingDirectory(directory) { classifyBelow(directory) }
        return 0
    }

    // MARK: Directories

    func isBlocked(_ it: Renaming) -> Bool { it.target.map { !$0.node.entries.isEmpty } ?? false }

    func replaceDirectory(_ it: Renaming) {
        if let (row, node) = it.target { drop(row, of: node) }
    }

    /// Gives a directory another name and place.
    func place(_ it: Renaming) {
        drop(it.row, of: it.source)
        it.source.isGone = false
        add(it.to, it.newName, it.source)
    }

    private func renameDirectory(_ it: Renaming) -> Int32 {
        if isBlocked(it) { return ENOTEMPTY }
        replaceDirectory(it)
        place(it)
        return 0
    }

    private func renameDay(_ it: Renaming) -> Int32 {
        guard isModelDay(it.newName) else { return EPERM }
        if isBlocked(it) { return ENOTEMPTY }
        replaceDirectory(it)
        place(it)
        it.source.day = it.newName
        for node in it.source.entries.values where node.isPhoto {
            node.photo?.day = it.newName
            node.photo?.isPinned = true
        }
        return 0
    }

    /// An album is made of a day, and the day stays.
    private func copyDayToAlbum(_ it: Renaming) -> Int32 {
        if isBlocked(it) { return ENOTEMPTY }
        replaceDirectory(it)
        let (album, number) = (it.source, it.source.day)
        place(it)
        let day = make(.directory, mode: album.mode)
        (day.day, day.isMadeByHand) = (number, album.isMadeByHand)
        (album.day, album.isMadeByHand) = (nil, false)
        add(moments, it.row.name, day)
        for (row, node) in album.listed where node.isPhoto {
            node.names = node.names.map { name in
                guard name.id == row.id else { return name }
                return ModelNode.Name(directory: album, name: name.name, id: name.id, isMember: true)
            }
            add(day, row.name, node)
        }
        return 0
    }

    // MARK: Files

    func move(_ it: Renaming) {
        it.from.entries[it.row.name] = nil
        it.source.names.removeAll { $0.id == it.row.id }
        let isMember = it.row.isMember && it.to.day == nil
        add(it.to, it.newName, it.source, isMember: isMember, isLink: it.row.isLink)
    }

    /// Classifies a file that is no photo yet, if its new name is no working one.
    private func fileMoved(_ it: Renaming) {
        if isFileable(it.newName, in: it.to) { file(it.source) }
    }

    func renameInAlbums(_ it: Renaming) {
        let photo = it.isFromTrash && !it.isIntoTrash ? trashedPhoto(behind: it.source) : nil
        defer { if let photo { restore(photo) } }
        var it = it
        if photo === it.source {
            // Where it was put in at first it has a name of its own again.
            it = Renaming(
                from: it.from,
                row: ModelNode.Name(directory: it.from, name: it.row.name, id: it.row.id, isMember: true),
                source: it.source, to: it.to, newName: it.newName, target: it.target,
                isFromTrash: true, isIntoTrash: false)
        }
        if let (row, node) = it.target {
            if save(it) { return }
            keepReplaced(it, node)
            replace(row, of: node, with: it.source)
        }
        let isNew = !it.isFromTrash && isNew(it.source, it.row)
        move(it)
        guard let photo = it.source.photo else { return fileMoved(it) }
        if isNew, isFileable(it.newName, in: it.to),
            let backup = backup(of: it.newName, in: it.to, except: it.source)
        {
            let staying = staying(of: backup, savedAs: it.newName, in: it.to)
            replacePhoto(from: backup, to: it.source, photo, except: staying, in: it.to, named: it.newName)
        } else if it.source.trashed == nil, !it.isFromTrash, !it.isIntoTrash {
            noteBackup(it)
            followName(it.source, from: it.row, to: it.newName, in: it.to)
        }
    }

    func moveIntoDay(_ it: Renaming) -> Int32 {
        guard it.source.isFile, let day = it.to.day else { return EPERM }
        if save(it) { return 0 }
        var it = it
        if let photo = it.source.original {
            exchangeRoles(it.source, photo)
            // The photo's own place, which was the target, is free now.
            it.target = entry(it.to, it.newName).map { ($0.0, $0.1) }
        }
        let isGiven = it.newName != it.row.name
        it = makeWay(it)
        guard it.source.isPhoto else {
            move(it)
            fileMoved(it)
            return 0
        }
        move(it)
        keepOnlyArrived(it)
        pin(it.source, to: day)
        if isGiven { it.source.photo?.isNamed = true }
        return 0
    }

    private func renameInDays(_ it: Renaming) -> Int32 {
        if save(it) { return 0 }
        let isGiven = it.newName != it.row.name
        let it = makeWay(it)
        let isNew = isNew(it.source, it.row)
        move(it)
        guard let photo = it.source.photo, let day = it.to.day else {
            fileMoved(it)
            return 0
        }
        if isNew, isFileable(it.newName, in: it.to),
            let backup = backup(of: it.newName, in: it.to, except: it.source)
        {
            let staying = staying(of: backup, savedAs: it.newName, in: it.to)
            replacePhoto(from: backup, to: it.source, photo, except: staying, in: it.to, named: it.newName)
            return 0
        }
        noteBackup(it)
        keepOnlyArrived(it)
        if it.from !== it.to {
            it.source.photo?.day = day
            it.source.photo?.isPinned = true
        }
        if isGiven { it.source.photo?.isNamed = true }
        return 0
    }

    private func noteBackup(_ it: Renaming) {
        it.source.photo?.former = modelBackups(of: it.row.name).contains(it.newName) ? it.row.name : nil
    }

    /// Moments has every photo once: one name in days, or beside backups' names in the same day.
    private func keepOnlyArrived(_ it: Renaming) {
        let others = it.source.names.filter { $0.directory.day != nil && !$0.isOf(it.to, it.newName) }
        var leaving = others
        if it.from === it.to {
            let plain = others.filter { !isModelBackup($0.name) }
            leaving = isModelBackup(it.newName) ? (plain.isEmpty ? others : []) : plain
        }
        for other in leaving { drop(other, of: it.source) }
    }

    /// A photo from elsewhere never replaces one; within the day, or by a plain file, one is overwritten as by rm.
    func makeWay(_ it: Renaming) -> Renaming {
        guard let (row, node) = it.target else { return it }
        var it = it
        it.target = nil
        if !node.isPhoto {
            replace(row, of: node, with: it.source)
        } else if it.from !== it.to, it.source.isPhoto || isToBePhoto(it) {
            it.newName = freeName(it.to, it.newName)
        } else {
            removePhoto(node, named: it.newName, in: it.to)
        }
        return it
    }

    private func isToBePhoto(_ it: Renaming) -> Bool {
        isFileable(it.newName, in: it.to) && it.source.original == nil && it.source.takenDay != nil
    }

    private func addToAlbum(_ it: Renaming) -> Int32 {
        if let (row, node) = it.target {
            keepReplaced(it, node)
            replace(row, of: node, with: it.source)
        }
        if it.source.isPhoto {
            add(it.to, it.newName, it.source, isMember: true)
        } else {
            move(it)
            fileMoved(it)
        }
        return 0
    }

    // MARK: Saving

    /// A new file renamed over a photo that it is a new version of. False where it is something else.
    private func save(_ it: Renaming) -> Bool {
        guard let target = it.target?.node, target.isPhoto, let photo = photoOfSaved(it) else { return false }
        let staying = staying(of: target, savedAs: it.newName, in: it.to)
        it.from.entries[it.row.name] = nil
        it.source.names.removeAll { $0.id == it.row.id }
        let wasLookedAt = !it.source.isPhoto || isLookedAtAgain(it)
        let wasCopy = it.source.original != nil
        it.source.original?.copies.removeAll { $0 === it.source }
        it.source.original = nil
        replacePhoto(
            from: target, to: it.source, photo, except: staying, in: it.to, named: it.newName,
            isLookedAt: wasLookedAt && !it.isTargetRestored)
        if wasLookedAt && !wasCopy { _ = becomeCopy(it.source, it.to) }
        return true
    }

    /// A new file saved in place of a copy or a plain hard link of a photo keeps what had that name as its original.
    private func keepReplaced(_ it: Renaming, _ old: ModelNode) {
        guard let photo = old.isPhoto ? old : old.original, !old.bytes.isEmpty,
            photo !== it.source, photo !== it.source.original, photoOfSaved(it) != nil,
            isNew(it.source, it.row), !isFormerPhoto(old, in: it.to)
        else { return }
        if !it.source.isPhoto && it.source.bytes == old.bytes { return }
        it.source.originalBytes = nil
        keepVersion(of: old, for: it.source)
    }

    private func isLookedAtAgain(_ it: Renaming) -> Bool {
        it.to.day != nil && it.target?.node.isPhoto == true && it.source.photo?.isPinned == true
            && isNew(it.source, it.row)
    }

    private func photoOfSaved(_ it: Renaming) -> ModelNode.Photo? {
        guard it.source.isFile, !it.isFromTrash, isFileable(it.newName, in: it.to) else { return nil }
        let isWorking = !isFileable(it.row.name, in: it.from)
        if !it.source.isPhoto || !isWorking {
            guard isNew(it.source, it.row), isWorking || it.from === it.to else { return nil }
        }
        if let photo = it.source.original { return photo === it.target?.node ? photo.photo : nil }
        if !it.source.isPhoto || isLookedAtAgain(it) {
            return it.source.takenDay.map { ModelNode.Photo(day: $0) }
        }
        return it.source.photo
    }
}
