import VaultFormat

/// The bits of one segment: which of its sectors a root refers to or may still refer to, and which are taken by
/// writes that no commit has adopted.
final class SegmentBits {
    var used: BitRow
    var reserved: BitRow
    /// Where no free run longer than this is left, nil when not known.
    var longestRun: Int?
    /// Bitmap pages within the segment that changed since the last freeze.
    var dirtyPages: Set<Int> = []

    init(sectors: Int) {
        used = BitRow(count: sectors)
        reserved = BitRow(count: sectors)
    }
}

/// Gives out sectors of a space. Everything here happens under the space's lock; not Sendable for that reason.
///
/// A sector is *reserved* from `take` to `adopt`, *used* from `adopt` until its release. Counts of every segment are
/// in memory (4 bytes a segment), bits of a bounded number of segments.
final class SectorAllocator {
    let sectorsPerSegment: Int
    /// Sectors in use in each segment, as `MapObject.usage` stores it.
    private(set) var usedCounts: [UInt32]
    private(set) var dirtyCountPages: Set<Int> = []
    /// Segments that hold pages, and those kept for pages to come: no content goes there.
    var excluded: Set<Int> = []
    private(set) var usedSectors: UInt64 = 0
    private(set) var reservedSectors: UInt64 = 0

    private var bits: [Int: SegmentBits] = [:]
    private var cursor: (segment: Int, index: Int) = (0, 0)
    private var smallCursor: (segment: Int, index: Int) = (0, 0)
    /// Reads page p of the sector bitmap: 256 words, zeros where it was never written.
    var loadPage: (Int) throws(StoreError) -> [UInt64] = { (_: Int) throws(StoreError) in throw .damaged }

    /// Segments whose bits are kept: as many as take 16 MiB, within bounds.
    private let loadedMax: Int
    private static let loadedBytesMax = 16 << 20

    init(sectorsPerSegment: Int, usedCounts: [UInt32]) {
        self.sectorsPerSegment = sectorsPerSegment
        self.usedCounts = usedCounts
        // Two bits a sector.
        loadedMax = min(64, max(4, Self.loadedBytesMax / (sectorsPerSegment / 4)))
        usedSectors = usedCounts.reduce(0) { $0 + UInt64($1) }
    }

