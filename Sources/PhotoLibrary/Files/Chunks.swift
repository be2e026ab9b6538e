package import VaultFormat
import VaultStore

/// Arithmetic of chunks: the separately sealed pieces of a file's content.
package enum Chunk {
    /// Plaintext bytes of a full chunk: the kernel's read-ahead unit.
    package static let bytes: UInt64 = 131_072
    /// Sectors of the store from one full chunk of a run to the next (`Geometry.sectors(forPlaintext: 131_072)`).
    package static let sectors: UInt64 = 257
    /// Buffer size that the store needs to open a chunk.
    package static let bufferBytes = 131_072 + 1024

    package static func index(_ offset: UInt64) -> UInt64 { offset / bytes }
    package static func start(_ index: UInt64) -> UInt64 { index * bytes }
}

extension ExtentRun {
    /// The offset after the run's last byte; the largest number if an invalid row makes the sum overflow.
    package var end: UInt64 {
        let (sum, isTooLarge) = offset.addingReportingOverflow(length)
        return isTooLarge ? .max : sum
    }

    /// Whether the run's numbers are plausible in some space, so that arithmetic on them is safe.
    package var isPlausible: Bool {
        isLost
            || length > 0 && length <= 2 * Geometry.segmentBytesMax && offset <= Geometry.numberMax
                && sector < Geometry.lostSector
    }

    /// The part of this run in `lower ..< upper`. Both are multiples of the chunk, or outside the run. The part of an
    /// invalid row is invalid.
    package func part(from lower: UInt64, to upper: UInt64) -> ExtentRun {
        var part = self
        part.offset = max(offset, lower)
        part.length = max(min(end, upper), part.offset) - part.offset
        part.sector = sector &+ (part.offset - offset) / Chunk.bytes * Chunk.sectors
        return part
    }

    /// Whether `next` is sealed directly after this run, so that the two can be joined.
    fileprivate func isFollowed(by next: ExtentRun) -> Bool {
        end == next.offset && length % Chunk.bytes == 0 && offset % Chunk.bytes == 0
            && next.sector == sector + length / Chunk.bytes * Chunk.sectors && next.generation == generation
            && next.epoch == epoch
    }
}

extension Space {
    /// Whether the catalogue's runs of a content are in order and at possible sectors. Anybody with the password can
    /// write any rows; code that works on a file's runs computes with their numbers.
    package func areValid(_ runs: [ExtentRun]) -> Bool {
        runs.allSatisfy { segments.isPossible($0) || $0.isLost }
            && zip(runs, runs.dropFirst()).allSatisfy { $0.end <= $1.offset }
    }
}

