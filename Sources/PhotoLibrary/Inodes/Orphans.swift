package import FileRequests
package import VaultCatalogue

/// Inodes without a name that wait for their last user. They are in the table `orphan` from the end of the transaction
/// that took the last name, so that the next session destroys the ones that are left.
package struct Orphans {
    package private(set) var all: Set<UInt64> = []
    /// Orphans that the table lacks.
    private var new: [UInt64] = []
    /// Orphans that the table has.
    private var stored: Set<UInt64> = []

    package func contains(_ ino: UInt64) -> Bool { all.contains(ino) }

    package mutating func add(_ ino: UInt64) {
        all.insert(ino)
        new.append(ino)
    }

    /// Adds an inode that an earlier session left in the table.
    package mutating func adopt(_ ino: UInt64) {
        all.insert(ino)
        stored.insert(ino)
    }

    /// Removes an inode that is about to get a name again.
    package mutating func leave(_ ino: UInt64, _ tables: Tables) throws(FileError) {
        guard all.remove(ino) != nil else { return }
        new.removeAll { $0 == ino }
        if stored.remove(ino) != nil { try tables.orphans.remove(ino) }
    }

    /// Removes an inode that is destroyed.
    mutating func forget(_ ino: UInt64, _ tables: Tables) throws(FileError) {
        all.remove(ino)
        if stored.remove(ino) != nil { try tables.orphans.remove(ino) }
    }

    /// Writes those that are still only in memory.
    mutating func store(_ tables: Tables) throws(FileError) {
        for ino in new where all.contains(ino) {
            try tables.orphans.add(ino)
            stored.insert(ino)
        }
        new.removeAll(keepingCapacity: true)
    }
}
