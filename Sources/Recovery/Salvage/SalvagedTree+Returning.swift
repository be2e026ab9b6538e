import CatalogueRows
import FileRequests
import PhotoLibrary
import VaultCatalogue
import VaultFormat

/// Files and bytes that come back later, because a lost segment was put back.
extension SalvagedTree {
    /// Leaves out numbers that what is lost may have, in case it comes back: as many as extents fit into 16 GiB, so
    /// that few repairs do not use them up.
    func leaveOutNumbers() {
        guard salvage.isIncomplete else { return }
        let most = Geometry.idMax / 2
        tree.counters.ino = max(tree.counters.ino, min(tree.counters.ino + Self.numbersLeftOut, most))
        tree.counters.content = max(
            tree.counters.content, min(tree.counters.content + Self.numbersLeftOut, most))
    }

    private static let numbersLeftOut: UInt64 = 1 << 20

    /// Gives the names that users gave meanwhile to files found without a record to the files that they are.
    mutating func settleSuperseded() throws(FileError) {
        for record in superseded where record.trashed == nil {
            guard let ino = salvage.teller(of: record.row.content), let inode = try tree.existing(ino) else {
                continue
            }
            for name in record.names where name.since == nil && !isNumber(name.name) {
                if try directory(name.parent).isDay { continue }
                try add(
                    RecordedName(
                        parent: name.parent, name: name.name, isMember: inode.row.flags.contains(.photo)),
                    of: inode)
            }
        }
    }

    /// Whether a name is one that `addNameless` gives: a number, and perhaps an extension.
    func isNumber(_ name: [UInt8]) -> Bool {
        let stem = name.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: " ") }
        return !stem.isEmpty && stem.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
