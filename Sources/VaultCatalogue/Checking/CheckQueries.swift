import CatalogueRows
public import FileRequests

/// Queries of a check: they read whole tables. Prepared when they are needed.
public final class CheckQueries {
    private let connection: Connection
    private let runs: RunQueries

    init(_ connection: Connection, _ runs: RunQueries) {
        (self.connection, self.runs) = (connection, runs)
    }

    /// The errors of `PRAGMA integrity_check`; empty if the database is sound.
    public func integrityErrors() throws(FileError) -> [IntegrityError] {
        let lines = try connection.prepare("PRAGMA integrity_check(20)").all {
            String(decoding: $0.bytes(0), as: UTF8.self)
        }
        return lines == ["ok"] ? [] : lines.map { IntegrityError(text: $0) }
    }

    /// Inodes, or contents, that violate a constraint; at most `limit`.
    public func violations(of constraint: IntegrityConstraint, limit: Int) throws(FileError) -> [UInt64] {
        let query = connection.prepare("SELECT * FROM (\(constraint.query)) LIMIT ?")
        query.bind(1, Int64(limit))
        return try query.all { $0.unsigned(0) }
    }

    /// Counts all totals again.
    public func countTotals() throws(FileError) {
        for constraint in IntegrityConstraint.totals {
            if case .statements(let statements) = constraint.remedy {
                for statement in statements { try connection.execute(statement) }
            }
        }
    }

    /// Rebuilds all indexes from their tables.
    public func reindex(_ chooseName: CatalogueMender.NameChooser) throws(FileError) {
        let indexes = try connection.prepare(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        ).all { (String(decoding: $0.bytes(0), as: UTF8.self), String(decoding: $0.bytes(1), as: UTF8.self)) }
        // Dropped first, so that no query uses a wrong index and no row must agree with it.
        for (name, _) in indexes { try connection.execute("DROP INDEX \(name)") }
        try renameDuplicates(chooseName)
        for (_, statement) in indexes { try connection.execute(statement) }
        runs.trustsSectorIndexes = true
    }

    /// Renames all but the oldest of several entries with one name in a directory.
    private func renameDuplicates(_ chooseName: CatalogueMender.NameChooser) throws(FileError) {
        let doubles = try connection.prepare(
            """
            SELECT parent, id, name FROM (SELECT *, row_number() OVER (PARTITION BY parent, name ORDER BY id) AS n
                FROM dentry) WHERE n > 1
            """
        ).all { ($0.integer(0), $0.integer(1), $0.bytes(2)) }
        let known = connection.prepare("SELECT 1 FROM dentry WHERE parent = ? AND name = ?")
        let rename = connection.prepare("UPDATE dentry SET name = ?3 WHERE parent = ?1 AND id = ?2")
        for (parent, id, name) in doubles {
            let chosen = try chooseName(name) { name throws(FileError) in
                known.bind(1, parent)
                known.bind(2, name)
                return try known.one { _ in true } == nil
            }
            rename.bind(1, parent)
            rename.bind(2, id)
            rename.bind(3, chosen)
            try rename.run()
        }
    }

    /// Names of an inode, valid or not, the oldest first; at most `limit`.
    public func rawNames(
        of ino: UInt64, limit: Int
    ) throws(FileError) -> [(parent: UInt64, name: [UInt8])] {
        let query = connection.prepare(
            "SELECT parent, name FROM dentry WHERE ino = ? ORDER BY id LIMIT ?")
        query.bind(1, ino)
        query.bind(2, Int64(limit))
        return try query.all { ($0.unsigned(0), $0.bytes(1)) }
    }

    /// The number of regular files that have a name.
    public func fileCount() throws(FileError) -> Int {
        let query = connection.prepare(
            "SELECT count(*) FROM inode WHERE mode & 61440 = 32768 AND nlink > 0")
        return try query.one { Int($0.integer(0)) } ?? 0
    }

    /// Whether a repair has missed records: it has marked files that it made without their newest ones, or the root.
    public func hasMissedRecords() throws(FileError) -> Bool {
        let query = connection.prepare("SELECT 1 FROM inode WHERE flags & ? LIMIT 1")
        query.bind(1, InodeFlags.guesses.rawValue)
        return try query.one { _ in true } ?? false
    }
}

/// A line of `PRAGMA integrity_check`.
public struct IntegrityError: Sendable {
    public let text: String

    /// Whether an index disagrees with its table, which is sound.
    public var isOfIndex: Bool {
        text.contains("missing from index") || text.contains("# of entries in index")
            || text.contains("non-unique entry in index")
    }
}
