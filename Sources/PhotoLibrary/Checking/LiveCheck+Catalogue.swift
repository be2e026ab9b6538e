import FileRequests
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// Checks the integrity constraints and the bitmaps of a mounted space. Each step reads a snapshot of the newest
/// published state, so that no request waits.
extension LiveCheck {
    private static let snapshotsMax = 8
    /// Segments whose bits are compared in one step: 4 KiB of memory each at the usual size.
    private static let segmentsPerStep = 1024
    /// SQLite's cache, while a step lasts. Four times as much is hardly faster.
    private static let cacheKibibytes = min(64 << 10, Limits.ofCheck.catalogueCacheKibibytes)

    /// Looks for violations of the constraint with this index; after the last constraint, checks the database's
    /// integrity.
    func checkConstraint(_ number: Int) throws(FileError) -> CheckStep {
        var step = CheckStep(next: .constraint(number + 1))
        step.findings = try ofSnapshot { tables, _ throws(FileError) in
            guard IntegrityConstraint.all.indices.contains(number) else {
                return try tables.checks.integrityErrors().map {
                    Finding(subject: "the catalogue", cause: $0.text, kind: .catalogue)
                }
            }
            return try CatalogueFindings.ofViolated(IntegrityConstraint.all[number], tables)
        }
        if number >= IntegrityConstraint.all.count { step.next = .after(.catalogue) }
        return step
    }

    /// Compares the bitmaps of some segments with the runs that lie there. The first step also compares the slot
    /// bitmap.
    func checkAllocation(from first: Int) throws(FileError) -> CheckStep {
        let end = max(first, min(space.segments.count, first + Self.segmentsPerStep))
        var step = CheckStep()
        step.findings = try ofSnapshot { tables, snapshot throws(FileError) in
            let window = min(first, snapshot.segments.count)..<min(end, snapshot.segments.count)
            let sectors = UInt64(snapshot.sectors.perSegment)
            let range = UInt64(window.lowerBound) * sectors..<UInt64(window.upperBound) * sectors
            var expected = AllocationCheck(of: snapshot).expectedUse(of: window)
            for checked in try tables.runs.runs(reaching: range)
            where snapshot.segments.isPossible(checked.run) {
                expected.add(checked)
            }
            var report = AllocationCheck(of: snapshot).compareSectors(expected)
            if first == 0, let slots = StructureCheck(of: snapshot).compareSlots() { report.add(slots) }
            return Finding.of(report) + (try CatalogueFindings.ofShared(expected.shared, tables))
        }
        step.next = end < space.segments.count ? .allocation(segment: end) : .after(.allocation)
        return step
    }

    /// Returns the findings from a snapshot. If the snapshot was given up for lack of room, findings in it may be
    /// false: another snapshot is searched. Throws `.noRoom` after `snapshotsMax` attempts.
    private func ofSnapshot(
        _ find: (Tables, Space) throws(FileError) -> [Finding]
    ) throws(FileError) -> [Finding] {
        for _ in 0..<Self.snapshotsMax {
            let snapshot: Space
            do throws(StoreError) { snapshot = try space.holdSnapshot() } catch {
                if error == .noRoom { continue }
                return []
            }
            guard snapshot.pageCount > 0 else {
                space.letGo(snapshot)
                return []
            }
            let found = findings(in: snapshot, find)
            if space.letGo(snapshot) || found.isEmpty { return found }
        }
        throw .noRoom
    }

    private func findings(
        in snapshot: Space, _ find: (Tables, Space) throws(FileError) -> [Finding]
    ) -> [Finding] {
        defer { returnFreeMemory() }
        do throws(FileError) {
            let catalogue = try Catalogue(
                of: snapshot, readOnly: true, cacheKibibytes: Self.cacheKibibytes)
            return try catalogue.locked { tables throws(FileError) in try find(tables, snapshot) }
        } catch {
            return [
                Finding(subject: "the catalogue", cause: "it cannot be read completely", kind: .catalogue)
            ]
        }
    }
}
