import CatalogueRows

private let photoBytes =
    "SELECT coalesce(sum(min(max(size, 0), \(InodeRow.countedBytesMax))), 0) FROM inode WHERE flags & 4 <> 0"
/// As `ThumbnailRow.cost`: the sectors of whole chunks, those of the rest, and the row.
private let pictureBytes = """
    SELECT coalesce(sum(
        length / 131072 * 131584 + (length % 131072 > 0) * ((length % 131072 + 607) / 512 * 512) + 256), 0)
        FROM thumbnail WHERE length BETWEEN 0 AND 1 << 32
    """

/// Photos, counts and totals.
extension IntegrityConstraint {
    private static let notPhotos =
        "flags & 4 <> 0 AND ino NOT IN (SELECT ino FROM photo)"
    private static let notCopies = "flags & 16 <> 0 AND ino NOT IN (SELECT ino FROM copy)"
    private static let copiesOfNothing =
        "photo NOT IN (SELECT ino FROM photo) AND ino NOT IN (SELECT ino FROM orphan)"
    /// The number of a photo's names in its day.
    private static let namesInDay = """
        SELECT count(*) FROM dentry JOIN inode AS d ON d.ino = dentry.parent
            WHERE dentry.ino = p.ino AND d.day = p.day
        """
    /// Whether a name is a backup's, as `backupOriginal` of the photo library's rules: a photo may have such a name
    /// beside its own.
    private static let isBackup = """
        (substr(name, -1) = x'7e' OR substr(name, -9) = CAST('_original' AS BLOB)
            OR substr(name, -4) = CAST('.bak' AS BLOB) OR substr(name, -5) = CAST('.orig' AS BLOB)
            OR substr(name, -2) = CAST('.t' AS BLOB))
        """
    /// Photos with a row in `trash` that are still in a day, and such rows of files that are no photos.
    private static let notTrashed = """
        SELECT trash.ino FROM trash JOIN dentry USING(ino) JOIN inode AS d ON d.ino = dentry.parent
            WHERE trash.id = 0 AND d.day <> 0
            UNION SELECT ino FROM trash WHERE id = 0 AND ino NOT IN (SELECT ino FROM photo)
        """

    /// Copies that are photos themselves, or are in a day as one: they would be deleted with the photo that they stand
    /// for.
    private static let copiesAsPhotos = """
        ino IN (SELECT ino FROM photo)
            OR ino IN (SELECT dentry.ino FROM dentry JOIN inode AS d ON d.ino = dentry.parent WHERE d.day <> 0)
        """

