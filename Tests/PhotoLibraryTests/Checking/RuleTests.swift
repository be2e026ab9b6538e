import Foundation
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import VaultCatalogue
@testable import VaultStore

/// Each rule of the catalogue: what breaks it is found, and what can be mended is.
@Suite struct RuleTests {
    private struct Break {
        /// What is left after a repair.
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
        Break("numbers would be given out twice", .mended, "UPDATE counter SET ino = 20, dentry = -1"),
        Break("numbers would be given out twice", .mended, "DELETE FROM counter"),
        Break("it is not the directory that every space has", .mended, "DELETE FROM dentry WHERE ino = 2"),
        Break("it is not the directory that every space has", .mended, "DELETE FROM inode WHERE ino = 3"),
        Break(
            "it is not the directory that every space has", .mended,
            "UPDATE inode SET mode = 33188 WHERE ino = 1"),
        Break("its inode number is out of range", .moved, "UPDATE inode SET ino = -5 WHERE ino = \(long)"),
        Break("its type is none", .mended, "UPDATE inode SET mode = mode & 511 WHERE \(isFile)"),
        Break(
            "its content number is out of range", .lost, "UPDATE inode SET content = -9 WHERE size = 300000"),
        Break(
            "it is no directory, and something lies in it", .mended,
            "UPDATE inode SET mode = 33261 WHERE ino = \(trip)"),
        Break(
            "it is no directory and has a day", .mended, "UPDATE inode SET day = 20240501 WHERE ino = \(long)"
        ),
        Break(
            "it is no file and has a content", .mended, "UPDATE inode SET allocated = 5 WHERE ino = \(trip)"),
        Break("a number in the table inode is out of range", .mended, "UPDATE inode SET mtime_ns = -1"),
        Break(
            "a number in the table inode is out of range", .mended,
            "UPDATE inode SET nlink = -1, version = 1 << 62, day = -1, parent = -1 WHERE day = 0"),
        Break(
            "it counts more entries than any directory has", .mended,
            "UPDATE inode SET size = -1 WHERE ino = \(trip)"),
        Break(
            "the number of its name is out of range", .mended, "UPDATE dentry SET id = -id WHERE parent = 3"),
        Break(
            "a row of the table trash_name makes no sense", .mended, "UPDATE trash_name SET parent = -1"),
        Break("a number in the table photo is out of range", .mended, "UPDATE photo SET orientation = 9"),
        Break("its date has no source that is known", .mended, "UPDATE photo SET source = zeroblob(300)"),
        Break("its day is no date", .mended, "UPDATE photo SET day = 20240231 WHERE day = 20240501"),
        Break("a row of the table copy makes no sense", .mended, "UPDATE copy SET photo = -1"),
        Break("a row of the table thumbnail makes no sense", .mended, "UPDATE thumbnail SET width = 0"),
        Break(
            "a file and a thumbnail have the same bytes", .mended,
            "UPDATE thumbnail SET content = (SELECT content FROM inode WHERE size = 300000) WHERE length > 0"),
        Break(
            "a file and a thumbnail have the same bytes", .lost,
            """
            UPDATE inode SET content = (SELECT content FROM thumbnail WHERE length > 0), allocated = 300000
                WHERE size = 300000
            """),
        Break(
            "two thumbnails have the same bytes", .mended,
            "INSERT INTO thumbnail SELECT ino, 64, 64, fill, format, content, length, version FROM thumbnail"),
        Break("a number in the table trash is out of range", .mended, "UPDATE trash SET since = 1 << 62"),
        Break(
            "when it was seen to be old is out of range", .mended, "UPDATE trash SET noted = -(1 << 62)"),
        Break(
            "a row of the table trash makes no sense", .mended,
            "INSERT INTO trash VALUES(-1, 5, 0, NULL, x'')"),
        Break("a row of the table identity makes no sense", .mended, "UPDATE identity SET length = 1 << 18"),
        Break("a row of the table retired makes no sense", .mended, "INSERT INTO retired VALUES(7, x'00')"),
        Break(
            "a row of the table classification_pending makes no sense", .mended,
            "INSERT INTO classification_pending VALUES(-1)"),
        Break("a row of the table unrecorded makes no sense", .mended, "INSERT INTO unrecorded VALUES(-1)"),
        Break(
            "a link's target is none that a link can have", .mended,
            "INSERT INTO symlink VALUES(\(long), x'')"),
        Break(
            "the name of an attribute is none that it can have", .mended,
            "INSERT INTO xattr VALUES(\(long), x'41', x'42')",
            "INSERT INTO xattr VALUES(\(long), x'00', x'42')"),
        Break(
            "an attribute is longer than any can be", .mended,
            "INSERT INTO xattr VALUES(\(long), CAST('user.a' AS BLOB), zeroblob(70000))"),
    ]

