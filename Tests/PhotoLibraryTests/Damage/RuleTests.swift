import Foundation
import LibraryFixtures
import PhotoLibrary
import Recovery
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat
import VaultStore

/// Each rule of the catalogue: rows that break it are found, and mended if possible.
@Suite("Damage: integrity constraints") struct RuleTests {
    private struct Break {
        /// The faults after a repair.
        enum Outcome {
            /// Nothing, and every file is where it was.
            case mended
            /// Nothing, but something has another name or place.
            case moved
            /// Bytes that are lost, and say so.
            case lost
            /// All of it: there is no mend.
            case kept
        }

        var rule: String
        var statements: [String]
        var outcome: Outcome

        init(_ rule: String, _ outcome: Outcome = .mended, _ statements: String...) {
            (self.rule, self.outcome, self.statements) = (rule, outcome, statements)
        }
    }

    private static let isFile = "mode & 61440 = 32768"
    private static let long = "(SELECT ino FROM inode WHERE size = 300000)"
    private static let trip = "(SELECT ino FROM dentry WHERE name = CAST('Trip' AS BLOB))"

    private static let ofValues = [
        Break(
            "invalid counters: numbers in use would be allocated again", .mended,
            "UPDATE counter SET ino = 20, dentry = -1"),
        Break("invalid counters: numbers in use would be allocated again", .mended, "DELETE FROM counter"),
        Break("required directory is missing or invalid", .mended, "DELETE FROM dentry WHERE ino = 2"),
        Break("required directory is missing or invalid", .mended, "DELETE FROM inode WHERE ino = 3"),
        Break(
            "required directory is missing or invalid", .mended,
            "UPDATE inode SET mode = 33188 WHERE ino = 1"),
        Break("its inode number is out of range", .moved, "UPDATE inode SET ino = -5 WHERE ino = \(long)"),
        Break("invalid file type", .mended, "UPDATE inode SET mode = mode & 511 WHERE \(isFile)"),
        Break(
            "its content number is out of range", .lost, "UPDATE inode SET content = -9 WHERE size = 300000"),
        Break(
            "not a directory, but has entries", .mended,
            "UPDATE inode SET mode = 33261 WHERE ino = \(trip)"),
        Break(
            "not a directory, but has a day", .mended, "UPDATE inode SET day = 20240501 WHERE ino = \(long)"
        ),
        Break(
            "not a regular file, but has content", .mended,
            "UPDATE inode SET allocated = 5 WHERE ino = \(trip)"),
        Break("a number in the table inode is out of range", .mended, "UPDATE inode SET mtime_ns = -1"),
        Break(
            "a number in the table inode is out of range", .mended,
            "UPDATE inode SET nlink = -1, version = 1 << 62, day = -1, parent = -1 WHERE day = 0"),
        Break(
            "its count of entries is out of range", .mended,
            "UPDATE inode SET size = -1 WHERE ino = \(trip)"),
        Break(
            "the number of its directory entry is out of range", .mended,
            "UPDATE dentry SET id = -id WHERE parent = 3"),
        Break(
            "invalid row in the table trash_name", .mended, "UPDATE trash_name SET parent = -1"),
        Break(
            "a number in the table photo is out of range", .mended, "UPDATE photo SET orientation = 9"),
        Break(
            "identifier of a Live Photo or burst is too long", .mended,
            "UPDATE photo SET group_id = zeroblob(256)"),
        Break("invalid name of a camera", .mended, "UPDATE photo SET camera = x'2f'"),
        Break("its name in views is missing or invalid", .mended, "UPDATE photo SET name = NULL"),
        Break("its name in views is missing or invalid", .mended, "UPDATE photo SET name = x'612f62'"),
        Break("its name in views is missing or invalid", .mended, "UPDATE photo SET name = x'6162'"),
        Break("invalid date source", .mended, "UPDATE photo SET source = zeroblob(300)"),
        Break("its day is not a valid date", .mended, "UPDATE photo SET day = 20240231 WHERE day = 20240501"),
        Break("invalid row in the table copy", .mended, "UPDATE copy SET photo = -1"),
        Break("invalid row in the table thumbnail", .mended, "UPDATE thumbnail SET width = 0"),
        Break(
            "content shared by a file and a thumbnail", .mended,
            "UPDATE thumbnail SET content = (SELECT content FROM inode WHERE size = 300000) WHERE length > 0"),
        Break(
            "content shared by a file and a thumbnail", .lost,
            """
            UPDATE inode SET content = (SELECT content FROM thumbnail WHERE length > 0), allocated = 300000
                WHERE size = 300000
            """),
        Break(
            "content shared by two thumbnails", .mended,
            "INSERT INTO thumbnail SELECT ino, 64, 64, fill, format, content, length, version FROM thumbnail"),
        Break("a number in the table trash is out of range", .mended, "UPDATE trash SET since = 1 << 62"),
        Break(
            "the time when it was found expired is out of range", .mended,
            "UPDATE trash SET noted = -(1 << 62)"),
        Break(
            "invalid row in the table trash", .mended,
            "INSERT INTO trash VALUES(-1, 5, 0, NULL, x'')"),
        Break("invalid row in the table identity", .mended, "UPDATE identity SET length = 1 << 18"),
        Break("invalid row in the table retired", .mended, "INSERT INTO retired VALUES(7, x'00')"),
        Break("invalid row in the table likeness", .mended, "INSERT INTO likeness VALUES(7, x'00')"),
        Break("invalid row in the table position", .mended, "INSERT INTO position VALUES(7, x'00')"),
        Break(
            "invalid row in the table classification_pending", .mended,
            "INSERT INTO classification_pending VALUES(-1)"),
        Break("invalid row in the table unrecorded", .mended, "INSERT INTO unrecorded VALUES(-1)"),
        Break(
            "invalid symbolic link target", .mended,
            "INSERT INTO symlink VALUES(\(long), x'')"),
        Break(
            "invalid extended attribute name", .mended,
            "INSERT INTO xattr VALUES(\(long), x'41', x'42')",
            "INSERT INTO xattr VALUES(\(long), x'00', x'42')"),
        Break(
            "extended attribute value is too long", .mended,
            "INSERT INTO xattr VALUES(\(long), CAST('user.a' AS BLOB), zeroblob(70000))"),
    ]

