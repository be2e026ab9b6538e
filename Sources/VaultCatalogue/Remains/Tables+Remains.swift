/// Queries for building a catalogue anew from what is left of another. Each reads a whole table, once.
extension Tables {
    /// The numbers of all inodes, ascending.
    public func inodeNumbers() throws(CatalogueError) -> [UInt64] {
        try connection.prepare("SELECT ino FROM inode ORDER BY ino").all { $0.count(0) }
    }

    /// The bits of all blocks of numbers that are no more in use.
    public func deadBlocks() throws(CatalogueError) -> [(block: UInt64, bits: [UInt8])] {
        try connection.prepare("SELECT block, bits FROM dead").all { ($0.count(0), $0.bytes(1)) }
    }
}
