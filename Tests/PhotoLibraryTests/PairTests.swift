import PhotoLibrary
import TestSupport
import Testing

@testable import FileRequests

/// What belongs to a photo stays with it.
@Suite struct PairTests {
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

    @Test func movedToAnotherDayThePartnerFollows() throws {
        try fixture.mv("moments/2024-05-01/IMG_1.jpg", "moments/2020-01-01/IMG_1.jpg")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.cr2", "IMG_1.jpg"])
        #expect(try fixture.ls("moments/2024-05-01") == ["IMG_1.dng", "IMG_2.cr2"])
        #expect(try fixture.captured("albums/IMG_1.cr2").hasPrefix("2020-01-01"))
        try fixture.remount()
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.cr2", "IMG_1.jpg"])
    }

    @Test func whoMovesAllOfThemFindsThemWhereTheyWere() throws {
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

    @Test func othersFindThemWhereTheyAre() throws {
        try fixture.mv("moments/2024-05-01/IMG_1.jpg", "moments/2020-01-01/IMG_1.jpg")
        let other = Caller(uid: 0, gid: 0, pid: 77)
        let day = try fixture.ino("moments/2020-01-01")
        _ = try fixture.library.lookup(day, "IMG_1.cr2", other)
        let old = try fixture.ino("moments/2024-05-01")
        expectError(.noEntry) { _ = try fixture.library.lookup(old, "IMG_1.cr2", other) }
    }

    @Test func reDatedByAnEditThePartnerFollows() throws {
        try fixture.put("albums/IMG_1.jpg", jpeg("2021-06-07", more: 9))
        #expect(try fixture.ls("moments/2021-06-07") == ["IMG_1.cr2", "IMG_1.jpg"])
        // Saved by renaming.
        try fixture.put("albums/.t", jpeg("2022-06-07", more: 10))
        try fixture.mv("albums/.t", "albums/IMG_1.jpg")
        #expect(try fixture.ls("moments/2022-06-07").contains("IMG_1.jpg"))
    }

    @Test func aSidecarInTheDayGoesAlong() throws {
        try fixture.put("moments/2024-05-01/IMG_2.cr2.xmp", Array("<x/>".utf8))
        try fixture.mv("moments/2024-05-01/IMG_2.cr2", "moments/2020-01-01/IMG_2.cr2")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_2.cr2", "IMG_2.cr2.xmp"])
    }
}
