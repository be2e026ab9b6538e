import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import PhotoImaging
import PhotoRules
import VaultCatalogue
import VaultStore

/// The files that go with a photo that is removed, because they are no photos of their own, and come back with it: its
/// sidecars, and the video of a Live Photo with its still. One that another photo needs too stays until that goes. A
/// sidecar that says itself that it describes another photo stays, too.
///
/// The names of all of them are recorded with the photo (`trash_name`) when it goes into the trash. They follow it a
/// little later: see `Tree+CompanionMoves.swift`.
extension Companions {
    // MARK: Into the trash

    /// Notes the companions of a photo that has just been removed.
    ///
    /// - Parameter lost: the names outside the trash that it and its copies had.
    func noteCompanions(
        ofRemoved photo: Inode, lost: [DentryRow], _ caller: Caller, _ change: Change
    ) throws(FileError) {
        forget(photo.ino)
        var linked: Set<UInt64> = []
        let own = try tree.photos.photo(photo)
        // First the videos: a sidecar that describes one of them, too, goes with it.
        if !isVideo(own) {
            for row in lost {
                let directory = try tree.inode(row.parent)
                guard directory.isDay else { continue }
                for video in try videos(ofStill: own, row.name, in: directory) {
                    guard linked.insert(video.id).inserted else { continue }
                    try link(video, to: photo)
                    if try !hasStill(try tree.inode(video.ino), video.name, in: directory) {
                        note(video, .trash(caller), of: photo, row.name, change)
                    }
                }
            }
        }
        for row in lost {
            let directory = try tree.inode(row.parent)
            // Without a trash, a file of an album that was not named could not be brought back.
            guard tree.trash.days > 0 || directory.isDay else { continue }
            for sidecar in try sidecars(beside: row.name, in: directory) {
                guard linked.insert(sidecar.id).inserted else { continue }
                try link(sidecar, to: photo)
                // Whether another photo needs it depends on its contents, which are read without the lock.
                note(sidecar, .trash(caller), of: photo, row.name, change)
            }
        }
        try noteLateCompanions(ofRemoved: photo, own, except: linked, caller, change)
    }

    /// Companions that have not yet followed the photo from the day that it was in before.
    private func noteLateCompanions(
        ofRemoved photo: Inode, _ own: PhotoRow, except linked: Set<UInt64>, _ caller: Caller,
        _ change: Change
    ) throws(FileError) {
        for (ino, move) in moves where move.photo == photo.ino && move.day != nil {
            guard let companion = try tree.existing(ino), let directory = try tree.existing(move.directory),
                let found = try tree.find(directory, move.name), found.inode.ino == ino,
                !linked.contains(found.id)
            else { continue }
            if companion.isPhoto {
                guard isVideo(move.name, try tree.photos.photo(companion), ofStill: move.photoName, own),
                    try !hasStill(companion, move.name, in: directory)
                else { continue }
            } else if try hasPhoto(describedBy: move.name, in: directory) {
                continue
            }
            let row = DentryRow(parent: directory.ino, id: found.id, name: move.name, ino: ino)
            try link(row, to: photo)
            note(row, .trash(caller), of: photo, move.photoName, change)
        }
    }

    /// Records a companion's name with its photo in the trash.
    private func link(_ companion: DentryRow, to photo: Inode) throws(FileError) {
        if photo.isTrashed { try tree.tables.trash.addName(companion, of: photo.ino) }
    }

    /// The videos in a day of the Live Photo whose still has, or had, that name there.
    private func videos(
        ofStill still: PhotoRow, _ name: [UInt8], in day: Inode
    ) throws(FileError) -> [DentryRow] {
        var found: [DentryRow] = []
        let mates =
            try tree.groups.groupMates(of: still, in: day.ino)
            + tree.groups.companionsByStem(of: still, name, in: day, captured: still.captured)
        for mate in mates {
            guard let video = mate.photo, isVideo(mate.row.name, video, ofStill: name, still),
                !found.contains(where: { $0.id == mate.row.id })
            else { continue }
            found.append(mate.row)
        }
        return found
    }

