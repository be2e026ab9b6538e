public import CatalogueRows
public import FileRequests
import VaultFormat

/// A version of a photo: its name in the directory of its photo's versions, and when its bytes were replaced.
public struct VersionRow: Sendable, Equatable {
    public var dentry: DentryRow
    /// Seconds since 1970.
    public var replaced: Int64
    public var isOriginal: Bool
}

private struct VersionStatements {
    let files: Statement
    let oldest: Statement
    let totals: Statement

    init(_ connection: Connection) {
        func directory(of column: String) -> String {
            "dentry AS d WHERE d.parent=4 AND d.name=CAST(printf('%016x', \(column)) AS BLOB)"
        }
        files = connection.prepare(
            "SELECT id, name, ino FROM dentry AS n WHERE n.parent=? AND n.id>? AND "
                + "(EXISTS(SELECT 1 FROM \(directory(of: "n.ino"))) OR EXISTS(SELECT 1 FROM copy WHERE "
                + "copy.ino=n.ino AND EXISTS(SELECT 1 FROM \(directory(of: "copy.photo"))))) ORDER BY n.id")
        let versions =
            "FROM dentry AS d CROSS JOIN dentry AS v ON v.parent=d.ino CROSS JOIN inode AS i ON i.ino=v.ino "
            + "WHERE d.parent=4 AND i.mode & 61440 = 32768"
        let isOriginal = "(v.name = x'6f726967696e616c')"
        oldest = connection.prepare(
            "SELECT v.parent, v.id, v.name, v.ino, i.ctime, \(isOriginal) \(versions) "
                + "AND (\(isOriginal), i.ctime, i.ino) > (?,?,?) ORDER BY \(isOriginal), i.ctime, i.ino LIMIT ?"
        )
        totals = connection.prepare(
            // Of the contents that name an extent, that with the lowest id counts it: a source before its snapshots.
            """
            SELECT count(*), sum(CASE WHEN i.content IN (SELECT content FROM share) THEN 0
                WHEN i.content >= \(SnapshotID.all.lowerBound) THEN (
                    SELECT coalesce(sum(min(max(e.length, 0), 1 << 40)), 0) FROM extent AS e
                    WHERE e.content = i.content AND NOT EXISTS (
                        SELECT 1 FROM extent AS o WHERE o.sector = e.sector AND o.content < e.content))
                ELSE min(max(i.allocated, 0), 1 << 40) END) \(versions)
            """)
    }
}

/// Versions of photos. Each photo that has any has a directory in the well-known directory 4, named after it.
public final class VersionTable {
    private let statements: VersionStatements

    init(_ connection: Connection) { statements = VersionStatements(connection) }

    /// The entries of a directory after a cookie that are files with versions, or copies of such, until `visit` returns
    /// false.
    public func eachFile(
        in parent: UInt64, after cookie: UInt64, _ visit: (DentryRow) -> Bool
    ) throws(FileError) {
        statements.files.bind(1, parent)
        statements.files.bind(2, cookie)
        try statements.files.each { row in
            visit(
                DentryRow(
                    parent: parent, id: row.count(0, above: cookie), name: row.name(1), ino: row.count(2)))
        }
    }

    /// The versions in the order in which they are given up, after one, at most `limit`: by their age, originals last.
    /// Walks all of them. Reads stored rows only.
    public func oldest(after last: VersionRow?, limit: Int) throws(FileError) -> [VersionRow] {
        let oldest = statements.oldest
        oldest.bind(1, last?.isOriginal == true ? 1 : 0 as Int64)
        oldest.bind(2, last?.replaced ?? Int64.min)
        oldest.bind(3, last?.dentry.ino ?? 0)
        oldest.bind(4, Int64(limit))
        return try oldest.all { row in
            VersionRow(
                dentry: DentryRow(
                    parent: row.count(0), id: row.count(1), name: row.name(2), ino: row.count(3)),
                replaced: row.integer(4), isOriginal: row.integer(5) != 0)
        }
    }

    /// The number of versions, and the plaintext bytes that are only theirs. Walks all of them. Reads stored rows only.
    public func totals() throws(FileError) -> (count: Int64, bytes: UInt64) {
        try statements.totals.one { ($0.integer(0), $0.isNull(1) ? 0 : $0.unsigned(1)) } ?? (0, 0)
    }
}
