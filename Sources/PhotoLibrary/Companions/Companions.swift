import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
package import PhotoImaging
import PhotoRules
import VaultCatalogue
package import VaultStore

/// A pending move of a companion, because its photo was moved to another day, renamed in its day, removed or restored.
package struct CompanionMove {
    package enum Target {
        /// A day, YYYYMMDD: another one; or for a sidecar also that of the photo, which got another name in it.
        case day(Int64)
        /// The trash of the client that removed the photo. Destroyed if no trash is kept.
        case trash(Caller)
        /// Out of the trash with the photo.
        case restored(Origin)
    }

    /// Where a companion was before it was removed.
    package struct Origin {
        /// Its directory; a sidecar returns to it if that is an album that exists, else beside the photo.
        var parent: UInt64
        var name: [UInt8]
        /// The day that the photo had in the trash.
        var day: Int64
    }

    /// The directory it is in, a day or one in the trash, and its name there.
    package var directory: UInt64
    package var name: [UInt8]
    package var target: Target
    /// The inode of the photo that was moved, and its name in the day that it left. For a sidecar of an album: of the
    /// photo or copy beside which it was, and its name there.
    var photo: UInt64
    var photoName: [UInt8]
    /// The names of other photos that made the same move before, while this one was pending.
    var otherNames: [[UInt8]] = []
    /// Other photos that were restored before, while this return was pending: the companion may be one of theirs.
    var otherReturns: [CompanionMove] = []
    /// The thread that moved the photo. It may be about to move this file too, and must find it at its old place.
    var mover: Int32
    /// Whether that thread has looked it up since.
    var wasLookedUp = false

    /// The new day; nil for a move into or out of the trash.
    var day: Int64? { if case .day(let day) = target { day } else { nil } }
    var isReturning: Bool { if case .restored = target { true } else { false } }
    /// The companion's name beside its photo. In the trash it may have a number.
    package var nameBesidePhoto: [UInt8] {
        if case .restored(let origin) = target { origin.name } else { name }
    }
    /// The names beside which the companion was.
    package var photoNames: [[UInt8]] { [photoName] + otherNames + otherReturns.map(\.photoName) }
    /// Notes the photos of an earlier move of the companion, if that had the same target.
    mutating func join(_ earlier: CompanionMove) {
        guard earlier.directory == directory, earlier.name == name, hasTarget(of: earlier) else { return }
        guard !isReturning else {
            var other = earlier
            other.otherReturns = []
            otherReturns = ([other] + earlier.otherReturns).filter { $0.photo != photo }
            return
        }
        otherNames = earlier.photoNames.filter { $0 != photoName }
    }

    /// The return with the photo that a sidecar of these contents describes. Nil: it describes none of them.
    func returning(as contents: Sidecar) -> CompanionMove? {
        ([self] + otherReturns).first { describes(contents, named: $0.nameBesidePhoto, $0.photoName) }
    }

    private func hasTarget(of other: CompanionMove) -> Bool {
        switch (target, other.target) {
        case (.day(let own), .day(let day)): own == day
        case (.trash, .trash), (.restored, .restored): true
        default: false
        }
    }

    /// The client in whose trash it is to go; nil for other moves.
    package var caller: Caller? { if case .trash(let caller) = target { caller } else { nil } }
}

