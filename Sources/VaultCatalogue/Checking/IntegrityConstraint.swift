import CatalogueRows
import VaultFormat

/// A condition on the rows of the tables that holds whenever no change is in progress.
public struct IntegrityConstraint: Sendable {
    /// The kind of number that the query returns.
    public enum Subject: Sendable { case inode, content }

    /// How violations are mended, without losing anything that can be reached.
    public enum Remedy: Sendable, Equatable {
        case none
        case statements([String])
        /// By `CatalogueMender`, where statements cannot.
        case mender(Step)
        /// By a repair that can read the extents' bytes.
        case extents

        /// Steps of `CatalogueMender`.
        public enum Step: Sendable, Equatable {
            case counters, wellKnownDirectories, inodeNumbers, contentNumbers, nameNumbers
            case names, takenNames, attributeNames
            case directories, strayNames, nameless, unreachable, days, moments, versions, viewNames
        }
    }

    /// Describes a violation; printed after a path and a colon.
    public let violation: String
    public let subject: Subject
    let remedy: Remedy
    /// Finds violations.
    let query: String

    init(
        _ violation: String, _ subject: Subject = .inode, _ remedy: Remedy = .none, query: String
    ) {
        self.violation = violation
        self.subject = subject
        self.query = query
        self.remedy = remedy
    }

    init(_ violation: String, _ subject: Subject = .inode, mending: [String], query: String) {
        self.init(violation, subject, .statements(mending), query: query)
    }

    /// Whether violations can be mended.
    public var isMendable: Bool { remedy != .none }
}

/// Parts of the constraints' statements.
enum ConstraintSQL {
    static let isDirectory = "mode & 61440 = 16384"
    static let isFile = "mode & 61440 = 32768"
    static let isLink = "mode & 61440 = 40960"
    static let numberMax = Geometry.idMax
    /// Whether the column `content` of a file is a number of a content, or the id of a snapshot.
    static let isContent =
        "(content BETWEEN 1 AND \(numberMax) OR content BETWEEN \(SnapshotID.all.lowerBound + 1 << 30) "
        + "AND \(SnapshotID.all.upperBound))"
    /// Whether a column is a valid entry name; the same as `isEntryName`.
    static func isName(_ column: String) -> String {
        "(length(\(column)) BETWEEN 1 AND 255 AND instr(\(column), x'00') = 0 AND instr(\(column), x'2f') = 0 "
            + "AND \(column) NOT IN (x'2e', x'2e2e'))"
    }
    /// The name of a day's directory.
    static func dayName(_ column: String) -> String {
        "printf('%04d-%02d-%02d', \(column) / 10000, \(column) / 100 % 100, \(column) % 100)"
    }
    /// Whether a column is the number of a real date.
    static func isDay(_ column: String) -> String {
        "(\(column) BETWEEN 10101 AND 99991231 AND \(isDate(dayName(column))))"
    }
    /// Whether a text is a real date. Only with a modifier does SQLite turn the 31st of February into another date.
    static func isDate(_ text: String) -> String {
        "coalesce(strftime('%Y-%m-%d', \(text), '+0 days'), '') = \(text)"
    }
    /// Plaintext bytes in the extents of an inode. Each run counts at most 1 << 40 bytes, which none has, so that the
    /// sum cannot overflow: rows are untrusted, because anyone who knows the password can write them.
    static let storedBytes =
        "(SELECT coalesce(sum(min(max(length, 0), 1 << 40)), 0) FROM extent WHERE extent.content = inode.content)"
    /// The end of an inode's stored bytes.
    static let storedEnd =
        "(SELECT coalesce(max(offset + length), 0) FROM extent WHERE extent.content = inode.content "
        + "AND offset BETWEEN 0 AND 1 << 60 AND length BETWEEN 1 AND 1 << 40)"
    /// Links of a directory. Empty days that were not made by mkdir are not listed, and do not count.
    static let directoryLinks = """
        2 + (SELECT count(*) FROM dentry JOIN inode AS c ON c.ino = dentry.ino WHERE dentry.parent = inode.ino
            AND c.\(isDirectory) AND NOT (c.day <> 0 AND c.size = 0 AND c.flags & 1 = 0))
        """
    static let links = "(SELECT count(*) FROM dentry WHERE dentry.ino = inode.ino)"
}

