import CatalogueRows
import FileRequests
import FileTree
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
        let (row, directory) = (try photo(inode), own.directory)
        let partners = try companionsByStem(of: row, wanted, in: directory, captured: row.captured)
            .filter { $0.photo != nil }
        if own.row.name != wanted, isNumberedForm(own.row.name, of: wanted) {
            let other = try find(directory, wanted)?.inode
            let otherRow = try other.flatMap { other throws(FileError) in
                other.isPhoto ? try photo(other) : nil
            }
            for partner in partners {
                // It may be the partner of the photo that has the name.
                if let otherRow,
                    isCompanion(
                        partner.row.name, partner.photo, of: wanted, otherRow, captured: otherRow.captured)
                {
                    continue
                }
                let name = companionName(partner.row.name, of: wanted, for: own.row.name)
                if try has(directory, name) { continue }
                try rename(partner.row, of: partner.inode, in: directory, to: name, now: now)
            }
        } else if own.row.name == wanted, partners.isEmpty {
            let stem = stemOf(wanted)
            let numbered = try sql(
                tables.dentries(
                    in: directory.ino, beginning: stem + Array(" (".utf8), limit: siblingNamesMax))
            for other in numbered where isNumberedForm(stemOf(other.name), of: stem) {
                let partner = try self.inode(other.ino)
                let name = companionName(
                    wanted, of: stem + other.name.dropFirst(stemOf(other.name).count), for: other.name)
                guard partner.isPhoto, try !has(directory, name),
                    isCompanion(other.name, try photo(partner), of: name, row, captured: row.captured)
                else { continue }
                return try rename(own.row, of: inode, in: directory, to: name, now: now)
            }
        }
    }
}