/// Live Photos, bursts, a raw file and its JPEG, a photo and its edit, and sidecars in days: files that were taken
/// together stay together when one of them is re-dated or moved between days. For removals see
/// `Tree+RemovedCompanions.swift`.
///
/// `mv day/* other/` moves every one of them itself. So companions do not follow at once, but when a directory is
/// listed, or when a thread other than the mover looks one of them up.
package final class Companions {
    unowned let tree: Tree
    /// Files that are to follow a photo to another day, by inode.
    package private(set) var moves: [UInt64: CompanionMove] = [:]

    init(_ tree: Tree) { self.tree = tree }

    /// Notes that a file does not follow its photo.
    func forget(_ ino: UInt64) { moves[ino] = nil }

    /// Notes that the companions of a photo stay, which has come back.
    func keepBeside(_ photo: UInt64) { moves = moves.filter { $1.photo != photo || $1.caller == nil } }

    /// Notes that a companion is to follow its photo.
    func note(_ ino: UInt64, _ move: CompanionMove) {
        var move = move
        if let earlier = moves[ino] { move.join(earlier) }
        moves[ino] = move
    }

    /// The companions of a photo that is, or was, called `name` in a day: their rows, and photos' own.
    func companions(
        of photo: Inode, _ name: [UInt8], in directory: Inode, captured: Int64
    ) throws(FileError) -> [(row: DentryRow, inode: Inode, photo: PhotoRow?)] {
        let own = try tree.photos.photo(photo)
        var found = try tree.groups.companionsByStem(of: own, name, in: directory, captured: captured)
        // Also the companions by stem of photos with the same identifier: of a Live Photo's still, its raw
        // file.
        for mate in try tree.groups.groupMates(of: own, in: directory.ino) {
            if !found.contains(where: { $0.row.id == mate.row.id }) { found.append(mate) }
            guard let row = mate.photo else { continue }
            for other in try tree.groups.companionsByStem(
                of: row, mate.row.name, in: directory, captured: row.captured)
            where other.inode.ino != photo.ino && !found.contains(where: { $0.row.id == other.row.id }) {
                found.append(other)
            }
        }
        return found
    }

    /// Notes the companions of a photo that leaves, or has just left, its day. `captured`: its time of
    /// capture before. `withPhotos`: false for sidecars alone.
    func queueCompanionMoves(
        of photo: Inode, _ name: [UInt8], in directory: Inode, captured: Int64, to day: Int64,
        withPhotos: Bool = true, _ change: Change
    ) throws(FileError) {
        moves[photo.ino] = nil
        guard directory.row.day != day else { return }
        try redirectCompanionMoves(of: photo, to: day)
        for other in try companions(of: photo, name, in: directory, captured: captured)
        where withPhotos || other.photo == nil {
            note(other.row, .day(day), of: photo, name, change)
        }
    }

    /// Lets companions that have not yet followed a photo follow it to its next day.
    private func redirectCompanionMoves(of photo: Inode, to day: Int64) throws(FileError) {
        for (ino, move) in moves where move.photo == photo.ino && move.day != nil {
            let isThere = try tree.existing(move.directory)?.row.day == day
            let isPhoto = try tree.existing(ino)?.isPhoto ?? false
            moves[ino]?.target = .day(day)
            if isThere && isPhoto { moves[ino] = nil }
        }
    }

    /// Notes the sidecars of a photo that gets, or has just got, another name in its day. Its other companions keep
    /// their names.
    func queueSidecarRenames(of photo: Inode, _ name: [UInt8], in day: Inode, _ change: Change)
        throws(FileError)
    {
        guard day.isDay else { return }
        for row in try sidecars(beside: name, in: day) {
            note(row, .day(day.row.day), of: photo, name, change)
        }
    }

    /// Notes a move of a companion.
    func note(
        _ row: DentryRow, _ target: CompanionMove.Target, of photo: Inode, _ name: [UInt8], _ change: Change
    ) {
        let move = CompanionMove(
            directory: row.parent, name: row.name, target: target, photo: photo.ino, photoName: name,
            mover: change.thread)
        note(row.ino, move)
    }

    /// A companion's name in the day to which its photo was moved: after the photo's name there, which is another one
    /// if the photo was numbered, or renamed too.
    private func name(of move: CompanionMove, in day: Inode) throws(FileError) -> [UInt8] {
        guard let photo = try tree.existing(move.photo), let own = try tree.moments.moment(of: photo),
            own.directory.ino == day.ino
        else { return move.name }
        let name = companionName(move.name, of: move.photoName, for: own.row.name)
        return name.count <= nameBytesMax ? name : move.name
    }

    /// A rename of a companion after its photo, to the same day and without another name, with the name that the
    /// companion then has there. It replaces nothing under a name that the caller did not give.
    func renameBesidePhoto(_ request: RenameRequest) throws(FileError) -> RenameRequest {
        guard request.name == request.newName, request.from.isDay, request.to.isDay,
            let move = moves[request.source.ino], move.directory == request.from.ino
        else { return request }
        guard case .day(let day) = move.target, day == request.to.row.day else { return request }
        let name = try name(of: move, in: request.to)
        guard name != request.newName else { return request }
        var request = request
        request.newName = try tree.freeName(request.to, name)
        request.target = nil
        return request
    }

    /// Whether a lookup of a name must be answered as if all pending moves had been applied.
    package func hasPendingCompanionMove(_ name: [UInt8], in directory: Inode, _ found: Inode?, thread: Int32)
        -> Bool
    {
        guard !moves.isEmpty else { return false }
        if let found {
            guard let move = moves[found.ino], move.directory == directory.ino else { return false }
            if thread != move.mover { return true }
            moves[found.ino]?.wasLookedUp = true
            return false
        }
        // Others look for what is coming back with its photo.
        if moves.values.contains(where: { $0.isReturning && $0.mover != thread }) { return true }
        guard directory.isDay else { return false }
        // The companion's new place, unless the mover is about to move it there.
        return moves.values.contains { move in
            guard move.day == directory.row.day, !(move.mover == thread && move.wasLookedUp) else {
                return false
            }
            if move.name == name { return true }
            // A sidecar whose photo was renamed in the day.
            return move.directory == directory.ino && isSidecarName(name)
                && (try? self.name(of: move, in: directory)) == name
        }
    }

    /// Applies pending companion moves. The companions of a companion, as the sidecar of a video, may be noted thereby.
    ///
    /// - Parameters:
    ///   - infos: the `.trashinfo` files of companions that go into the trash, by inode; one without stays noted.
    ///   - contents: of those that are sidecars by their names; one without stays noted.
    package func applyCompanionMoves(
        _ infos: [UInt64: TrashInfo], _ contents: [UInt64: Sidecar], _ space: Space, _ change: Change
    ) throws(FileError) {
        var waiting: [(ino: UInt64, move: CompanionMove, isPhoto: Bool)] = []
        for (ino, move) in moves {
            waiting.append((ino, move, try tree.existing(ino)?.isPhoto ?? false))
        }
        // A sidecar that is also the video's goes once that has gone.
        waiting.sort { $0.isPhoto == $1.isPhoto ? $0.ino < $1.ino : $0.isPhoto }
        moves = [:]
        for (ino, move, _) in waiting {
            guard let inode = try? tree.inode(ino), let directory = try? tree.inode(move.directory),
                let found = try tree.find(directory, move.name), found.inode.ino == ino
            else { continue }
            let row = DentryRow(parent: directory.ino, id: found.id, name: move.name, ino: ino)
            var move = move
            let isInTrash = try tree.isInTrash(directory)
            if isSidecarName(move.nameBesidePhoto), isPlainFile(inode), move.isReturning || !isInTrash {
                guard let sidecar = contents[ino] else {
                    moves[ino] = move
                    continue
                }
                guard let own = following(move, as: sidecar, waiting.lazy.map(\.move)) else { continue }
                move = own
            }
            switch move.target {
            case .day(let day): try follow(move, inode, row, from: directory, to: day, contents[ino], change)
            case .trash(let caller):
                guard try mayGo(move, inode, from: directory, contents[ino]) else { continue }
                if tree.trash.days > 0, infos[ino] == nil {
                    moves[ino] = move
                    continue
                }
                try removeCompanion(inode, row, in: directory, infos[ino], caller, space, change)
                if inode.row.nlink == 0 { change.inodesToDestroy.append(ino) }
            case .restored(let origin):
                try restoreCompanion(
                    inode, row, in: directory, move, to: origin, change)
            }
        }
    }

    /// The move that a sidecar of these contents makes; nil if it describes no photo that does.
    private func following(
        _ move: CompanionMove, as sidecar: Sidecar, _ waiting: some Sequence<CompanionMove>
    ) -> CompanionMove? {
        if move.isReturning { return move.returning(as: sidecar) }
        let isDescribing =
            move.photoNames.contains { describes(sidecar, named: move.name, $0) }
            || waiting.contains { other in
                // A photo that moves along.
                other.day != nil && other.day == move.day && other.directory == move.directory
                    && sidecarNames(other.name).contains(move.name)
                    && describes(sidecar, named: move.name, other.name)
            }
        return isDescribing ? move : nil
    }

    func follow(
        _ move: CompanionMove, _ inode: Inode, _ row: DentryRow, from directory: Inode, to number: Int64,
        _ contents: Sidecar?, _ change: Change
    ) throws(FileError) {
        let day = try tree.moments.dayDirectory(number, now: change.now)
        let name = try name(of: move, in: day)
        if inode.isPhoto {
            var photo = try tree.photos.photo(inode)
            photo.pin(to: number)
            try tree.photos.storePhoto(inode, photo, change)
            try tree.moments.moveMoment(inode, to: number, named: name, now: change.now)
        } else if day.ino == directory.ino {
            try renameSidecar(inode, row, contents, in: day, to: name, move, now: change.now)
        } else {
            let free = try tree.freeName(day, name)
            try tree.withdraw(row, in: directory, inode, now: change.now)
            try tree.addEntry(day, free, inode, now: change.now)
        }
    }

    /// Gives a sidecar the name of its photo, which was renamed in their day. It stays if another photo that it
    /// describes is there, if its photo was only renamed as a backup, and if its new name is taken.
    private func renameSidecar(
        _ inode: Inode, _ row: DentryRow, _ contents: Sidecar?, in day: Inode, to name: [UInt8],
        _ move: CompanionMove, now: Timestamp
    ) throws(FileError) {
        guard name != row.name, let photo = try tree.existing(move.photo),
            let own = try tree.moments.moment(of: photo),
            !isWorkingName(own.row.name), backupOriginal(own.row.name) == nil,
            try !tree.has(day, name), try !tree.has(day, move.photoName),
            try !hasPhoto(describedBy: row.name, contents, in: day)
        else { return }
        try tree.withdraw(row, in: day, inode, now: now)
        try tree.addEntry(day, name, inode, now: now)
        tree.kernelNames.noteChange(of: inode.ino)
    }
}