extension IntegrityConstraint {
    /// All constraints. A constraint on a count comes after those whose mending changes the count.
    public static let all: [IntegrityConstraint] =
        values + names + directories + versions + details + extents + photos + counts + totals

    // MARK: Names

    private static let names = [
        IntegrityConstraint(
            "directory entry for a missing inode",
            mending: ["DELETE FROM dentry WHERE ino NOT IN (SELECT ino FROM inode)"],
            query: "SELECT ino FROM dentry WHERE ino NOT IN (SELECT ino FROM inode)"),
        IntegrityConstraint(
            "invalid file name", .inode, .mender(.names),
            query: "SELECT ino FROM dentry WHERE NOT \(ConstraintSQL.isName("name"))"),
        IntegrityConstraint(
            "invalid original name in the trash", .inode,
            .mender(.takenNames),
            query: """
                SELECT ino FROM trash WHERE id = 0 AND NOT \(ConstraintSQL.isName("name"))
                    UNION SELECT photo FROM trash_name WHERE NOT \(ConstraintSQL.isName("name"))
                """),
        formerNames,
    ]

    static let formerNames = IntegrityConstraint(
        "invalid former name",
        mending: ["UPDATE photo SET former = NULL WHERE NOT \(ConstraintSQL.isName("former"))"],
        query: "SELECT ino FROM photo WHERE NOT \(ConstraintSQL.isName("former"))")

    // MARK: Directories

    private static let directoryEntries = """
        SELECT dentry.parent, dentry.id, dentry.name, inode.ino, inode.day, inode.parent AS above
            FROM inode CROSS JOIN dentry ON dentry.ino = inode.ino WHERE inode.\(ConstraintSQL.isDirectory)
        """

    private static let directories = [
        IntegrityConstraint(
            "directory entry with an invalid parent", .inode, .mender(.strayNames),
            query: """
                SELECT ino FROM dentry
                    WHERE parent NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isDirectory))
                    OR parent = 1 AND ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isDirectory))
                """),
        IntegrityConstraint(
            "a directory has several names", .inode, .mender(.directories),
            query: "SELECT ino FROM (\(directoryEntries)) GROUP BY ino HAVING count(*) > 1 OR ino = 1"),
        IntegrityConstraint(
            "inode without a directory entry", .inode, .mender(.nameless),
            query: """
                SELECT ino FROM inode WHERE ino NOT IN (1, 4) AND ino NOT IN (SELECT ino FROM dentry)
                    AND ino NOT IN (SELECT ino FROM orphan) AND ino NOT IN (SELECT ino FROM trash_name)
                """),
        IntegrityConstraint(
            "not reachable from the root", .inode, .mender(.unreachable), query: unreachable),
        IntegrityConstraint(
            "parent does not match the directory entry",
            mending: [
                """
                UPDATE inode SET parent = coalesce((SELECT parent FROM dentry WHERE dentry.ino = inode.ino), 1)
                    WHERE \(ConstraintSQL.isDirectory) AND (ino IN (1, 4) OR ino IN (SELECT ino FROM dentry))
                    AND parent <> coalesce((SELECT parent FROM dentry WHERE dentry.ino = inode.ino), 1)
                """
            ],
            query: """
                SELECT ino FROM (\(directoryEntries)) WHERE above <> parent
                    UNION SELECT ino FROM inode WHERE ino IN (1, 4) AND parent <> 1
                """),
        IntegrityConstraint(
            "misplaced or misnamed day directory", .inode, .mender(.days),
            query: """
                SELECT ino FROM (\(directoryEntries)) WHERE CASE WHEN parent <> 2 THEN day <> 0
                    ELSE NOT \(ConstraintSQL.isDay("day")) OR name <> CAST(\(ConstraintSQL.dayName("day")) AS BLOB) END
                    UNION SELECT dentry.ino FROM dentry JOIN inode USING(ino)
                        WHERE dentry.parent = 2 AND NOT \(ConstraintSQL.isDirectory)
                """),
    ]

