public import FileRequests
import VaultFormat

/// Mends numbers, and the tree of directories.
extension CatalogueMender {
    // MARK: Numbers

    func mendCounters() throws(FileError) {
        try execute("DELETE FROM counter WHERE id <> 1")
        try execute("INSERT OR IGNORE INTO counter VALUES(1, 16, 16, 16, 16, 0, 0)")
        let columns = [
            ("ino", IntegrityConstraint.highestInode, IntegrityConstraint.lastBlockOfInodes),
            ("content", IntegrityConstraint.highestContent, IntegrityConstraint.lastBlockOfContents),
            ("dentry", IntegrityConstraint.highestName, "0"),
        ]
        for (column, highest, lastBlock) in columns {
            // After the whole block: only its bits tell which of its numbers were assigned.
            try execute(
                """
                UPDATE counter SET \(column) = max(16, \(highest) + 1,
                    CASE WHEN \(lastBlock) > 0 THEN \(lastBlock) + 2048 ELSE 0 END,
                    CASE WHEN \(column) BETWEEN 16 AND \(IntegrityConstraint.counterMax) THEN \(column) ELSE 16 END)
                """)
        }
        try execute("UPDATE counter SET pictured = 16 WHERE pictured NOT BETWEEN 0 AND ino")
    }

    /// Tables and columns that name inodes.
    private static let inodeColumns = [
        ("dentry", "ino"), ("dentry", "parent"), ("inode", "parent"), ("symlink", "ino"), ("xattr", "ino"),
        ("photo", "ino"), ("copy", "ino"), ("copy", "photo"), ("thumbnail", "ino"), ("trash", "ino"),
        ("trash_name", "photo"), ("trash_name", "ino"), ("trash_name", "parent"), ("orphan", "ino"),
    ]

    func mendInodeNumbers() throws(FileError) {
        for old in try numbers("SELECT ino FROM inode WHERE ino NOT BETWEEN 1 AND \(ConstraintSQL.numberMax)")
        {
            let new = try next("ino")
            try execute("UPDATE inode SET ino = ?2 WHERE ino = ?1", [.number(old), .number(new)])
            for (table, column) in Self.inodeColumns {
                try execute(
                    "UPDATE OR REPLACE \(table) SET \(column) = ?2 WHERE \(column) = ?1",
                    [.number(old), .number(new)])
            }
            try markRecord(new)
        }
    }

    /// Without a valid content number, the location of a file's bytes is unknown.
    func mendContentNumbers() throws(FileError) {
        try loseContents(of: "NOT \(ConstraintSQL.isContent)")
    }

    /// For files whose content has a thumbnail's bytes: gives each another content, with all bytes lost.
    public func separate(content: UInt64) throws(FileError) {
        try loseContents(of: "content = \(Int64(bitPattern: content))")
    }

    private func loseContents(of condition: String) throws(FileError) {
        let rows = try all(
            """
            SELECT ino, CASE WHEN size BETWEEN 0 AND \(Geometry.fileBytesMax) THEN size ELSE 1 END FROM inode
                WHERE \(ConstraintSQL.isFile) AND \(condition)
            """
        ) { ($0.integer(0), $0.unsigned(1)) }
        for (ino, size) in rows {
            try markRecord(ino)
            let content = try next("content")
            try execute("UPDATE inode SET content = ?2 WHERE ino = ?1", [.number(ino), .number(content)])
            for run in ExtentRun.lost(0..<min(size, Geometry.lostBytesMax)) {
                try tables.extents.insert(run, of: UInt64(content))
            }
        }
    }

    func mendNameNumbers() throws(FileError) {
        for entry in try entries(where: "id NOT BETWEEN 16 AND \(ConstraintSQL.numberMax)") {
            let id = try next("dentry")
            try execute(
                "UPDATE dentry SET id = ?3 WHERE parent = ?1 AND id = ?2",
                [.number(entry.parent), .number(entry.id), .number(id)])
            try execute(
                "UPDATE OR REPLACE trash SET id = ?3 WHERE ino = ?1 AND id = ?2",
                [.number(entry.ino), .number(entry.id), .number(id)])
        }
    }

