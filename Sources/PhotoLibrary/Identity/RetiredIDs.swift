import VaultCatalogue

/// Numbers of inodes and contents that are no more in use, in blocks of bits.
///
/// Numbers never recur, and sectors that are given back keep what was in them: an old record, or the bytes of an older
/// version, could be taken for something that is still there. A block's own record, being newer, says that it is not.
enum RetiredIDs {
    static let numbersPerBlock: UInt64 = 2048
    static let bitmapBytes = Int(numbersPerBlock) / 8
    /// Added to the block's number, for contents.
    static let contents: UInt64 = 1 << 40
    /// Added to the block's number, as the number of its record.
    static let records: UInt64 = 1 << 62

    static func block(ofInode ino: UInt64) -> UInt64 { ino / numbersPerBlock }
    static func block(ofContent content: UInt64) -> UInt64 { contents + content / numbersPerBlock }

    static func isSet(_ number: UInt64, in bits: [UInt8]) -> Bool {
        let bit = Int(number % numbersPerBlock)
        return bits[bit / 8] >> UInt8(bit % 8) & 1 != 0
    }
}

/// What has come to its end since the tables were written, by block.
struct NewlyRetired {
    private(set) var blocks: [UInt64: [UInt64]] = [:]

    mutating func add(inode ino: UInt64) { add(ino, to: RetiredIDs.block(ofInode: ino)) }

    mutating func add(content: UInt64) { add(content, to: RetiredIDs.block(ofContent: content)) }

    /// Numbers that only a row that makes no sense can have are in no block: theirs would be that of others.
    private mutating func add(_ number: UInt64, to block: UInt64) {
        guard number / RetiredIDs.numbersPerBlock < RetiredIDs.contents else { return }
        blocks[block, default: []].append(number)
    }

    /// Writes the bits, and marks the blocks' records. Forgets all.
    mutating func store(_ tables: Tables) throws(CatalogueError) {
        for (block, numbers) in blocks {
            var bits = try tables.dead(block: block) ?? []
            if bits.count != RetiredIDs.bitmapBytes {
                bits = [UInt8](repeating: 0, count: RetiredIDs.bitmapBytes)
            }
            for number in numbers {
                let bit = Int(number % RetiredIDs.numbersPerBlock)
                bits[bit / 8] |= 1 << UInt8(bit % 8)
            }
            try tables.storeDead(block: block, bits)
            try tables.markUnrecorded(RetiredIDs.records + block)
        }
        blocks = [:]
    }
}
