import LinuxIO
import VaultFormat

/// Differences between the bitmaps and the references of the catalogue and the maps.
public struct AllocationReport: Sendable, Equatable {
    /// In use by the bitmap but not referred to: leaked room.
    public var leakedSectors = 0
    /// Free by the bitmap but referred to: a write would destroy their data.
    public var unmarkedSectors = 0
    /// Freed by a commit but referred to: they would soon be marked as free.
    public var freedTooEarlySectors = 0
    /// Segments whose count of used sectors differs from their bits.
    public var wrongCounts = 0
    /// Segments whose bits cannot be read.
    public var lostBitmaps = 0
    public var leakedSlots = 0
    public var unmarkedSlots = 0
    /// Slots that several pages refer to.
    public var sharedSlots = 0

    public init() {}

    public var isClean: Bool { self == AllocationReport() }

    public mutating func add(_ other: AllocationReport) {
        leakedSectors += other.leakedSectors
        unmarkedSectors += other.unmarkedSectors
        freedTooEarlySectors += other.freedTooEarlySectors
        wrongCounts += other.wrongCounts
        lostBitmaps += other.lostBitmaps
        leakedSlots += other.leakedSlots
        unmarkedSlots += other.unmarkedSlots
        sharedSlots += other.sharedSlots
    }
}

/// The sectors of some segments that the catalogue's runs use, for comparison with the bitmap.
public struct ExpectedUse: Sendable {
    /// The segments to compare.
    public let segments: Range<Int>
    private let sectorsPerSegment: Int
    private var rows: [BitRow]
    /// Pairs of contents whose runs share sectors: each such run is in a pair.
    public private(set) var shared: [(ContentKey, ContentKey)] = []
    /// The highest end of a run so far, and the run's content.
    private var last: (end: UInt64, key: ContentKey) = (0, ContentKey(content: 0))
    private var lastAdded: CheckedRun?

    fileprivate init(_ segments: Range<Int>, sectorsPerSegment: Int) {
        self.segments = segments
        self.sectorsPerSegment = sectorsPerSegment
        rows = [BitRow](repeating: BitRow(count: sectorsPerSegment), count: segments.count)
    }

    /// Adds a run. Runs are added in the order of their sectors. Sectors in other segments are ignored. A snapshot may
    /// have the same run as another of its source, or that.
    public mutating func add(_ checked: CheckedRun) {
        let run = checked.run
        if let lastAdded, checked.isSame(as: lastAdded) { return }
        lastAdded = checked
        let end = run.endSector
        if run.sector < last.end { shared.append((last.key, checked.key)) }
        if end > last.end { last = (end, checked.key) }
        mark(run.sector..<end)
    }

    fileprivate mutating func mark(_ range: Range<UInt64>) {
        let perSegment = UInt64(sectorsPerSegment)
        var sector = range.lowerBound
        while sector < range.upperBound {
            let next = min(range.upperBound, (sector / perSegment + 1) * perSegment)
            let segment = Int(sector / perSegment)
            if segments.contains(segment) {
                let first = Int(sector % perSegment)
                rows[segment - segments.lowerBound].add(first..<first + Int(next - sector))
            }
            sector = next
        }
    }

    fileprivate func row(of segment: Int) -> BitRow { rows[segment - segments.lowerBound] }

    /// The parts of a range of one segment that runs use (`taken`), or that none uses.
    fileprivate func parts(of range: Range<UInt64>, taken: Bool) -> [Range<UInt64>] {
        let perSegment = UInt64(sectorsPerSegment)
        let segment = Int(range.lowerBound / perSegment)
        guard segments.contains(segment) else { return taken ? [] : [range] }
        let row = rows[segment - segments.lowerBound]
        var parts: [Range<UInt64>] = []
        for sector in range where row[Int(sector % perSegment)] == taken {
            if let last = parts.last, last.upperBound == sector {
                parts[parts.count - 1] = last.lowerBound..<sector + 1
            } else {
                parts.append(sector..<sector + 1)
            }
        }
        return parts
    }
}

