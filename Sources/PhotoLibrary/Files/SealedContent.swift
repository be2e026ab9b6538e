import FileRequests
import LinuxIO
package import VaultFormat
package import VaultStore

/// The bytes of a file that is about to be added to the library: sealed and written, but not referred to yet.
///
/// A crash discards them. The owner either adopts the content, with the catalogue's lock held, or abandons it.
package final class SealedContent {
    package let content: UInt64
    package private(set) var map = ExtentMap()
    /// Plaintext bytes so far: whole chunks, until the last piece.
    package private(set) var byteCount: UInt64 = 0
    package private(set) var isAdopted = false

    package init(content: UInt64) { self.content = content }

    package var runs: [ExtentRun] { map.pieces.map(\.run) }

    /// The best sector for the next piece.
    package var nextSector: UInt64? { map.pieces.last.map { $0.run.sector + UInt64($0.run.sectorCount) } }

    /// Records the runs in which the next `count` bytes were sealed.
    package func append(_ runs: [ExtentRun], _ count: Int) {
        precondition(byteCount % Chunk.bytes == 0)
        let end = byteCount + UInt64(count)
        _ = map.replace(byteCount, (end + Chunk.bytes - 1) / Chunk.bytes * Chunk.bytes, with: runs)
        byteCount = end
    }

    /// Records zeros up to `end`: a whole number of chunks, or the file's end.
    package func skip(to end: UInt64) {
        precondition(byteCount % Chunk.bytes == 0 && end >= byteCount)
        byteCount = end
    }

    /// Makes the bytes part of the next commit. The table already has their rows.
    package func adopt(_ space: Space) {
        if !runs.isEmpty { space.adopt(runs) }
        isAdopted = true
    }

    /// Frees the sectors, unless they were adopted.
    package func abandon(_ space: Space) {
        if !isAdopted, !runs.isEmpty { space.abandon(runs) }
        map = ExtentMap()
    }
}