    /// Whether a still of a video's Live Photo is in moments.
    private func hasStill(_ inode: Inode, _ name: [UInt8], in day: Inode) throws(FileError) -> Bool {
        let video = try tree.photos.photo(inode)
        for mate in try tree.groups.halves(of: video) where isStill(mate.row, of: video) { return true }
        return try tree.groups.companionsByStem(of: video, name, in: day, captured: video.captured).contains {
            other in
            other.photo.map { isVideo(name, video, ofStill: other.row.name, $0) } ?? false
        }
    }

    /// The sidecars next to a name.
    func sidecars(beside name: [UInt8], in directory: Inode) throws(FileError) -> [DentryRow] {
        var found: [DentryRow] = []
        for candidate in sidecarNames(name) {
            guard let file = try tree.find(directory, candidate), isPlainFile(file.inode) else { continue }
            found.append(
                DentryRow(parent: directory.ino, id: file.id, name: candidate, ino: file.inode.ino))
        }
        return found
    }

    func isPlainFile(_ inode: Inode) -> Bool {
        inode.isRegular && !inode.isPhoto && !inode.isCopy && !inode.isVersion
    }

    /// Whether a directory has a photo, or a copy of one, whose sidecar a file of that name, and with these contents,
    /// is. A photo that is about to follow another into the trash does not count.
    func hasPhoto(
        describedBy sidecar: [UInt8], _ contents: Sidecar? = nil, in directory: Inode
    ) throws(FileError) -> Bool {
        guard let stem = sidecarStem(sidecar) else { return false }
        var candidates: [Inode] = []
        if let whole = try tree.find(directory, stem) { candidates.append(whole.inode) }
        let beginning = stem + [UInt8(ascii: ".")]
        for row in try tree.tables.dentries.names(
            in: directory.ino, beginning: beginning, limit: siblingNamesMax)
        where stemOf(row.name) == stem && contents.map({ describes($0, named: sidecar, row.name) }) ?? true {
            candidates.append(try tree.inode(row.ino))
        }
        return candidates.contains { inode in
            // A photo that a program has emptied is about to be written again.
            (inode.isPhoto || inode.isCopy || tree.saves.wasPhoto(inode.ino))
                && moves[inode.ino]?.caller == nil
        }
    }

    /// Whether a noted companion may follow its photo into the trash: no photo needs it any more, and no program is
    /// saving the photo anew.
    func mayGo(
        _ move: CompanionMove, _ inode: Inode, from directory: Inode, _ contents: Sidecar?
    ) throws(FileError) -> Bool {
        if try tree.has(directory, move.photoName) { return false }
        if try tree.isInTrash(directory) { return false }
        if inode.isPhoto {
            guard directory.isDay, !inode.isTrashed else { return false }
            return try !hasStill(inode, move.name, in: directory)
        }
        guard isPlainFile(inode) else { return false }
        return try !hasPhoto(describedBy: move.name, contents, in: directory)
    }

    /// Removes a companion of a removed photo: into the trash, or for good if none is kept.
    func removeCompanion(
        _ inode: Inode, _ row: DentryRow, in directory: Inode, _ info: TrashInfo?, _ caller: Caller,
        _ space: Space, _ change: Change
    ) throws(FileError) {
        if inode.isPhoto {
            try tree.trash.removePhoto(inode, named: row.name, in: directory, info, caller, space, change)
        } else if tree.trash.days > 0 {
            try tree.trash.removePlainFile(
                inode, row.id, named: row.name, in: directory, info, caller, space, now: change.now)
        } else {
            try tree.removeEntry(directory, row.id, inode, now: change.now)
            try tree.removeLink(to: inode, now: change.now)
        }
        tree.noteLost(row, in: directory)
    }

    // MARK: Back

    /// Notes the companions of a photo that is being restored.
    ///
    /// - Parameters:
    ///   - recorded: their names when the photo was removed.
    ///   - own: the photo's own names in albums then, and those of its copies; `name`: its name in its day.
    func noteReturn(
        of recorded: [DentryRow], with photo: Inode, _ name: [UInt8], _ own: [DentryRow], _ change: Change
    ) throws(FileError) {
        let day = try tree.photos.photo(photo).day
        for row in recorded {
            guard let inode = try tree.existing(row.ino), let present = try leaving(inode, with: photo) else {
                continue
            }
            let beside = own.first { $0.parent == row.parent && sidecarNames($0.name).contains(row.name) }
            let move = CompanionMove(
                directory: present.parent, name: present.name,
                target: .restored(CompanionMove.Origin(parent: row.parent, name: row.name, day: day)),
                photo: beside?.ino ?? photo.ino, photoName: beside?.name ?? name, mover: change.thread)
            note(row.ino, move)
        }
    }