/// Compares the bitmaps with the sectors and slots in use. Only for a space without concurrent changes.
public struct AllocationCheck: Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let sectors: SectorRoom
    private let slots: SlotRoom
    private let freed: FreedRoom
    private let next: NextCommit
    private let segments: SegmentRoles

    public init(of space: Space) {
        (lock, disk, sectors) = (space.parts.lock, space.parts.disk, space.sectors)
        (slots, freed, next) = (space.parts.slots, space.parts.freed, space.parts.next)
        segments = space.segments
    }

    public func expectedUse(of segments: Range<Int>) -> ExpectedUse {
        ExpectedUse(segments, sectorsPerSegment: disk.sectorsPerSegment)
    }

    /// Compares the bitmaps with `expected`, to which all runs of the segments were added.
    ///
    /// - Parameter mending: corrects bits and counts. Leaked sectors are freed as usual, after two durable commits;
    ///   sectors that runs use are no longer freed.
    public func compareSectors(_ expected: ExpectedUse, mending: Bool = false) -> AllocationReport {
        var expected = expected
        let count = segments.count
        return lock.withLock {
            let givenBack = freed.freedSectors.reduce(0) { count, range in
                expected.parts(of: range, taken: true).reduce(count) { $0 + $1.count }
            }
            if mending && givenBack > 0 { freed.keepFreed { expected.parts(of: $0, taken: false) } }
            for range in freed.freedSectors { expected.mark(range) }
            var report = AllocationReport()
            report.freedTooEarlySectors = givenBack
            for segment in expected.segments where segment < count {
                report.add(compare(segment, expected.row(of: segment), mending: mending))
            }
            return report
        }
    }

    private func compare(_ segment: Int, _ expected: BitRow, mending: Bool) -> AllocationReport {
        var report = AllocationReport()
        var marked = expected
        do throws(StoreError) {
            marked = try sectors.usedRow(of: segment)
        } catch {
            report.lostBitmaps = 1
        }
        let leaked = marked.subtracting(expected)
        report.leakedSectors = leaked.setCount
        report.unmarkedSectors = expected.subtracting(marked).setCount
        // The bits of a segment whose count is 0 are never read: they count as clear.
        if sectors.usedCount(of: segment) != marked.setCount { report.wrongCounts = 1 }
        guard mending, !report.isClean else { return report }
        marked.add(expected)
        sectors.replace(segment, with: marked)
        let first = disk.sectors(of: segment).lowerBound
        freed.noteLeaked(
            leaked.setRuns.map { first + UInt64($0.lowerBound)..<first + UInt64($0.upperBound) })
        return report
    }

    /// Compares the slot bitmap with the slots that a check of the whole structure found.
    public func compareSlots(_ structure: StructureReport, mending: Bool = false) -> AllocationReport {
        lock.withLock {
            var report = AllocationReport()
            var expected = BitRow(count: slots.count)
            expected.add(0..<RootLayout.rootSlots)
            for slot in structure.slots where slot < slots.count {
                if expected[Int(slot)] { report.sharedSlots += 1 }
                expected.add(Int(slot)..<Int(slot) + 1)
            }
            for range in freed.freedSlots { expected.add(range) }
            let leaked = slots.inUse.subtracting(expected)
            let unmarked = expected.subtracting(slots.inUse)
            report.leakedSlots = leaked.setCount
            report.unmarkedSlots = unmarked.setCount
            guard mending, !report.isClean else { return report }
            next.noteChange()
            for slot in unmarked.setRuns.joined() { slots.take(found: slot) }
            for run in leaked.setRuns { freed.noteFreed(slots: run) }
            return report
        }
    }
}

extension BitRow {
    /// Sets bits, some of which may already be set.
    mutating func add(_ range: Range<Int>) {
        var index = range.lowerBound
        while index < range.upperBound {
            let length = min(64 - index & 63, range.upperBound - index)
            let mask = (length == 64 ? UInt64.max : (1 << UInt64(length)) - 1) << UInt64(index & 63)
            setWord(index >> 6, words[index >> 6] | mask)
            index += length
        }
    }

    fileprivate mutating func add(_ other: BitRow) {
        for index in words.indices { setWord(index, words[index] | other.words[index]) }
    }

    /// The bits that are set here and not there.
    fileprivate func subtracting(_ other: BitRow) -> BitRow {
        var result = BitRow(count: count)
        for index in words.indices { result.setWord(index, words[index] & ~other.words[index]) }
        return result
    }

    /// Runs of set bits.
    fileprivate var setRuns: [Range<Int>] {
        var runs: [Range<Int>] = []
        for index in 0..<count where self[index] {
            if let last = runs.last, last.upperBound == index {
                runs[runs.count - 1] = last.lowerBound..<index + 1
            } else {
                runs.append(index..<index + 1)
            }
        }
        return runs
    }
}