    var segmentCount: Int { usedCounts.count }
    var pagesPerSegment: Int { (sectorsPerSegment + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage }

    /// Takes the counts as stored.
    func load(counts: [UInt32]) {
        usedCounts = counts
        usedSectors = counts.reduce(0) { $0 + UInt64($1) }
    }

    func addSegments(to count: Int) {
        while usedCounts.count < count { usedCounts.append(0) }
    }

    /// Sectors in segments that may hold content, used or not.
    var contentSectors: UInt64 {
        UInt64(segmentCount - excluded.filter { $0 < segmentCount }.count) * UInt64(sectorsPerSegment)
    }

    func isUnused(_ segment: Int) -> Bool {
        usedCounts[segment] == 0 && (bits[segment].map { $0.reserved.setCount == 0 } ?? true)
    }

    private func load(_ segment: Int) throws(StoreError) -> SegmentBits {
        if let found = bits[segment] { return found }
        if bits.count >= loadedMax { evict() }
        let loaded = SegmentBits(sectors: sectorsPerSegment)
        if usedCounts[segment] > 0 {
            for page in 0..<pagesPerSegment {
                let words = try loadPage(segment * pagesPerSegment + page)
                let first = page * MapLayout.bitsPerPage / 64
                for index in 0..<words.count where first + index < loaded.used.words.count {
                    loaded.used.setWord(first + index, words[index])
                }
            }
        }
        bits[segment] = loaded
        return loaded
    }

    private func evict() {
        for (segment, entry) in bits
        where entry.dirtyPages.isEmpty && entry.reserved.words.allSatisfy({ $0 == 0 }) {
            bits[segment] = nil
        }
    }

    /// Reserves between `least` and `most` consecutive sectors of one segment, at `near` where that is free; nil
    /// where no segment has them.
    /// - Parameter end: how many sectors of a segment, from its first, may be given out; nil: all.
    func take(
        least: Int, most: Int, near: UInt64?, end: ((_ segment: Int) throws(StoreError) -> Int)? = nil
    ) throws(StoreError) -> (sector: UInt64, count: Int)? {
        if let near, let found = try takeAt(near, least: least, most: most) { return found }
        let isSmall = most < Geometry.sectorsPerChunk
        let start = isSmall ? smallCursor : cursor
        let count = segmentCount
        guard count > 0 else { return nil }
        for step in 0...count {
            let segment = (start.segment + step) % count
            guard !excluded.contains(segment), Int(usedCounts[segment]) + least <= sectorsPerSegment else {
                continue
            }
            let entry = try load(segment)
            if let longest = entry.longestRun, longest < least { continue }
            // Comes back to the first segment at last, to look before the cursor too.
            let from = step == 0 ? min(start.index, sectorsPerSegment) : 0
            guard var run = entry.used.freeRun(from: from, least: least, most: most, also: entry.reserved)
            else {
                if from == 0 { entry.longestRun = least - 1 }
                continue
            }
            if let end {
                let last = try end(segment)
                if run.lowerBound + least > last { continue }
                run = run.clamped(to: 0..<last)
            }
            reserve(entry, segment, run)
            if isSmall { smallCursor = (segment, run.upperBound) } else { cursor = (segment, run.upperBound) }
            return (UInt64(segment * sectorsPerSegment + run.lowerBound), run.count)
        }
        return nil
    }

    /// Looks from the first sector on again.
    func rewind() { begin(atSegment: 0) }

    /// Goes on in a segment; in the first where there is no such.
    func begin(atSegment segment: Int) {
        let segment = segment < segmentCount ? segment : 0
        cursor = (segment, 0)
        smallCursor = (segment, 0)
    }

    /// The segment that is farthest from all of `segments` on the way through free sectors; nil where there are none.
    func farthest(from segments: [Int]) -> Int? {
        let room = usedCounts.indices.map {
            excluded.contains($0) ? 0 : sectorsPerSegment - Int(usedCounts[$0])
        }
        return farthestPlace(in: room, from: segments)
    }

    private func takeAt(_ sector: UInt64, least: Int, most: Int) throws(StoreError) -> (UInt64, Int)? {
        let (number, place) = sector.quotientAndRemainder(dividingBy: UInt64(sectorsPerSegment))
        let (segment, index) = (Int(number), Int(place))
        guard segment < segmentCount, !excluded.contains(segment), index + least <= sectorsPerSegment else {
            return nil
        }
        let entry = try load(segment)
        guard let run = entry.used.freeRun(from: index, least: least, most: most, also: entry.reserved),
            run.lowerBound == index
        else { return nil }
        reserve(entry, segment, run)
        cursor = (segment, run.upperBound)
        return (sector, run.count)
    }

    private func reserve(_ entry: SegmentBits, _ segment: Int, _ run: Range<Int>) {
        entry.reserved.set(run)
        reservedSectors += UInt64(run.count)
    }

    /// Gives reserved sectors back.
    func abandon(_ sector: UInt64, _ count: Int) throws(StoreError) {
        let (entry, _, range) = try locate(sector, count)
        entry.reserved.clear(range)
        entry.longestRun = nil
        reservedSectors -= UInt64(count)
    }

    /// Makes reserved sectors part of the next commit.
    func adopt(_ sector: UInt64, _ count: Int) throws(StoreError) {
        let (entry, segment, range) = try locate(sector, count)
        entry.reserved.clear(range)
        reservedSectors -= UInt64(count)
        entry.used.set(range)
        changeUse(entry, segment, range, by: count)
    }

    /// Takes given sectors as used, if nobody has any of them; false, and nothing taken, otherwise.
    func claim(_ sector: UInt64, _ count: Int) throws(StoreError) -> Bool {
        let (entry, segment, range) = try locate(sector, count)
        guard
            entry.used.freeRun(from: range.lowerBound, least: count, most: count, also: entry.reserved)
                == range
        else { return false }
        entry.used.set(range)
        entry.longestRun = nil
        changeUse(entry, segment, range, by: count)
        return true
    }

    /// Makes sectors that no root refers to any more free.
    func release(_ sector: UInt64, _ count: Int) throws(StoreError) {
        let (entry, segment, range) = try locate(sector, count)
        // A catalogue that gives the same sectors to two files frees them twice.
        guard entry.used.isFull(range) else { throw .damaged }
        entry.used.clear(range)
        entry.longestRun = nil
        changeUse(entry, segment, range, by: -count)
    }

    private func changeUse(_ entry: SegmentBits, _ segment: Int, _ range: Range<Int>, by change: Int) {
        usedCounts[segment] = UInt32(clamping: Int(usedCounts[segment]) + change)
        usedSectors = UInt64(clamping: Int(usedSectors) + change)
        dirtyCountPages.insert(segment / MapLayout.countsPerPage)
        let first = range.lowerBound / MapLayout.bitsPerPage
        let last = (range.upperBound - 1) / MapLayout.bitsPerPage
        for page in first...last { entry.dirtyPages.insert(page) }
    }

    private func locate(
        _ sector: UInt64, _ count: Int
    ) throws(StoreError) -> (SegmentBits, Int, Range<Int>) {
        let (number, place) = sector.quotientAndRemainder(dividingBy: UInt64(sectorsPerSegment))
        let (segment, index) = (Int(number), Int(place))
        guard segment < segmentCount, count > 0, count <= sectorsPerSegment - index else { throw .damaged }
        return (try load(segment), segment, index..<index + count)
    }

    // MARK: Checking

    /// The bits of a segment: which sectors somebody has. Does not throw where the segment has none.
    func usedRow(of segment: Int) throws(StoreError) -> BitRow {
        segment < segmentCount ? try load(segment).used : BitRow(count: sectorsPerSegment)
    }

    /// Puts other bits, and the count that they make, in place of a segment's, whatever was there.
    func replace(_ segment: Int, with row: BitRow) {
        precondition(segment < segmentCount && row.count == sectorsPerSegment)
        let entry = bits[segment] ?? SegmentBits(sectors: sectorsPerSegment)
        bits[segment] = entry
        entry.used = row
        entry.longestRun = nil
        changeUse(entry, segment, 0..<sectorsPerSegment, by: row.setCount - Int(usedCounts[segment]))
    }

    /// The pages that changed since the last call: bitmap pages by number with their 2048 bytes, then count pages.
    func takeDirtyPages() -> (bitmaps: [(page: Int, bytes: [UInt8])], counts: [(page: Int, bytes: [UInt8])]) {
        var bitmaps: [(Int, [UInt8])] = []
        for (segment, entry) in bits where !entry.dirtyPages.isEmpty {
            for page in entry.dirtyPages.sorted() {
                bitmaps.append((segment * pagesPerSegment + page, bitmapBytes(entry, page)))
            }
            entry.dirtyPages = []
        }
        bitmaps.sort { $0.0 < $1.0 }
        let counts = dirtyCountPages.sorted().map { page in (page, countBytes(page)) }
        dirtyCountPages = []
        return (bitmaps, counts)
    }

    /// Says that pages taken by `takeDirtyPages` did not reach the disk.
    func markDirty(bitmapPages: [Int], countPages: [Int]) throws(StoreError) {
        for page in bitmapPages { try load(page / pagesPerSegment).dirtyPages.insert(page % pagesPerSegment) }
        dirtyCountPages.formUnion(countPages)
    }

    private func bitmapBytes(_ entry: SegmentBits, _ page: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: MapLayout.bitmapBytes)
        let first = page * MapLayout.bitsPerPage / 64
        bytes.withUnsafeMutableBytes { bytes in
            for index in 0..<MapLayout.bitmapBytes / 8 where first + index < entry.used.words.count {
                bytes.setNumber(entry.used.words[first + index], index * 8)
            }
        }
        return bytes
    }

    private func countBytes(_ page: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: MapLayout.countsPerPage * 4)
        bytes.withUnsafeMutableBytes { bytes in
            let first = page * MapLayout.countsPerPage
            for index in 0..<MapLayout.countsPerPage where first + index < usedCounts.count {
                bytes.setNumber(usedCounts[first + index], index * 4)
            }
        }
        return bytes
    }
}