    /// The name of a companion in the trash, or that with which it is about to go there with its photo; nil if it has
    /// stayed, or has come back.
    private func leaving(_ inode: Inode, with photo: Inode) throws(FileError) -> DentryRow? {
        for row in try tree.names(of: inode) where try tree.isInTrash(tree.inode(row.parent)) { return row }
        guard let move = moves[inode.ino], move.caller != nil, move.photo == photo.ino else {
            return nil
        }
        return try tree.names(of: inode).first { $0.isOf(move.directory, move.name) }
    }

    /// Notes the companions beside a photo that is restored from a directory in the trash that was a day: they went
    /// with that. In `files` itself each file lies for its own reason.
    func noteReturnBeside(_ photo: Inode, in directory: Inode, _ change: Change) throws(FileError) {
        guard let kept = try tree.tables.trash.row(photo.ino, 0),
            try tree.trash.trash(withFiles: directory) == nil
        else { return }
        let own = try tree.photos.photo(photo)
        var found = try sidecars(beside: kept.name, in: directory)
        if !isVideo(own) {
            for video in try videos(ofStill: own, kept.name, in: directory) {
                let inode = try tree.inode(video.ino)
                if inode.isTrashed, try tree.photos.photo(inode).day == own.day { found.append(video) }
            }
        }
        try noteReturn(of: found, with: photo, kept.name, [], change)
    }

    /// Brings a companion back that went with its photo. Follows the photo if that was restored to another day.
    func restoreCompanion(
        _ inode: Inode, _ row: DentryRow, in directory: Inode, _ move: CompanionMove,
        to place: CompanionMove.Origin, _ change: Change
    ) throws(FileError) {
        guard let holder = try tree.existing(move.photo),
            let photo = try tree.copies.photo(representedBy: holder),
            !photo.isTrashed
        else { return }
        let day = try tree.photos.photo(photo).day
        let isElsewhere = day != place.day
        guard try tree.isInTrash(directory) else {
            // It had not gone yet.
            if isElsewhere, directory.isDay {
                try follow(move, inode, row, from: directory, to: day, nil, change)
            }
            return
        }
        if inode.isTrashed {
            try noteReturnBeside(inode, in: directory, change)
            try tree.trash.restore(inode, change)
            if isElsewhere {
                var own = try tree.photos.photo(inode)
                own.pin(to: day)
                try tree.photos.storePhoto(inode, own, change)
                try tree.moments.moveMoment(inode, to: day, now: change.now)
            }
        } else if isPlainFile(inode) {
            guard try putBack(inode, beside: holder, photo, move, to: place, now: change.now) else { return }
        } else {
            return
        }
        try tree.tables.trash.delete(inode.ino, row.id)
        try tree.trash.discard(row, change)
    }

    /// Gives a sidecar its name next to its photo again; false if there is no place for it.
    private func putBack(
        _ inode: Inode, beside holder: Inode, _ photo: Inode, _ move: CompanionMove,
        to place: CompanionMove.Origin, now: Timestamp
    ) throws(FileError) -> Bool {
        var shown: (directory: Inode, name: [UInt8])?
        if let album = try tree.existing(place.parent), album.isDirectory, !album.isDay, album.row.nlink > 0,
            try !tree.isInTrash(album)
        {
            let name = try tree.names(of: holder).first { $0.parent == album.ino }?.name
            shown = (album, name ?? move.photoName)
        } else if let own = try tree.moments.moment(of: photo) {
            shown = (own.directory, own.row.name)
        }
        guard let shown else { return false }
        let wanted = companionName(place.name, of: move.photoName, for: shown.name)
        let name = try tree.freeName(
            shown.directory, wanted.count <= nameBytesMax ? wanted : place.name)
        try tree.addEntry(shown.directory, name, inode, now: now)
        tree.addLink(to: inode, now: now)
        tree.kernelNames.noteChange(of: shown.directory.ino)
        tree.kernelNames.noteChange(of: inode.ino)
        return true
    }
}
