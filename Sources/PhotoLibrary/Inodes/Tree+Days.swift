package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import VaultCatalogue

/// Days: the directories of `moments`, made when they are needed.
extension Tree {
    /// All names of a file in days.
    package func moments(of inode: Inode) throws(FileError) -> [(directory: Inode, row: DentryRow)] {
        var found: [(Inode, DentryRow)] = []
        for row in try names(of: inode) {
            let directory = try self.inode(row.parent)
            if directory.isDay { found.append((directory, row)) }
        }
        return found
    }

    /// The directory of a day; made if there is none.
    package func dayDirectory(_ number: Int64, now: Timestamp) throws(FileError) -> Inode {
        let moments = try inode(WellKnownInode.moments)
        let name = dayName(number)
        if let found = try find(moments, name) { return found.inode }
        return try makeDay(number, like: moments, now: now)
    }

    private func makeDay(_ number: Int64, like moments: Inode, now: Timestamp) throws(FileError) -> Inode {
        let owner = Caller(uid: moments.row.uid, gid: moments.row.gid)
        let day = makeInode(mode: moments.row.mode & ~setGroupID, in: moments, owner, now: now)
        day.row.day = number
        day.row.nlink = 2
        try addEntry(moments, dayName(number), day, now: now)
        return day
    }

    /// Gives a photo a name in a day, numbered if it is taken.
    package func addMoment(_ inode: Inode, day: Int64, name: [UInt8], now: Timestamp) throws(FileError) {
        let directory = try dayDirectory(day, now: now)
        try addEntry(directory, try freeName(directory, name), inode, now: now)
        addLink(to: inode, now: now)
        // Also if the file was just written: after a write the kernel requests size and times again, but keeps the link
        // count that it received when the file was made.
        kernelNames.noteChange(of: inode.ino)
    }

    /// The name, or a free numbered form of it, as by `firstFreeName`.
    ///
    /// - Parameter suits: a further condition on a free name.
    package func freeName(
        _ directory: Inode, _ name: [UInt8],
        suits: ([UInt8]) throws(FileError) -> Bool = { _ throws(FileError) in true }
    ) throws(FileError) -> [UInt8] {
        try firstFreeName(name) { candidate throws(FileError) in
            guard try !has(directory, candidate) else { return false }
            return try suits(candidate)
        }
    }
}
