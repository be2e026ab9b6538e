import LinuxIO
import Testing
import VaultFormat

@testable import PhotoLibrary
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
    for (rule, query) in violations {
        let found = try database.prepare(query).all { $0.integer(0) }
        #expect(found == [], "\(rule)")
    }
    try auditSectors(space, database)
    try auditRecords(space, database)
}

/// Every inode has an identity record that says what the tables say, or a mark that it is to get one.
private func auditRecords(_ space: Space, _ database: Connection) throws {
    let due = try database.prepare(
        """
        SELECT ino FROM inode WHERE ino >= 16 AND ino NOT IN (SELECT ino FROM orphan)
            AND ino NOT IN (SELECT id FROM unrecorded)
            UNION SELECT (1 << 62) + block FROM dead WHERE (1 << 62) + block NOT IN (SELECT id FROM unrecorded)
        """
    ).all { $0.unsigned(0) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Space.readBufferBytes, alignment: 16)
    defer { buffer.deallocate() }
    try Catalogue(storage: space, readOnly: true).locked { tables in
        let tree = try Tree(tables, LibraryOptions(owner: (0, 0), mountedByRoot: true))
        for id in due {
            let run = try #require(try tables.identity(id), "inode \(id) has no record")
            let plain = try space.read(role: .identity, content: id, run: run, chunk: 0, into: buffer)
            var found = try #require(Recorded.decode(plain)).content
            let known = try tree.recorded(id)
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

/// Every sector in use belongs to exactly one extent.
private func auditSectors(_ space: Space, _ database: Connection) throws {
    let query =
        "SELECT offset, length, sector FROM extent UNION ALL SELECT 0, length, sector FROM identity ORDER BY sector"
    let runs = try database.prepare(query).all {
        ExtentRun(
            offset: $0.unsigned(0), length: $0.unsigned(1), sector: $0.unsigned(2), generation: 0, epoch: 0)
    }
    for (run, next) in zip(runs, runs.dropFirst()) {
        #expect(run.sector + UInt64(run.sectorCount) <= next.sector, "two extents share sectors")
    }
    let (used, pending) = space.lock.withLock { (space.sectors.usedSectors, space.pendingSectors) }
    #expect(runs.reduce(0) { $0 + $1.sectorCount } == Int(used - pending), "sectors that no extent has")
}

private let isDirectory = "mode & 61440 = 16384"

/// Queries that find what breaks a rule.
private let violations: [(rule: String, query: String)] = [
    ("a name means an inode", "SELECT ino FROM dentry WHERE ino NOT IN (SELECT ino FROM inode)"),
    ("a name lies in a directory", "SELECT parent FROM dentry WHERE parent NOT IN (SELECT ino FROM inode)"),
    (
        "a file has as many names as it says",
        """
        SELECT ino FROM inode AS i WHERE NOT \(isDirectory)
            AND nlink <> (SELECT count(*) FROM dentry WHERE dentry.ino = i.ino)
        """
    ),
    (
        "a directory has as many entries as it says",
        """
        SELECT ino FROM inode AS i WHERE \(isDirectory)
            AND size <> (SELECT count(*) FROM dentry WHERE parent = i.ino)
        """
    ),
    (
        "a directory has a link for itself and each that lies in it",
        """
        SELECT ino FROM inode AS i WHERE \(isDirectory) AND ino <> 2 AND nlink > 0
            AND nlink <> 2 + (SELECT count(*) FROM dentry JOIN inode AS c ON c.ino = dentry.ino
                WHERE dentry.parent = i.ino AND c.\(isDirectory))
        """
    ),
    (
        "what has no name is an orphan",
        """
        SELECT ino FROM inode WHERE nlink = 0
            AND ino NOT IN (SELECT ino FROM orphan) AND ino NOT IN (SELECT ino FROM trash_name)
        """
    ),
    (
        "an extent belongs to a file or a thumbnail",
        """
        SELECT content FROM extent
            WHERE content NOT IN (SELECT content FROM inode UNION SELECT content FROM thumbnail)
        """
    ),
    (
        "a file's extents hold what it says is allocated, and nothing behind its end",
        """
        SELECT ino FROM inode AS i WHERE mode & 61440 = 32768 AND (
            allocated <> (SELECT coalesce(sum(length), 0) FROM extent WHERE extent.content = i.content)
            OR size < (SELECT coalesce(max(offset + length), 0) FROM extent WHERE extent.content = i.content))
        """
    ),
    (
        "photos, and no others, have a row",
        "SELECT ino FROM inode WHERE (flags & 4 <> 0) <> (ino IN (SELECT ino FROM photo))"
    ),
    (
        "a photo stands under its day, once",
        """
        SELECT ino FROM photo AS p WHERE 1 <> (SELECT count(*) FROM dentry JOIN inode AS d
            ON d.ino = dentry.parent WHERE dentry.ino = p.ino AND d.day = p.day)
            AND ino NOT IN (SELECT ino FROM orphan) AND ino NOT IN (SELECT ino FROM trash WHERE id = 0)
        """
    ),
    (
        "a photo in the trash stands under no day",
        """
        SELECT trash.ino FROM trash JOIN dentry USING(ino) JOIN inode AS d ON d.ino = dentry.parent
            WHERE trash.id = 0 AND d.day <> 0
        """
    ),
    (
        "photos that were taken out of moments, and no others, have a row",
        """
        SELECT ino FROM inode WHERE (flags & 64 <> 0) <> (ino IN (SELECT ino FROM trash WHERE id = 0))
            UNION SELECT photo FROM trash_name WHERE photo NOT IN (SELECT ino FROM trash WHERE id = 0)
            UNION SELECT ino FROM trash WHERE id = 0 AND ino NOT IN (SELECT ino FROM photo)
        """
    ),
    (
        "copies, and no others, have a row",
        "SELECT ino FROM inode WHERE (flags & 16 <> 0) <> (ino IN (SELECT ino FROM copy))"
    ),
    (
        "a copy stands for a photo",
        """
        SELECT ino FROM copy WHERE photo NOT IN (SELECT ino FROM photo) AND ino NOT IN (SELECT ino FROM orphan)
        """
    ),
    (
        "a content has as many users as it says",
        """
        SELECT content FROM inode AS i WHERE mode & 61440 = 32768 GROUP BY content
            HAVING count(*) <> coalesce((SELECT users FROM share WHERE share.content = i.content), 1)
        """
    ),
    ("a thumbnail is of a photo", "SELECT ino FROM thumbnail WHERE ino NOT IN (SELECT ino FROM photo)"),
    (
        "an identity record is of an inode, or of a block of dead numbers",
        """
        SELECT id FROM identity WHERE id NOT IN (SELECT ino FROM inode)
            AND id NOT IN (SELECT (1 << 62) + block FROM dead)
        """
    ),
    ("an attribute is of an inode", "SELECT ino FROM xattr WHERE ino NOT IN (SELECT ino FROM inode)"),
    ("a link's target is of an inode", "SELECT ino FROM symlink WHERE ino NOT IN (SELECT ino FROM inode)"),
]
