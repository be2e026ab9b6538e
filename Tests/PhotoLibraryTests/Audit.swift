import LinuxIO
import Testing
import VaultFormat

@testable import VaultCatalogue
@testable import VaultStore

/// What must hold of a space whenever nobody has it open, after a close as after a crash.
func audit(_ space: Space) throws {
    guard space.pageCount > 0 else { return }
    let database = try Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: true)
    let check = try database.prepare("PRAGMA integrity_check").all {
        String(decoding: $0.bytes(0), as: UTF8.self)
    }
    #expect(check == ["ok"])
    for rule in CatalogueRule.all {
        let found = try database.prepare(rule.query).all { $0.integer(0) }
        #expect(found == [], "\(rule.violation)")
    }
    try auditSectors(space, database)
    let structure = space.checkStructure()
    #expect(structure.damage == [] && structure.segments.isEmpty)
    #expect(space.compareSlots(structure) == AllocationReport())
}

/// Every sector in use belongs to exactly one extent.
private func auditSectors(_ space: Space, _ database: Connection) throws {
    let runs = try database.prepare("SELECT offset, length, sector FROM extent ORDER BY sector").all {
        ExtentRun(
            offset: $0.unsigned(0), length: $0.unsigned(1), sector: $0.unsigned(2), generation: 0, epoch: 0)
    }
    for (run, next) in zip(runs, runs.dropFirst()) {
        #expect(run.sector + UInt64(run.sectorCount) <= next.sector, "two extents share sectors")
    }
    let (used, pending) = space.lock.withLock { (space.sectors.usedSectors, space.pendingSectors) }
    #expect(runs.reduce(0) { $0 + $1.sectorCount } == Int(used - pending), "sectors that no extent has")
    var expected = space.expectedUse(of: 0..<space.segmentCount)
    for run in runs { expected.add(CheckedRun(content: 0, run: run)) }
    #expect(space.compareSectors(expected) == AllocationReport())
}
