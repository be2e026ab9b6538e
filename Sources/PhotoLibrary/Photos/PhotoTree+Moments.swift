package import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
package import VaultStore

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
    package func moment(of inode: Inode) throws(FileError) -> (directory: Inode, row: DentryRow)? {
        guard let own = ownMoment(try placedNames(of: inode)) else { return nil }
        return (try self.inode(own.parent), own)
    }

    /// Removes a photo from moments.
    func removeMoment(_ inode: Inode, now: Timestamp) throws(FileError) {
        guard let moment = try moment(of: inode) else { return }
        try withdraw(moment.row, in: moment.directory, inode, now: now)
        try removeLink(to: inode, now: now)
        kernelNames.noteChange(of: inode.ino)
    }

    /// Moves a photo to another day, under the given name or its present one, numbered if that is taken.
    func moveMoment(
        _ inode: Inode, to day: Int64, named given: [UInt8]? = nil, now: Timestamp
    ) throws(FileError) {
        guard let moment = try moment(of: inode), moment.directory.row.day != day else { return }
        let directory = try dayDirectory(day, now: now)
        let name = try freeName(directory, given ?? moment.row.name)
        try withdraw(moment.row, in: moment.directory, inode, now: now)
        try addEntry(directory, name, inode, now: now)
        inode.row.changed = now
        touch(inode)
    }

    /// Gives a photo's moment another name in its day, numbered if it is taken. Its sidecars there follow.
    func renameMoment(
        of inode: Inode, _ moment: (directory: Inode, row: DentryRow), to name: [UInt8], now: Timestamp
    ) throws(FileError) {
        let free = try firstFreeName(name) { candidate throws(FileError) in
            if candidate == moment.row.name { return true }
            return try !has(moment.directory, candidate)
        }
        guard free != moment.row.name else { return }
        try queueSidecarRenames(of: inode, moment.row.name, in: moment.directory)
        try withdraw(moment.row, in: moment.directory, inode, now: now)
        try addEntry(moment.directory, free, inode, now: now)
        kernelNames.noteChange(of: inode.ino)
    }

    /// Notes whether a photo's name in moments was given there.
    func setNameGivenInMoments(_ photo: Inode, isGiven: Bool) {
        guard photo.row.flags.contains(.namedInMoments) != isGiven else { return }
        if isGiven {
            photo.row.flags.insert(.namedInMoments)
        } else {
            photo.row.flags.remove(.namedInMoments)
        }
        touch(photo)
    }

    /// The first name that lets classification take the file for a photo, with its directory; nil if all
    /// names are those of working files.
    package func classifiableName(of inode: Inode) throws(FileError) -> (directory: Inode, row: DentryRow)? {
        for row in try names(of: inode) {
            let directory = try self.inode(row.parent)
            if try isClassifiable(row.name, in: directory) { return (directory, row) }
        }
        return nil
    }

    /// Whether a file of that name in that directory may be a photo.
    package func isClassifiable(_ name: [UInt8], in directory: Inode) throws(FileError) -> Bool {
        if isWorkingName(name) { return false }
        return try !isInWorkingDirectory(directory)
    }

    /// Some entries of a directory, and the inodes of the directories among them.
    package func page(
        of directory: UInt64, after cookie: UInt64
    ) throws(FileError) -> (rows: [DentryRow], directories: Set<UInt64>) {
        let rowsMax = 64
        var rows: [DentryRow] = []
        try sql(
            tables.eachDentry(in: directory, after: cookie) {
                rows.append($0)
                return rows.count < rowsMax
            })
        var directories: Set<UInt64> = []
        for row in rows {
            let inode = try inode(row.ino)
            if inode.isDirectory { directories.insert(row.ino) }
        }
        return (rows, directories)
    }

    // MARK: Rows of photos

    package func photo(_ inode: Inode) throws(FileError) -> PhotoRow {
        guard let row = try sql(tables.photo(inode.ino)) else { throw .damaged }
        return row
    }

    func storePhoto(_ inode: Inode, _ row: PhotoRow) throws(FileError) {
        var row = row
        if let rating = try ratingByAttribute(of: inode) { row.rating = rating }
        try sql(tables.store(row))
        hasNewPhoto = true
        viewsModified = .now()
        mark(inode)
        guard !inode.isPhoto else { return }
        inode.row.flags.insert(.photo)
        touch(inode)
        try noteThumbnailPending(inode.ino)
    }

    /// Makes a photo a plain file, also before it is destroyed.
    package func deletePhoto(_ inode: Inode, _ space: Space) throws(FileError) {
        try leaveTrash(inode)
        try sql(tables.deletePhoto(inode.ino))
        inode.row.flags.subtract([.photo, .namedInMoments])
        touch(inode)
        try deleteThumbnails(inode, space)
    }

    /// Deletes the kept thumbnails of a photo; false if there were none.
    @discardableResult
    package func deleteThumbnails(_ inode: Inode, _ space: Space) throws(FileError) -> Bool {
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
