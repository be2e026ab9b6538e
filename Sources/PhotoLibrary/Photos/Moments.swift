package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Days, the directories of `moments`, and photos' names in them. Only under the catalogue's lock, as all of the tree.
package final class Moments {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// All names of a file in days.
    package func moments(of inode: Inode) throws(FileError) -> [(directory: Inode, row: DentryRow)] {
        var found: [(Inode, DentryRow)] = []
        for row in try tree.names(of: inode) {
            let directory = try tree.inode(row.parent)
            if directory.isDay { found.append((directory, row)) }
        }
        return found
    }

    /// The directory of a day; made if there is none.
    package func dayDirectory(_ number: Int64, now: Timestamp) throws(FileError) -> Inode {
        let moments = try tree.inode(WellKnownInode.moments)
        let name = dayName(number)
        if let found = try tree.find(moments, name) { return found.inode }
        return try makeDay(number, like: moments, now: now)
    }

    private func makeDay(_ number: Int64, like moments: Inode, now: Timestamp) throws(FileError) -> Inode {
        let owner = Caller(uid: moments.row.uid, gid: moments.row.gid)
        let day = tree.makeInode(mode: moments.row.mode & ~setGroupID, in: moments, owner, now: now)
        day.row.day = number
        day.row.nlink = 2
        try tree.addEntry(moments, dayName(number), day, now: now)
        return day
    }

    /// Gives a photo a name in a day, numbered if it is taken.
    package func addMoment(_ inode: Inode, day: Int64, name: [UInt8], now: Timestamp) throws(FileError) {
        let directory = try dayDirectory(day, now: now)
        try tree.addEntry(directory, try tree.freeName(directory, name), inode, now: now)
        tree.addLink(to: inode, now: now)
        // Also if the file was just written: after a write the kernel requests size and times again, but keeps the link
        // count that it received when the file was made.
        tree.kernelNames.noteChange(of: inode.ino)
    }

    /// All names of a file, each with the kind of its directory.
    func placedNames(of inode: Inode) throws(FileError) -> [PlacedName] {
        var placed: [PlacedName] = []
        for row in try tree.names(of: inode) {
            placed.append(PlacedName(row, isInDay: try tree.inode(row.parent).isDay))
        }
        return placed
    }

    /// The name of a photo in moments; see `ownMoment`.
    package func moment(of inode: Inode) throws(FileError) -> (directory: Inode, row: DentryRow)? {
        guard let own = ownMoment(try placedNames(of: inode)) else { return nil }
        return (try tree.inode(own.parent), own)
    }

    /// Removes a photo from moments.
    func removeMoment(_ inode: Inode, now: Timestamp) throws(FileError) {
        guard let moment = try moment(of: inode) else { return }
        try tree.withdraw(moment.row, in: moment.directory, inode, now: now)
        try tree.removeLink(to: inode, now: now)
        tree.kernelNames.noteChange(of: inode.ino)
    }

    /// Moves a photo to another day, under the given name or its present one, numbered if that is taken.
    func moveMoment(
        _ inode: Inode, to day: Int64, named given: [UInt8]? = nil, now: Timestamp
    ) throws(FileError) {
        guard let moment = try moment(of: inode), moment.directory.row.day != day else { return }
        let directory = try dayDirectory(day, now: now)
        let name = try tree.freeName(directory, given ?? moment.row.name)
        try tree.withdraw(moment.row, in: moment.directory, inode, now: now)
        try tree.addEntry(directory, name, inode, now: now)
        inode.row.changed = now
        tree.touch(inode)
    }

    /// Gives a photo's moment another name in its day, numbered if it is taken. Its sidecars there follow.
    func renameMoment(
        of inode: Inode, _ moment: (directory: Inode, row: DentryRow), to name: [UInt8], _ change: Change
    ) throws(FileError) {
        let free = try firstFreeName(name) { candidate throws(FileError) in
            if candidate == moment.row.name { return true }
            return try !tree.has(moment.directory, candidate)
        }
        guard free != moment.row.name else { return }
        try tree.companions.queueSidecarRenames(of: inode, moment.row.name, in: moment.directory, change)
        try tree.withdraw(moment.row, in: moment.directory, inode, now: change.now)
        try tree.addEntry(moment.directory, free, inode, now: change.now)
        tree.kernelNames.noteChange(of: inode.ino)
    }

    /// Notes whether a photo's name in moments was given there.
    func setNameGivenInMoments(_ photo: Inode, isGiven: Bool) {
        guard photo.row.flags.contains(.namedInMoments) != isGiven else { return }
        if isGiven {
            photo.row.flags.insert(.namedInMoments)
        } else {
            photo.row.flags.remove(.namedInMoments)
        }
        tree.touch(photo)
    }

    /// mkdir of a day that exists but is not listed: lists it from now on.
    package func reviveDay(_ name: [UInt8]) throws(FileError) -> Entry? {
        let moments = try tree.inode(WellKnownInode.moments)
        guard let found = try tree.find(moments, name), found.inode.isUnlistedDay else { return nil }
        let now = Timestamp.now()
        found.inode.row.flags.insert(.madeByHand)
        found.inode.row.modified = now
        found.inode.row.changed = now
        tree.touch(found.inode)
        moments.row.countLinks(by: 1)
        moments.row.modified = now
        moments.row.changed = now
        tree.touch(moments)
        return try tree.entry(found.inode, in: moments)
    }

    /// Removes all names in days but one: moments holds every photo once.
    ///
    /// - Parameter keepsBackups: whether backup names beside that one stay too.
    func keepOnly(
        _ own: DentryRow, amongDaysOf inode: Inode, keepsBackups: Bool = false, now: Timestamp
    ) throws(FileError) {
        for (directory, other) in try moments(of: inode) where other.id != own.id {
            if keepsBackups, other.parent == own.parent, backupOriginal(other.name) != nil { continue }
            try tree.withdraw(other, in: directory, inode, now: now)
            try tree.removeLink(to: inode, now: now)
            tree.kernelNames.noteChange(of: inode.ino)
        }
    }
}
