import LinuxIO
import Testing
import VaultFormat

@testable import CatalogueRows
@testable import PhotoLibrary
@testable import PhotoRules
@testable import Recovery
@testable import VaultCatalogue
@testable package import VaultStore

/// The invariants of a closed space, after a close as after a crash.
///
/// - Parameter words: its history.
package func audit(_ space: Space, _ words: String = "") throws {
    guard space.pageCount > 0 else { return }
    let database = try Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: true)
    let check = try database.prepare("PRAGMA integrity_check").all {
        String(decoding: $0.bytes(0), as: UTF8.self)
    }
    #expect(check == ["ok"])
    for rule in IntegrityConstraint.all {
        let found = try database.prepare(rule.query).all { $0.integer(0) }
        #expect(found == [], "\(rule.violation) \(words)")
    }
    try auditSectors(space, database)
    let structure = StructureCheck(of: space).run()
    // After a crash, or a write that failed, a root may be torn: the next durable commit mends it.
    let damage = structure.damage.filter { if case .root = $0.part { false } else { true } }
    #expect(damage == [] && structure.segments.isEmpty, "\(words)")
    #expect(AllocationCheck(of: space).compareSlots(structure) == AllocationReport())
    try auditRecords(space, database)
}

/// The invariants of every published state, read back: the runs of the catalogue are the sectors
/// in use less those given back, none is there twice, and bits and counts agree.
package func auditPublished(_ space: Space) {
    let snapshot: Space
    // It is read again from the disk: a fault that a test has ordered may hit that as well.
    do { snapshot = try space.holdSnapshot() } catch { return }
    defer { space.letGo(snapshot) }
    guard snapshot.pageCount > 0,
        let database = try? Connection(path: PageVFS.register(snapshot), vfs: PageVFS.name, readOnly: true)
    else { return }
    try? auditSectors(snapshot, database)
}

/// Every inode has an identity record that agrees with the tables, or a mark that it is to get one.
private func auditRecords(_ space: Space, _ database: Connection) throws {
    let due = try database.prepare(
        """
        SELECT ino FROM inode WHERE ino >= 16 AND ino NOT IN (SELECT ino FROM orphan)
            AND ino NOT IN (SELECT id FROM unrecorded)
            UNION SELECT (1 << 62) + block FROM retired WHERE (1 << 62) + block NOT IN (SELECT id FROM unrecorded)
        """
    ).all { $0.unsigned(0) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Space.readBufferBytes, alignment: 16)
    defer { buffer.deallocate() }
    try Catalogue(storage: space, readOnly: true).locked { tables in
        let tree = try Tree(tables, LibraryOptions(owner: (0, 0), mountedByRoot: true))
        for id in due {
            let run = try #require(try tables.identities.location(id), "inode \(id) has no record")
            let plain = try space.read(role: .identity, content: id, run: run, chunk: 0, into: buffer)
            var found = try #require(Recorded.decode(plain)).content
            let known = try tree.records.record(of: id)
            // A day that was renamed since tells its photos' day.
            if case .inode(var record) = found, case .inode(let now) = known, let day = now.photo?.day,
                record.photo?.day != day
            {
                record.photo?.pin(to: day)
                found = .inode(record)
            }
            #expect(found == known, "the record of inode \(id) is old")
        }
    }
}

/// Every sector in use belongs to exactly one extent, which a content and its snapshots may name by equal rows.
private func auditSectors(_ space: Space, _ database: Connection) throws {
    let query = """
        SELECT DISTINCT offset, length, sector, CASE WHEN content >= 1 << 61 THEN (content - (1 << 61)) >> 30
                ELSE content END AS source, generation, epoch FROM extent
            UNION ALL SELECT 0, length, sector, 0, 0, 0 FROM identity ORDER BY sector
        """
    let all = try database.prepare(query).all {
        ExtentRun(
            offset: $0.unsigned(0), length: $0.unsigned(1), sector: $0.unsigned(2), generation: 0, epoch: 0)
    }
    // Those of bytes that are lost have no sectors.
    let runs = all.filter { !$0.isLost }
    for (run, next) in zip(runs, runs.dropFirst()) {
        #expect(run.sector + UInt64(run.sectorCount) <= next.sector, "two extents share sectors")
    }
    let used = space.parts.lock.withLock { space.sectors.allocator.usedSectors }
    let pending = space.sectors.pendingBytes / UInt64(Geometry.sectorBytes)
    #expect(runs.reduce(0) { $0 + $1.sectorCount } == Int(used - pending), "sectors that no extent has")
    var expected = AllocationCheck(of: space).expectedUse(of: 0..<space.segments.count)
    for run in runs { expected.add(CheckedRun(content: 0, run: run)) }
    #expect(AllocationCheck(of: space).compareSectors(expected) == AllocationReport())
}
