import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

/// Photos that were taken together: the halves of a Live Photo, and a raw file and its picture.
///
/// The halves of a Live Photo are of one day, that of the still. A video's own time is in UTC where the camera wrote no
/// other, or it is lost, or was not corrected with the still's. A raw file and its picture are one by their stem: where
/// another photo of the day has one of their names, both get the same number.
package final class Groups {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// The row of a video that is about to be stored, dated by the still of its Live Photo. It stays as it is for any
    /// other photo, without a still in moments, or if the user chose the video's day, or only the video has a date.
    func datedByStill(_ row: PhotoRow) throws(FileError) -> PhotoRow {
        guard isVideo(row), isOfLivePhoto(row), !row.isPinned else { return row }
        for mate in try halves(of: row) where isStill(mate.row, of: row) {
            if mate.row.isDatedByMtime && !row.isDatedByMtime { continue }
            return row.dated(by: mate.row)
        }
        return row
    }

    /// Moves the videos of a still's Live Photo to its day. The still was just stored.
    func dateVideos(of still: PhotoRow, _ change: Change) throws(FileError) {
        guard isOfLivePhoto(still), !isVideo(still) else { return }
        for mate in try halves(of: still) where isVideo(mate.row) && mate.row.day != still.day {
            let dated = try datedByStill(mate.row)
            guard dated.day != mate.row.day else { continue }
            try tree.photos.storePhoto(mate.inode, dated, change)
            try tree.moments.moveMoment(mate.inode, to: dated.day, now: change.now)
        }
    }

    /// The other photos in moments with a photo's identifier, the oldest first.
    func halves(of photo: PhotoRow) throws(FileError) -> [(inode: Inode, row: PhotoRow)] {
        guard let group = photo.group else { return [] }
        var found: [(inode: Inode, row: PhotoRow)] = []
        for ino in try tree.tables.photos.numbers(group: group, limit: siblingNamesMax) where ino != photo.ino
        {
            let other = try tree.inode(ino)
            if other.isPhoto, !other.isTrashed, try tree.moments.moment(of: other) != nil {
                found.append((other, try tree.photos.photo(other)))
            }
        }
        return found
    }

    /// Numbers a photo that has just got its name in moments as its partner is, or its partner as it is itself.
    ///
    /// - Parameter wanted: the name that it has if that was free.
    func numberWithPartner(_ inode: Inode, named wanted: [UInt8], now: Timestamp) throws(FileError) {
        guard inode.isPhoto, let own = try tree.moments.moment(of: inode) else { return }
        if own.row.name == wanted {
            try takeNumber(inode, own, now: now)
        } else if isNumberedForm(own.row.name, of: wanted) {
            try giveNumber(of: inode, own, named: wanted, now: now)
        }
    }

    /// Renames a photo after its partner, which has a number because its own name was taken.
    private func takeNumber(
        _ inode: Inode, _ own: (directory: Inode, row: DentryRow), now: Timestamp
    ) throws(FileError) {
        let (wanted, directory) = (own.row.name, own.directory)
        let stem = stemOf(wanted)
        let numbered = try tree.tables.dentries.names(
            in: directory.ino, beginning: stem + Array(" (".utf8), limit: siblingNamesMax)
        if numbered.isEmpty { return }
        let row = try tree.photos.photo(inode)
        let present = try companionsByStem(of: row, wanted, in: directory, captured: row.captured)
        if present.contains(where: { $0.photo != nil }) { return }
        for other in numbered where isNumberedForm(stemOf(other.name), of: stem) {
            let partner = try tree.inode(other.ino)
            let name = stemOf(other.name) + wanted.dropFirst(stem.count)
            guard partner.isPhoto, try !tree.has(directory, name),
                isCompanion(other.name, try tree.photos.photo(partner), of: name, row, captured: row.captured)
            else { continue }
            return try tree.imports.rename(own.row, of: inode, in: directory, to: name, now: now)
        }
    }

    /// Gives a photo's number to its partners, unless they are also those of the photo that has the name.
    private func giveNumber(
        of inode: Inode, _ own: (directory: Inode, row: DentryRow), named wanted: [UInt8], now: Timestamp
    ) throws(FileError) {
        let (row, directory) = (try tree.photos.photo(inode), own.directory)
        var other: PhotoRow?
        if let found = try tree.find(directory, wanted)?.inode, found.isPhoto {
            other = try tree.photos.photo(found)
        }
        for partner in try companionsByStem(of: row, wanted, in: directory, captured: row.captured) {
            guard let photo = partner.photo else { continue }
            if let other,
                isCompanion(partner.row.name, photo, of: wanted, other, captured: other.captured)
            {
                continue
            }
            let name = companionName(partner.row.name, of: wanted, for: own.row.name)
            if try tree.has(directory, name) { continue }
            try tree.imports.rename(partner.row, of: partner.inode, in: directory, to: name, now: now)
        }
    }

    /// The photos in a directory that have a photo's identifier of a Live Photo or burst.
    func groupMates(
        of photo: PhotoRow, in directory: UInt64
    ) throws(FileError) -> [(row: DentryRow, inode: Inode, photo: PhotoRow?)] {
        guard let group = photo.group else { return [] }
        var found: [(row: DentryRow, inode: Inode, photo: PhotoRow?)] = []
        for ino in try tree.tables.photos.numbers(group: group, limit: siblingNamesMax) where ino != photo.ino
        {
            let other = try tree.inode(ino)
            for row in try tree.names(of: other) where row.parent == directory {
                found.append((row, other, try tree.photos.photo(other)))
            }
        }
        return found
    }

    func companionsByStem(
        of photo: PhotoRow, _ name: [UInt8], in directory: Inode, captured: Int64
    ) throws(FileError) -> [(row: DentryRow, inode: Inode, photo: PhotoRow?)] {
        var found: [(row: DentryRow, inode: Inode, photo: PhotoRow?)] = []
        for stem in companionStems(name) {
            let rows = try tree.tables.dentries.names(
                in: directory.ino, beginning: stem + [UInt8(ascii: ".")], limit: siblingNamesMax)
            for row in rows where row.ino != photo.ino {
                let other = try tree.inode(row.ino)
                let otherPhoto = other.isPhoto ? try tree.photos.photo(other) : nil
                guard isCompanion(row.name, otherPhoto, of: name, photo, captured: captured) else {
                    continue
                }
                found.append((row, other, otherPhoto))
            }
        }
        return found
    }

    /// The still of a Live Photo's video: its companion in its day that is a picture, and may be read by all who may
    /// read the video. Nil for all other photos.
    package func still(of inode: Inode) throws(FileError) -> Inode? {
        let row = try tree.photos.photo(inode)
        guard isVideo(row), let own = try tree.moments.moment(of: inode) else { return nil }
        let others = try tree.companions.companions(
            of: inode, own.row.name, in: own.directory, captured: row.captured)
        return others.first { other in
            other.photo.map { isStill($0, of: row) } ?? false
                && other.inode.row.uid == inode.row.uid && other.inode.row.gid == inode.row.gid
                && other.inode.row.mode & 0o444 == inode.row.mode & 0o444
        }?.inode
    }
}
