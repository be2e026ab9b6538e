/// A row of bits, set for sectors in use; finds free runs.
struct BitRow {
    /// Bit i of the row is bit i % 64 of word i / 64.
    private(set) var words: [UInt64]
    let count: Int

    init(count: Int) {
        self.count = count
        words = [UInt64](repeating: 0, count: (count + 63) / 64)
    }

    subscript(index: Int) -> Bool { words[index >> 6] >> UInt64(index & 63) & 1 == 1 }

    /// Whether a whole range is in use.
    func isFull(_ range: Range<Int>) -> Bool {
        WordMasks(rest: range).allSatisfy { word, mask in words[word] & mask == mask }
    }

    mutating func set(_ range: Range<Int>) {
        for (word, mask) in WordMasks(rest: range) {
            precondition(words[word] & mask == 0, "a sector is given out twice")
            words[word] |= mask
        }
    }

    mutating func clear(_ range: Range<Int>) {
        for (word, mask) in WordMasks(rest: range) {
            precondition(words[word] & mask == mask, "a free sector is freed")
            words[word] &= ~mask
        }
    }

    /// The row with more bits behind its own, clear.
    func grown(to count: Int) -> BitRow {
        var grown = BitRow(count: count)
        for index in words.indices { grown.words[index] = words[index] }
        return grown
    }

    /// Sets a 64-bit word as stored on disk.
    mutating func setWord(_ index: Int, _ value: UInt64) { words[index] = value }

    /// The highest index in use; -1 if there is none.
    var lastSet: Int {
        guard let word = words.lastIndex(where: { $0 != 0 }) else { return -1 }
        return word << 6 + 63 - words[word].leadingZeroBitCount
    }

    var setCount: Int { words.reduce(0) { $0 + $1.nonzeroBitCount } }

    /// The number of set bits in a range.
    func setCount(in range: Range<Int>) -> Int {
        WordMasks(rest: range).reduce(0) { $0 + (words[$1.word] & $1.mask).nonzeroBitCount }
    }

    /// The first free run at or after `start` whose length is at least `least`, cut to `most`. `other` is a second
    /// row of the same size whose bits are in use as well.
    func freeRun(from start: Int, least: Int, most: Int, also other: BitRow) -> Range<Int>? {
        var index = start
        while index < count {
            guard let first = next(from: index, free: true, other) else { return nil }
            let end = next(from: first, free: false, other, limit: first + most) ?? count
            let length = min(end, first + most, count) - first
            if length >= least { return first..<first + length }
            index = max(end, first + 1)
        }
        return nil
    }

    /// The length of the longest free run; `other` as for `freeRun`.
    func longestFreeRun(also other: BitRow) -> Int {
        var (longest, index) = (0, 0)
        while let first = next(from: index, free: true, other) {
            let end = next(from: first, free: false, other) ?? count
            longest = max(longest, end - first)
            index = end
        }
        return longest
    }

    /// The first index at or after `start` that is free (or in use); nil if there is none. A search for one in use may
    /// stop at `limit`.
    private func next(from start: Int, free: Bool, _ other: BitRow, limit: Int = .max) -> Int? {
        guard start < count else { return nil }
        var word = start >> 6
        var mask = UInt64.max << UInt64(start & 63)
        while word < words.count {
            let used = words[word] | other.words[word]
            let bits = (free ? ~used : used) & mask
            if bits != 0 {
                let index = word << 6 + bits.trailingZeroBitCount
                return index < count ? index : nil
            }
            word += 1
            mask = .max
            if word << 6 >= limit { return limit }
        }
        return nil
    }
}

/// The words that hold the bits of a range, each with a mask of the range's bits.
private struct WordMasks: Sequence, IteratorProtocol {
    /// The rest of the range.
    var rest: Range<Int>

    mutating func next() -> (word: Int, mask: UInt64)? {
        guard let first = rest.first else { return nil }
        let bit = first & 63
        let length = Swift.min(64 - bit, rest.count)
        rest = first + length..<rest.upperBound
        return (first >> 6, (UInt64.max >> UInt64(64 - length)) << UInt64(bit))
    }
}

/// Upper bounds of the lengths of free runs, in sectors, which earlier searches left.
struct FreeRunBounds {
    /// The bound in each segment; `unknown` before a search.
    var longest: [UInt32]
    /// No segment has a free run of so many sectors. True until something is freed.
    var shortestMissing = Int.max

    private static let unknown = UInt32.max

    init(segments: Int) { longest = [UInt32](repeating: Self.unknown, count: segments) }

    func mayHave(_ least: Int, _ segment: Int) -> Bool { longest[segment] >= UInt32(least) }

    mutating func noteRelease(_ segment: Int) {
        longest[segment] = Self.unknown
        shortestMissing = .max
    }

    /// Follows the number of segments.
    mutating func resize(to count: Int) {
        if count < longest.count { longest.removeLast(longest.count - count) }
        while longest.count < count {
            longest.append(Self.unknown)
            shortestMissing = .max
        }
    }
}

/// The bits of one segment in memory: sectors that a root refers to or may still refer to, and sectors reserved by
/// writes that were not adopted yet.
final class SegmentBits {
    var used: BitRow
    var reserved: BitRow
    var reservedCount = 0
    /// Bitmap pages within the segment that changed since the last freeze.
    var dirtyPages: Set<Int> = []
    /// Bitmap pages of a frozen, unpublished commit: the disk has older ones.
    var frozenPages: Set<Int> = []

    init(sectors: Int) {
        used = BitRow(count: sectors)
        reserved = BitRow(count: sectors)
    }

    /// Whole pages of free sectors: bytes of zeros.
    var freePages: Int {
        zip(used.words, reserved.words).reduce(0) { count, words in
            let taken = words.0 | words.1
            // The lowest bit of each byte tells whether one of its bits is set.
            let folded = taken | taken >> 4 & 0x0F0F_0F0F_0F0F_0F0F
            let twice = folded | folded >> 2 & 0x3333_3333_3333_3333
            let once = (twice | twice >> 1) & 0x0101_0101_0101_0101
            return count + 8 - once.nonzeroBitCount
        }
    }

    /// Whether the disk has the same bits.
    var isClean: Bool { dirtyPages.isEmpty && frozenPages.isEmpty && reservedCount == 0 }
}

extension SectorAllocator {
    /// Sectors in segments that may hold content, used or not.
    var contentSectors: UInt64 {
        UInt64(segmentCount - excluded.filter { $0 < segmentCount }.count) * UInt64(sectorsPerSegment)
    }

    /// Sectors that are neither used nor reserved, in segments for content.
    var freeSectors: UInt64 {
        let taken = usedSectors + reservedSectors
        return contentSectors > taken ? contentSectors - taken : 0
    }
}
