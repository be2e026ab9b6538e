import VaultFormat
import VaultStore

/// The arithmetic of chunks: pieces of a file's content that are sealed one by one.
enum Chunk {
    /// Plaintext bytes of a full chunk: the kernel's read-ahead unit.
    static let bytes: UInt64 = 131_072
    /// From one full chunk of a run to the next, in sectors of the store (`Geometry.sectors(forPlaintext:
    /// 131_072)`).
    static let sectors: UInt64 = 257
    /// What a buffer must hold for the store to open a chunk in it.
    static let bufferBytes = 131_072 + 1024

    static func index(_ offset: UInt64) -> UInt64 { offset / bytes }
    static func start(_ index: UInt64) -> UInt64 { index * bytes }
}

extension ExtentRun {
    /// The offset behind it. Rows that make no sense may say anything: then the last there is.
    var end: UInt64 {
        let (sum, isTooLarge) = offset.addingReportingOverflow(length)
        return isTooLarge ? .max : sum
    }

    /// Whether its numbers can be those of a run of any space, so that they can be counted with.
    var isThinkable: Bool {
        isLost
            || length > 0 && length <= 2 * Geometry.segmentBytesMax && offset <= Geometry.numberMax
                && sector < Geometry.lostSector
    }

    /// The part of this run in `lower ..< upper`, which are multiples of the chunk, or outside the run. Of a row that
    /// makes no sense something as senseless.
    func part(from lower: UInt64, to upper: UInt64) -> ExtentRun {
        var part = self
        part.offset = max(offset, lower)
        part.length = max(min(end, upper), part.offset) - part.offset
        part.sector = sector &+ (part.offset - offset) / Chunk.bytes * Chunk.sectors
        return part
    }

    /// Whether `next` is sealed right behind this run, so that both are one.
    func isFollowed(by next: ExtentRun) -> Bool {
        end == next.offset && length % Chunk.bytes == 0 && offset % Chunk.bytes == 0
            && next.sector == sector + length / Chunk.bytes * Chunk.sectors && next.generation == generation
            && next.epoch == epoch
    }
}

extension Space {
    /// Whether the runs of a content, as the catalogue has them, follow each other and can lie where they say. Rows may
    /// be anybody's who knows the password; what works on a file's runs counts with them.
    func areSound(_ runs: [ExtentRun]) -> Bool {
        runs.allSatisfy { isPossible($0) || $0.isLost }
            && zip(runs, runs.dropFirst()).allSatisfy { $0.end <= $1.offset }
    }
}

/// Which sealed runs hold a file's bytes: sorted by offset, never overlapping; what none covers is zeros.
struct ExtentMap: Sendable {
    struct Piece: Sendable, Hashable {
        var run: ExtentRun
        /// Whether the catalogue has it; else its sectors are only reserved.
        var isSaved: Bool
    }

    /// Whose extents they are.
    let content: UInt64
    private(set) var pieces: [Piece] = []

    init(content: UInt64 = 0) { self.content = content }

    /// What the catalogue has.
    init(content: UInt64 = 0, saved runs: [ExtentRun]) {
        self.content = content
        pieces = runs.map { Piece(run: $0, isSaved: true) }
    }

    /// Plaintext bytes that are stored.
    var allocated: UInt64 { pieces.reduce(0) { $0 + $1.run.length } }

    /// The first piece that ends after `offset`.
    func firstIndex(after offset: UInt64) -> Int {
        var (low, high) = (0, pieces.count)
        while low < high {
            let middle = (low + high) / 2
            if pieces[middle].run.end > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// Where the stored bytes of the chunk end, counted from the chunk's start; 0 where there are none.
    func storedBytes(inChunk index: UInt64) -> UInt64 {
        let start = Chunk.start(index)
        var stored: UInt64 = 0
        var at = firstIndex(after: start)
        while at < pieces.count, pieces[at].run.offset < start + Chunk.bytes {
            stored = min(pieces[at].run.end, start + Chunk.bytes) - start
            at += 1
        }
        return stored
    }

    /// Puts `runs` in place of all in `lower ..< upper`, both multiples of the chunk, and returns what was
    /// there.
    mutating func replace(_ lower: UInt64, _ upper: UInt64, with runs: [ExtentRun] = []) -> [Piece] {
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

    /// Joins neighbours that are one run, among the pieces `first ... last` (which may lie outside).
    private mutating func join(_ first: Int, _ last: Int) {
        var at = max(first, 0)
        var end = min(last, pieces.count - 1)
        while at < end {
            if pieces[at].isSaved == pieces[at + 1].isSaved, pieces[at].run.isFollowed(by: pieces[at + 1].run)
            {
                pieces[at].run.length += pieces[at + 1].run.length
                pieces.remove(at: at + 1)
                end -= 1
            } else {
                at += 1
            }
        }
    }

    /// Marks all as saved. Returns the pieces that are to be rows, in the place of all rows that begin in
    /// `first ... last`, when what was changed since the last time lies in `lower ..< upper`; and what became
    /// saved.
    mutating func markSaved(
        _ lower: UInt64, _ upper: UInt64
    ) -> (first: UInt64, last: UInt64, rows: ArraySlice<Piece>, adopted: [ExtentRun]) {
        var adopted: [ExtentRun] = []
        // One piece to the left and one to the right: they may be what is left of a row that was cut, or
        // become one with what is new.
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

    /// The first offset from `offset` on that is stored, or nil.
    func nextStored(_ offset: UInt64) -> UInt64? {
        let at = firstIndex(after: offset)
        return at < pieces.count ? max(offset, pieces[at].run.offset) : nil
    }

    /// Where what is stored at `offset` ends; `offset` itself where nothing is.
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
