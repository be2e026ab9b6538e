import PhotoLibrary
import VaultFormat

/// Selects the newest valid record of each number.
///
/// A record may belong to a lost commit: it was written, but no root ever led to it. Its commit is proved by a later
/// record of the same mount that knows a newer durable root, or by a record of a mount that found this one or a newer
/// one of its mount. An unproved record is valid all the same if it is of the mount that wrote last, and is used if
/// there is nothing better.
package struct RecordSelector {
    /// The newest record of each number.
    package private(set) var records: [UInt64: FoundRecord] = [:]
    /// Epoch of the mount that wrote last, and generation of its last record.
    package private(set) var newest: (epoch: UInt64, generation: UInt64) = (0, 0)
    /// By epoch of a mount: the generation up to which its commits are proved.
    private var proved: [UInt64: UInt64] = [:]
    private var retired: [UInt64: [UInt8]] = [:]

    package init(_ found: [FoundRecord]) {
        for record in found {
            if record.run.generation >= newest.generation {
                newest = (record.run.epoch, record.run.generation)
            }
            let history = record.history
            proved[record.run.epoch] = max(proved[record.run.epoch] ?? 0, history.durable)
            proved[history.before.epoch] = max(
                proved[history.before.epoch] ?? 0, history.before.generation)
        }
        for record in found {
            if let known = records[record.id], rank(known) >= rank(record) { continue }
            records[record.id] = record
        }
    }

    private func counts(_ record: FoundRecord) -> Bool {
        record.run.epoch == newest.epoch || record.run.generation <= proved[record.run.epoch] ?? 0
    }

    private func rank(_ record: FoundRecord) -> (Int, UInt64) {
        (counts(record) ? 1 : 0, record.run.generation)
    }

    /// Stores the bits from a block's record, if the record is valid.
    package mutating func note(retired bits: [UInt8], of block: UInt64, by record: FoundRecord) {
        if counts(record) { retired[block] = bits }
    }

    package func isRetired(inode ino: UInt64) -> Bool { isRetired(ino, in: RetiredIDs.block(ofInode: ino)) }
    package func isRetired(content: UInt64) -> Bool {
        isRetired(content, in: RetiredIDs.block(ofContent: content))
    }

    private func isRetired(_ number: UInt64, in block: UInt64) -> Bool {
        retired[block].map { RetiredIDs.isSet(number, in: $0) } ?? false
    }

    /// All blocks with retired numbers.
    package var retiredBlocks: [(block: UInt64, bits: [UInt8])] {
        retired.map { (block: $0.key, bits: $0.value) }.sorted { $0.block < $1.block }
    }
}
