import CatalogueRows
package import FileRequests
package import FileTree
import KernelNames
package import LinuxIO
import PhotoRules
import VaultCatalogue

/// A file that belongs to a photo with a new day, and is to follow it there.
package struct CompanionMove {
    /// The day it is in, and its name there.
    package var directory: UInt64
    package var name: [UInt8]
    /// The photo's new day.
    package var day: Int64
    /// The thread that moved the photo. It may be about to move this file too, and must find it at its old place.
    var mover: Int32
    /// Whether that thread has looked it up since.
    var wasLookedUp = false
}

/// Live Photos, a raw file and its JPEG, and sidecars in days: files of one stem that were taken at the same time stay
/// together when one of them is re-dated or moved between days.
///
/// `mv day/* other/` moves every one of them itself. So companions do not follow at once, but when a directory is
/// listed, or when a thread other than the mover looks one of them up.
extension PhotoTree {
    /// Notes the companions of a photo that is about to leave, or has just left, its day. `captured` is its time there.
    func noteCompanions(
        of photo: Inode, _ name: [UInt8], in directory: Inode, captured: Int64, to day: Int64
    ) throws(FileError) {
        companionMoves[photo.ino] = nil
        guard directory.row.day != day else { return }
        let media = try self.photo(photo).media
        let rows = try sql(
            tables.dentries(
                in: directory.ino, beginning: stemOf(name) + [UInt8(ascii: ".")], limit: siblingNamesMax))
        for row in rows where row.ino != photo.ino {
            let other = try inode(row.ino)
            let otherPhoto = other.isPhoto ? try self.photo(other) : nil
            guard isCompanion(row.name, otherPhoto, of: name, media: media, captured: captured) else {
                continue
            }
            companionMoves[row.ino] = CompanionMove(
                directory: directory.ino, name: row.name, day: day, mover: actor)
        }
    }

    /// Whether a lookup of a name in a day must be answered as if all pending moves had been applied.
    package func hasPendingCompanionMove(_ name: [UInt8], in directory: Inode, _ found: Inode?, thread: Int32)
        -> Bool
    {
        guard !companionMoves.isEmpty, directory.isDay else { return false }
        if let found {
            guard let move = companionMoves[found.ino] else { return false }
            if thread != move.mover { return true }
            companionMoves[found.ino]?.wasLookedUp = true
            return false
        }
        // The companion's new place, unless the mover is about to move it there.
        return companionMoves.values.contains {
            $0.day == directory.row.day && $0.name == name && !($0.mover == thread && $0.wasLookedUp)
        }
    }

    /// Applies pending companion moves.
    package func applyCompanionMoves(now: Timestamp) throws(FileError) {
        let waiting = companionMoves.sorted { $0.key < $1.key }
        companionMoves = [:]
        for (ino, move) in waiting {
            guard let inode = try? inode(ino), let directory = try? self.inode(move.directory),
                let found = try find(directory, move.name), found.inode.ino == ino
            else { continue }
            if inode.isPhoto {
                var row = try photo(inode)
                row.pin(to: move.day)
                try storePhoto(inode, row)
                try moveMoment(inode, to: move.day, now: now)
            } else {
                let day = try dayDirectory(move.day, now: now)
                let name = try freeName(day, move.name)
                let row = DentryRow(parent: directory.ino, id: found.id, name: move.name, ino: ino)
                try withdraw(row, in: directory, inode, now: now)
                try addEntry(day, name, inode, now: now)
            }
        }
    }
}