    static let photos = [
        IntegrityConstraint(
            "photo or copy row of a missing file",
            mending: [
                "DELETE FROM photo WHERE ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isFile))",
                "DELETE FROM copy WHERE ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isFile))",
            ],
            query: """
                SELECT ino FROM photo WHERE ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isFile))
                    UNION SELECT ino FROM copy WHERE ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isFile))
                """),
        IntegrityConstraint(
            "thumbnail of no photo",
            mending: [
                """
                DELETE FROM extent WHERE content
                    IN (SELECT content FROM thumbnail WHERE ino NOT IN (SELECT ino FROM photo))
                    AND content NOT IN (SELECT content FROM inode)
                """,
                "DELETE FROM thumbnail WHERE ino NOT IN (SELECT ino FROM photo)",
            ],
            query: "SELECT ino FROM thumbnail WHERE ino NOT IN (SELECT ino FROM photo)"),
        IntegrityConstraint(
            "photo flag does not match the table photo",
            mending: [
                "UPDATE inode SET flags = flags | 4 WHERE flags & 4 = 0 AND ino IN (SELECT ino FROM photo)",
                // The next mount classifies them.
                "INSERT OR IGNORE INTO classification_pending SELECT ino FROM inode WHERE \(notPhotos)",
                "UPDATE inode SET flags = flags & ~4 WHERE \(notPhotos)",
            ],
            query: "SELECT ino FROM inode WHERE (flags & 4 <> 0) <> (ino IN (SELECT ino FROM photo))"),
        IntegrityConstraint(
            "named in moments, but not a photo",
            mending: ["UPDATE inode SET flags = flags & ~128 WHERE flags & 132 = 128"],
            query: "SELECT ino FROM inode WHERE flags & 132 = 128"),
        IntegrityConstraint(
            "in the trash and under a day at once",
            mending: [
                "DELETE FROM trash_name WHERE photo IN (\(notTrashed))",
                "DELETE FROM trash WHERE id = 0 AND ino IN (\(notTrashed))",
            ], query: notTrashed),
        IntegrityConstraint(
            "trash flag does not match the table trash",
            mending: [
                "DELETE FROM trash_name WHERE photo NOT IN (SELECT ino FROM trash WHERE id = 0)",
                "UPDATE inode SET flags = flags & ~64 WHERE ino NOT IN (SELECT ino FROM trash WHERE id = 0)",
                "UPDATE inode SET flags = flags | 64 WHERE ino IN (SELECT ino FROM trash WHERE id = 0)",
            ],
            query: """
                SELECT ino FROM inode WHERE (flags & 64 <> 0) <> (ino IN (SELECT ino FROM trash WHERE id = 0))
                    UNION SELECT photo FROM trash_name WHERE photo NOT IN (SELECT ino FROM trash WHERE id = 0)
                """),
        IntegrityConstraint(
            "not listed exactly once under its day", .inode, .mender(.moments),
            query: """
                SELECT ino FROM photo AS p
                    WHERE 1 <> (\(namesInDay)) AND 1 <> (\(namesInDay) AND NOT \(isBackup))
                    AND ino NOT IN (SELECT ino FROM orphan) AND ino NOT IN (SELECT ino FROM trash WHERE id = 0)
                """),
        viewNames,
        IntegrityConstraint(
            "a copy, but also a photo or listed under a day",
            mending: [
                "INSERT OR IGNORE INTO classification_pending SELECT ino FROM copy WHERE \(copiesAsPhotos)",
                "UPDATE inode SET flags = flags & ~16 WHERE ino IN (SELECT ino FROM copy WHERE \(copiesAsPhotos))",
                "DELETE FROM copy WHERE \(copiesAsPhotos)",
            ],
            query: "SELECT ino FROM copy WHERE \(copiesAsPhotos)"),
        IntegrityConstraint(
            "copy flag does not match the table copy",
            mending: [
                "UPDATE inode SET flags = flags | 16 WHERE flags & 16 = 0 AND ino IN (SELECT ino FROM copy)",
                "INSERT OR IGNORE INTO classification_pending SELECT ino FROM inode WHERE \(notCopies)",
                "UPDATE inode SET flags = flags & ~16 WHERE \(notCopies)",
            ],
            query: "SELECT ino FROM inode WHERE (flags & 16 <> 0) <> (ino IN (SELECT ino FROM copy))"),
        IntegrityConstraint(
            "copy of a missing photo",
            mending: [
                "INSERT OR IGNORE INTO classification_pending SELECT ino FROM copy WHERE \(copiesOfNothing)",
                "UPDATE inode SET flags = flags & ~16 WHERE ino IN (SELECT ino FROM copy WHERE \(copiesOfNothing))",
                "DELETE FROM copy WHERE \(copiesOfNothing)",
            ],
            query: "SELECT ino FROM copy WHERE \(copiesOfNothing)"),
    ]

