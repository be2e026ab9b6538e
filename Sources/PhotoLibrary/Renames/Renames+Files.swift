import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

/// Renames of files: carries out the steps of `fileMove`.
extension Renames {
    /// - Parameter maySave: false once the file has become one of another kind; see `FileMove.then`.
    func moveFile(
        _ request: RenameRequest, _ effect: RenameEffect, maySave: Bool = true, _ space: Space,
        _ change: Change
    ) throws(FileError) {
        guard let move = fileMove(effect, of: request.movedFile) else { throw .notPermitted }
        let request = try tree.companions.renameBesidePhoto(request)
        let isSaved = maySave && move.maySave ? try save(request, space, change) : false
        if !isSaved {
            if let effect = move.then {
                for step in move.before { try perform(step, request, space, change) }
                var request = request
                request.target = try tree.find(request.to, request.newName).map { ($0.id, $0.inode) }
                if request.target?.inode.ino == request.source.ino { request.target = nil }
                try moveFile(request, effect, maySave: false, space, change)
            } else {
                try moveName(request, move, space, change)
            }
        }
        for step in move.finally { try perform(step, request, space, change) }
    }

    private func moveName(_ request: RenameRequest, _ move: FileMove, _ space: Space, _ change: Change)
        throws(FileError)
    {
        let request = try makeWay(request, space, change)
        let isNew =
            request.isFromTrash || !move.after.contains(.replaceBackup)
            ? false : try tree.saves.isNewFile(request.source, named: request.sourceID, in: request.from)
        for step in move.before { try perform(step, request, space, change) }
        try perform(move.name, request, space, change)
        for step in move.after {
            if step == .replaceBackup {
                if isNew, try replaceBackup(request, space, change) { return }
            } else {
                try perform(step, request, space, change)
            }
        }
    }

    private func perform(
        _ step: FileMoveStep, _ request: RenameRequest, _ space: Space, _ change: Change
    ) throws(FileError) {
        let (source, now) = (request.source, request.now)
        switch step {
        case .becomePhoto:
            guard let photo = try tree.copies.photo(representedBy: source), source.isCopy else {
                throw .damaged
            }
            try tree.copies.exchangeRoles(source, photo, space, change)
        case .queueCompanionMoves: try queueCompanionMoves(request, change)
        case .leaveMoment:
            tree.kernelNames.noteChange(of: source.ino)
            guard let own = try tree.moments.moment(of: source) else { return }
            try tree.withdraw(own.row, in: own.directory, source, now: now)
            source.row.countLinks(by: -1)
        case .move: try move(request, isMember: request.isMember && request.to.area == .album)
        case .moveAsMember: try move(request, isMember: true)
        case .addMembership:
            try tree.addEntry(request.to, request.newName, source, isMember: true, now: now)
            tree.addLink(to: source, now: now)
            tree.kernelNames.noteChange(of: source.ino)
        case .removeToTrash:
            try tree.addEntry(request.to, request.newName, source, now: now)
            tree.addLink(to: source, now: now)
            try tree.trash.removeToTrash(source, named: request.name, request.caller, change)
        case .classify: try tree.effects.apply(request.classification, to: source, space, change)
        case .replaceBackup: _ = try replaceBackup(request, space, change)
        case .noteBackup: try noteBackup(request, change)
        case .keepOnlyArrived: try keepOnlyArrived(request)
        case .pin: try pin(request, change)
        case .restore:
            guard let photo = try tree.trash.trashedPhoto(behind: source) else { return }
            try tree.companions.noteReturnBeside(photo, in: request.from, change)
            try tree.trash.restore(photo, change)
        case .followName: try followName(request, change)
        case .noteGivenName: noteGivenName(request)
        case .noteTrashAge: try noteTrashAge(request)
        case .forgetTrashAge: try forgetTrashAge(request)
        }
    }

    // MARK: The file that has the new name

    /// Clears the new name, or chooses another; see `replacedFile`.
    private func makeWay(_ request: RenameRequest, _ space: Space, _ change: Change) throws(FileError)
        -> RenameRequest
    {
        guard let target = request.target else { return request }
        guard !target.inode.isDirectory else { throw .isDirectory }
        try tree.sidecars.noteRemoved(
            target.inode, request.newName, from: request.to, by: request.caller.pid)
        var request = request
        let isMedia = if case .media = request.classification { true } else { false }
        switch replacedFile(
            isPhoto: target.inode.isPhoto, isInDay: request.to.isDay,
            isBeside: request.from.ino == request.to.ino, isToBePhoto: request.source.isPhoto || isMedia)
        {
        case .unlinked:
            if request.source.isRegular {
                // The versions of the photo belong to the new file.
                if try tree.trash.isFormerPhoto(target.inode, in: request.to) {
                    try tree.versions.moveVersions(
                        of: target.inode.ino, to: request.source.ino, change)
                } else {
                    try keepReplaced(target.inode, request)
                }
            } else if try tree.trash.isForTrash(target.inode, in: request.to) {
                try tree.trash.removePlainFile(
                    target.inode, target.id, named: request.newName, in: request.to, request.info,
                    request.caller, space, now: request.now)
                break
            }
            try tree.removeEntry(request.to, target.id, target.inode, now: request.now)
            try tree.removeLink(to: target.inode, now: request.now)
            tree.kernelNames.noteChange(of: target.inode.ino)
        case .removed:
            try tree.trash.removePhoto(
                target.inode, named: request.newName, in: request.to, request.info, request.caller, space,
                change)
        case .kept: request.newName = try tree.freeName(request.to, request.newName)
        }
        request.target = nil
        return request
    }

