import CatalogueRows
import FileRequests
import FileTree
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Days, and photos' places in them.
extension PhotoTree {
    /// All names of a file, each with the kind of its directory.
    func placedNames(of inode: Inode) throws(FileError) -> [PlacedName] {
        var placed: [PlacedName] = []
        for row in try names(of: inode) {
            placed.append(PlacedName(row, isInDay: try self.inode(row.parent).isDay))
        }
        return placed
    }

    /// The name of a photo in moments; see `ownMoment`.
    func moment(of inode: Inode) throws(FileError) -> (directory: Inode, row: DentryRow)? {
        guard let own = ownMoment(try placedNames(of: inode)) else { return nil }
        return (try self.inode(own.parent), own)
    }

    /// Removes a photo from moments.
    func removeMoment(_ inode: Inode, now: Timestamp) throws(FileError) {
        guard let moment = try moment(of: inode) else { return }
        try withdraw(moment.row, in: moment.directory, inode, now: now)
        try unlinked(inode, now: now)
        kernelNames.noteChange(of: inode.ino)
    }

    /// Moves a photo to another day.
    func moveMoment(_ inode: Inode, to day: Int64, now: Timestamp) throws(FileError) {
        guard let moment = try moment(of: inode), moment.directory.row.day != day else { return }
        let directory = try dayDirectory(day, now: now)
        let name = try freeName(directory, moment.row.name)
        try withdraw(moment.row, in: moment.directory, inode, now: now)
        try addEntry(directory, name, inode, now: now)
        inode.row.changed = now
        touch(inode)
    }

    /// The name by which classification may take the file for a photo, with its directory; nil if all names are those
    /// of working files.
    func classifiableName(of inode: Inode) throws(FileError) -> (directory: Inode, row: DentryRow)? {
        for row in try names(of: inode) {
            let directory = try self.inode(row.parent)
            if try isClassifiable(row.name, in: directory) { return (directory, row) }
        }
        return nil
    }

    /// Whether a file of that name in that directory may be a photo.
    func isClassifiable(_ name: [UInt8], in directory: Inode) throws(FileError) -> Bool {
        if isWorkingName(name) { return false }
        return try !isInWorkingDirectory(directory)
    }

    // MARK: Rows of photos

    func photo(_ inode: Inode) throws(FileError) -> PhotoRow {
        guard let row = try sql(tables.photo(inode.ino)) else { throw .damaged }
        return row
    }

    func storePhoto(_ inode: Inode, _ row: PhotoRow) throws(FileError) {
        try sql(tables.store(row))
        hasNewPhoto = true
        mark(inode)
        guard !inode.isPhoto else { return }
        inode.row.flags.insert(.photo)
        touch(inode)
        try noteThumbnailPending(inode.ino)
    }

    /// Makes a photo a plain file, also before it is destroyed.
    func deletePhoto(_ inode: Inode, _ space: Space) throws(FileError) {
        try leaveTrash(inode)
        try sql(tables.deletePhoto(inode.ino))
        inode.row.flags.remove(.photo)
        touch(inode)
        try deleteThumbnails(inode, space)
    }

    /// Deletes the kept thumbnails of a photo; false if there were none.
    @discardableResult
    func deleteThumbnails(_ inode: Inode, _ space: Space) throws(FileError) -> Bool {
        let kept = try sql(tables.thumbnails(of: inode.ino))
        guard !kept.isEmpty else { return false }
        for thumbnail in kept where thumbnail.content != 0 {
            try freeContent(thumbnail.content, space, overwriting: true)
        }
        try sql(tables.deleteThumbnails(of: inode.ino))
        // A wrong total does no harm, and a check corrects it.
        counters.pictureBytes -= min(counters.pictureBytes, kept.reduce(0) { $0 + $1.cost })
        return true
    }
}