    private static let ofNames = [
        Break(
            "directory entry for a missing inode", .mended,
            "INSERT INTO dentry VALUES(3, 99999, x'41', 88888, 0)",
            "UPDATE inode SET size = size + 1 WHERE ino = 3"),
        Break(
            "invalid file name", .moved,
            "UPDATE dentry SET name = x'2f' WHERE ino = \(long)"),
        Break(
            "invalid original name in the trash", .mended,
            "UPDATE trash SET name = x'' WHERE id = 0", "UPDATE trash_name SET name = zeroblob(3)"),
        Break(
            "invalid former name", .mended,
            "UPDATE photo SET former = x'2e2e'"),
        Break(
            "directory entry with an invalid parent", .moved,
            "UPDATE dentry SET parent = 88888 WHERE ino = \(long)"),
        Break(
            "directory entry with an invalid parent", .moved,
            "UPDATE dentry SET parent = \(long) WHERE ino = \(trip)"),
        Break(
            "a directory has several names", .mended, "INSERT INTO dentry VALUES(3, 99999, x'41', \(trip), 0)"
        ),
        Break("inode without a directory entry", .moved, "DELETE FROM dentry WHERE ino = \(long)"),
        Break(
            "not reachable from the root", .moved, "UPDATE dentry SET parent = ino WHERE ino = \(trip)"),
        Break(
            "parent does not match the directory entry", .mended,
            "UPDATE inode SET parent = 2 WHERE ino = \(trip)"),
        Break(
            "misplaced or misnamed day directory", .mended,
            "UPDATE inode SET day = 20010101 WHERE day = 20240501"),
        Break(
            "misplaced or misnamed day directory", .mended,
            "UPDATE inode SET day = 20010101 WHERE ino = \(trip)"),
    ]

