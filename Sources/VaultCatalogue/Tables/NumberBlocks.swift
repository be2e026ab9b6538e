import FileRequests

/// A table of a number of 8 bytes for each photo, 0 if none is known. The numbers lie in blocks, those of inodes 64 b
/// to 64 b + 63 in block b: all of a library are to be read at once.
struct NumberBlocks {
    /// Inode numbers of a block.
    static let numbersPerBlock: UInt64 = 64
    private static let blockBytes = Int(numbersPerBlock) * 8

    private let find: Statement
    private let list: Statement
    private let store: Statement
    private let delete: Statement

    /// - Parameters:
    ///   - table: its name; its key is the column `block`.
    ///   - column: that of the numbers.
    init(_ connection: Connection, _ table: String, _ column: String) {
        find = connection.prepare("SELECT \(column) FROM \(table) WHERE block=?")
        list = connection.prepare(
            "SELECT block, \(column) FROM \(table) WHERE block>=? ORDER BY block LIMIT ?")
        store = connection.prepare("REPLACE INTO \(table) VALUES(?,?)")
        delete = connection.prepare("DELETE FROM \(table) WHERE block=?")
    }

    func number(of ino: UInt64) throws(FileError) -> UInt64 {
        let (block, place) = Self.place(of: ino)
        return Self.number(at: place, in: try bytes(ofBlock: block))
    }

    /// Stores the number of a photo. Returns whether it was another before.
    func store(_ number: UInt64, of ino: UInt64) throws(FileError) -> Bool {
        let (block, place) = Self.place(of: ino)
        var bytes = try bytes(ofBlock: block)
        guard number != Self.number(at: place, in: bytes) else { return false }
        if bytes.isEmpty { bytes = [UInt8](repeating: 0, count: Self.blockBytes) }
        for byte in 0..<8 { bytes[place + byte] = UInt8(truncatingIfNeeded: number >> UInt64(8 * byte)) }
        if bytes.allSatisfy({ $0 == 0 }) {
            delete.bind(1, block)
            try delete.run()
        } else {
            store.bind(1, block)
            store.bind(2, bytes)
            try store.run()
        }
        return true
    }

    /// Visits the numbers other than 0 in a number of blocks, in the order of the inodes. Returns the inode to continue
    /// from; nil after the last one.
    @discardableResult
    func each(
        from first: UInt64, blocks: Int, _ visit: (_ ino: UInt64, _ number: UInt64) -> Void
    ) throws(FileError) -> UInt64? {
        let firstBlock = first / Self.numbersPerBlock
        list.bind(1, firstBlock)
        list.bind(2, Int64(blocks))
        var (next, count) = (firstBlock, 0)
        try list.each { row in
            let block = row.count(0)
            row.require(block >= next)
            (next, count) = (block + 1, count + 1)
            let bytes = row.bytes(1)
            guard bytes.count == Self.blockBytes else { return true }
            for index in 0..<Self.numbersPerBlock {
                let number = Self.number(at: Int(index) * 8, in: bytes)
                if number != 0 { visit(block * Self.numbersPerBlock + index, number) }
            }
            return true
        }
        return count < blocks ? nil : next * Self.numbersPerBlock
    }

    private static func place(of ino: UInt64) -> (block: UInt64, byte: Int) {
        (ino / numbersPerBlock, Int(ino % numbersPerBlock) * 8)
    }

    /// The bytes of a block; none if there are none, or not as many as there must be.
    private func bytes(ofBlock block: UInt64) throws(FileError) -> [UInt8] {
        find.bind(1, block)
        let bytes = try find.one { $0.bytes(0) } ?? []
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
