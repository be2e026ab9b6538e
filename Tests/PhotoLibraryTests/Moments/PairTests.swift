import PhotoLibrary
import TestSupport
import Testing

@testable import FileRequests
@testable import LibraryFixtures

/// Companions stay with their photo.
@Suite("Moments: companions of a photo") struct PairTests {
    private let fixture: Fixture

    /// A picture and a raw file of the same stem and time, and others.
    init() throws {
        fixture = try Fixture()
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        try fixture.put("albums/IMG_2.cr2", raw("2024-05-01", more: 2))
        // The same stem, but not the same time.
        try fixture.put("albums/IMG_1.dng", raw("2024-05-01", "12:31:00"))
        for day in ["2020-01-01", "2020-02-02"] { try fixture.mkdir("moments/" + day) }
    }

    @Test func `the partner of a photo moved to another day follows`() throws {
        try fixture.mv("moments/2024-05-01/IMG_1.jpg", "moments/2020-01-01/IMG_1.jpg")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.cr2", "IMG_1.jpg"])
        #expect(try fixture.ls("moments/2024-05-01") == ["IMG_1.dng", "IMG_2.cr2"])
        #expect(try fixture.captured("albums/IMG_1.cr2").hasPrefix("2020-01-01"))
        try fixture.remount()
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.cr2", "IMG_1.jpg"])
    }

    @Test func `a program that moves all of them finds them at their names`() throws {
        for name in ["IMG_1.jpg", "IMG_1.cr2", "IMG_1.dng", "IMG_2.cr2"] {
            try fixture.mv("moments/2024-05-01/" + name, "moments/2020-01-01/" + name)
        }
        #expect(try fixture.ls("moments/2020-01-01").count == 4)
        // To different days, too.
        try fixture.mv("moments/2020-01-01/IMG_1.jpg", "moments/2020-02-02/IMG_1.jpg")
        try fixture.mv("moments/2020-01-01/IMG_1.cr2", "moments/2024-05-01/IMG_1.cr2")
        #expect(try fixture.ls("moments/2024-05-01").contains("IMG_1.cr2"))
        #expect(try fixture.ls("moments/2020-02-02").contains("IMG_1.jpg"))
    }

    @Test func `other programs find them at their new names`() throws {
        try fixture.mv("moments/2024-05-01/IMG_1.jpg", "moments/2020-01-01/IMG_1.jpg")
        let other = Caller(uid: 0, gid: 0, pid: 77)
        let day = try fixture.ino("moments/2020-01-01")
        _ = try fixture.library.lookup(day, "IMG_1.cr2", other)
        let old = try fixture.ino("moments/2024-05-01")
        expectError(.noEntry) { _ = try fixture.library.lookup(old, "IMG_1.cr2", other) }
    }

    @Test func `the partner of a photo dated anew by an edit follows`() throws {
        try fixture.put("albums/IMG_1.jpg", jpeg("2021-06-07", more: 9))
        #expect(try fixture.ls("moments/2021-06-07") == ["IMG_1.cr2", "IMG_1.jpg"])
        // Saved by renaming.
        try fixture.put("albums/.t", jpeg("2022-06-07", more: 10))
        try fixture.mv("albums/.t", "albums/IMG_1.jpg")
        #expect(try fixture.ls("moments/2022-06-07").contains("IMG_1.jpg"))
    }

    @Test func `a sidecar in the day goes along`() throws {
        try fixture.put("moments/2024-05-01/IMG_2.cr2.xmp", Array("<x/>".utf8))
        try fixture.mv("moments/2024-05-01/IMG_2.cr2", "moments/2020-01-01/IMG_2.cr2")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_2.cr2", "IMG_2.cr2.xmp"])
    }

    // MARK: The trash

    private let trash = ".Trash-0/files"
    private let other = Caller(uid: 0, gid: 0, pid: 77)

