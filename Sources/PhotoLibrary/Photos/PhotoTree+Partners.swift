import CatalogueRows
import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue

/// A raw file and its picture are one by their stem. Where another photo of the day has one of their names, both get
/// the same number.
extension PhotoTree {
    /// Numbers a photo that has just got its name in moments as its partner is, or its partner as it is itself.
    ///
    /// - Parameter wanted: the name that it has if that was free.
    func numberWithPartner(_ inode: Inode, named wanted: [UInt8], now: Timestamp) throws(FileError) {
        guard inode.isPhoto, let own = try moment(of: inode) else { return }
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
        let numbered = try sql(
            tables.dentries(in: directory.ino, beginning: stem + Array(" (".utf8), limit: siblingNamesMax))
        if numbered.isEmpty { return }
        let row = try photo(inode)
        let present = try companionsByStem(of: row, wanted, in: directory, captured: row.captured)
        if present.contains(where: { $0.photo != nil }) { return }
        for other in numbered where isNumberedForm(stemOf(other.name), of: stem) {
            let partner = try self.inode(other.ino)
            let name = stemOf(other.name) + wanted.dropFirst(stem.count)
            guard partner.isPhoto, try !has(directory, name),
                isCompanion(other.name, try photo(partner), of: name, row, captured: row.captured)
            else { continue }
            return try rename(own.row, of: inode, in: directory, to: name, now: now)
        }
    }

    /// Gives a photo's number to its partners, unless they are also those of the photo that has the name.
    private func giveNumber(
        of inode: Inode, _ own: (directory: Inode, row: DentryRow), named wanted: [UInt8], now: Timestamp
    ) throws(FileError) {
        let (row, directory) = (try photo(inode), own.directory)
        var other: PhotoRow?
        if let found = try find(directory, wanted)?.inode, found.isPhoto { other = try photo(found) }
        for partner in try companionsByStem(of: row, wanted, in: directory, captured: row.captured) {
            guard let photo = partner.photo else { continue }
            if let other,
                isCompanion(partner.row.name, photo, of: wanted, other, captured: other.captured)
            {
                continue
            }
            let name = companionName(partner.row.name, of: wanted, for: own.row.name)
            if try has(directory, name) { continue }
            try rename(partner.row, of: partner.inode, in: directory, to: name, now: now)
        }
    }
}