    /// Directories that are not below the root.
    static let unreachable = """
        WITH RECURSIVE entry(parent, ino) AS MATERIALIZED (SELECT parent, ino FROM (\(directoryEntries))),
            reached(ino) AS (SELECT 1 UNION SELECT 4
                UNION SELECT entry.ino FROM reached JOIN entry ON entry.parent = reached.ino)
            SELECT ino FROM entry WHERE ino NOT IN (SELECT ino FROM reached)
        """

    // MARK: Details of inodes

    /// Numbers that may have records: inodes, and blocks of retired numbers.
    private static let recorded = "SELECT ino FROM inode UNION ALL SELECT (1 << 62) + block FROM retired"
    /// Inodes that have no record and no mark to get one.
    private static let unrecorded = """
        SELECT ino FROM inode WHERE ino >= 16 AND ino NOT IN (SELECT ino FROM orphan)
            AND ino NOT IN (SELECT id FROM unrecorded) AND ino NOT IN (SELECT id FROM identity)
        """

    private static let details = [
        IntegrityConstraint(
            "extended attribute of a missing inode",
            mending: ["DELETE FROM xattr WHERE ino NOT IN (SELECT ino FROM inode)"],
            query: "SELECT ino FROM xattr WHERE ino NOT IN (SELECT ino FROM inode)"),
        IntegrityConstraint(
            "inode not marked as having extended attributes",
            mending: [
                "UPDATE inode SET flags = flags | 8 WHERE flags & 8 = 0 AND ino IN (SELECT ino FROM xattr)"
            ],
            query: "SELECT ino FROM inode WHERE flags & 8 = 0 AND ino IN (SELECT ino FROM xattr)"),
        IntegrityConstraint(
            "identity record of a missing inode",
            mending: [
                "DELETE FROM identity WHERE id NOT IN (\(recorded))",
                "DELETE FROM unrecorded WHERE id NOT IN (\(recorded))",
            ],
            query: """
                SELECT id FROM identity WHERE id NOT IN (\(recorded))
                    UNION SELECT id FROM unrecorded WHERE id NOT IN (\(recorded))
                """),
        IntegrityConstraint(
            "it has no identity record", mending: ["INSERT INTO unrecorded \(unrecorded)"], query: unrecorded),
        IntegrityConstraint(
            "has a link target, but is not a symbolic link",
            mending: [
                "DELETE FROM symlink WHERE ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isLink))"
            ],
            query: """
                SELECT ino FROM symlink WHERE ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isLink))
                """),
        IntegrityConstraint(
            "symbolic link without a target",
            query: """
                SELECT ino FROM inode WHERE \(ConstraintSQL.isLink) AND ino NOT IN (SELECT ino FROM symlink)
                """),
        IntegrityConstraint(
            "on the orphan list, but has a name",
            mending: ["DELETE FROM orphan WHERE ino IN (SELECT ino FROM dentry)"],
            query: "SELECT ino FROM orphan WHERE ino IN (SELECT ino FROM dentry)"),
        IntegrityConstraint(
            "missing inode on the orphan list",
            mending: ["DELETE FROM orphan WHERE ino NOT IN (SELECT ino FROM inode)"],
            query: "SELECT ino FROM orphan WHERE ino NOT IN (SELECT ino FROM inode)"),
    ]

    // MARK: Extents

    private static let extents = [
        IntegrityConstraint("invalid extent", .content, .extents, query: impossibleExtents),
        IntegrityConstraint("its extents overlap", .content, .extents, query: overlappingExtents),
        IntegrityConstraint(
            "some of its bytes have no extent", .content, .extents, query: missingExtents),
        IntegrityConstraint(
            "an extent belongs to no file", .content, .extents, query: unowned),
        IntegrityConstraint(
            "two extents of a photo and its version cannot be told apart", .content, query: ambiguous),
        sizes,
        IntegrityConstraint(
            "extent past the file's end",
            mending: [
                """
                UPDATE inode SET size = \(ConstraintSQL.storedEnd) WHERE \(ConstraintSQL.isFile)
                    AND size < \(ConstraintSQL.storedEnd)
                """
            ],
            query: "SELECT ino FROM inode WHERE \(ConstraintSQL.isFile) AND size < \(ConstraintSQL.storedEnd)"
        ),
    ]