    // MARK: Directories

    func mendWellKnownDirectories() throws(FileError) {
        for ino in [Self.root, Self.moments, Self.albums] {
            // With the owner of the others.
            try execute(
                """
                INSERT OR IGNORE INTO inode(\(Self.filledColumns))
                SELECT ?1, 16877, coalesce(max(uid), 0), coalesce(max(gid), 0), 0, 2, 0, 0,
                    0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 FROM inode WHERE ino < 4 AND \(ConstraintSQL.isDirectory)
                """, [.number(ino)])
            try execute(
                """
                UPDATE inode SET mode = 16877, content = 0, allocated = 0, nlink = 2
                    WHERE ino = ?1 AND NOT \(ConstraintSQL.isDirectory)
                """, [.number(ino)])
            try execute("UPDATE inode SET parent = 1, day = 0 WHERE ino = ?1", [.number(ino)])
        }
        try execute("DELETE FROM dentry WHERE ino IN (1, 2, 3)")
        for (ino, name) in [(Self.moments, "moments"), (Self.albums, "albums")] {
            let name = Array(name.utf8)
            for other in try entries(where: "parent = 1 AND name = ?1", [.bytes(name)]) {
                try move(other, to: try recoveredDirectory())
            }
            try addName(name, of: ino, in: Self.root)
        }
    }

    /// A directory keeps one name: the oldest in its `parent` directory, else the oldest of all.
    func mendDirectories() throws(FileError) {
        try execute("DELETE FROM dentry WHERE ino = 1")
        let several = try numbers(
            """
            SELECT inode.ino FROM inode CROSS JOIN dentry ON dentry.ino = inode.ino
                WHERE inode.\(ConstraintSQL.isDirectory) GROUP BY inode.ino HAVING count(*) > 1
            """)
        for ino in several {
            try execute(
                """
                DELETE FROM dentry WHERE ino = ?1 AND (parent, id) <> (SELECT dentry.parent, dentry.id FROM dentry
                    JOIN inode ON inode.ino = dentry.ino WHERE dentry.ino = ?1
                    ORDER BY dentry.parent <> inode.parent, dentry.id LIMIT 1)
                """, [.number(ino)])
        }
    }

    func mendStrayNames() throws(FileError) {
        let directories = "(SELECT ino FROM inode WHERE \(ConstraintSQL.isDirectory))"
        // Besides moments and albums the root has only directories: each user's trash.
        let stray = try entries(
            where: "parent NOT IN \(directories) OR parent = 1 AND ino NOT IN \(directories)")
        for entry in stray { try move(entry, to: try recoveredDirectory()) }
    }

    /// Photos get a place in their days; see `mendMoments`.
    func mendNameless() throws(FileError) {
        let nameless = """
            ino > 4 AND ino NOT IN (SELECT ino FROM dentry) AND ino NOT IN (SELECT ino FROM orphan)
            AND ino NOT IN (SELECT ino FROM trash_name)
            """
        try execute(
            "DELETE FROM trash WHERE id = 0 AND ino IN (SELECT ino FROM inode WHERE \(nameless))")
        let lost = try numbers(
            "SELECT ino FROM inode WHERE \(nameless) AND ino NOT IN (SELECT ino FROM photo)")
        for ino in lost {
            try addName(Array("\(ino)".utf8), of: ino, in: try recoveredDirectory())
        }
    }

    /// Breaks cycles of directories: moves one of them out, and the rest follows.
    func mendUnreachable() throws(FileError) {
        let query = "SELECT ino FROM (\(IntegrityConstraint.unreachable)) ORDER BY ino LIMIT 1"
        var last: Int64 = 0
        while let ino = try numbers(query).first, ino != last {
            last = ino
            let names = try entries(where: "ino = ?1", [.number(ino)])
            guard let first = names.first else { return }
            for entry in names.dropFirst() {
                try execute(
                    "DELETE FROM dentry WHERE parent = ?1 AND id = ?2",
                    [.number(entry.parent), .number(entry.id)])
            }
            try move(first, to: try recoveredDirectory())
        }
    }

