import FileRequests
import PhotoLibrary
import VaultCatalogue
import VaultFormat
public import VaultStore

/// Checks an unmounted space: structure, catalogue, allocation, and every stored byte. Writes nothing.
public struct SpaceCheck {
    private let space: Space
    private var report = SpaceReport()
    private let total: UInt64
    private let proceed: (_ done: UInt64, _ total: UInt64) -> Bool
    /// Segment faults that are already reported.
    private var faults: Set<SegmentFault> = []

    /// Throws `newer` if a later release made the space or its catalogue.
    ///
    /// - Parameters:
    ///   - readsContent: also read all files; otherwise damage of their bytes is not found.
    ///   - proceed: called on this thread with the bytes read so far and in total; false ends the check early.
    public static func run(
        _ unlocked: UnlockedSpace, readsContent: Bool = true,
        _ proceed: (_ done: UInt64, _ total: UInt64) -> Bool = { _, _ in true }
    ) throws(VaultError) -> SpaceReport {
        let space: Space
        do throws(VaultError) {
            space = try unlocked.openSpace(.reading, limits: .ofCheck, samples: Catalogue.runSamples)
        } catch {
            guard case .damaged(let cause) = error else { throw error }
            var report = SpaceReport()
            report.add("the space", cause, kind: .space, isHarmless: false)
            report.plan.mustSalvage = true
            return report
        }
        let report = try run(space, readsContent: readsContent, proceed)
        // Exchanged segments look like much damage, which is gone once each is read under its own name.
        guard !report.isInterrupted, !report.findings.isEmpty || space.exchange != nil,
            let exchange = try findExchange(unlocked, space)
        else { return report }
        var again = report
        if exchange != space.exchange {
            again = try run(
                unlocked.openSpace(through: exchange), readsContent: readsContent, proceed)
        }
        again.note(exchange)
        return again
    }

    private static func run(
        _ space: Space, readsContent: Bool, _ proceed: (_ done: UInt64, _ total: UInt64) -> Bool
    ) throws(VaultError) -> SpaceReport {
        let report = withoutActuallyEscaping(proceed) { proceed in
            var check = SpaceCheck(space, proceed)
            check.run(readsContent: readsContent)
            return check.report
        }
        if let newer = report.newer { throw .newer(newer) }
        return report
    }

    private init(_ space: Space, _ proceed: @escaping (UInt64, UInt64) -> Bool) {
        self.space = space
        self.proceed = proceed
        total = space.storedBytes
    }

    private mutating func run(readsContent: Bool) {
        var catalogue: Catalogue?
        do throws(FileError) {
            for stage in CheckStage.allCases where !report.isInterrupted {
                switch (stage, catalogue) {
                case (.structure, _):
                    checkStructure()
                    catalogue = openCatalogue()
                case (.catalogue, let catalogue?): try checkCatalogue(catalogue)
                case (.content, let catalogue?): try checkContent(catalogue, readsContent: readsContent)
                case (.allocation, let catalogue?):
                    reportAllocation()
                    try awaitSegments(catalogue)
                case (.catalogue, nil), (.content, nil), (.allocation, nil): return
                }
            }
        } catch {
            noteUnreadable(error == .noRoom ? .noRoom : .damaged)
        }
    }

    /// Returns nil if there is none, or if it cannot be read, which is reported.
    private mutating func openCatalogue() -> Catalogue? {
        guard space.pageCount > 0 else { return nil }
        do throws(CatalogueError) {
            return try Catalogue(
                storage: space, readOnly: true, cacheKibibytes: space.limits.catalogueCacheKibibytes)
        } catch {
            if case .newer(let version) = error { report.newer = version }
            noteUnreadable(error)
            return nil
        }
    }

