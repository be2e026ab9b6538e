import VaultCatalogue
import VaultFormat
public import VaultStore

/// Checks a space that nobody has mounted: structure, catalogue, allocation, and every stored byte. Writes nothing.
public struct SpaceCheck {
    private let space: Space
    private var report = SpaceReport()
    private let total: UInt64
    private let proceed: (_ done: UInt64, _ total: UInt64) -> Bool
    /// Segments that are gone, which are told once.
    private var faults: Set<SegmentFault> = []

    /// Runs in memory at a time, some 64 bytes each.
    private static let runsMax = 1 << 18
    /// Files named for one rule that they break.
    static let violationsMax = 64

    /// - Parameters:
    ///   - readsContent: also read all files; else nothing is found of these.
    ///   - proceed: told on this thread how many bytes of how many have been read; what it answers no to ends early.
    public static func run(
        _ unlocked: UnlockedSpace, readsContent: Bool = true,
        _ proceed: (_ done: UInt64, _ total: UInt64) -> Bool = { _, _ in true }
    ) throws(VaultError) -> SpaceReport {
        let space: Space
        do throws(VaultError) {
            space = try unlocked.openSpace(readOnly: true)
        } catch {
            guard case .damaged(let cause) = error else { throw error }
            var report = SpaceReport()
            report.add("the space", cause, isHarmless: false)
            report.plan.mustSalvage = true
            return report
        }
        let report = run(space, readsContent: readsContent, proceed)
        // Exchanged segments look like much damage, which is none where each is read as what it is.
        guard !report.isInterrupted, !report.findings.isEmpty || space.exchange != nil,
            let exchange = try findExchange(unlocked, space)
        else { return report }
        var again = report
        if exchange != space.exchange {
            again = run(try unlocked.openSpace(through: exchange), readsContent: readsContent, proceed)
        }
        again.note(exchange)
        return again
    }

    private static func run(
        _ space: Space, readsContent: Bool, _ proceed: (_ done: UInt64, _ total: UInt64) -> Bool
    ) -> SpaceReport {
        withoutActuallyEscaping(proceed) { proceed in
            var check = SpaceCheck(space, proceed)
            check.run(readsContent: readsContent)
            return check.report
        }
    }

    private init(_ space: Space, _ proceed: @escaping (UInt64, UInt64) -> Bool) {
        self.space = space
        self.proceed = proceed
        total = space.storedBytes
    }

    private mutating func run(readsContent: Bool) {
        checkStructure()
        guard advance(0), space.pageCount > 0 else { return }
        do throws(CatalogueError) {
            let catalogue = try Catalogue(storage: space, readOnly: true)
            try checkCatalogue(catalogue)
            try checkContent(catalogue, readsContent: readsContent)
        } catch {
            report.add("the catalogue", words(error), isHarmless: false)
            report.plan.mustSalvage = true
        }
    }

    private func words(_ error: CatalogueError) -> String {
        switch error {
        case .damaged: "it cannot be read whole"
        case .unsupportedVersion(let version): "its version \(version) is not known"
        case .noRoom, .failed: "it cannot be searched (\(error))"
        }
    }

    /// Counts what was read; false where it is to end.
    private mutating func advance(_ bytes: UInt64) -> Bool {
        report.bytes += bytes
        if !proceed(min(report.bytes, total), total) { report.isInterrupted = true }
        return !report.isInterrupted
    }

    private mutating func note(_ fault: SegmentFault) {
        guard faults.insert(fault).inserted else { return }
        report.add(Finding(fault))
        if case .missing(let number) = fault { report.plan.segments.append(number) }
    }

    // MARK: Structure

    private mutating func checkStructure() {
        for finding in Finding.ofOlderState(space) { report.add(finding) }
        let structure = space.checkStructure()
        for fault in structure.segments.sorted(by: { $0.segment < $1.segment }) { note(fault) }
        for finding in Finding.summarized(structure.damage) { report.add(finding) }
        report.plan.parts = structure.halved + structure.damage.filter { !$0.isLost }.map(\.part)
        let roots = report.plan.parts.filter { if case .root = $0 { true } else { false } }
        report.plan.roots = roots.count
        report.plan.parts.removeAll { roots.contains($0) }
        let lost = structure.damage.filter(\.isLost).map(\.part)
        report.plan.lostRoots = lost.count { if case .root = $0 { true } else { false } }
        report.plan.hasLostDelta = lost.contains { if case .delta = $0 { true } else { false } }
        if lost.contains(where: { $0.mustSalvage }) { report.plan.mustSalvage = true }
        _ = advance(structure.bytes)
        // Below a node that is lost there are pages that nobody can tell from free ones.
        if !report.plan.mustSalvage { add(space.compareSlots(structure)) }
    }

    private mutating func add(_ allocation: AllocationReport) {
        report.plan.allocation.add(allocation)
    }

    private mutating func tellAllocation() {
        for finding in Finding.of(report.plan.allocation) { report.add(finding) }
    }

    // MARK: Catalogue

    private mutating func checkCatalogue(_ catalogue: Catalogue) throws(CatalogueError) {
        let (errors, broken, fileCount) = try catalogue.locked { tables throws(CatalogueError) in
            var broken: [(CatalogueRule, [Finding])] = []
            for rule in CatalogueRule.all {
                let found = try tables.violations(of: rule, limit: Self.violationsMax)
                if !found.isEmpty { broken.append((rule, try Self.findings(rule, found, tables))) }
            }
            return (try tables.integrityErrors(), broken, try tables.fileCount())
        }
        report.fileCount = fileCount
        if !errors.isEmpty { report.plan.mustReindex = true }
        for error in errors { report.add("the catalogue", error, isHarmless: false) }
        for (rule, findings) in broken {
            for finding in findings { report.add(finding) }
            if rule.isMendable { report.plan.rules.append(rule) }
        }
    }

