import CatalogueRows
import VaultFormat

/// Ranges of numbers and texts that the readers of rows accept (`InodeRow.init` and so on). A row with any other value
/// cannot be read, nor can a directory that lists it.
extension IntegrityConstraint {
    /// A column, its valid range, and the replacement for any other value.
    private struct Column {
        var name: String
        var low: Int64 = 0
        var high: Int64
        var repaired = "0"

        var isValid: String { "\(name) BETWEEN \(low) AND \(high)" }
    }

    private static let countMax: Int64 = 1 << 62 - 1
    private static let timeMax: Int64 = 1 << 61
    private static let nanosecondsMax: Int64 = 999_999_999

    /// Nothing can be recovered without these.
    public static let foundations = [counters, wellKnownDirectories]

    static let values = foundations + ofInodes + ofNames + ofPhotos + ofTrash + ofRecords + ofDetails

    private static func areValid(_ columns: [Column]) -> String {
        columns.map(\.isValid).joined(separator: " AND ")
    }

    /// A constraint that replaces invalid values of each column.
    private static func bounded(_ table: String, key: String = "ino", _ columns: [Column])
        -> IntegrityConstraint
    {
        IntegrityConstraint(
            "a number in the table \(table) is out of range",
            mending: columns.map {
                "UPDATE \(table) SET \($0.name) = \($0.repaired) WHERE NOT (\($0.isValid))"
            },
            query: "SELECT \(key) FROM \(table) WHERE NOT (\(areValid(columns)))")
    }

    /// A constraint that deletes invalid rows, which hold nothing to lose.
    private static func deleting(
        _ table: String, key: String = "ino", unless condition: String, before statements: [String] = []
    ) -> IntegrityConstraint {
        IntegrityConstraint(
            "invalid row in the table \(table)",
            mending: statements + ["DELETE FROM \(table) WHERE NOT (\(condition))"],
            query: "SELECT \(key) FROM \(table) WHERE NOT (\(condition))")
    }

    // MARK: Counters and root directories

    /// The highest valid number in use; invalid ones are replaced.
    static func highest(_ columns: [(table: String, column: String)]) -> String {
        let parts = columns.map { table, column in
            "SELECT max(\(column)) AS number FROM \(table) WHERE \(column) <= \(ConstraintSQL.numberMax)"
        }
        return "(SELECT coalesce(max(number), 0) FROM (\(parts.joined(separator: " UNION ALL "))))"
    }

    static let highestInode = highest([
        ("inode", "ino"), ("dentry", "ino"), ("photo", "ino"), ("copy", "ino"),
    ])
    static let highestContent = highest([
        ("inode", "content"), ("extent", "content"), ("thumbnail", "content"), ("share", "content"),
    ])
    /// The highest number of a snapshot, which was taken from those of contents.
    static let highestSnapshot =
        "(SELECT coalesce(max(content & \(SnapshotID.numberMax)), 0) FROM inode "
        + "WHERE content BETWEEN \(SnapshotID.all.lowerBound) AND \(SnapshotID.all.upperBound))"
    static let highestName = highest([("dentry", "id"), ("trash", "id"), ("trash_name", "id")])
    /// The first number of the last block of retired numbers: that one was assigned too.
    static let lastBlockOfInodes =
        "(SELECT coalesce(max(block), 0) * 2048 FROM retired WHERE \(isBlockOfInodes))"
    static let lastBlockOfContents =
        "(SELECT (coalesce(max(block), 1 << 40) - (1 << 40)) * 2048 FROM retired WHERE \(isBlockOfContents))"
    /// Blocks after which there are still numbers to assign.
    private static let isBlockOfInodes = "block BETWEEN 0 AND \((Geometry.idMax + 1) / 2048 - 2)"
    private static let isBlockOfContents =
        "block BETWEEN 1 << 40 AND (1 << 40) + \((Geometry.idMax + 1) / 2048 - 2)"
    static let counterMax: Int64 = 1 << 50 + 1 << 32

