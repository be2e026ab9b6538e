/// What must hold between the rows of the tables whenever no change is under way.
public struct CatalogueRule: Sendable {
    /// What the numbers are that the query finds.
    public enum Subject: Sendable { case inode, content }

    /// What is wrong where it does not hold, in words that follow a path and a colon.
    public let violation: String
    public let subject: Subject
    /// Finds what breaks it.
    let query: String
    /// Statements that set it right, without losing anything that can be reached; empty where none can.
    let mending: [String]

    init(_ violation: String, _ subject: Subject = .inode, mending: [String] = [], query: String) {
        self.violation = violation
        self.subject = subject
        self.query = query
        self.mending = mending
    }

    /// Whether it can be set right.
    public var isMendable: Bool { !mending.isEmpty }
}

private let isDirectory = "mode & 61440 = 16384"
private let isFile = "mode & 61440 = 32768"
/// Whose records there may be: inodes, and blocks of numbers that came to their end.
private let recorded = "SELECT ino FROM inode UNION ALL SELECT (1 << 62) + block FROM dead"
/// Who has no record and is not about to get one.
private let unrecorded = """
    SELECT ino FROM inode WHERE ino >= 16 AND ino NOT IN (SELECT ino FROM orphan)
        AND ino NOT IN (SELECT id FROM unrecorded) AND ino NOT IN (SELECT id FROM identity)
    """
private let photoBytes =
    "SELECT coalesce(sum(min(size, \(InodeRow.countedBytesMax))), 0) FROM inode WHERE flags & 4 <> 0"
/// Far from where a sum overflows: rows may be anybody's who knows the password. No run is as long.
private let storedBytes =
    "(SELECT coalesce(sum(min(length, 1 << 40)), 0) FROM extent WHERE extent.content = inode.content)"
/// Sectors of whole chunks, of the rest, and the row; as the library counts them.
private let pictureBytes = """
    SELECT coalesce(sum(
        length / 131072 * 131584 + (length % 131072 > 0) * ((length % 131072 + 607) / 512 * 512) + 256), 0)
        FROM thumbnail WHERE length BETWEEN 0 AND 1 << 32
    """

extension CatalogueRule {
    /// All of them. Where one mends what another counts, the one that counts comes later.
    public static let all: [CatalogueRule] = names + extents + photos + counts + totals

    private static let names = [
        CatalogueRule(
            "a name means nothing",
            mending: ["DELETE FROM dentry WHERE ino NOT IN (SELECT ino FROM inode)"],
            query: "SELECT ino FROM dentry WHERE ino NOT IN (SELECT ino FROM inode)"),
        CatalogueRule(
            "a name lies in no directory",
            query: "SELECT ino FROM dentry WHERE parent NOT IN (SELECT ino FROM inode)"),
        CatalogueRule(
            "an attribute is of no file",
            mending: ["DELETE FROM xattr WHERE ino NOT IN (SELECT ino FROM inode)"],
            query: "SELECT ino FROM xattr WHERE ino NOT IN (SELECT ino FROM inode)"),
        CatalogueRule(
            "an identity record is of no file",
            mending: [
                "DELETE FROM identity WHERE id NOT IN (\(recorded))",
                "DELETE FROM unrecorded WHERE id NOT IN (\(recorded))",
            ],
            query: "SELECT id FROM identity WHERE id NOT IN (\(recorded))"),
        CatalogueRule(
            "it has no identity record", mending: ["INSERT INTO unrecorded \(unrecorded)"], query: unrecorded),
        CatalogueRule(
            "a link's target is of no link",
            mending: ["DELETE FROM symlink WHERE ino NOT IN (SELECT ino FROM inode)"],
            query: "SELECT ino FROM symlink WHERE ino NOT IN (SELECT ino FROM inode)"),
    ]

    private static let extents = [
        CatalogueRule(
            "an extent belongs to no file",
            .content,
            query: """
                SELECT DISTINCT content FROM extent
                    WHERE content NOT IN (SELECT content FROM inode UNION SELECT content FROM thumbnail)
                """),
        CatalogueRule(
            "it says of its bytes what cannot be",
            .content,
            query: "SELECT DISTINCT content FROM extent WHERE offset < 0 OR length <= 0 OR sector < 0"),
        CatalogueRule(
            "it has bytes behind its end",
            query: """
                SELECT ino FROM inode AS i WHERE \(isFile) AND size
                    < (SELECT coalesce(max(offset + length), 0) FROM extent WHERE extent.content = i.content)
                """),
    ]

