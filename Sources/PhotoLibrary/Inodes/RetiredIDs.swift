package import FileRequests
package import VaultCatalogue

/// Bitmaps of the numbers of inodes and contents that are no longer in use, in blocks.
///
/// Numbers are never reused, and freed sectors keep their old bytes: a salvage could take an old record, or the bytes
/// of an older version, for a live one. A block's own record is newer and says that they are retired.
package enum RetiredIDs {
    package static let numbersPerBlock: UInt64 = 2048
    package static let bitmapBytes = Int(numbersPerBlock) / 8
    /// Added to the block's number, for contents.
    package static let contents: UInt64 = 1 << 40
    /// Added to the block's number, as the number of its record.
    package static let records: UInt64 = 1 << 62

    package static func block(ofInode ino: UInt64) -> UInt64 { ino / numbersPerBlock }
    package static func block(ofContent content: UInt64) -> UInt64 { contents + content / numbersPerBlock }

    package static func isSet(_ number: UInt64, in bits: [UInt8]) -> Bool {
        let bit = Int(number % numbersPerBlock)
        return bits[bit / 8] >> UInt8(bit % 8) & 1 != 0
    }
}

/// Numbers that were retired since the tables were last written, by block.
package struct NewlyRetired {
    package private(set) var blocks: [UInt64: [UInt64]] = [:]

    package mutating func add(inode ino: UInt64) { add(ino, to: RetiredIDs.block(ofInode: ino)) }

    package mutating func add(content: UInt64) { add(content, to: RetiredIDs.block(ofContent: content)) }

    /// Ignores numbers that only a damaged row can have: they belong to no block, and would set a bit of another's.
    private mutating func add(_ number: UInt64, to block: UInt64) {
        guard number / RetiredIDs.numbersPerBlock < RetiredIDs.contents else { return }
        blocks[block, default: []].append(number)
    }

    /// Writes the bits, marks the blocks' records, and empties this set.
    package mutating func store(_ tables: Tables) throws(FileError) {
        for (block, numbers) in blocks {
            var bits = try tables.identities.retired(block: block) ?? []
            if bits.count != RetiredIDs.bitmapBytes {
                bits = [UInt8](repeating: 0, count: RetiredIDs.bitmapBytes)
            }
            for number in numbers {
                let bit = Int(number % RetiredIDs.numbersPerBlock)
                bits[bit / 8] |= 1 << UInt8(bit % 8)
            }
            try tables.identities.storeRetired(block: block, bits)
            try tables.identities.markUnrecorded(RetiredIDs.records + block)
        }
        blocks = [:]
    }
}