    private static let counters = IntegrityConstraint(
        "invalid counters: numbers in use would be allocated again", .inode, .mender(.counters),
        query: """
            SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM counter WHERE id = 1
                AND ino BETWEEN 16 AND \(counterMax) AND content BETWEEN 16 AND \(counterMax)
                AND dentry BETWEEN 16 AND \(counterMax) AND pictured BETWEEN 0 AND \(countMax)
                AND ino > \(highestInode) AND ino > \(lastBlockOfInodes)
                AND content > \(highestContent) AND content > \(lastBlockOfContents)
                AND content > \(highestSnapshot)
                AND dentry > \(highestName)) OR 1 <> (SELECT count(*) FROM counter)
            """)

    /// The root, `moments` and `albums`.
    private static let wellKnownDirectories = IntegrityConstraint(
        "required directory is missing or invalid", .inode, .mender(.wellKnownDirectories),
        query: """
            SELECT place.column1 FROM (VALUES (1, x''), (2, x'6d6f6d656e7473'), (3, x'616c62756d73')) AS place
                WHERE place.column1 NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isDirectory) AND day = 0)
                    OR place.column1 > 1 AND NOT EXISTS (SELECT 1 FROM dentry
                        WHERE parent = 1 AND name = place.column2 AND ino = place.column1)
            """)

    // MARK: Tables

    private static let ofInodes = [
        IntegrityConstraint(
            "its inode number is out of range", .inode, .mender(.inodeNumbers),
            query: "SELECT ino FROM inode WHERE ino NOT BETWEEN 1 AND \(ConstraintSQL.numberMax)"),
        IntegrityConstraint(
            "invalid file type",
            mending: [
                // Other tables and columns tell the type.
                """
                UPDATE inode SET mode = CASE WHEN ino IN (SELECT ino FROM symlink) THEN 41471
                    WHEN content > 0 OR ino IN (SELECT ino FROM photo) THEN 33188 ELSE 16877 END
                    WHERE NOT \(isType)
                """
            ], query: "SELECT ino FROM inode WHERE NOT \(isType)"),
        IntegrityConstraint(
            "not a directory, but has entries",
            mending: ["UPDATE inode SET mode = 16384 | (mode & 511) WHERE \(isLikeDirectory)"],
            query: "SELECT ino FROM inode WHERE \(isLikeDirectory)"),
        IntegrityConstraint(
            "its content number is out of range", .inode, .mender(.contentNumbers),
            query: """
                SELECT ino FROM inode WHERE \(ConstraintSQL.isFile) AND NOT \(ConstraintSQL.isContent)
                """),
        IntegrityConstraint(
            "not a directory, but has a day",
            mending: ["UPDATE inode SET day = 0 WHERE NOT \(ConstraintSQL.isDirectory) AND day <> 0"],
            query: "SELECT ino FROM inode WHERE NOT \(ConstraintSQL.isDirectory) AND day <> 0"),
        IntegrityConstraint(
            "not a regular file, but has content",
            mending: [
                "UPDATE inode SET content = 0, allocated = 0 WHERE NOT \(ConstraintSQL.isFile) AND \(hasContent)"
            ], query: "SELECT ino FROM inode WHERE NOT \(ConstraintSQL.isFile) AND \(hasContent)"),
        bounded(
            "inode",
            [
                Column(
                    name: "nlink", high: 1 << 31 - 1,
                    repaired:
                        "CASE WHEN \(ConstraintSQL.isDirectory) THEN \(ConstraintSQL.directoryLinks) "
                        + "ELSE \(ConstraintSQL.links) END"
                ),
                Column(name: "allocated", high: countMax),
                Column(name: "content", high: countMax),
                Column(name: "version", high: countMax, repaired: "1"),
                Column(name: "parent", high: countMax, repaired: "1"),
                Column(name: "day", high: 9999_12_31),
                Column(name: "atime_ns", high: nanosecondsMax),
                Column(name: "mtime_ns", high: nanosecondsMax),
                Column(name: "ctime_ns", high: nanosecondsMax),
            ]),
        IntegrityConstraint(
            "its count of entries is out of range",
            mending: ["UPDATE inode SET size = 0 WHERE \(ConstraintSQL.isDirectory) AND size < 0"],
            query: "SELECT ino FROM inode WHERE \(ConstraintSQL.isDirectory) AND size < 0"),
    ]