    private static let photos = [
        CatalogueRule(
            "a thumbnail is of no photo",
            mending: [
                """
                DELETE FROM extent WHERE content
                    IN (SELECT content FROM thumbnail WHERE ino NOT IN (SELECT ino FROM photo))
                """,
                "DELETE FROM thumbnail WHERE ino NOT IN (SELECT ino FROM photo)",
            ],
            query: "SELECT ino FROM thumbnail WHERE ino NOT IN (SELECT ino FROM photo)"),
        CatalogueRule(
            "it is marked as a photo and is not known as one, or the other way round",
            mending: [
                "UPDATE inode SET flags = flags | 4 WHERE flags & 4 = 0 AND ino IN (SELECT ino FROM photo)"
            ],
            query: "SELECT ino FROM inode WHERE (flags & 4 <> 0) <> (ino IN (SELECT ino FROM photo))"),
        CatalogueRule(
            "it does not stand under its day, once",
            query: """
                SELECT ino FROM photo AS p WHERE 1 <> (SELECT count(*) FROM dentry JOIN inode AS d
                    ON d.ino = dentry.parent WHERE dentry.ino = p.ino AND d.day = p.day)
                    AND ino NOT IN (SELECT ino FROM orphan) AND ino NOT IN (SELECT ino FROM trash WHERE id = 0)
                """),
        CatalogueRule(
            "it lies in the trash and stands under a day",
            query: """
                SELECT trash.ino FROM trash JOIN dentry USING(ino) JOIN inode AS d ON d.ino = dentry.parent
                    WHERE trash.id = 0 AND d.day <> 0
                """),
        CatalogueRule(
            "it is marked as taken out of moments and is not known as that, or the other way round",
            query: """
                SELECT ino FROM inode WHERE (flags & 64 <> 0) <> (ino IN (SELECT ino FROM trash WHERE id = 0))
                    UNION SELECT photo FROM trash_name WHERE photo NOT IN (SELECT ino FROM trash WHERE id = 0)
                    UNION SELECT ino FROM trash WHERE id = 0 AND ino NOT IN (SELECT ino FROM photo)
                """),
        CatalogueRule(
            "it is marked as a copy and is not known as one, or the other way round",
            query: "SELECT ino FROM inode WHERE (flags & 16 <> 0) <> (ino IN (SELECT ino FROM copy))"),
        CatalogueRule(
            "it is a copy of no photo",
            query: """
                SELECT ino FROM copy WHERE photo NOT IN (SELECT ino FROM photo)
                    AND ino NOT IN (SELECT ino FROM orphan)
                """),
    ]

    private static let counts = [
        CatalogueRule(
            "its link count is wrong",
            mending: [
                """
                UPDATE inode SET nlink = (SELECT count(*) FROM dentry WHERE dentry.ino = inode.ino)
                    WHERE NOT \(isDirectory)
                    AND nlink <> (SELECT count(*) FROM dentry WHERE dentry.ino = inode.ino)
                """
            ],
            query: """
                SELECT ino FROM inode AS i WHERE NOT \(isDirectory)
                    AND nlink <> (SELECT count(*) FROM dentry WHERE dentry.ino = i.ino)
                """),
        CatalogueRule(
            "its count of entries is wrong",
            mending: [
                """
                UPDATE inode SET size = (SELECT count(*) FROM dentry WHERE parent = inode.ino)
                    WHERE \(isDirectory) AND size <> (SELECT count(*) FROM dentry WHERE parent = inode.ino)
                """
            ],
            query: """
                SELECT ino FROM inode AS i WHERE \(isDirectory)
                    AND size <> (SELECT count(*) FROM dentry WHERE parent = i.ino)
                """),
        CatalogueRule(
            "its count of directories is wrong",
            mending: [
                """
                UPDATE inode SET nlink = 2 + (SELECT count(*) FROM dentry JOIN inode AS c ON c.ino = dentry.ino
                    WHERE dentry.parent = inode.ino AND c.\(isDirectory))
                    WHERE \(isDirectory) AND ino <> 2 AND nlink > 0
                """
            ],
            query: """
                SELECT ino FROM inode AS i WHERE \(isDirectory) AND ino <> 2 AND nlink > 0
                    AND nlink <> 2 + (SELECT count(*) FROM dentry JOIN inode AS c ON c.ino = dentry.ino
                        WHERE dentry.parent = i.ino AND c.\(isDirectory))
                """),
        CatalogueRule(
            "its count of stored bytes is wrong",
            mending: [
                """
                UPDATE inode SET allocated = \(storedBytes) WHERE \(isFile) AND allocated <> \(storedBytes)
                """
            ],
            query: "SELECT ino FROM inode WHERE \(isFile) AND allocated <> \(storedBytes)"),
        CatalogueRule(
            "the count of files that share its bytes is wrong",
            .content,
            mending: [
                "DELETE FROM share",
                """
                INSERT INTO share SELECT content, count(*) FROM inode WHERE \(isFile)
                    GROUP BY content HAVING count(*) > 1
                """,
                """
                UPDATE inode SET flags = flags | 32 WHERE \(isFile) AND flags & 32 = 0
                    AND content IN (SELECT content FROM share)
                """,
            ],
            query: """
                SELECT content FROM inode AS i WHERE \(isFile) GROUP BY content
                    HAVING count(*) <> coalesce((SELECT users FROM share WHERE share.content = i.content), 1)
                """),
        CatalogueRule(
            "photos without thumbnails are noted twice",
            mending: ["DELETE FROM unpictured"],
            query: """
                SELECT 1 FROM unpictured AS a JOIN unpictured AS b ON a.first < b.first AND a.end > b.first
                    UNION SELECT 1 FROM unpictured WHERE first >= end
                    UNION SELECT 1 FROM unpictured JOIN counter ON end > pictured
                """),
        CatalogueRule(
            "it has no name",
            query: """
                SELECT ino FROM inode WHERE ino <> 1 AND ino NOT IN (SELECT ino FROM dentry)
                    AND ino NOT IN (SELECT ino FROM orphan) AND ino NOT IN (SELECT ino FROM trash_name)
                """),
    ]

    /// Sums over a table.
    static let totals = [
        CatalogueRule(
            "the bytes of all photos are counted wrongly",
            mending: ["UPDATE counter SET photo_bytes = (\(photoBytes))"],
            query: "SELECT 1 FROM counter WHERE photo_bytes <> (\(photoBytes))"),
        CatalogueRule(
            "the cost of all thumbnails is counted wrongly",
            mending: ["UPDATE counter SET picture_bytes = (\(pictureBytes))"],
            query: "SELECT 1 FROM counter WHERE picture_bytes <> (\(pictureBytes))"),
    ]
}