    @Test func `removed from its day, a photo takes its partner along, and brings it back`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        try fixture.put("albums/IMG_2.cr2", raw("2024-05-01", more: 2))
        try fixture.rm("moments/2024-05-01/IMG_1.jpg")
        #expect(try fixture.moments() == ["2024-05-01/IMG_2.cr2"])
        #expect(try fixture.ls("albums") == ["IMG_2.cr2"])
        #expect(try fixture.ls(trash) == ["IMG_1.cr2", "IMG_1.jpg"])
        #expect(try fixture.ls(".Trash-0/info") == ["IMG_1.cr2.trashinfo", "IMG_1.jpg.trashinfo"])
        try fixture.mv(trash + "/IMG_1.cr2", "moments/2024-05-01/IMG_1.cr2")
        #expect(
            try fixture.moments() == ["IMG_1.cr2", "IMG_1.jpg", "IMG_2.cr2"].map { "2024-05-01/" + $0 })
        #expect(try fixture.ls("albums") == ["IMG_1.cr2", "IMG_1.jpg", "IMG_2.cr2"])
        #expect(try fixture.ls(trash).isEmpty)
        #expect(try fixture.ls(".Trash-0/info") == ["IMG_1.cr2.trashinfo"])
    }

    @Test func `by a file manager: trashed with its partner, and restored to another day with it`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        try fixture.put("albums/IMG_9.jpg", jpeg("2024-05-01", more: 9))
        try fixture.rm("moments/2024-05-01/IMG_9.jpg")
        try fixture.mv("moments/2024-05-01/IMG_1.cr2", trash + "/IMG_1.2.cr2")
        #expect(try fixture.ls(trash) == ["IMG_1.2.cr2", "IMG_1.jpg", "IMG_9.jpg"])
        try fixture.remount()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv(trash + "/IMG_1.2.cr2", "moments/2020-01-01/IMG_1.cr2")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.cr2", "IMG_1.jpg"])
        #expect(try fixture.captured("albums/IMG_1.jpg").hasPrefix("2020-01-01"))
        #expect(try fixture.ls(trash) == ["IMG_9.jpg"])
    }

    @Test func `a program that removes or restores all of them finds each where it was`() throws {
        let fixture = try Fixture(trashDays: 30)
        let names = ["IMG_1.jpg", "IMG_1.cr2"]
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        for name in names { try fixture.rm("moments/2024-05-01/" + name) }
        #expect(try fixture.ls(trash).count == 2)
        for name in names { try fixture.mv(trash + "/" + name, "moments/2024-05-01/" + name) }
        #expect(try fixture.moments().count == 2)
        // Another program sees both gone at once.
        try fixture.rm("moments/2024-05-01/IMG_1.jpg")
        let day = try fixture.ino("moments/2024-05-01")
        expectError(.noEntry) { _ = try fixture.library.lookup(day, "IMG_1.cr2", other) }
    }

    @Test func `where nothing is kept in the trash, the partner stays`() throws {
        let fixture = try Fixture(trashDays: 0)
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        try fixture.rm("moments/2024-05-01/IMG_1.jpg")
        #expect(try fixture.moments() == ["2024-05-01/IMG_1.cr2"])
    }

    @Test func `out of an album goes only the name`() throws {
        try fixture.rm("albums/IMG_1.jpg")
        #expect(try fixture.ls("albums").contains("IMG_1.cr2"))
        #expect(try fixture.moments().count == 4)
    }

    @Test func `a session that ends at once leaves no partner behind`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        try fixture.rm("moments/2024-05-01/IMG_1.jpg")
        try fixture.remount()
        #expect(try fixture.moments().isEmpty)
        #expect(try fixture.ls(trash) == ["IMG_1.cr2", "IMG_1.jpg"])
    }

    // MARK: Edits, and pictures of videos

    @Test func `an edit that Apple exported goes with its original`() throws {
        try fixture.put("albums/IMG_0007.jpg", jpeg("2024-05-03", more: 7))
        try fixture.put("albums/IMG_E0007.jpg", jpeg("2024-05-03", more: 8))
        try fixture.put("albums/IMG_E.jpg", jpeg("2024-05-03", more: 9))
        try fixture.mv("moments/2024-05-03/IMG_0007.jpg", "moments/2020-01-01/IMG_0007.jpg")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_0007.jpg", "IMG_E0007.jpg"])
        try fixture.mv("moments/2020-01-01/IMG_E0007.jpg", "moments/2024-05-03/IMG_E0007.jpg")
        #expect(try fixture.ls("moments/2024-05-03") == ["IMG_0007.jpg", "IMG_E.jpg", "IMG_E0007.jpg"])
    }
}