    /// Every file has a content, and every link a target.
    private static let isLikeDirectory =
        "NOT \(ConstraintSQL.isDirectory) AND content = 0 AND ino NOT IN (SELECT ino FROM symlink) "
        + "AND ino IN (SELECT parent FROM dentry)"
    private static let hasContent = "(content <> 0 OR allocated <> 0)"
    private static let isType =
        "(mode BETWEEN 0 AND 65535 AND mode & 61440 IN (4096, 8192, 16384, 24576, 32768, 40960, 49152))"

    private static let ofNames = [
        IntegrityConstraint(
            "the number of its directory entry is out of range", .inode, .mender(.nameNumbers),
            query: "SELECT ino FROM dentry WHERE id NOT BETWEEN 16 AND \(ConstraintSQL.numberMax)"),
        deleting(
            "trash_name", key: "photo",
            unless: areValid(["photo", "id", "parent", "ino"].map { Column(name: $0, high: countMax) })),
    ]

    private static let ofPhotos = [
        bounded(
            "photo",
            [
                Column(name: "captured", low: -timeMax, high: timeMax),
                Column(name: "captured_ns", high: nanosecondsMax),
                Column(name: "width", high: 1 << 32),
                Column(name: "height", high: 1 << 32),
                Column(name: "orientation", low: 1, high: 8, repaired: "1"),
                Column(name: "kind", high: PhotoRow.kinds.upperBound),
                Column(name: "rating", high: PhotoRow.ratings.upperBound),
                Column(name: "arrived", high: countMax, repaired: "ino"),
            ]),
        IntegrityConstraint(
            "identifier of a Live Photo or burst is too long",
            mending: [
                "UPDATE photo SET group_id = NULL WHERE length(group_id) > \(PhotoRow.groupBytesMax)"
            ],
            query: "SELECT ino FROM photo WHERE length(group_id) > \(PhotoRow.groupBytesMax)"),
        IntegrityConstraint(
            "invalid name of a camera",
            mending: ["UPDATE photo SET camera = NULL WHERE NOT \(ConstraintSQL.isName("camera"))"],
            query: "SELECT ino FROM photo WHERE NOT \(ConstraintSQL.isName("camera"))"),
        IntegrityConstraint(
            "invalid date source",
            mending: ["UPDATE photo SET source = x'' WHERE length(source) > 255"],
            query: "SELECT ino FROM photo WHERE length(source) > 255"),
        IntegrityConstraint(
            "its day is not a valid date",
            mending: [
                """
                UPDATE photo SET day = coalesce((SELECT d.day FROM dentry JOIN inode AS d ON d.ino = dentry.parent
                    WHERE dentry.ino = photo.ino AND \(ConstraintSQL.isDay("d.day"))),
                    CAST(strftime('%Y%m%d', captured, 'unixepoch') AS INTEGER), 19700101)
                    WHERE NOT \(ConstraintSQL.isDay("day"))
                """,
                "UPDATE photo SET day = 19700101 WHERE NOT \(ConstraintSQL.isDay("day"))",
            ], query: "SELECT ino FROM photo WHERE NOT \(ConstraintSQL.isDay("day"))"),
        deleting(
            "copy",
            unless: areValid([Column(name: "photo", high: countMax)])),
        deleting(
            "thumbnail", unless: isThumbnail,
            before: [
                """
                DELETE FROM extent WHERE content IN (SELECT content FROM thumbnail WHERE NOT (\(isThumbnail)))
                    AND content NOT IN (SELECT content FROM inode)
                    AND content NOT IN (SELECT content FROM thumbnail WHERE \(isThumbnail))
                """
            ]),
        IntegrityConstraint(
            "content shared by a file and a thumbnail", .content, .extents, query: sharedByThumbnails),
        IntegrityConstraint(
            "content shared by two thumbnails",
            mending: ["DELETE FROM thumbnail WHERE \(isDoubleThumbnail)"],
            query: "SELECT ino FROM thumbnail WHERE \(isDoubleThumbnail)"),
    ]

    static let sharedByThumbnails =
        "SELECT DISTINCT content FROM thumbnail WHERE content <> 0 AND content IN (SELECT content FROM inode)"