    private static let ofNames = [
        Break(
            "directory entry for a missing inode", .mended,
            "INSERT INTO dentry VALUES(3, 99999, x'41', 88888, 0)",
            "UPDATE inode SET size = size + 1 WHERE ino = 3"),
        Break(
            "its name cannot stand in a directory", .moved,
            "UPDATE dentry SET name = x'2f' WHERE ino = \(long)"),
        Break(
            "a name that it had before it was removed cannot stand in a directory", .mended,
            "UPDATE trash SET name = x'' WHERE id = 0", "UPDATE trash_name SET name = zeroblob(3)"),
        Break(
            "the name that it was renamed from cannot stand in a directory", .mended,
            "UPDATE photo SET former = x'2e2e'"),
        Break(
            "its name lies in no directory", .moved, "UPDATE dentry SET parent = 88888 WHERE ino = \(long)"),
        Break(
            "its name lies in no directory", .moved, "UPDATE dentry SET parent = \(long) WHERE ino = \(trip)"),
        Break(
            "a directory has several names", .mended, "INSERT INTO dentry VALUES(3, 99999, x'41', \(trip), 0)"
        ),
        Break("it has no name", .moved, "DELETE FROM dentry WHERE ino = \(long)"),
        Break(
            "no way leads there from the root", .moved, "UPDATE dentry SET parent = ino WHERE ino = \(trip)"),
        Break(
            "it has another directory above it than the one it lies in", .mended,
            "UPDATE inode SET parent = 2 WHERE ino = \(trip)"),
        Break(
            "a day of moments is not where, or not called as, one is", .mended,
            "UPDATE inode SET day = 20010101 WHERE day = 20240501"),
        Break(
            "a day of moments is not where, or not called as, one is", .mended,
            "UPDATE inode SET day = 20010101 WHERE ino = \(trip)"),
    ]

    private static let ofDetails = [
        Break(
            "an attribute is of no file", .mended,
            "INSERT INTO xattr VALUES(88888, CAST('user.a' AS BLOB), x'')"),
        Break(
            "it is not known to have attributes", .mended,
            "INSERT INTO xattr VALUES(\(long), CAST('user.a' AS BLOB), x'')"),
        Break(
            "an identity record is of no file", .mended,
            "UPDATE identity SET id = 88888 WHERE id = (SELECT max(id) FROM identity WHERE id < 1 << 62)"),
        Break(
            "it has no identity record", .mended,
            "DELETE FROM identity WHERE id = (SELECT max(id) FROM identity WHERE id < 1 << 62)"),
        Break("a link's target is of no link", .mended, "INSERT INTO symlink VALUES(88888, x'41')"),
        Break("a link has no target", .kept, "UPDATE inode SET mode = 41471 WHERE size = 400"),
        Break("it has a name and waits to be destroyed", .mended, "INSERT INTO orphan VALUES(\(long))"),
        Break("a missing inode waits to be destroyed", .mended, "INSERT INTO orphan VALUES(88888)"),
    ]

    private static let ofExtents = [
        Break(
            "one of its extents is impossible", .mended,
            "UPDATE extent SET sector = -5 WHERE content = (SELECT content FROM inode WHERE size = 5000)"),
        Break(
            "one of its extents is impossible", .lost,
            "UPDATE extent SET sector = -5 WHERE content = (SELECT content FROM inode WHERE size = 5000)",
            "INSERT OR IGNORE INTO unrecorded SELECT ino FROM inode WHERE size = 5000"),
        Break(
            "its extents overlap", .mended,
            """
            INSERT INTO extent SELECT content, offset + 131072, length - 131072, sector + 257, generation, epoch
                FROM extent WHERE length > 131072
            """),
        Break(
            "some of its bytes are in no extent", .mended,
            "DELETE FROM extent WHERE content = (SELECT content FROM inode WHERE size = 300000)"),
        Break(
            "some of its bytes are in no extent", .lost,
            "DELETE FROM extent WHERE content = (SELECT content FROM inode WHERE size = 300000)",
            "INSERT OR IGNORE INTO unrecorded VALUES(\(long))"),
        Break("an extent belongs to no file", .lost, "UPDATE inode SET content = 88888 WHERE size = 300000"),
        Break("it cannot have this size", .mended, "UPDATE inode SET size = 1 << 62 WHERE size = 300000"),
        Break("it cannot have this size", .mended, "UPDATE inode SET size = -1 WHERE size = 300000"),
        // Sums of these overflow.
        Break(
            "it cannot have this size", .mended,
            "UPDATE inode SET size = -9223372036854775808 WHERE flags & 4 <> 0"),
        Break("it has bytes behind its end", .mended, "UPDATE inode SET size = 1 WHERE size = 300000"),
    ]

