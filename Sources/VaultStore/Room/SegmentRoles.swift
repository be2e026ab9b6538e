import LinuxIO
public import VaultFormat

/// Assigns each segment of a space to pages, in pairs, or to content. Segments that are set aside for pages, are being
/// emptied, or are lost get no new content.
///
/// Unchecked Sendable: everything mutable is under the space's lock. Functions marked so are called with it held, the
/// others take it.
public final class SegmentRoles: @unchecked Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let sectors: SectorAllocator
    private let grows: Bool
    private let slotsPerPair: Int
    /// The number of segments that every space of the vault had when this one was opened.
    private let countFound: Int
    /// The same now; nil if the host does not tell.
    private let countNow: @Sendable () -> Int?
    private var pagePairs: [SegmentPair]
    /// Segments of content whose files were present, and those whose files were missing, at the first write to them.
    private var found: Set<Int> = []
    private var lost: Set<Int> = []
    /// Segments that were created for content since the space was opened.
    private var created: Set<Int> = []
    /// Segments that are being emptied, and those of which something cannot be moved; see `beginVacating`.
    private var vacating: Set<Int> = []
    private var unvacatable: Set<Int> = []
    /// Whether fewer than half a pair's slots are free.
    private var arePagesShort = false
    /// Whether free sectors keep their bytes: a repair neither overwrites them nor gives them back, because they may
    /// belong to a newer state whose roots are away and come back later. The next mount gives them back.
    var keepsFreeSectors = false

    init(
        _ pairs: [SegmentPair], _ disk: SpaceDisk, _ sectors: SectorAllocator, grows: Bool, lock: Lock,
        count: Int, countNow: @escaping @Sendable () -> Int?
    ) {
        (pagePairs, self.disk, self.sectors, self.grows, self.lock) = (pairs, disk, sectors, grows, lock)
        (countFound, self.countNow) = (count, countNow)
        slotsPerPair = disk.slotsPerPair
        disk.limit(to: count)
    }

    // MARK: Segments of pages

    /// The pairs of segments that hold pages. Under the lock, or while no pair can be added.
    var pairs: [SegmentPair] { pagePairs }

    /// The segments of pages. Under the lock.
    var ofPages: Set<Int> { Set(pagePairs.flatMap { [Int($0.a), Int($0.b)] }) }

    /// The segments of pages.
    public var pageSegments: Set<Int> { lock.withLock { ofPages } }

    /// Whether a segment holds pages. Under the lock.
    func isOfPages(_ segment: Int) -> Bool {
        pagePairs.contains { Int($0.a) == segment || Int($0.b) == segment }
    }

    /// Adds a pair of segments for pages; throws `noRoom` if none is left. Under the lock.
    func addPair() throws(StoreError) {
        guard mayAddPair else { throw .noRoom }
        let count = sectors.segmentCount
        if grows {
            guard count + 2 <= Geometry.segmentsMax else { throw .noRoom }
            for number in [count, count + 1] { try disk.create(number) }
            sectors.addSegments(to: count + 2)
            pagePairs.append(SegmentPair(a: UInt32(count), b: UInt32(count + 1)))
        } else {
            let unused = Array(unusedSegments.prefix(2))
            guard unused.count == 2 else { throw .noRoom }
            pagePairs.append(SegmentPair(a: UInt32(unused[0]), b: UInt32(unused[1])))
        }
    }

    /// Whether the catalogue may grow into one more pair: half of a space's segments stay for content, because a pair
    /// is never given up again. Under the lock.
    var mayGrowIntoPair: Bool {
        mayAddPair && (grows || 4 * (pagePairs.count + 1) <= sectors.segmentCount)
    }

    /// Whether the format allows one more pair. Under the lock.
    private var mayAddPair: Bool {
        pagePairs.count < RootLayout.pairsMaxWithRoom
            && (pagePairs.count + 1) * slotsPerPair <= RootLayout.slotsMax
    }

    /// Pairs of segments that the catalogue can still get: where none are free, content makes way. Under the lock.
    var pairsToAdd: Int {
        max(0, fixed.pairsMax - pagePairs.count)
    }

    /// The arithmetic of a space of this size. Under the lock.
    var fixed: FixedSpace {
        FixedSpace(segmentBytes: disk.segmentBytes, segmentCount: sectors.segmentCount)
    }

    /// Segments without content and pages, the last first. Under the lock.
    private var unusedSegments: some Sequence<Int> {
        let taken = ofPages
        return (0..<sectors.segmentCount).reversed().lazy.filter {
            !taken.contains($0) && self.sectors.isUnused($0)
        }
    }

    /// Segments that are set aside for pages. Under the lock.
    var setAsideForPages: Int { sectors.excluded.subtracting(lost).count - 2 * pagePairs.count }

    /// Updates the segments that content must not use: those of pages, those set aside for more pages, those that are
    /// being emptied, and those that are lost. Under the lock.
    private func updateExcluded() {
        var excluded = ofPages
        if !grows {
            let wanted = pageSegmentsWanted - pagePairs.count * 2
            if wanted > 0 {
                excluded.formUnion(Array(unusedSegments.prefix(wanted)))
            }
        }
        sectors.excluded = excluded.union(lost).union(vacating)
    }

    /// As `updateExcluded`, with so many slots free in the pairs. Under the lock.
    func update(freeSlots: Int) {
        arePagesShort = freeSlots < slotsPerPair / 2
        updateExcluded()
    }

    /// Segments to have or set aside for pages: two more than now once fewer than half a pair's slots are free.
    private var pageSegmentsWanted: Int {
        max(fixed.pageSegments, arePagesShort && mayGrowIntoPair ? pagePairs.count * 2 + 2 : 0)
    }

    // MARK: Their number

    /// The number of segments, including missing ones with a usage count.
    public var count: Int { lock.withLock { sectors.segmentCount } }

    /// The number of segments that had files at the beginning, and of those that hold pages.
    var leastCount: Int {
        max(countFound, (pagePairs.map { max(Int($0.a), Int($0.b)) }.max() ?? 0) + 1)
    }

    /// Starts using segments that `grow` has added. Under the lock.
    func noticeGrowth() {
        guard !grows, let count = countNow(), count > sectors.segmentCount else { return }
        disk.limit(to: count)
        sectors.addSegments(to: count)
        updateExcluded()
    }

    /// In a vault that grows, creates a segment for content. Returns false if the format allows no more. Under the
    /// lock.
    func addForContent() throws(StoreError) -> Bool {
        let number = sectors.segmentCount
        guard number < Geometry.segmentsMax else { return false }
        try disk.create(number)
        created.insert(number)
        sectors.addSegments(to: number + 1)
        return true
    }

    /// In a vault that grows, creates segments until so many of the last ones are empty. Under the lock.
    func addEmpty(_ wanted: Int) {
        let pages = ofPages
        let empty = (0..<sectors.segmentCount).reversed().prefix {
            sectors.isUnused($0) && !pages.contains($0)
        }
        var count = sectors.segmentCount
        let end = min(count + wanted - empty.count, Geometry.segmentsMax)
        while count < end, (try? disk.create(count)) != nil { count += 1 }
        sectors.addSegments(to: count)
    }

    /// In a vault that grows, counts segments that have no file as part of the space.
    public func countAll(through last: Int) {
        guard grows, last < Geometry.segmentsMax else { return }
        lock.withLock { sectors.addSegments(to: last + 1) }
    }

    /// Removes the empty segments at the end, by the published bitmaps.
    func removeLast() {
        lock.withLock {
            let pages = ofPages
            while let last = sectors.lastRemovable, !pages.contains(last) {
                guard !mayHoldNewerState(last), disk.remove(last) else { return }
                sectors.removeLast()
            }
        }
    }

    /// In a vault that grows, removes the segments at the end that are not in use and empty: some before them may be
    /// missing.
    public func removeUnusedEnd() throws(StoreError) {
        guard grows else { return }
        removeLast()
        try disk.sync()
    }

    /// Whether a segment has data that must stay, used or not; see `keepsFreeSectors`.
    private func mayHoldNewerState(_ number: Int) -> Bool {
        keepsFreeSectors && disk.exists(number) && !disk.isHole(number)
    }

    /// Whether a segment was created for content since the space was opened, so that its file has no other's bytes.
    func isCreated(_ segment: Int) -> Bool { lock.withLock { created.contains(segment) } }

    // MARK: Lost segments

    /// Whether a segment has a file that content can be written to; if not, it gets none from now on. Under the lock.
    func isPresent(_ segment: Int) -> Bool {
        if found.contains(segment) || disk.hasRoom(for: segment) {
            found.insert(segment)
            return true
        }
        lost.insert(segment)
        updateExcluded()
        return false
    }

    /// In a vault that grows, creates missing segments again, so that they can be written: those given, and if
    /// `fillsGaps` all before the last one that stays.
    public func remake(_ numbers: [Int], fillsGaps: Bool) throws(StoreError) {
        guard grows else { return }
        // A segment that may hold a newer state stays at the end: the gaps before it are filled as well.
        let stays = { [self] (number: Int) in !sectors.isUnused(number) || mayHoldNewerState(number) }
        let last = !fillsGaps ? 0 : lock.withLock { (0..<sectors.segmentCount).last(where: stays) } ?? 0
        for number in numbers + (0..<last).filter({ !disk.exists($0) }) { try disk.create(number) }
        lock.withLock {
            lost.subtract(numbers)
            updateExcluded()
        }
    }

    /// Whether a segment of content, before the last that is there, is missing.
    public var areMissing: Bool {
        let pages = pageSegments
        return grows && (0..<count).contains { !pages.contains($0) && !disk.exists($0) }
    }

    /// In a vault that grows, creates missing segments, so that a new state can use them: those of pages, and if `all`
    /// those below the vault's own count, even if a forged root names more.
    func replaceMissing(all: Bool) {
        guard grows else { return }
        let own = all ? min(sectors.segmentCount, countNow() ?? countFound) : 0
        for number in Set(0..<own).union(ofPages).sorted()
        where (try? disk.writtenSectors(number)) == nil {
            // Its contents are lost. If the disk is full, later writes to it fail and report that.
            try? disk.create(number)
        }
    }

    // MARK: Places of content

    /// Whether a run can lie at its place, so that its sectors can be counted and read. No run lies in segments of
    /// pages.
    public func isPossible(_ run: ExtentRun) -> Bool {
        let chunk = UInt64(Geometry.chunkBytes)
        let perSegment = UInt64(disk.sectorsPerSegment)
        let sectorsMax = sectorCount
        guard run.length > 0, run.length / chunk < sectorsMax, run.sector < sectorsMax,
            run.length <= chunk || run.offset % chunk == 0, run.offset < Geometry.numberMax,
            // Only one in 257 segment boundaries can be a chunk boundary, so a run spans at most two segments.
            UInt64(run.sectorCount) <= 2 * perSegment
        else { return false }
        let end = run.endSector
        let boundary = (run.sector / perSegment + 1) * perSegment
        if holdsPages(atSector: run.sector) { return false }
        if end <= boundary { return true }
        // Called whenever a file is opened, so it does not check every chunk. No chunk may cross the segments'
        // boundary.
        return end <= boundary + perSegment && boundary < sectorsMax
            && (boundary - run.sector) % UInt64(Geometry.sectorsPerChunk) == 0
            && !holdsPages(atSector: boundary)
    }

    /// The number of sectors of all segments.
    var sectorCount: UInt64 { UInt64(count) * UInt64(disk.sectorsPerSegment) }

    /// Whether the segment of a sector holds pages.
    func holdsPages(atSector sector: UInt64) -> Bool {
        let segment = disk.segment(of: sector)
        return lock.withLock { sectors.excluded.contains(segment) && isOfPages(segment) }
    }

    // MARK: Emptying segments

    /// Whether a pair of segments more would give the catalogue slots.
    public var mayVacate: Bool { lock.withLock { !grows && mayGrowIntoPair } }

    /// Whether two segments are free, so that the catalogue can have them.
    public var hasVacantPair: Bool { lock.withLock { Array(unusedSegments.prefix(2)).count == 2 } }

    /// Chooses the segment that holds least, and keeps new content away from it until `endVacating`. Returns its
    /// sectors; nil if none is left whose content has room elsewhere.
    ///
    /// The pages of a catalogue take whole segments. In a space of fixed size where content was removed here and there,
    /// none is free, however much room there is.
    public func beginVacating() -> Range<UInt64>? {
        lock.withLock {
            let perSegment = UInt64(disk.sectorsPerSegment)
            // Nothing is moved into one that is free.
            vacating.formUnion(unusedSegments)
            updateExcluded()
            let candidate = (0..<sectors.segmentCount)
                .filter {
                    !sectors.excluded.contains($0) && !unvacatable.contains($0) && sectors.isQuiet($0)
                        && sectors.usedCounts[$0] > 0
                }
                .min { sectors.usedCounts[$0] < sectors.usedCounts[$1] }
            guard let candidate else { return nil }
            let used = UInt64(sectors.usedCounts[candidate])
            let elsewhere = sectors.freeSectors - min(sectors.freeSectors, perSegment - used)
            // Pieces take some more.
            guard elsewhere >= used + used / 8 + FixedSpace.reservedSectors else { return nil }
            vacating.insert(candidate)
            updateExcluded()
            return disk.sectors(of: candidate)
        }
    }

    /// Sectors in use in a segment that is being emptied.
    public func usedSectors(in vacated: Range<UInt64>) -> Int {
        lock.withLock { Int(sectors.usedCounts[disk.segment(of: vacated.lowerBound)]) }
    }

    /// Notes that something in a segment cannot be moved: it is not chosen again.
    public func noteUnvacatable(_ sectors: Range<UInt64>) {
        lock.withLock { _ = unvacatable.insert(disk.segment(of: sectors.lowerBound)) }
    }

    /// Allows content in all segments that are left.
    public func endVacating() {
        lock.withLock {
            vacating = []
            updateExcluded()
        }
    }
}