    /// Keeps the bytes of a photo that lives on elsewhere, as the original of a new file that a program saves in place
    /// of one of its copies: it is the first edit of what had this name.
    private func keepReplaced(_ old: Inode, _ request: RenameRequest) throws(FileError) {
        let source = request.source
        guard let photo = try tree.copies.photo(representedBy: old),
            try tree.copies.photo(representedBy: source)?.ino != photo.ino, try rowOfSaved(request) != nil,
            try tree.saves.isNewFile(source, named: request.sourceID, in: request.from)
        else { return }
        if case .media(let probe) = request.classification, probe.names(photo.row) { return }
        if let own = try tree.versions.versionsDirectory(of: source.ino) {
            try tree.versions.renameOriginal(in: own, now: request.now)
        }
        _ = try tree.versions.keepVersion(of: old, for: source.ino, now: request.now)
    }

    /// If the rename saves a new version of a photo, retargets its moment and memberships. Returns false if it does
    /// not.
    private func save(_ request: RenameRequest, _ space: Space, _ change: Change) throws(FileError) -> Bool {
        guard let target = request.target, target.inode.isPhoto, let row = try rowOfSaved(request) else {
            return false
        }
        let staying = try tree.saves.staying(of: target.inode, savedAs: request.newName, in: request.to)
        try tree.removeEntry(request.from, request.sourceID, request.source, now: request.now)
        request.source.row.countLinks(by: -1)
        let isSame = try isCopy(request.source, of: target.inode)
        if request.source.isCopy { try tree.copies.forgetCopy(request.source) }
        let probe: MediaProbe? = if case .media(let seen) = request.classification { seen } else { nil }
        try tree.saves.replacePhoto(
            from: target.inode, to: request.source, row, except: staying, in: request.to,
            named: request.newName, seen: probe, isSame: isSame, space, change)
        // The saved bytes may be those of another photo.
        if let probe {
            _ = try tree.copies.becomeCopy(
                request.source, probe, named: request.newName, in: request.to, space, change)
        }
        return true
    }

    /// The source's row as a photo, if the rename saves it over one; see `isSave`.
    func rowOfSaved(_ request: RenameRequest) throws(FileError) -> PhotoRow? {
        let source = request.source
        guard source.isRegular, !request.isFromTrash else { return nil }
        let facts = SaveFacts(
            isPhoto: source.isPhoto,
            hadWorkingName: try !tree.effects.isClassifiable(request.name, in: request.from),
            getsPhotoName: try tree.effects.isClassifiable(request.newName, in: request.to),
            isNew: try tree.saves.isNewFile(source, named: request.sourceID, in: request.from),
            isBeside: request.from.ino == request.to.ino)
        guard isSave(facts) else { return nil }
        if case .media(let probe) = request.classification {
            return PhotoRow(source.row, probe, named: request.newName, now: request.now)
        }
        if source.isPhoto { return try tree.photos.photo(source) }
        return try request.target.flatMap { target throws(FileError) in
            try row(of: target.inode, savedAs: source)
        }
    }

    private func isCopy(_ file: Inode, of photo: Inode) throws(FileError) -> Bool {
        guard file.isCopy else { return false }
        return try tree.copies.photo(representedBy: file)?.ino == photo.ino
    }

    /// The row of a photo for a copy that takes its place, because the photo was saved with the bytes that it has. The
    /// copy may be of another photo with the same bytes: a save through one of several hard links leaves two of them.
    /// Nil if the file is a copy of neither.
    private func row(of photo: Inode, savedAs copy: Inode) throws(FileError) -> PhotoRow? {
        guard let represented = try tree.copies.photo(representedBy: copy) else { return nil }
        var row = try tree.photos.photo(photo)
        if represented.ino != photo.ino {
            guard represented.row.size == photo.row.size,
                try tree.photos.photo(represented).fingerprint == row.fingerprint
            else { return nil }
        }
        row.ino = copy.ino
        return row
    }

    // MARK: Steps

    /// Moves the name itself.
    private func move(_ request: RenameRequest, isMember: Bool) throws(FileError) {
        // The companion was about to follow its photo: the user moved it elsewhere.
        if request.from.isDay { tree.companions.forget(request.source.ino) }
        try tree.sidecars.noteRemoved(
            request.source, request.name, from: request.from, by: request.caller.pid)
        let isLink = try tree.names(of: request.source).contains { $0.id == request.sourceID && $0.isLink }
        try tree.removeEntry(request.from, request.sourceID, request.source, now: request.now)
        try tree.addEntry(
            request.to, request.newName, request.source, isMember: isMember,
            isLink: isLink && !isMember && request.to.area == .album, now: request.now)
        request.source.row.changed = request.now
        tree.touch(request.source)
    }

