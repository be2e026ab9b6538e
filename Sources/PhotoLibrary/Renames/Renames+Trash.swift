import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

/// Effects of rename(2) if the source or the target is in the trash.
extension Renames {
    // MARK: Into the trash

    /// Records since when a name has been in the trash.
    func noteTrashAge(_ request: RenameRequest) throws(FileError) {
        let ino = request.source.ino
        guard request.isFromTrash else {
            return try tree.trash.storeTrashAge(
                of: ino, named: request.newName, in: request.to,
                describing: tree.trash.photos(besideRemoved: request.name, in: request.from))
        }
        guard let id = try tree.tables.dentries.entry(request.to.ino, request.newName)?.id else {
            throw .damaged
        }
        try tree.tables.trash.move(ino, request.sourceID, to: id)
    }

    func forgetTrashAge(_ request: RenameRequest) throws(FileError) {
        if request.to.isDay, let row = try tree.tables.trash.row(request.source.ino, request.sourceID) {
            var photos = row.described
            if row.isOfEarlyRelease, let info = try tree.trash.info(of: request.name, in: request.from) {
                photos = try tree.sidecars.photosDescribed(
                    byEarly: request.source, named: request.newName, before: info.row.ino)
            }
            try tree.sidecars.noteReturn(
                of: request.source, as: request.newName, to: request.to, describing: photos,
                by: request.caller.pid)
        }
        try tree.tables.trash.delete(request.source.ino, request.sourceID)
    }

    /// A whole day: moves the directory that the kernel knows, with its photos.
    func trashDay(_ request: RenameRequest, _ change: Change) throws(FileError) {
        let (day, now) = (request.source, request.now)
        try replaceDirectory(request)
        let rows = try tree.rows(of: day)
        try tree.removeEntry(request.from, request.sourceID, day, now: now)
        day.row.day = 0
        day.row.flags.remove(.madeByHand)
        day.row.changed = now
        try tree.addEntry(request.to, request.newName, day, now: now)
        try noteTrashAge(request)
        for row in ownNamesFirst(rows) {
            let inode = try tree.inode(row.ino)
            guard inode.isPhoto && !inode.isTrashed else { continue }
            try tree.trash.removeToTrash(inode, named: row.name, request.caller, change)
        }
        tree.kernelNames.noteChange(of: day.ino)
    }

    /// In a day, photos are recorded by their own names, not by the backup names next to them.
    private func ownNamesFirst(_ rows: [DentryRow]) -> [DentryRow] {
        rows.filter { backupOriginal($0.name) == nil } + rows.filter { backupOriginal($0.name) != nil }
    }

    // MARK: Out of the trash

    /// Makes a directory of the trash a day of moments, if it contains only regular files.
    func restoreDay(_ request: RenameRequest, _ space: Space, _ change: Change) throws(FileError) {
        let (source, now) = (request.source, request.now)
        guard source.isDirectory, let number = dayNumber(named: request.newName) else { throw .notPermitted }
        let rows = try tree.rows(of: source)
        for row in rows {
            guard try tree.inode(row.ino).isRegular else { throw .notPermitted }
        }
        try replaceDirectory(request)
        try tree.removeEntry(request.from, request.sourceID, source, now: now)
        try tree.tables.trash.delete(source.ino, request.sourceID)
        source.row.day = number
        if rows.isEmpty { source.row.flags.insert(.madeByHand) }
        source.row.changed = now
        try tree.addEntry(request.to, request.newName, source, now: now)
        for row in rows { noteArrival(of: try tree.inode(row.ino), as: row.name, in: source) }
        var settled: Set<UInt64> = []
        for row in ownNamesFirst(rows) where settled.insert(row.ino).inserted {
            try restoreIntoDay(row, in: source, space, change)
        }
        tree.kernelNames.noteChange(of: source.ino)
    }

    /// Makes a file's name its moment, in the day that its directory has become. Its other names in days go, but for
    /// backup names next to its own.
    private func restoreIntoDay(_ row: DentryRow, in day: Inode, _ space: Space, _ change: Change)
        throws(FileError)
    {
        // A copy that has taken the place of its photo has taken this name of the photo too.
        guard try tree.tables.dentries.entry(day.ino, row.name)?.id == row.id else { return }
        let inode = try tree.inode(row.ino)
        if inode.isCopy, let photo = try tree.trash.trashedPhoto(behind: inode) {
            try tree.trash.restore(photo, change)
        }
        if inode.isCopy, let photo = try tree.copies.photo(representedBy: inode) {
            try tree.copies.exchangeRoles(inode, photo, space, change)
        }
        guard inode.isPhoto else { return }
        if inode.isTrashed { try tree.trash.restore(inode, change) }
        try tree.moments.keepOnly(
            row, amongDaysOf: inode, keepsBackups: backupOriginal(row.name) == nil, now: change.now)
        tree.kernelNames.noteChange(of: inode.ino)
        try pin(inode, to: day.row.day, change)
    }

    /// Pins a photo to a day, unless it is its own.
    private func pin(_ inode: Inode, to day: Int64, _ change: Change) throws(FileError) {
        var row = try tree.photos.photo(inode)
        guard row.day != day else { return }
        row.pin(to: day)
        try tree.photos.storePhoto(inode, row, change)
    }
}