    private mutating func noteUnreadable(_ error: CatalogueError) {
        let cause =
            switch error {
            case .damaged: "it cannot be read completely"
            case .newer(let version): version.words
            case .noRoom: "it cannot be queried: it would have to grow"
            }
        report.add("the catalogue", cause, kind: .catalogue, isHarmless: false)
        report.plan.mustSalvage = true
    }

    /// Counts bytes as read; false if the check must end.
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
        let structure = StructureCheck(of: space).run()
        report.damagedSectors = structure.damagedSectors
        for fault in structure.segments.sorted(by: { $0.segment < $1.segment }) { note(fault) }
        for finding in Finding.summarized(structure.damage, mayWrite: space.opening.missesNoRoots) {
            report.add(finding)
        }
        report.plan.parts = structure.halved + structure.damage.filter { !$0.isLost }.map(\.part)
        let roots = report.plan.parts.filter { if case .root = $0 { true } else { false } }
        report.plan.roots = roots.count
        report.plan.parts.removeAll { roots.contains($0) }
        report.plan.keepsOlderState = space.opening.hasUnreadableStates
        let lost = structure.damage.filter(\.isLost).map(\.part)
        report.plan.lostRoots = lost.count { if case .root = $0 { true } else { false } }
        report.plan.hasLostDelta = lost.contains { if case .delta = $0 { true } else { false } }
        if lost.contains(where: { $0.mustSalvage }) { report.plan.mustSalvage = true }
        _ = advance(structure.bytes)
        // Pages below a lost node cannot be told from free slots.
        if !report.plan.mustSalvage { add(AllocationCheck(of: space).compareSlots(structure)) }
    }

    private mutating func add(_ allocation: AllocationReport) {
        report.plan.allocation.add(allocation)
    }

    private mutating func reportAllocation() {
        for finding in Finding.of(report.plan.allocation) { report.add(finding) }
    }

    // MARK: Catalogue

    private mutating func checkCatalogue(_ catalogue: Catalogue) throws(FileError) {
        let (errors, broken) = try CatalogueChecks.run(space, catalogue, while: { advance(0) })
        // Only salvage reads a damaged table, row by row.
        if errors.contains(where: { !$0.isOfIndex }) { report.plan.mustSalvage = true }
        if !errors.isEmpty {
            report.plan.mustReindex = true
            catalogue.locked { $0.runs.trustsSectorIndexes = false }
        }
        for error in errors {
            report.add("the catalogue", error.text, kind: .catalogue, isHarmless: false)
        }
        for (constraint, findings) in broken {
            for finding in findings { report.add(finding) }
            if constraint.isMendable { report.plan.constraints.append(constraint) }
        }
        (report.fileCount, report.plan.hasMissedRecords) = try catalogue.locked {
            (tables) throws(FileError) in
            (try tables.checks.fileCount(), try tables.checks.hasMissedRecords())
        }
    }

    // MARK: Content

    /// Reads all runs, and compares the bitmaps of the segments that they lie in, which are reported as the last stage:
    /// the runs are listed once.
    private mutating func checkContent(
        _ catalogue: Catalogue, readsContent: Bool
    ) throws(FileError) {
        var (windows, others) = try catalogue.locked { tables throws(FileError) in
            let end = UInt64(space.segments.count) * UInt64(space.sectors.perSegment)
            return (
                try SegmentWindows(space, tables), try tables.runs.outside(from: end) + tables.runs.lost()
            )
        }
        report.plan.hasLostRuns = others.contains { $0.run.isLost }
        try tell(others, catalogue)
        report.plan.contested.formUnion(others.filter { !$0.run.isLost }.map(\.key))
        while let window = try catalogue.locked({ tables throws(FileError) in try windows.next(tables) }) {
            add(AllocationCheck(of: space).compareSectors(window.expected))
            report.plan.contested.formUnion(window.contested(space))
            for finding in try catalogue.locked({ tables throws(FileError) in
                try CatalogueFindings.ofShared(window.expected.shared, tables)
            }) { report.add(finding) }
            if readsContent {
                if try !read(window.runs, catalogue) { break }
            } else {
                try tell(window.runs.filter { !space.segments.isPossible($0.run) }, catalogue)
            }
        }
    }

    /// Leaves missing segments missing if files are incomplete, so that the segments can be put back.
    private mutating func awaitSegments(_ catalogue: Catalogue) throws(FileError) {
        guard space.grows else { return }
        let pages = space.segments.pageSegments
        let missing = report.plan.segments.filter { !pages.contains($0) }
        let areInUse = try catalogue.locked { tables throws(FileError) in
            for number in missing where try hasFiles(number, tables) { return true }
            return false
        }
        report.plan.awaitsSegments = report.plan.hasLostRuns || areInUse
        if report.plan.awaitsSegments { report.plan.segments.removeAll { !pages.contains($0) } }
    }

    private func hasFiles(_ segment: Int, _ tables: Tables) throws(FileError) -> Bool {
        let sectors = UInt64(space.sectors.perSegment)
        let runs = try tables.runs.runs(in: UInt64(segment) * sectors..<UInt64(segment + 1) * sectors)
        let contents = Set(runs.filter { !$0.isRecord }.map(\.content))
        return try tables.contents.owners(of: contents).contains { !$0.isThumbnail }
    }

    private mutating func read(_ all: [CheckedRun], _ catalogue: Catalogue) throws(FileError) -> Bool {
        let runs = CheckedRun.withoutSame(all)
        let before = report.bytes
        let (total, proceed) = (total, proceed)
        var isWanted = true
        let damage = ExtentCheck(of: space).check(runs) { bytes in
            isWanted = proceed(min(before + bytes, total), total)
            return isWanted
        }
        report.bytes += UInt64(
            runs.reduce(0) { $0 + (space.segments.isPossible($1.run) ? $1.run.sectorCount : 0) } * 512)
        report.isInterrupted = !isWanted
        try tell(damage, catalogue)
        return isWanted
    }

    /// Reports runs that cannot be read: impossible and lost ones.
    private mutating func tell(_ runs: [CheckedRun], _ catalogue: Catalogue) throws(FileError) {
        try tell(ExtentCheck(of: space).check(runs), catalogue)
    }

    private mutating func tell(_ found: [ExtentDamage], _ catalogue: Catalogue) throws(FileError) {
        let damage = try catalogue.locked { tables throws(FileError) in try tables.runs.ofAllContents(found) }
        for damage in damage { if case .segment(let fault) = damage.fault { note(fault) } }
        let (findings, thumbnails) = try catalogue.locked { tables throws(FileError) in
            let contents = Set(damage.filter { !$0.isRecord }.map(\.content))
            let owners = try tables.contents.owners(of: contents)
            return (
                try PathFinder(tables: tables).findings(damage),
                owners.filter(\.isThumbnail).map(\.content)
            )
        }
        for finding in findings { report.add(finding) }
        plan(damage, Set(thumbnails))
    }

    private mutating func plan(_ damage: [ExtentDamage], _ thumbnails: Set<UInt64>) {
        report.damagedSectors += damage.compactMap(\.sectors)
        for damage in damage {
            if case .descriptor = damage.fault {
                report.plan.descriptors.append(damage)
            } else if damage.isRecord {
                report.plan.records.insert(damage.content)
            } else if thumbnails.contains(damage.content) {
                report.plan.thumbnails.insert(damage.content)
            } else if damage.fault == .another {
                // Its row is wrong, or its bytes are lost.
                report.plan.contested.insert(damage.key)
            }
        }
    }
}

extension StructurePart {
    /// Whether the loss of this part leaves the catalogue or the maps incomplete.
    fileprivate var mustSalvage: Bool {
        switch self {
        case .page(.catalogue, _), .node, .page(.usage, _), .page(.slotBitmap, _): true
        case .page(.sectorBitmap, _), .root, .delta: false
        }
    }
}
