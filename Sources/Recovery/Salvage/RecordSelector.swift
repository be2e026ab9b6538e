import FileRequests
import PhotoLibrary
import VaultFormat

/// Selects the newest valid record of each number.
///
/// A record may belong to a lost commit: it was written, but no root ever led to it. Its commit is proved by a later
/// record of the same mount that knows a newer durable root, or by a record of a mount that found this one or a newer
/// one of its mount. An unproved record is valid all the same if it is of the mount that wrote last, and is used if
/// there is nothing better.
///
/// No mount that another found wrote last. Of two that did not find each other one may have been killed within a
/// commit: in vaults of builds before 1.0 the other's first commit has the same generation, so both count.
package struct RecordSelector {
    /// The newest record of each number.
    package private(set) var records: [UInt64: FoundRecord] = [:]
    /// Generation of the last record of the mount that wrote last, and that mount's epoch, or two.
    private var newest: (generation: UInt64, epochs: Set<UInt64>) = (0, [])
    /// Epoch and generation of the last record of a mount that wrote last.
    package var recorder: (epoch: UInt64, generation: UInt64) {
        (newest.epochs.max() ?? 0, newest.generation)
    }
    /// By epoch of a mount: the generation up to which its commits are proved.
    private var proved: [UInt64: UInt64] = [:]
    /// Epochs that no record names as found, if an earlier repair missed records; else none. The records of the mount
    /// after such an epoch, which proved its last commit, may have been replaced. All records of these epochs count: a
    /// salvage then keeps the bytes of older records too, in `albums/Recovered`.
    private var untold: Set<UInt64> = []
    private var retired: [UInt64: [UInt8]] = [:]

    package init(_ found: [FoundRecord]) {
        let earlier = Set(
            found.filter { $0.history.before.epoch != $0.run.epoch }.map(\.history.before.epoch))
        for record in found {
            if !earlier.contains(record.run.epoch), record.run.generation >= newest.generation {
                if record.run.generation > newest.generation { newest = (record.run.generation, []) }
                newest.epochs.insert(record.run.epoch)
            }
            let history = record.history
            proved[record.run.epoch] = max(proved[record.run.epoch] ?? 0, history.durable)
            proved[history.before.epoch] = max(
                proved[history.before.epoch] ?? 0, history.before.generation)
        }
        if found.contains(where: \.isGuess) { untold = Set(found.map(\.run.epoch)).subtracting(earlier) }
        for record in found {
            if let known = records[record.id], rank(known) >= rank(record) { continue }
            records[record.id] = record
        }
    }

    private func counts(_ record: FoundRecord) -> Bool {
        newest.epochs.contains(record.run.epoch) || untold.contains(record.run.epoch)
            || record.run.generation <= proved[record.run.epoch] ?? 0
    }

    /// Of two records of a file, the one that a repair guessed comes last.
    private func rank(_ record: FoundRecord) -> (Int, Int, UInt64, UInt64) {
        let isGuess = record.isGuess && record.id != WellKnownInode.root
        return (counts(record) ? 1 : 0, isGuess ? 0 : 1, record.run.generation, record.history.durable)
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