    /// What breaks a rule, by path.
    static func findings(
        _ rule: CatalogueRule, _ numbers: [UInt64], _ tables: Tables
    ) throws(CatalogueError) -> [Finding] {
        let finder = PathFinder(tables: tables)
        var findings: [Finding] = []
        for number in numbers {
            var inodes = [number]
            if rule.subject == .content { inodes = try tables.owners(of: [number]).map(\.ino) }
            let subject = inodes.isEmpty ? "content \(number)" : try finder.text(of: inodes)
            findings.append(Finding(subject: subject, cause: rule.violation))
        }
        return findings
    }

    // MARK: Content

    /// Reads all runs, as many segments at a time as have some `runsMax` runs, and compares each segment's bitmap.
    private mutating func checkContent(
        _ catalogue: Catalogue, readsContent: Bool
    ) throws(CatalogueError) {
        var carried: [CheckedRun] = []
        for window in try windows(catalogue) {
            let sectors = UInt64(space.sectorsPerSegment)
            let range = UInt64(window.lowerBound) * sectors..<UInt64(window.upperBound) * sectors
            let runs = try catalogue.locked { tables throws(CatalogueError) in try tables.runs(in: range) }
            var expected = space.expectedUse(of: window.clamped(to: 0..<space.segmentCount))
            let possible = (carried + runs).filter { space.isPossible($0.run) }
            for checked in possible { expected.add(checked) }
            carried = possible.filter { $0.run.sector + UInt64($0.run.sectorCount) > range.upperBound }
            add(space.compareSectors(expected))
            try tellShared(expected, catalogue)
            if readsContent, try !read(runs, catalogue) { break }
        }
        tellAllocation()
    }

    /// Ranges of segments, together all that there are.
    private func windows(_ catalogue: Catalogue) throws(CatalogueError) -> [Range<Int>] {
        let counts = try catalogue.locked { tables throws(CatalogueError) in
            try tables.runCounts(sectorsPerSegment: space.sectorsPerSegment)
        }
        let end = space.segmentCount
        var windows: [Range<Int>] = []
        var (first, count, segmentCount) = (0, 0, 0)
        for segment in 0..<end {
            let more = counts[segment] ?? 0
            if segmentCount > 0, count + more > Self.runsMax || segmentCount == Self.segmentsMax {
                windows.append(first..<segment)
                (first, count, segmentCount) = (segment, 0, 0)
            }
            count += more
            segmentCount += 1
        }
        if first < end { windows.append(first..<end) }
        // What is said to lie behind all segments is found to lie where nothing can.
        if let last = counts.keys.max(), last >= end { windows.append(end..<last + 1) }
        return windows
    }

    /// Segments whose bits are in memory at a time: 4 KiB each at the usual size.
    private static let segmentsMax = 1024

    private mutating func read(_ runs: [CheckedRun], _ catalogue: Catalogue) throws(CatalogueError) -> Bool {
        let before = report.bytes
        let (total, proceed) = (total, proceed)
        var isWanted = true
        let damage = space.checkExtents(runs) { bytes in
            isWanted = proceed(min(before + bytes, total), total)
            return isWanted
        }
        report.bytes += UInt64(
            runs.reduce(0) { $0 + (space.isPossible($1.run) ? $1.run.sectorCount : 0) } * 512)
        report.isInterrupted = !isWanted
        for damage in damage { if case .segment(let fault) = damage.fault { note(fault) } }
        let (findings, thumbnails) = try catalogue.locked { tables throws(CatalogueError) in
            let contents = Set(damage.filter { !$0.isRecord }.map(\.content))
            let owners = try tables.owners(of: contents)
            return (
                try PathFinder(tables: tables).findings(damage),
                owners.filter(\.isThumbnail).map(\.content)
            )
        }
        for finding in findings { report.add(finding) }
        plan(damage, Set(thumbnails))
        return isWanted
    }

    private mutating func plan(_ damage: [ExtentDamage], _ thumbnails: Set<UInt64>) {
        for damage in damage {
            if case .descriptor = damage.fault {
                report.plan.descriptors.append(damage)
            } else if damage.isRecord {
                report.plan.records.insert(damage.content)
            } else if thumbnails.contains(damage.content) {
                report.plan.thumbnails.insert(damage.content)
            }
        }
    }

    private mutating func tellShared(
        _ expected: ExpectedUse, _ catalogue: Catalogue
    ) throws(CatalogueError) {
        for shared in expected.shared.prefix(Self.violationsMax) {
            report.add(
                try catalogue.locked { tables throws(CatalogueError) in
                    try Self.finding(ofShared: shared.contents, tables)
                })
        }
    }

    /// Two contents have the same sectors.
    static func finding(ofShared contents: [UInt64], _ tables: Tables) throws(CatalogueError) -> Finding {
        let owners = try tables.owners(of: Set(contents))
        let paths = try PathFinder(tables: tables).text(of: owners.map(\.ino))
        return Finding(subject: paths, cause: "two extents have the same sectors")
    }
}

extension StructurePart {
    /// Whether without it the catalogue or the maps are not whole.
    fileprivate var mustSalvage: Bool {
        switch self {
        case .page(.catalogue, _), .node, .page(.usage, _), .page(.slotBitmap, _): true
        case .page(.sectorBitmap, _), .root, .delta: false
        }
    }
}
