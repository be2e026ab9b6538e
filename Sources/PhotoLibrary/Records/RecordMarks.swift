package import FileRequests
import VaultCatalogue
package import VaultStore

/// Marks inodes whose identity records are out of date.
///
/// A mark is part of the transaction that makes the record outdated. So after a crash at any moment either the record
/// is up to date or the mark is there.
extension Tree {
    /// Notes that the inode's identity record is out of date. `touch` does so as well.
    @inline(__always)
    package func mark(_ inode: Inode) { unrecorded.insert(inode.ino) }

    /// Writes the marks that are still only in memory.
    func storeMarks() throws(FileError) {
        for id in unrecorded.sorted() { try tables.identities.markUnrecorded(id) }
        unrecorded.removeAll(keepingCapacity: true)
        if !newlyRetired.blocks.isEmpty { try newlyRetired.store(tables) }
    }

    /// Retires an inode: frees its record's sectors and notes the number as retired.
    package func retire(_ inode: Inode, _ space: Space, overwriting: Bool) throws(FileError) {
        newlyRetired.add(inode: inode.ino)
        unrecorded.remove(inode.ino)
        try tables.identities.unmarkUnrecorded(inode.ino)
        try dropRecord(inode.ino, space, overwriting: overwriting)
    }

    package func dropRecord(_ id: UInt64, _ space: Space, overwriting: Bool) throws(FileError) {
        guard let run = try tables.identities.location(id) else { return }
        try tables.identities.delete(id)
        space.free([run], overwriting: overwriting)
    }
}