    // MARK: Days

    func mendDays() throws(FileError) {
        // A directory in moments has the day of its name; any other has none.
        let name = "CAST(dentry.name AS TEXT)"
        try execute(
            """
            UPDATE inode SET day = coalesce((SELECT CAST(replace(\(name), '-', '') AS INTEGER) FROM dentry
                WHERE dentry.ino = inode.ino AND dentry.parent = 2 AND length(dentry.name) = 10
                AND \(ConstraintSQL.isDate(name)) AND \(name) >= '0001-01-01'), 0)
                WHERE \(ConstraintSQL.isDirectory) AND ino > 3
                AND (day <> 0 OR ino IN (SELECT ino FROM dentry WHERE parent = 2))
            """)
        let days = "(SELECT ino FROM inode WHERE day <> 0 AND \(ConstraintSQL.isDirectory))"
        let strangers = try entries(where: "parent = 2 AND ino NOT IN \(days)")
        for entry in strangers {
            try execute("UPDATE inode SET day = 0 WHERE ino = ?1", [.number(entry.ino)])
            try move(entry, to: try recoveredDirectory())
        }
    }

    /// A photo gets the day that it is in; a photo in no day gets a name in its own.
    func mendMoments() throws(FileError) {
        let photos = try all(
            """
            SELECT ino, day FROM photo AS p WHERE 1 <> (SELECT count(*) FROM dentry
                JOIN inode AS d ON d.ino = dentry.parent WHERE dentry.ino = p.ino AND d.day = p.day)
                AND ino NOT IN (SELECT ino FROM orphan) AND ino NOT IN (SELECT ino FROM trash WHERE id = 0)
            """
        ) { ($0.integer(0), $0.integer(1)) }
        for (ino, day) in photos {
            let days = try numbers(
                """
                SELECT d.day FROM dentry JOIN inode AS d ON d.ino = dentry.parent
                    WHERE dentry.ino = ?1 AND d.day <> 0 ORDER BY d.day <> ?2, dentry.id
                """, [.number(ino), .number(day)])
            if let standing = days.first {
                try execute(
                    "UPDATE photo SET pinned = 1, day = ?2 WHERE ino = ?1 AND day <> ?2",
                    [.number(ino), .number(standing)])
                try keepOneMoment(of: ino, day: standing)
            } else {
                let name = try entries(where: "ino = ?1", [.number(ino)]).first?.name
                try addName(name ?? Array("\(ino)".utf8), of: ino, in: try directory(ofDay: day))
            }
        }
    }

    /// Keeps the oldest of several names in one day.
    private func keepOneMoment(of ino: Int64, day: Int64) throws(FileError) {
        let names = try entries(
            where: "ino = ?1 AND parent IN (SELECT ino FROM inode WHERE day = ?2)",
            [.number(ino), .number(day)])
        for entry in names.dropFirst() {
            try execute(
                "DELETE FROM dentry WHERE parent = ?1 AND id = ?2",
                [.number(entry.parent), .number(entry.id)])
        }
    }

    private func directory(ofDay day: Int64) throws(FileError) -> Int64 {
        let known = try numbers(
            """
            SELECT inode.ino FROM dentry JOIN inode ON inode.ino = dentry.ino
                WHERE dentry.parent = 2 AND inode.day = ?1 AND inode.\(ConstraintSQL.isDirectory)
            """, [.number(day)]
        ).first
        if let known { return known }
        let name = try all("SELECT CAST(\(ConstraintSQL.dayName("?1")) AS BLOB)", [.number(day)]) {
            $0.bytes(0)
        }
        return try makeDirectory(name.first ?? [], in: Self.moments, day: day)
    }
}