/// Maps a file's bytes to sealed runs, sorted by offset and without overlaps. Bytes outside all runs are zeros.
package struct ExtentMap: Sendable {
    package struct Piece: Sendable, Hashable {
        package var run: ExtentRun
        /// Whether the catalogue has the run; else its sectors are only reserved.
        var isSaved: Bool
    }

    /// The content that the extents belong to.
    package let content: UInt64
    package private(set) var pieces: [Piece] = []
    /// Whether saved pieces that form one run become one. Not if snapshots may have them as separate rows.
    var joinsSaved = true

    package init(content: UInt64 = 0) { self.content = content }

    /// A map of the catalogue's runs.
    package init(content: UInt64 = 0, saved runs: [ExtentRun]) {
        self.content = content
        pieces = runs.map { Piece(run: $0, isSaved: true) }
    }

    /// Plaintext bytes that are stored.
    package var allocated: UInt64 { pieces.reduce(0) { $0 + $1.run.length } }

    /// The first piece that ends after `offset`.
    package func firstIndex(after offset: UInt64) -> Int {
        var (low, high) = (0, pieces.count)
        while low < high {
            let middle = (low + high) / 2
            if pieces[middle].run.end > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// End of the chunk's stored bytes, relative to the chunk's start; 0 if none are stored.
    package func storedBytes(inChunk index: UInt64) -> UInt64 {
        let start = Chunk.start(index)
        var stored: UInt64 = 0
        var at = firstIndex(after: start)
        while at < pieces.count, pieces[at].run.offset < start + Chunk.bytes {
            stored = min(pieces[at].run.end, start + Chunk.bytes) - start
            at += 1
        }
        return stored
    }

    /// Replaces everything in `lower ..< upper`, both multiples of the chunk, by `runs`. Returns the replaced pieces.
    package mutating func replace(_ lower: UInt64, _ upper: UInt64, with runs: [ExtentRun] = []) -> [Piece] {
        let first = firstIndex(after: lower)
        var last = first
        var removed: [Piece] = []
        var fresh: [Piece] = []
        var tail: Piece?
        while last < pieces.count, pieces[last].run.offset < upper {
            let piece = pieces[last]
            if piece.run.offset < lower {
                fresh.append(Piece(run: piece.run.part(from: 0, to: lower), isSaved: piece.isSaved))
            }
            if piece.run.end > upper {
                tail = Piece(run: piece.run.part(from: upper, to: .max), isSaved: piece.isSaved)
            }
            removed.append(Piece(run: piece.run.part(from: lower, to: upper), isSaved: piece.isSaved))
            last += 1
        }
        fresh.append(contentsOf: runs.map { Piece(run: $0, isSaved: false) })
        if let tail { fresh.append(tail) }
        pieces.replaceSubrange(first..<last, with: fresh)
        if !runs.isEmpty { join(first - 1, first + fresh.count) }
        return removed
    }

    /// Joins adjacent pieces that form one run, among `first ... last` (which may be out of bounds).
    private mutating func join(_ first: Int, _ last: Int) {
        var at = max(first, 0)
        var end = min(last, pieces.count - 1)
        while at < end {
            if pieces[at].isSaved == pieces[at + 1].isSaved, joinsSaved || !pieces[at].isSaved,
                pieces[at].run.isFollowed(by: pieces[at + 1].run)
            {
                pieces[at].run.length += pieces[at + 1].run.length
                pieces.remove(at: at + 1)
                end -= 1
            } else {
                at += 1
            }
        }
    }

    /// Marks all pieces as saved, after changes in `lower ..< upper`. Returns the pieces to store as rows, which
    /// replace all rows that begin in `first ... last`; and the runs that became saved.
    package mutating func markSaved(
        _ lower: UInt64, _ upper: UInt64
    ) -> (first: UInt64, last: UInt64, rows: ArraySlice<Piece>, adopted: [ExtentRun]) {
        var adopted: [ExtentRun] = []
        // One more piece on each side: it may be the rest of a row that was cut, or be joined with a new piece.
        var begin = max(firstIndex(after: lower) - 1, 0)
        var end = begin
        while end < pieces.count, pieces[end].run.offset < upper {
            if !pieces[end].isSaved {
                adopted.append(pieces[end].run)
                pieces[end].isSaved = true
            }
            end += 1
        }
        end = min(end + 1, pieces.count)
        let first = begin < pieces.count ? min(pieces[begin].run.offset, lower) : lower
        let last = end > begin ? max(pieces[end - 1].run.offset, upper - 1) : upper - 1
        let countBefore = pieces.count
        join(begin, end - 1)
        end -= countBefore - pieces.count
        begin = min(begin, end)
        return (first, last, pieces[begin..<end], adopted)
    }

    /// The place of a saved piece that is this run; nil if there is none.
    private func indexOfSaved(_ run: ExtentRun) -> Int? {
        let at = firstIndex(after: run.offset)
        return at < pieces.count && pieces[at].isSaved && pieces[at].run == run ? at : nil
    }

    /// Whether a saved piece is this run.
    package func hasSaved(_ run: ExtentRun) -> Bool { indexOfSaved(run) != nil }

    /// Replaces a saved piece by others of the same bytes, which are saved too.
    package mutating func move(_ run: ExtentRun, to runs: [ExtentRun]) {
        guard let at = indexOfSaved(run) else { return }
        pieces.replaceSubrange(at...at, with: runs.map { Piece(run: $0, isSaved: true) })
    }

    /// The first stored offset at or after `offset`, or nil.
    package func nextStored(_ offset: UInt64) -> UInt64? {
        let at = firstIndex(after: offset)
        return at < pieces.count ? max(offset, pieces[at].run.offset) : nil
    }

    /// The end of the stored bytes at `offset`; `offset` itself if nothing is stored there.
    func endOfStored(_ offset: UInt64) -> UInt64 {
        var end = offset
        var at = firstIndex(after: offset)
        while at < pieces.count, pieces[at].run.offset <= end {
            end = pieces[at].run.end
            at += 1
        }
        return end
    }
}
