import VaultFormat

/// Allocates sectors of a space. Everything happens under the space's lock, so it is not Sendable.
///
/// A sector is *reserved* from `take` to `adopt`, *used* from `adopt` until its release. In memory are the counts and
/// longest free runs of every segment (8 bytes a segment), the bits of a bounded number of segments, and all bits that
/// the disk does not have yet.
final class SectorAllocator {
    let sectorsPerSegment: Int
    /// Sectors in use in each segment, as `MapObject.usage` stores it.
    private(set) var usedCounts: [UInt32]
    private var dirtyCountPages: Set<Int> = []
    private var frozenCountPages: Set<Int> = []
    /// Segments without content: those of pages, those reserved for more pages, and lost ones.
    var excluded: Set<Int> = [] {
        didSet {
            if excluded != oldValue { (free.shortestMissing, freeStored.shortestMissing) = (.max, .max) }
        }
    }
    private(set) var usedSectors: UInt64 = 0
    /// Bitmap pages that changed since they were published: those of the next commit, and of one under way.
    private(set) var unpublishedPages = 0
    private(set) var reservedSectors: UInt64 = 0
    /// Sectors released since the space was opened.
    private(set) var freedCount: UInt64 = 0

    private var bits: [Int: SegmentBits] = [:]
    /// Bounds of the free runs: of all free sectors, and of those with disk blocks.
    private var (free, freeStored): (FreeRunBounds, FreeRunBounds)
    /// Segments whose bits contradict their counts or cannot be read: nothing is allocated there.
    private(set) var distrusted: Set<Int> = []
    /// For evicted segments, a hash of their bits, to be checked when they are loaded again.
    private var evictedHashes: [Int: Int] = [:]
    private var cursor: (segment: Int, index: Int) = (0, 0)
    private var smallCursor: (segment: Int, index: Int) = (0, 0)
    /// Reads page p of the sector bitmap: 256 words, zeros if it was never written.
    var loadPage: (Int) throws(StoreError) -> [UInt64] = { (_: Int) throws(StoreError) in throw .damaged }

    private let loadedMax: Int

    init(sectorsPerSegment: Int, usedCounts: [UInt32], limits: Limits = .production) {
        self.sectorsPerSegment = sectorsPerSegment
        self.usedCounts = usedCounts
        free = FreeRunBounds(segments: usedCounts.count)
        freeStored = free
        // Two bits a sector.
        let fitting = max(min(4, limits.bitmapSegments), limits.bitmapBytes / (sectorsPerSegment / 4))
        loadedMax = min(limits.bitmapSegments, fitting)
        usedSectors = usedCounts.reduce(0) { $0 + UInt64($1) }
    }