    static let counts = [
        IntegrityConstraint(
            "its link count is wrong",
            mending: [
                """
                UPDATE inode SET nlink = \(ConstraintSQL.links)
                    WHERE NOT \(ConstraintSQL.isDirectory) AND nlink <> \(ConstraintSQL.links)
                """
            ],
            query: """
                SELECT ino FROM inode WHERE NOT \(ConstraintSQL.isDirectory) AND nlink <> \(ConstraintSQL.links)
                """),
        IntegrityConstraint(
            "its count of entries is wrong",
            mending: [
                """
                UPDATE inode SET size = (SELECT count(*) FROM dentry WHERE parent = inode.ino)
                    WHERE \(ConstraintSQL.isDirectory)
                    AND size <> (SELECT count(*) FROM dentry WHERE parent = inode.ino)
                """
            ],
            query: """
                SELECT ino FROM inode AS i WHERE \(ConstraintSQL.isDirectory)
                    AND size <> (SELECT count(*) FROM dentry WHERE parent = i.ino)
                """),
        IntegrityConstraint(
            "its count of subdirectories is wrong",
            mending: [
                """
                UPDATE inode SET nlink = \(ConstraintSQL.directoryLinks) WHERE \(ConstraintSQL.isDirectory)
                    AND (nlink > 0 OR ino IN (SELECT ino FROM dentry)) AND nlink <> \(ConstraintSQL.directoryLinks)
                """
            ],
            query: """
                SELECT ino FROM inode WHERE \(ConstraintSQL.isDirectory)
                    AND (nlink > 0 OR ino IN (SELECT ino FROM dentry)) AND nlink <> \(ConstraintSQL.directoryLinks)
                """),
        IntegrityConstraint(
            "its count of stored bytes is wrong",
            mending: [
                """
                UPDATE inode SET allocated = \(ConstraintSQL.storedBytes)
                    WHERE \(ConstraintSQL.isFile) AND allocated <> \(ConstraintSQL.storedBytes)
                """
            ],
            query: """
                SELECT ino FROM inode WHERE \(ConstraintSQL.isFile) AND allocated <> \(ConstraintSQL.storedBytes)
                """),
        IntegrityConstraint(
            "the count of files that share its bytes is wrong",
            .content,
            mending: [
                "DELETE FROM share",
                """
                INSERT INTO share SELECT content, count(*) FROM inode WHERE \(ConstraintSQL.isFile)
                    GROUP BY content HAVING count(*) > 1
                """,
                """
                UPDATE inode SET flags = flags | 32 WHERE \(ConstraintSQL.isFile) AND flags & 32 = 0
                    AND content IN (SELECT content FROM share)
                """,
            ],
            query: """
                SELECT content FROM inode AS i WHERE \(ConstraintSQL.isFile) GROUP BY content
                    HAVING count(*) <> coalesce((SELECT users FROM share WHERE share.content = i.content), 1)
                    UNION SELECT content FROM share
                        WHERE content NOT IN (SELECT content FROM inode WHERE \(ConstraintSQL.isFile))
                    UNION SELECT content FROM inode WHERE \(ConstraintSQL.isFile) AND flags & 32 = 0
                        AND content IN (SELECT content FROM share)
                """),
        IntegrityConstraint(
            "invalid or overlapping ranges of pending thumbnails",
            mending: ["DELETE FROM thumbnail_pending"],
            query: """
                SELECT 1 FROM thumbnail_pending AS a
                    JOIN thumbnail_pending AS b ON a.first < b.first AND a.end > b.first
                    UNION SELECT 1 FROM thumbnail_pending WHERE first >= end OR first < 0
                    UNION SELECT 1 FROM thumbnail_pending JOIN counter ON end > pictured
                """),
    ]

    /// Sums over a table.
    static let totals = [
        IntegrityConstraint(
            "the total of photo bytes is wrong",
            mending: ["UPDATE counter SET photo_bytes = (\(photoBytes))"],
            query: "SELECT 1 FROM counter WHERE photo_bytes <> (\(photoBytes))"),
        IntegrityConstraint(
            "the total of thumbnail bytes is wrong",
            mending: ["UPDATE counter SET picture_bytes = (\(pictureBytes))"],
            query: "SELECT 1 FROM counter WHERE picture_bytes <> (\(pictureBytes))"),
    ]
}