    static let sizes = IntegrityConstraint(
        "invalid size",
        mending: [
            """
            UPDATE inode SET size = \(ConstraintSQL.storedEnd) WHERE \(ConstraintSQL.isFile) AND NOT \(isSize)
            """,
            """
            UPDATE inode SET size = coalesce((SELECT length(target) FROM symlink WHERE symlink.ino = inode.ino), 0)
                WHERE NOT \(ConstraintSQL.isFile) AND NOT \(ConstraintSQL.isDirectory) AND NOT \(isSize)
            """,
        ],
        query: "SELECT ino FROM inode WHERE NOT \(ConstraintSQL.isDirectory) AND NOT \(isSize)")

    private static let isSize = "size BETWEEN 0 AND 1 << 60"
    static let impossibleExtents = """
        SELECT DISTINCT content FROM extent WHERE NOT (offset BETWEEN 0 AND 1 << 60
            AND length BETWEEN 1 AND 1 << 40 AND sector BETWEEN 0 AND (1 << 62) - 1)
        """
    static let overlappingExtents = """
        SELECT DISTINCT content FROM (SELECT content, offset + length AS end,
            lead(offset) OVER (PARTITION BY content ORDER BY offset) AS next FROM extent) WHERE end > next
        """
    /// Contents of files with fewer bytes in extents within the file than `allocated` counts, or with a negative count.
    static let missingExtents = """
        SELECT DISTINCT content FROM inode WHERE \(ConstraintSQL.isFile) AND size BETWEEN 0 AND 1 << 60
            AND NOT (allocated BETWEEN 0 AND (SELECT coalesce(sum(min(length, inode.size - offset)), 0) FROM extent
                WHERE extent.content = inode.content AND offset BETWEEN 0 AND inode.size - 1 AND length > 0))
        """
    /// Snapshots one of whose extents could be taken for another of its source: same bytes, generation and epoch, but
    /// not the same sectors. Of two runs that have bytes in common one begins within the other. A rebuilding may have
    /// to keep both of two extents that one commit wrote in one place: no record tells which of them counts.
    private static let ambiguous = """
        SELECT DISTINCT s.content FROM extent AS s CROSS JOIN extent AS e
            ON e.content = (s.content - (1 << 61)) >> 30
                AND e.offset BETWEEN s.offset AND s.offset + s.length - 1
            WHERE s.content BETWEEN \(SnapshotID.all.lowerBound) AND \(SnapshotID.all.upperBound) AND \(isTwin)
        UNION SELECT DISTINCT s.content FROM extent AS s CROSS JOIN extent AS e
            ON e.content = (s.content - (1 << 61)) >> 30 AND e.offset = (SELECT max(offset) FROM extent AS o
                WHERE o.content = e.content AND o.offset < s.offset)
            WHERE s.content BETWEEN \(SnapshotID.all.lowerBound) AND \(SnapshotID.all.upperBound)
                AND e.offset + e.length > s.offset AND \(isTwin)
        """
    private static let isTwin = """
        s.generation = e.generation AND s.epoch = e.epoch AND s.sector < 1 << 61 AND e.sector < 1 << 61
            AND s.sector - e.sector <> (s.offset - e.offset) / 131072 * 257
            AND NOT EXISTS (SELECT 1 FROM inode WHERE content IN (s.content, e.content)
                AND flags & \(InodeFlags.foundWithoutRecord.rawValue))
        """
    static let unowned = """
        SELECT DISTINCT content FROM extent
            WHERE content NOT IN (SELECT content FROM inode UNION SELECT content FROM thumbnail)
        """
}