    var segmentCount: Int { usedCounts.count }
    var pagesPerSegment: Int { (sectorsPerSegment + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage }

    /// Replaces the counts by the stored ones.
    func load(counts: [UInt32]) {
        usedCounts = counts
        free = FreeRunBounds(segments: counts.count)
        freeStored = free
        usedSectors = counts.reduce(0) { $0 + UInt64($1) }
    }

    func addSegments(to count: Int) {
        guard usedCounts.count < count else { return }
        usedCounts += [UInt32](repeating: 0, count: count - usedCounts.count)
        free.resize(to: count)
        freeStored.resize(to: count)
    }

    /// The last segment if it is empty, also by the published bitmaps; else nil.
    var lastRemovable: Int? {
        let last = segmentCount - 1
        guard last >= 0, isUnused(last), bits[last]?.isClean ?? true else { return nil }
        let countPage = last / MapLayout.countsPerPage
        return dirtyCountPages.contains(countPage) || frozenCountPages.contains(countPage) ? nil : last
    }

    /// Removes the last segment, which is empty. If it is created again, its bits start as zeros.
    func removeLast() {
        let last = usedCounts.count - 1
        precondition(lastRemovable == last)
        bits[last] = nil
        evictedHashes[last] = nil
        usedCounts.removeLast()
        free.resize(to: last)
        freeStored.resize(to: last)
        if cursor.segment >= last { cursor = (0, 0) }
        if smallCursor.segment >= last { smallCursor = (0, 0) }
    }

    /// Whether the last search found no free run for a whole chunk, and nothing was freed since.
    var isFragmented: Bool { free.shortestMissing <= Geometry.sectorsPerChunk }

    /// Whole pages of free sectors in segments whose bits are in memory.
    var freePages: Int { bits.reduce(0) { $0 + (excluded.contains($1.key) ? 0 : $1.value.freePages) } }

    func isUnused(_ segment: Int) -> Bool { usedCounts[segment] == 0 && isQuiet(segment) }

    /// Whether nothing is being written to a segment.
    func isQuiet(_ segment: Int) -> Bool { bits[segment].map { $0.reservedCount == 0 } ?? true }

    // MARK: Bits in memory

    private func load(_ segment: Int) throws(StoreError) -> SegmentBits {
        if let found = bits[segment] { return found }
        if distrusted.contains(segment) { throw .damaged }
        do throws(StoreError) {
            let loaded = try read(segment)
            // The bits must be those that this mount evicted, and agree with the count.
            let isSame = evictedHashes[segment].map { $0 == loaded.used.words.hashValue } ?? true
            guard isSame, loaded.used.setCount == Int(usedCounts[segment]) else { throw .damaged }
            evict()
            bits[segment] = loaded
            return loaded
        } catch {
            if error == .damaged { distrusted.insert(segment) }
            throw error
        }
    }

    private func read(_ segment: Int) throws(StoreError) -> SegmentBits {
        let loaded = SegmentBits(sectors: sectorsPerSegment)
        guard usedCounts[segment] > 0 else { return loaded }
        for page in 0..<pagesPerSegment {
            let words = try loadPage(segment * pagesPerSegment + page)
            let first = page * MapLayout.bitsPerPage / 64
            for index in 0..<words.count where first + index < loaded.used.words.count {
                loaded.used.setWord(first + index, words[index])
            }
        }
        return loaded
    }

    /// Makes room for one more segment. All bits that the disk does not have yet stay.
    private func evict() {
        guard bits.count >= loadedMax else { return }
        var spare = bits.count - loadedMax / 2
        for (segment, entry) in bits where spare > 0 && entry.isClean {
            evictedHashes[segment] = entry.used.words.hashValue
            bits[segment] = nil
            spare -= 1
        }
    }

    private func noteRelease(_ segment: Int) {
        free.noteRelease(segment)
        freeStored.noteRelease(segment)
    }

    // MARK: Allocating

    /// Reserves between `least` and `most` consecutive sectors of one segment, at `near` if it is free; nil if no
    /// segment has them.
    /// - Parameter stored: returns the next sectors of a segment, at or behind `first`, with disk blocks. Nil: any do.
    func take(
        least: Int, most: Int, near: UInt64?,
        stored: ((_ segment: Int, _ first: Int) throws(StoreError) -> Range<Int>?)? = nil
    ) throws(StoreError) -> (sector: UInt64, count: Int)? {
        if least >= (stored == nil ? free.shortestMissing : freeStored.shortestMissing) { return nil }
        if let near, let found = try takeAt(near, least: least, most: most) { return found }
        let isSmall = most < Geometry.sectorsPerChunk
        let start = isSmall ? smallCursor : cursor
        let count = segmentCount
        guard count > 0 else { return nil }
        for step in 0...count {
            let segment = (start.segment + step) % count
            guard mayHave(least, segment), stored == nil || freeStored.mayHave(least, segment),
                let entry = try trusted(segment)
            else { continue }
            // The last step returns to the first segment, to search before the cursor too.
            let from = step == 0 ? min(start.index, sectorsPerSegment) : 0
            let run: Range<Int>?
            if let stored {
                run = try freeRun(entry, from, least, most) { (first) throws(StoreError) in
                    try stored(segment, first)
                }
                if run == nil && from == 0 { freeStored.longest[segment] = UInt32(least - 1) }
            } else {
                run = entry.used.freeRun(from: from, least: least, most: most, also: entry.reserved)
                if run == nil && from == 0 {
                    free.longest[segment] = UInt32(entry.used.longestFreeRun(also: entry.reserved))
                }
            }
            guard let run else { continue }
            reserve(entry, run)
            if isSmall { smallCursor = (segment, run.upperBound) } else { cursor = (segment, run.upperBound) }
            return (UInt64(segment * sectorsPerSegment + run.lowerBound), run.count)
        }
        if stored == nil { free.shortestMissing = least } else { freeStored.shortestMissing = least }
        return nil
    }

    /// The first free run whose sectors have disk blocks.
    private func freeRun(
        _ entry: SegmentBits, _ start: Int, _ least: Int, _ most: Int,
        stored: (_ first: Int) throws(StoreError) -> Range<Int>?
    ) throws(StoreError) -> Range<Int>? {
        var (index, known) = (start, 0..<0)
        while let run = entry.used.freeRun(from: index, least: least, most: most, also: entry.reserved) {
            if run.lowerBound >= known.upperBound {
                guard let next = try stored(run.lowerBound) else { return nil }
                known = next
            }
            let usable = run.clamped(to: known)
            if usable.count >= least { return usable }
            index = known.lowerBound > run.lowerBound ? known.lowerBound : known.upperBound
        }
        return nil
    }

    private func mayHave(_ least: Int, _ segment: Int) -> Bool {
        !excluded.contains(segment) && Int(usedCounts[segment]) + least <= sectorsPerSegment
            && free.mayHave(least, segment)
    }

    /// The bits of a segment; nil if it is distrusted, so that nothing is allocated there.
    private func trusted(_ segment: Int) throws(StoreError) -> SegmentBits? {
        do throws(StoreError) { return try load(segment) } catch {
            if error == .damaged { return nil }
            throw error
        }
    }

    /// Restarts the search at the first sector.
    func rewind() { begin(atSegment: 0) }

    /// Continues the search in a segment; in the first if there is no such segment.
    func begin(atSegment segment: Int) {
        let segment = segment < segmentCount ? segment : 0
        cursor = (segment, 0)
        smallCursor = (segment, 0)
    }

    /// The segment farthest from all of `segments`, measured in free sectors between; nil if no sector is free.
    func farthest(from segments: [Int]) -> Int? {
        let room = usedCounts.indices.map {
            excluded.contains($0) ? 0 : sectorsPerSegment - Int(usedCounts[$0])
        }
        return farthestPlace(in: room, from: segments)
    }

    private func takeAt(_ sector: UInt64, least: Int, most: Int) throws(StoreError) -> (UInt64, Int)? {
        let (number, place) = sector.quotientAndRemainder(dividingBy: UInt64(sectorsPerSegment))
        guard number < UInt64(segmentCount) else { return nil }
        let (segment, index) = (Int(number), Int(place))
        guard !excluded.contains(segment), index + least <= sectorsPerSegment,
            let entry = try trusted(segment),
            let run = entry.used.freeRun(from: index, least: least, most: most, also: entry.reserved),
            run.lowerBound == index
        else { return nil }
        reserve(entry, run)
        cursor = (segment, run.upperBound)
        return (sector, run.count)
    }

    /// Reserves up to `pages` whole pages of consecutive sectors that are to get no content: at `place` if some are
    /// free there, else at least `distance` sectors ahead of where content goes next. Content goes there all the same,
    /// because nothing else changes. Nil if there are none, or none soon found.
    func takeAside(
        pages: Int, at place: UInt64?, distance: UInt64
    ) throws(StoreError) -> (sector: UInt64, count: Int)? {
        let total = UInt64(segmentCount) * UInt64(sectorsPerSegment)
        guard total > 0 else { return nil }
        func isAhead(_ sector: UInt64) -> Bool {
            [cursor, smallCursor].allSatisfy { cursor in
                (sector + total - position(cursor) % total) % total >= distance / 2
            }
        }
        if let place, isAhead(place), let found = try pagesAside(from: place, least: 1, most: pages) {
            if found.sector == place && 2 * found.count >= pages * Geometry.sectorsPerPage { return found }
            try abandon(found.sector, found.count)
        }
        let start = (position(cursor) + distance) % total
        var least = pages
        while least > 0 {
            for step in 0...min(segmentCount, Self.segmentsTriedAside) {
                let segment = (Int(start / UInt64(sectorsPerSegment)) + step) % segmentCount
                let first = UInt64(segment * sectorsPerSegment)
                let found = try pagesAside(from: step == 0 ? start : first, least: least, most: pages)
                if let found, isAhead(found.sector) { return found }
                if let found { try abandon(found.sector, found.count) }
            }
            least /= 2
        }
        return nil
    }

    private static let segmentsTriedAside = 64

    private func position(_ cursor: (segment: Int, index: Int)) -> UInt64 {
        UInt64(cursor.segment * sectorsPerSegment + cursor.index)
    }

    /// Reserves whole pages of consecutive free sectors at or behind `sector`, in its segment.
    private func pagesAside(
        from sector: UInt64, least: Int, most: Int
    ) throws(StoreError) -> (sector: UInt64, count: Int)? {
        let segment = Int(sector / UInt64(sectorsPerSegment))
        let (page, sectors) = (Geometry.sectorsPerPage, (least + 1) * Geometry.sectorsPerPage - 1)
        guard segment < segmentCount, mayHave(least * page, segment), let entry = try trusted(segment)
        else { return nil }
        let from = Int(sector % UInt64(sectorsPerSegment))
        // Wherever a run of so many begins, the pages are in it.
        let isAligned = entry.used.freeRun(
            from: from, least: least * page, most: most * page, also: entry.reserved)
        guard
            let run = isAligned.flatMap({ $0.lowerBound % page == 0 ? $0 : nil })
                ?? entry.used.freeRun(
                    from: from, least: sectors, most: (most + 1) * page - 1, also: entry.reserved)
        else { return nil }
        let first = (run.lowerBound + page - 1) / page * page
        let count = min(most * page, (run.upperBound - first) / page * page)
        guard count > 0 else { return nil }
        reserve(entry, first..<first + count)
        return (UInt64(segment * sectorsPerSegment + first), count)
    }

    private func reserve(_ entry: SegmentBits, _ run: Range<Int>) {
        entry.reserved.set(run)
        entry.reservedCount += run.count
        reservedSectors += UInt64(run.count)
    }

    private func unreserve(_ entry: SegmentBits, _ range: Range<Int>) {
        entry.reserved.clear(range)
        entry.reservedCount -= range.count
        reservedSectors -= UInt64(range.count)
    }

    /// Releases reserved sectors.
    func abandon(_ sector: UInt64, _ count: Int) throws(StoreError) {
        let (entry, segment, range) = try locate(sector, count)
        unreserve(entry, range)
        noteRelease(segment)
    }

    /// Makes reserved sectors part of the next commit.
    func adopt(_ sector: UInt64, _ count: Int) throws(StoreError) {
        let (entry, segment, range) = try locate(sector, count)
        unreserve(entry, range)
        entry.used.set(range)
        changeUse(entry, segment, range, by: count)
    }

    /// Marks given sectors as used if all of them are free; otherwise changes nothing and returns false.
    func allocate(at sector: UInt64, _ count: Int) throws(StoreError) -> Bool {
        let (entry, segment, range) = try locate(sector, count)
        guard
            entry.used.freeRun(from: range.lowerBound, least: count, most: count, also: entry.reserved)
                == range
        else { return false }
        entry.used.set(range)
        changeUse(entry, segment, range, by: count)
        return true
    }

    /// Frees sectors that no root refers to any more.
    func release(_ sector: UInt64, _ count: Int) throws(StoreError) {
        let (entry, segment, range) = try locate(sector, count)
        // A damaged catalogue with the same sectors in two files frees them twice.
        guard entry.used.isFull(range) else { throw .damaged }
        entry.used.clear(range)
        noteRelease(segment)
        freedCount += UInt64(count)
        changeUse(entry, segment, range, by: -count)
    }

    private func changeUse(_ entry: SegmentBits, _ segment: Int, _ range: Range<Int>, by change: Int) {
        usedCounts[segment] = UInt32(clamping: Int(usedCounts[segment]) + change)
        usedSectors = UInt64(clamping: Int(usedSectors) + change)
        dirtyCountPages.insert(segment / MapLayout.countsPerPage)
        let first = range.lowerBound / MapLayout.bitsPerPage
        let last = (range.upperBound - 1) / MapLayout.bitsPerPage
        for page in first...last where entry.dirtyPages.insert(page).inserted { unpublishedPages += 1 }
    }

    private func locate(
        _ sector: UInt64, _ count: Int
    ) throws(StoreError) -> (SegmentBits, Int, Range<Int>) {
        let (number, place) = sector.quotientAndRemainder(dividingBy: UInt64(sectorsPerSegment))
        guard number < UInt64(segmentCount), count > 0, count <= sectorsPerSegment - Int(place) else {
            throw .damaged
        }
        return (try load(Int(number)), Int(number), Int(place)..<Int(place) + count)
    }

    // MARK: Checking

    /// The bits of a segment, even if they contradict its count. Zeros for a segment without bits.
    func usedRow(of segment: Int) throws(StoreError) -> BitRow {
        guard segment < segmentCount else { return BitRow(count: sectorsPerSegment) }
        if let entry = bits[segment] { return entry.used }
        return try read(segment).used
    }

    /// Replaces a segment's bits, and its count accordingly.
    func replace(_ segment: Int, with row: BitRow) {
        precondition(segment < segmentCount && row.count == sectorsPerSegment)
        let entry = bits[segment] ?? SegmentBits(sectors: sectorsPerSegment)
        bits[segment] = entry
        entry.used = row
        distrusted.remove(segment)
        noteRelease(segment)
        changeUse(entry, segment, 0..<sectorsPerSegment, by: row.setCount - Int(usedCounts[segment]))
    }

    /// Reserves all free runs of at least `least` sectors in a segment; none if it is distrusted.
    func reserveFreeRuns(of segment: Int, least: Int) -> [Range<Int>] {
        guard let entry = try? load(segment) else { return [] }
        var runs: [Range<Int>] = []
        var index = 0
        while let run = entry.used.freeRun(
            from: index, least: least, most: sectorsPerSegment, also: entry.reserved)
        {
            runs.append(run)
            index = run.upperBound
        }
        for run in runs { reserve(entry, run) }
        return runs
    }

    // MARK: Commits

    /// The pages that changed since the last call: bitmap pages by number with their 2048 bytes, then count pages. They
    /// stay in memory until `didPublish` or `takeBack`, because the disk has older ones.
    func freezeDirtyPages() -> (
        bitmaps: [(page: Int, bytes: [UInt8])], counts: [(page: Int, bytes: [UInt8])]
    ) {
        var bitmaps: [(Int, [UInt8])] = []
        for (segment, entry) in bits where !entry.dirtyPages.isEmpty {
            for page in entry.dirtyPages.sorted() {
                bitmaps.append((segment * pagesPerSegment + page, bitmapBytes(entry, page)))
            }
            entry.frozenPages.formUnion(entry.dirtyPages)
            entry.dirtyPages = []
        }
        bitmaps.sort { $0.0 < $1.0 }
        let counts = dirtyCountPages.sorted().map { page in (page, countBytes(page)) }
        frozenCountPages.formUnion(dirtyCountPages)
        dirtyCountPages = []
        return (bitmaps, counts)
    }

    /// Called when the frozen pages are published.
    func didPublish() {
        for entry in bits.values {
            unpublishedPages -= entry.frozenPages.count
            entry.frozenPages = []
        }
        frozenCountPages = []
    }

    /// Called when publishing failed: the frozen pages are dirty again.
    func takeBack() {
        for entry in bits.values {
            let count = entry.dirtyPages.count + entry.frozenPages.count
            entry.dirtyPages.formUnion(entry.frozenPages)
            entry.frozenPages = []
            unpublishedPages -= count - entry.dirtyPages.count
        }
        dirtyCountPages.formUnion(frozenCountPages)
        frozenCountPages = []
    }

    /// Marks a bitmap page to be rewritten by the next commit.
    func markDirty(bitmapPage page: Int) throws(StoreError) {
        let isNew = try load(page / pagesPerSegment).dirtyPages.insert(page % pagesPerSegment).inserted
        if isNew { unpublishedPages += 1 }
    }

    /// Pages of counts that changed since they were published.
    var unpublishedCountPages: Int { dirtyCountPages.count + frozenCountPages.count }

    /// Marks a page of counts to be rewritten by the next commit.
    func markDirty(countPage page: Int) { dirtyCountPages.insert(page) }

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