    private static let ofDetails = [
        Break(
            "extended attribute of a missing inode", .mended,
            "INSERT INTO xattr VALUES(88888, CAST('user.a' AS BLOB), x'')"),
        Break(
            "inode not marked as having extended attributes", .mended,
            "INSERT INTO xattr VALUES(\(long), CAST('user.a' AS BLOB), x'')"),
        Break(
            "identity record of a missing inode", .mended,
            "UPDATE identity SET id = 88888 WHERE id = (SELECT max(id) FROM identity WHERE id < 1 << 62)"),
        Break(
            "it has no identity record", .mended,
            "DELETE FROM identity WHERE id = (SELECT max(id) FROM identity WHERE id < 1 << 62)"),
        Break(
            "has a link target, but is not a symbolic link", .mended,
            "INSERT INTO symlink VALUES(88888, x'41')"),
        Break("symbolic link without a target", .kept, "UPDATE inode SET mode = 41471 WHERE size = 400"),
        Break("on the orphan list, but has a name", .mended, "INSERT INTO orphan VALUES(\(long))"),
        Break("missing inode on the orphan list", .mended, "INSERT INTO orphan VALUES(88888)"),
    ]

    private static let ofExtents = [
        Break(
            "invalid extent", .mended,
            "UPDATE extent SET sector = -5 WHERE content = (SELECT content FROM inode WHERE size = 5000)"),
        Break(
            "invalid extent", .lost,
            "UPDATE extent SET sector = -5 WHERE content = (SELECT content FROM inode WHERE size = 5000)",
            "INSERT OR IGNORE INTO unrecorded SELECT ino FROM inode WHERE size = 5000"),
        Break(
            "its extents overlap", .mended,
            """
            INSERT INTO extent SELECT content, offset + 131072, length - 131072, sector + 257, generation, epoch
                FROM extent WHERE length > 131072
            """),
        Break(
            "some of its bytes have no extent", .mended,
            "DELETE FROM extent WHERE content = (SELECT content FROM inode WHERE size = 300000)"),
        Break(
            "some of its bytes have no extent", .lost,
            "DELETE FROM extent WHERE content = (SELECT content FROM inode WHERE size = 300000)",
            "INSERT OR IGNORE INTO unrecorded VALUES(\(long))"),
        Break(
            "two extents of a photo and its version cannot be told apart", .kept,
            """
            INSERT INTO extent SELECT (1 << 61) + (content << 30) + 500, offset, length, sector + 257, generation, epoch
                FROM extent WHERE content IN (SELECT content FROM inode WHERE size = 300000)
            """),
        Break("an extent belongs to no file", .lost, "UPDATE inode SET content = 88888 WHERE size = 300000"),
        Break("invalid size", .mended, "UPDATE inode SET size = 1 << 62 WHERE size = 300000"),
        Break("invalid size", .mended, "UPDATE inode SET size = -1 WHERE size = 300000"),
        // Sums of these overflow.
        Break(
            "invalid size", .mended,
            "UPDATE inode SET size = -9223372036854775808 WHERE flags & 4 <> 0"),
        Break("extent past the file's end", .mended, "UPDATE inode SET size = 1 WHERE size = 300000"),
    ]

