import FileRequests
import VaultCatalogue
import VaultStore

/// Marks of inodes whose identity records are out of date.
///
/// A mark is part of the transaction that makes the record outdated. So after a crash at any moment either the record
/// is up to date or the mark is there.
package struct RecordMarks {
    /// Marked inodes that the table `unrecorded` does not list yet.
    package private(set) var new: Set<UInt64> = []
    private var newlyRetired = NewlyRetired()

    /// Notes that an inode's record is out of date. `Tree.touch` does so as well.
    @inline(__always)
    package mutating func add(_ ino: UInt64) { new.insert(ino) }

    package mutating func add(_ inodes: some Sequence<UInt64>) { new.formUnion(inodes) }

    /// Writes the marks that are still only in memory.
    mutating func store(_ tables: Tables) throws(FileError) {
        for id in new.sorted() { try tables.identities.markUnrecorded(id) }
        new.removeAll(keepingCapacity: true)
        if !newlyRetired.blocks.isEmpty { try newlyRetired.store(tables) }
    }

    /// Notes that the number of an inode is never used again.
    package mutating func retire(inode ino: UInt64) { newlyRetired.add(inode: ino) }

    /// Notes that the number of a content is never used again.
    package mutating func retire(content: UInt64) { newlyRetired.add(content: content) }

    /// Retires an inode that is destroyed: frees its record's sectors, and notes the number as retired.
    mutating func retire(
        inode ino: UInt64, _ tables: Tables, _ space: Space, overwriting: Bool
    ) throws(FileError) {
        retire(inode: ino)
        new.remove(ino)
        try tables.identities.unmarkUnrecorded(ino)
        try Self.drop(ino, tables, space, overwriting: overwriting)
    }

    /// Frees the sectors of a record, if there is one.
    static func drop(
        _ id: UInt64, _ tables: Tables, _ space: Space, overwriting: Bool
    ) throws(FileError) {
        guard let run = try tables.identities.location(id) else { return }
        try tables.identities.delete(id)
        space.free([run], overwriting: overwriting)
    }
}