    private static let ofPhotos = [
        Break(
            "a missing file is known as a photo, or as a copy of one", .mended,
            "INSERT INTO copy VALUES(88888, (SELECT min(ino) FROM photo))",
            "INSERT INTO photo SELECT 77777, day, 0, 0, 0, source, 0, 0, 0, 1, 0, NULL, 0 FROM photo LIMIT 1"),
        Break("a thumbnail is of no photo", .mended, "UPDATE thumbnail SET ino = 88888"),
        Break(
            "it is marked as a photo and is not known as one, or the other way round", .mended,
            "UPDATE inode SET flags = flags & ~4 WHERE ino = (SELECT min(ino) FROM photo)"),
        Break(
            "it is marked as a photo and is not known as one, or the other way round", .mended,
            "UPDATE inode SET flags = flags | 4 WHERE size = 300000"),
        Break(
            "it does not stand under its day, once", .mended,
            "UPDATE photo SET day = 20010101 WHERE ino = (SELECT min(ino) FROM photo)"),
        Break(
            "it does not stand under its day, once", .moved,
            """
            DELETE FROM dentry WHERE ino = (SELECT min(ino) FROM photo)
                AND parent IN (SELECT ino FROM inode WHERE day <> 0)
            """),
        Break(
            "it is marked as a copy and is not known as one, or the other way round", .mended,
            "DELETE FROM copy"),
        Break(
            "it is known as a copy, and as a photo or under a day", .mended,
            "INSERT INTO copy SELECT max(ino), min(ino) FROM photo"),
        Break("it is a copy of no photo", .mended, "UPDATE copy SET photo = 88888"),
        Break(
            "it is marked as taken out of moments and is not known as that, or the other way round", .mended,
            "UPDATE inode SET flags = flags & ~64"),
        Break(
            "it is marked as taken out of moments and is not known as that, or the other way round", .mended,
            "DELETE FROM trash WHERE id = 0"),
        Break(
            "it lies in the trash and stands under a day", .mended,
            "INSERT INTO trash SELECT min(ino), 0, 0, NULL, x'41' FROM photo"),
    ]

    private static let ofCounts = [
        Break("its link count is wrong", .mended, "UPDATE inode SET nlink = 9 WHERE \(isFile)"),
        Break("its count of entries is wrong", .mended, "UPDATE inode SET size = 99 WHERE ino = 3"),
        Break("its count of directories is wrong", .mended, "UPDATE inode SET nlink = 7 WHERE ino IN (2, 3)"),
        Break(
            "its count of stored bytes is wrong", .mended, "UPDATE inode SET allocated = 1 WHERE \(isFile)"),
        Break("the count of files that share its bytes is wrong", .mended, "UPDATE share SET users = 5"),
        Break("the bytes of all photos are counted wrongly", .mended, "UPDATE counter SET photo_bytes = 7"),
        Break(
            "the cost of all thumbnails is counted wrongly", .mended, "UPDATE counter SET picture_bytes = 7"),
        Break(
            "photos without thumbnails are noted twice", .mended, "INSERT INTO thumbnail_pending VALUES(9, 8)"
        ),
    ]

    private static let all = ofValues + ofNames + ofDetails + ofExtents + ofPhotos + ofCounts

    @Test func `every rule is broken here`() {
        #expect(Set(Self.all.map(\.rule)) == Set(IntegrityConstraint.all.map(\.violation)))
    }

    @Test(arguments: all.indices) func `what breaks a rule is found, and mended where it can be`(index: Int)
        throws
    {
        let broken = Self.all[index]
        let specimen = try Specimen()
        try specimen.change(broken.statements)
        let report = try specimen.check()
        let comment: Comment = "\(broken.rule): \(report.findings.map(\.text))"
        #expect(report.findings.contains { $0.cause == broken.rule }, comment)
        #expect(report.plan.lines.contains("set right: \(broken.rule)") == (broken.outcome != .kept), comment)
        guard broken.outcome != .kept else { return }
        try SpaceRepair.run(specimen.unlocked, report.plan)
        let repaired = try specimen.check()
        let left: Comment = "\(broken.rule): \(repaired.findings.map(\.text)) \(repaired.plan.lines)"
        #expect(repaired.plan.lines.isEmpty, left)
        #expect(repaired.findings.isEmpty == (broken.outcome != .lost), left)
        #expect(!repaired.findings.contains { !$0.isOfFile }, left)
        if broken.outcome == .mended { #expect(try specimen.unreadable().isEmpty, comment) }
        // What the next mount does about it leaves nothing broken either.
        try specimen.remount()
        let later = try specimen.check()
        #expect(!later.findings.contains { !$0.isOfFile }, "\(broken.rule): \(later.findings.map(\.text))")
    }
}