    private func queueCompanionMoves(_ request: RenameRequest, _ change: Change) throws(FileError) {
        let source = request.source
        var (directory, name) = (request.from, request.name)
        if !directory.isDay {
            guard let own = try tree.moments.moment(of: source) else { return }
            (directory, name) = (own.directory, own.row.name)
        }
        if directory.ino == request.to.ino {
            tree.companions.forget(source.ino)
            return try tree.companions.queueSidecarRenames(of: source, name, in: directory, change)
        }
        try tree.companions.queueCompanionMoves(
            of: source, name, in: directory, captured: try tree.photos.photo(source).captured,
            to: request.to.row.day, change)
    }

    /// Makes a new file the photo whose program first renamed it from this name to a backup name; false if there is no
    /// such photo here.
    private func replaceBackup(_ request: RenameRequest, _ space: Space, _ change: Change) throws(FileError)
        -> Bool
    {
        let source = request.source
        guard try tree.effects.isClassifiable(request.newName, in: request.to),
            let backup = try tree.saves.backup(of: request.newName, in: request.to, except: source)
        else { return false }
        let wasCopy = source.isCopy
        let saved: PhotoRow? =
            if wasCopy {
                try row(of: backup, savedAs: source)
            } else if case .media(let probe) = request.classification {
                PhotoRow(source.row, probe, named: request.newName, now: request.now)
            } else { try tree.photos.photo(source) }
        guard var row = saved else { return false }
        let staying = try tree.saves.staying(of: backup, savedAs: request.newName, in: request.to)
        let isSame = try isCopy(source, of: backup)
        if wasCopy {
            row.former = nil
            try tree.copies.forgetCopy(source)
        }
        try tree.saves.replacePhoto(
            from: backup, to: source, row, except: staying, in: request.to, named: request.newName,
            isSame: isSame, space, change)
        return true
    }

    private func noteBackup(_ request: RenameRequest, _ change: Change) throws(FileError) {
        var row = try tree.photos.photo(request.source)
        let former = isBackupName(request.newName, of: request.name) ? request.name : nil
        guard row.former != former else { return }
        row.former = former
        try tree.photos.storePhoto(request.source, row, change)
    }

    /// Removes the photo's names in days that it has besides the new one. A backup name next to its own, which it has
    /// if its album links stay with its old bytes, is left there by a rename within the day.
    private func keepOnlyArrived(_ request: RenameRequest) throws(FileError) {
        let names = try tree.moments.moments(of: request.source).map(\.row)
        guard let arrived = names.first(where: { $0.isOf(request.to.ino, request.newName) }) else { return }
        let isWithinDay = request.from.ino == request.to.ino
        let isBackup = backupOriginal(request.newName) != nil
        if isWithinDay, isBackup, names.contains(where: { backupOriginal($0.name) == nil }) { return }
        try tree.moments.keepOnly(
            arrived, amongDaysOf: request.source, keepsBackups: isWithinDay && !isBackup, now: request.now)
    }

    /// A name in an album was changed: the photo's moment may be named after it.
    private func followName(_ request: RenameRequest, _ change: Change) throws(FileError) {
        let source = request.source
        guard request.name != request.newName, let own = try tree.moments.moment(of: source) else { return }
        // The renamed name has its new form already.
        var names = try tree.moments.placedNames(of: source)
        guard let index = names.firstIndex(where: { $0.row.isOf(request.to.ino, request.newName) }) else {
            return
        }
        (names[index].row.name, names[index].row.id) = (request.name, request.sourceID)
        let namesake = namesake(of: own.row.name, among: names)
        var facts = MomentFollowing()
        facts.isGiven = source.row.flags.contains(.namedInMoments)
        facts.isNamesake = namesake?.id == request.sourceID
        facts.hasOther = namesake != nil && !facts.isNamesake
        facts.wasWorking =
            try !tree.effects.isClassifiable(request.name, in: request.from)
            || backupOriginal(request.name) != nil
        facts.becomesWorking =
            try !tree.effects.isClassifiable(request.newName, in: request.to)
            || backupOriginal(request.newName) != nil
        guard follows(facts) else { return }
        try tree.moments.renameMoment(of: source, own, to: request.newName, change)
    }

    private func noteGivenName(_ request: RenameRequest) {
        if request.changesName { tree.moments.setNameGivenInMoments(request.source, isGiven: true) }
    }

    private func pin(_ request: RenameRequest, _ change: Change) throws(FileError) {
        guard request.from.ino != request.to.ino else { return }
        var row = try tree.photos.photo(request.source)
        // A move between days is a choice, even of the day that the photo has.
        guard request.from.isDay || row.day != request.to.row.day else { return }
        row.pin(to: request.to.row.day)
        try tree.photos.storePhoto(request.source, row, change)
    }
}
