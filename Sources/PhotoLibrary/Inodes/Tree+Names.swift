package import CatalogueRows
package import FileRequests
import KernelNames
import VaultCatalogue
import VaultFormat

/// Names kept in memory: most lookups by classification are for names that do not exist.
extension Tree {
    /// Adds a row to the table of names, and to the names in memory.
    package func insert(_ row: DentryRow, in directory: Inode, _ child: Inode) throws(FileError) {
        try tables.dentries.insert(row)
        kernelNames.noteNames(of: directory.ino)
        counters.dentry += 1
        child.names?.append(row)
        marks.add(child.ino)
        saves.noteAdded(row.name, to: directory.ino)
        directory.nameHashes?.insert(row.name.hashValue)
        if let count = directory.nameHashes?.count, count > options.limits.nameHashes {
            directory.nameHashes = nil
        }
    }

    /// False if the directory certainly has no such name.
    package func mayHave(_ directory: Inode, _ name: [UInt8]) throws(FileError) -> Bool {
        if directory.nameHashes == nil && directory.row.size <= UInt64(options.limits.readNames) {
            // A row read is cheaper than a search, but all of them only if there are many searches: a photo comes
            // alone to its day.
            if directory.row.size <= directory.searchCount * Self.rowsPerSearch {
                try readNames(of: directory)
            } else {
                directory.searchCount += 1
            }
        }
        return directory.nameHashes?.contains(name.hashValue) ?? true
    }

    /// Whether the directory has that name.
    package func has(_ directory: Inode, _ name: [UInt8]) throws(FileError) -> Bool {
        guard try mayHave(directory, name) else { return false }
        return try tables.dentries.entry(directory.ino, name) != nil
    }

    /// Rows of a directory that can be read in the time of one search for a name.
    private static let rowsPerSearch: UInt64 = 16

    private func readNames(of directory: Inode) throws(FileError) {
        var hashes: Set<Int> = []
        try tables.dentries.each(in: directory.ino, after: 0) {
            hashes.insert($0.name.hashValue)
            return true
        }
        directory.nameHashes = hashes
    }

    /// Every name of a file or node, oldest first.
    package func names(of inode: Inode) throws(FileError) -> [DentryRow] {
        if let names = inode.names { return names }
        let names = try tables.dentries.names(of: inode.ino)
        inode.names = names
        return names
    }
}
