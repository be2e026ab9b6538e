public import FileRequests

/// The hash of a photo's picture, or that it has none.
public enum Likeness: Sendable, Equatable {
    /// Of similar pictures the hashes differ in few bits. Neither 0 nor 1.
    case hash(UInt64)
    /// It has no hash: it cannot be decoded, or has next to no contrast.
    case absent

    /// As stored. 0: not known.
    init?(stored: UInt64) {
        switch stored {
        case 0: return nil
        case 1: self = .absent
        default: self = .hash(stored)
        }
    }

    var stored: UInt64 {
        switch self {
        case .hash(let hash): hash
        case .absent: 1
        }
    }
}

/// Hashes of photos' pictures.
public final class LikenessTable {
    private let blocks: NumberBlocks

    init(_ connection: Connection) { blocks = NumberBlocks(connection, "likeness", "hashes") }

    /// The likeness of a photo; nil if it is not known.
    public func likeness(of ino: UInt64) throws(FileError) -> Likeness? {
        Likeness(stored: try blocks.number(of: ino))
    }

    /// Stores the likeness of a photo; nil: it is not known any more.
    public func store(_ likeness: Likeness?, of ino: UInt64) throws(FileError) {
        _ = try blocks.store(likeness?.stored ?? 0, of: ino)
    }

    /// Visits the hashes of a number of blocks, in the order of the inodes. Returns the inode to continue from; nil
    /// after the last one.
    public func eachHash(
        from first: UInt64, blocks count: Int, _ visit: (_ ino: UInt64, _ hash: UInt64) -> Void
    ) throws(FileError) -> UInt64? {
        try blocks.each(from: first, blocks: count) { ino, number in
            if case .hash(let hash) = Likeness(stored: number) { visit(ino, hash) }
        }
    }

    /// How many photos' likeness is known. Reads the whole table.
    public func count() throws(FileError) -> Int64 {
        var count: Int64 = 0
        try blocks.each(from: 0, blocks: .max) { _, _ in count += 1 }
        return count
    }
}
