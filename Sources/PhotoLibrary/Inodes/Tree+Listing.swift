package import CatalogueRows
package import FileRequests
import VaultCatalogue

extension Tree {
    /// All entries of a directory.
    package func rows(of directory: Inode) throws(FileError) -> [DentryRow] {
        var rows: [DentryRow] = []
        try tables.dentries.each(in: directory.ino, after: 0) {
            rows.append($0)
            return true
        }
        return rows
    }

    /// Lists the entries with cookies above `cookie`, by one query. Without attributes, the mode of an entry may be no
    /// more than its type.
    package func list(
        _ directory: Inode, after cookie: UInt64, plus: Bool, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        if !plus, directory.hasOnlyListedDirectories {
            // The rows of a large library's days lie in as many pages, and their names together.
            return try tables.dentries.each(in: directory.ino, after: cookie) { dentry in
                visit(
                    DirectoryEntry(
                        name: Name(dentry.name), cookie: dentry.id, ino: dentry.ino, mode: directoryType))
            }
        }
        let entryTimeout = try entryTimeout(in: directory)
        try tables.dentries.eachWithInode(in: directory.ino, after: cookie) { dentry, row in
            // The row in memory is newer than the table's.
            let known = cached(dentry.ino)
            guard let row = known?.row ?? row, !row.isUnlistedDay else { return true }
            var entry: Entry?
            if plus {
                entry = Entry(
                    attributes: known.map { attributes($0) } ?? attributes(of: row),
                    entryTimeout: entryTimeout,
                    attributeTimeout: Self.attributeTimeout(of: row))
            }
            return visit(
                DirectoryEntry(
                    name: Name(dentry.name), cookie: dentry.id, ino: dentry.ino, mode: row.mode,
                    entry: entry))
        }
    }
}
