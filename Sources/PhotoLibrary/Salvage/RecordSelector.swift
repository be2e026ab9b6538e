import VaultFormat

/// Which of the records found are the newest true ones.
///
/// A record may be of a commit that was lost: written, but no root ever led to it. A later record of the same mount
/// that knows of a newer durable root, or one of a mount that found it or a newer one of its mount, proves the
/// contrary. What nobody proves counts all the same if it is of the mount that wrote last, or if there is nothing
/// better.
struct RecordSelector {
    /// The newest record of each number.
    private(set) var records: [UInt64: FoundRecord] = [:]
    /// Of the mount that wrote last: its epoch, and the generation of its last record.
    private(set) var newest: (epoch: UInt64, generation: UInt64) = (0, 0)
    /// Up to which generation each mount's commits are proved.
    private var proved: [UInt64: UInt64] = [:]
    private var dead: [UInt64: [UInt8]] = [:]

    init(_ found: [FoundRecord]) {
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

    /// Notes what the record of a block of numbers says, if it counts.
    mutating func note(dead bits: [UInt8], of block: UInt64, by record: FoundRecord) {
        if counts(record) { dead[block] = bits }
    }

    func isDead(inode ino: UInt64) -> Bool { isDead(ino, in: RetiredIDs.block(ofInode: ino)) }
    func isDead(content: UInt64) -> Bool { isDead(content, in: RetiredIDs.block(ofContent: content)) }

    private func isDead(_ number: UInt64, in block: UInt64) -> Bool {
        dead[block].map { RetiredIDs.isSet(number, in: $0) } ?? false
    }

    /// All blocks that have dead numbers.
    var deadBlocks: [(block: UInt64, bits: [UInt8])] {
        dead.map { (block: $0.key, bits: $0.value) }.sorted { $0.block < $1.block }
    }
}
