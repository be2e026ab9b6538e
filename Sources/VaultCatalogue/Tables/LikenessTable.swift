public import FileRequests

private struct LikenessStatements {
    let find: Statement
    let list: Statement
    let store: Statement
    let delete: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT hashes FROM likeness WHERE block=?")
        list = connection.prepare("SELECT block, hashes FROM likeness WHERE block>=? ORDER BY block LIMIT ?")
        store = connection.prepare("REPLACE INTO likeness VALUES(?,?)")
        delete = connection.prepare("DELETE FROM likeness WHERE block=?")
    }
}

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

/// Hashes of photos' pictures. They lie in blocks: all of a library are to be read at once.
public final class LikenessTable {
    private let statements: LikenessStatements

    init(_ connection: Connection) { statements = LikenessStatements(connection) }

    /// Inode numbers of a block.
    public static let hashesPerBlock: UInt64 = 64
    private static let blockBytes = Int(hashesPerBlock) * 8

    /// The likeness of a photo; nil if it is not known.
    public func likeness(of ino: UInt64) throws(FileError) -> Likeness? {
        let (block, place) = Self.place(of: ino)
        return Likeness(stored: Self.number(at: place, in: try bytes(ofBlock: block)))
    }

    /// Stores the likeness of a photo; nil: it is not known any more.
    public func store(_ likeness: Likeness?, of ino: UInt64) throws(FileError) {
        let (block, place) = Self.place(of: ino)
        var bytes = try bytes(ofBlock: block)
        let number = likeness?.stored ?? 0
        if bytes.isEmpty {
            if number == 0 { return }
            bytes = [UInt8](repeating: 0, count: Self.blockBytes)
        }
        for byte in 0..<8 { bytes[place + byte] = UInt8(truncatingIfNeeded: number >> UInt64(8 * byte)) }
        let statement = bytes.allSatisfy { $0 == 0 } ? statements.delete : statements.store
        statement.bind(1, block)
        if statement === statements.store { statement.bind(2, bytes) }
        try statement.run()
    }

    /// Visits the hashes of a number of blocks, in the order of the inodes. Returns the inode to continue from; nil
    /// after the last one.
    public func eachHash(
        from first: UInt64, blocks: Int, _ visit: (_ ino: UInt64, _ hash: UInt64) -> Void
    ) throws(FileError) -> UInt64? {
        let firstBlock = first / Self.hashesPerBlock
        statements.list.bind(1, firstBlock)
        statements.list.bind(2, Int64(blocks))
        var (next, count) = (firstBlock, 0)
        try statements.list.each { row in
            let block = row.count(0)
            row.require(block >= next)
            (next, count) = (block + 1, count + 1)
            let bytes = row.bytes(1)
            guard bytes.count == Self.blockBytes else { return true }
            for index in 0..<Self.hashesPerBlock {
                let number = Self.number(at: Int(index) * 8, in: bytes)
                if number > 1 { visit(block * Self.hashesPerBlock + index, number) }
            }
            return true
        }
        return count < blocks ? nil : next * Self.hashesPerBlock
    }

    /// How many photos' likeness is known. Reads the whole table.
    public func count() throws(FileError) -> Int64 {
        statements.list.bind(1, 0 as Int64)
        statements.list.bind(2, Int64.max)
        var count: Int64 = 0
        try statements.list.each { row in
            let bytes = row.bytes(1)
            for place in stride(from: 0, to: bytes.count, by: 8) where Self.number(at: place, in: bytes) > 0 {
                count += 1
            }
            return true
        }
        return count
    }

    private static func place(of ino: UInt64) -> (block: UInt64, byte: Int) {
        (ino / hashesPerBlock, Int(ino % hashesPerBlock) * 8)
    }

    /// The bytes of a block; none if there are none, or not as many as there must be.
    private func bytes(ofBlock block: UInt64) throws(FileError) -> [UInt8] {
        statements.find.bind(1, block)
        let bytes = try statements.find.one { $0.bytes(0) } ?? []
        return bytes.count == Self.blockBytes ? bytes : []
    }

    /// A little-endian number; 0 behind the end.
    private static func number(at place: Int, in bytes: [UInt8]) -> UInt64 {
        guard place + 8 <= bytes.count else { return 0 }
        return bytes.withUnsafeBytes {
            UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: place, as: UInt64.self))
        }
    }
}