    private static let isThumbnail = areValid([
        Column(name: "width", low: 1, high: 1 << 16), Column(name: "height", low: 1, high: 1 << 16),
        Column(name: "content", high: Int64(ConstraintSQL.numberMax)),
        Column(name: "length", low: -1, high: 1 << 30),
        Column(name: "version", high: countMax),
    ])
    private static let isDoubleThumbnail =
        "content <> 0 AND content IN (SELECT content FROM thumbnail GROUP BY content HAVING count(*) > 1)"

    private static let ofTrash = [
        bounded(
            "trash",
            [
                Column(
                    name: "since", low: -timeMax, high: timeMax,
                    repaired: "CAST(strftime('%s', 'now') AS INTEGER)"
                )
            ]),
        IntegrityConstraint(
            "the time when it was found expired is out of range",
            mending: ["UPDATE trash SET noted = NULL WHERE noted NOT BETWEEN -\(timeMax) AND \(timeMax)"],
            query: "SELECT ino FROM trash WHERE noted NOT BETWEEN -\(timeMax) AND \(timeMax)"),
        deleting(
            "trash",
            unless: areValid([Column(name: "ino", high: countMax), Column(name: "id", high: countMax)])
        ),
    ]

    private static let isLikenessBlock =
        "block BETWEEN 0 AND \(ConstraintSQL.numberMax / 64) AND length(hashes) = 512"

    private static let isPositionBlock =
        "block BETWEEN 0 AND \(ConstraintSQL.numberMax / 64) AND length(points) = 512"

    private static let ofRecords = [
        deleting(
            "identity", key: "id",
            unless: areValid([
                Column(name: "length", low: 1, high: 1 << 17), Column(name: "sector", high: 1 << 61 - 1),
                Column(name: "id", low: 1, high: .max),
            ])),
        deleting(
            "retired", key: "block",
            unless: "(\(isBlockOfInodes) OR \(isBlockOfContents)) AND length(bits) = 256"),
        IntegrityConstraint(
            "invalid row in the table likeness",
            // Whatever it was: all hashes that are missing are computed again.
            mending: [
                "DELETE FROM likeness WHERE NOT (\(isLikenessBlock))", "DELETE FROM thumbnail_pending",
                "UPDATE counter SET pictured = 16",
            ],
            query: "SELECT block FROM likeness WHERE NOT (\(isLikenessBlock))"),
        IntegrityConstraint(
            "invalid row in the table position",
            // As for hashes: all positions that are missing are read again.
            mending: [
                "DELETE FROM position WHERE NOT (\(isPositionBlock))", "DELETE FROM thumbnail_pending",
                "UPDATE counter SET pictured = 16",
            ],
            query: "SELECT block FROM position WHERE NOT (\(isPositionBlock))"),
        deleting("classification_pending", unless: areValid([Column(name: "ino", low: 1, high: countMax)])),
        deleting("unrecorded", key: "id", unless: areValid([Column(name: "id", low: 1, high: .max)])),
    ]

    private static let ofDetails = [
        IntegrityConstraint(
            "invalid symbolic link target",
            mending: [
                """
                UPDATE symlink SET target = substr(target, 1, instr(target, x'00') - 1)
                    WHERE instr(target, x'00') > 0
                """,
                "UPDATE symlink SET target = substr(target, 1, 4095) WHERE length(target) > 4095",
                "UPDATE symlink SET target = x'3f' WHERE length(target) = 0",
            ],
            query: """
                SELECT ino FROM symlink WHERE length(target) NOT BETWEEN 1 AND 4095 OR instr(target, x'00') > 0
                """),
        IntegrityConstraint(
            "invalid extended attribute name", .inode, .mender(.attributeNames),
            query: "SELECT ino FROM xattr WHERE NOT \(isAttributeName)"),
        IntegrityConstraint(
            "extended attribute value is too long",
            mending: ["UPDATE xattr SET value = substr(value, 1, 65536) WHERE length(value) > 65536"],
            query: "SELECT ino FROM xattr WHERE length(value) > 65536"),
    ]

    /// Valid names of stored attributes: `user.` and more.
    static let isAttributeName =
        "(length(name) BETWEEN 6 AND 255 AND instr(name, x'00') = 0 AND substr(name, 1, 5) = x'757365722e')"
}