    private static let ofPhotos = [
        Break(
            "photo or copy row of a missing file", .mended,
            "INSERT INTO copy VALUES(88888, (SELECT min(ino) FROM photo))",
            "INSERT INTO photo SELECT 77777, day, 0, 0, 0, source, 0, 0, 0, 1, 0, NULL, 0,"
                + " NULL, 0, 0, 0, NULL, NULL FROM photo LIMIT 1"),
        Break("thumbnail of no photo", .mended, "UPDATE thumbnail SET ino = 88888"),
        Break(
            "photo flag does not match the table photo", .mended,
            "UPDATE inode SET flags = flags & ~4 WHERE ino = (SELECT min(ino) FROM photo)"),
        Break(
            "photo flag does not match the table photo", .mended,
            "UPDATE inode SET flags = flags | 4 WHERE size = 300000"),
        Break(
            "not listed exactly once under its day", .mended,
            "UPDATE photo SET day = 20010101 WHERE ino = (SELECT min(ino) FROM photo)"),
        Break(
            "not listed exactly once under its day", .moved,
            """
            DELETE FROM dentry WHERE ino = (SELECT min(ino) FROM photo)
                AND parent IN (SELECT ino FROM inode WHERE day <> 0)
            """),
        Break(
            "copy flag does not match the table copy", .mended,
            "DELETE FROM copy"),
        Break(
            "a copy, but also a photo or listed under a day", .mended,
            "INSERT INTO copy SELECT max(ino), min(ino) FROM photo"),
        Break("copy of a missing photo", .mended, "UPDATE copy SET photo = 88888"),
        Break(
            "trash flag does not match the table trash", .mended,
            "UPDATE inode SET flags = flags & ~64"),
        Break(
            "trash flag does not match the table trash", .mended,
            "DELETE FROM trash WHERE id = 0"),
        Break(
            "named in moments, but not a photo", .mended,
            "UPDATE inode SET flags = flags | 128 WHERE ino = \(trip)"),
        Break(
            "in the trash and under a day at once", .mended,
            "INSERT INTO trash SELECT min(ino), 0, 0, NULL, x'41' FROM photo"),
        Break("the directory of versions is invalid", .mended, "UPDATE inode SET flags = 0 WHERE ino = 4"),
        Break(
            "version of a missing photo", .moved,
            "UPDATE dentry SET name = CAST('00000000000fffff' AS BLOB) WHERE parent = 4"),
        Break(
            "version flag does not match its directory", .mended, "UPDATE inode SET flags = flags & ~256"),
        Break(
            "version flag does not match its directory", .mended,
            "UPDATE inode SET flags = flags | 256 WHERE ino = \(long)"),
    ]

    private static let ofCounts = [
        Break("its link count is wrong", .mended, "UPDATE inode SET nlink = 9 WHERE \(isFile)"),
        Break("its count of entries is wrong", .mended, "UPDATE inode SET size = 99 WHERE ino = 3"),
        Break(
            "its count of subdirectories is wrong", .mended, "UPDATE inode SET nlink = 7 WHERE ino IN (2, 3)"),
        Break(
            "its count of stored bytes is wrong", .mended, "UPDATE inode SET allocated = 1 WHERE \(isFile)"),
        Break("the count of files that share its bytes is wrong", .mended, "UPDATE share SET users = 5"),
        Break("the total of photo bytes is wrong", .mended, "UPDATE counter SET photo_bytes = 7"),
        Break(
            "the total of thumbnail bytes is wrong", .mended, "UPDATE counter SET picture_bytes = 7"),
        Break(
            "invalid or overlapping ranges of pending thumbnails", .mended,
            "INSERT INTO thumbnail_pending VALUES(9, 8)"
        ),
    ]

    private static let all = ofValues + ofNames + ofDetails + ofExtents + ofPhotos + ofCounts

    @Test func `every rule is broken here`() {
        #expect(Set(Self.all.map(\.rule)) == Set(IntegrityConstraint.all.map(\.violation)))
    }

    @Test(arguments: all.indices)
    func `rows that break a rule are found, and mended if possible`(index: Int) throws {
        let broken = Self.all[index]
        let specimen = try Specimen()
        try specimen.change(broken.statements)
        let report = try specimen.check()
        let comment: Comment = "\(broken.rule): \(report.findings.map(\.text))"
        #expect(report.findings.contains { $0.cause == broken.rule }, comment)
        #expect(report.plan.lines.contains("fix: \(broken.rule)") == (broken.outcome != .kept), comment)
        guard broken.outcome != .kept else { return }
        try SpaceRepair.run(specimen.unlocked, report.plan)
        let repaired = try specimen.check()
        let left: Comment = "\(broken.rule): \(repaired.findings.map(\.text)) \(repaired.plan.lines)"
        #expect(repaired.plan.lines.isEmpty, left)
        #expect(repaired.findings.isEmpty == (broken.outcome != .lost), left)
        #expect(!repaired.findings.contains { !$0.isOfFile }, left)
        if broken.outcome == .mended { #expect(try specimen.unreadable().isEmpty, comment) }
        // The next mount's work leaves nothing broken either.
        try specimen.remount()
        let later = try specimen.check()
        #expect(!later.findings.contains { !$0.isOfFile }, "\(broken.rule): \(later.findings.map(\.text))")
    }
}
