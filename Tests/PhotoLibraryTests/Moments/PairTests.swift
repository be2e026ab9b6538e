import FileRequests
import LibraryFixtures
import PhotoLibrary
import TestSupport
import Testing

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

    @Test(arguments: [false, true])
    func `companions are called after a photo whose name is taken in its new day`(isMovedToo: Bool) throws {
        let there = jpeg("2020-01-01", more: 7)
        try fixture.put("moments/2020-01-01/IMG_1.jpg", there)
        for (place, text) in [("2024-05-01", "old"), ("2020-01-01", "new")] {
            try fixture.put("moments/\(place)/IMG_1.jpg.xmp", Array("<\(text)/>".utf8))
        }
        try fixture.put("moments/2024-05-01/IMG_1.xmp", Array("<third/>".utf8))
        let names = ["IMG_1.jpg", "IMG_1.cr2", "IMG_1.jpg.xmp", "IMG_1.xmp"]
        for name in isMovedToo ? names : ["IMG_1.jpg"] {
            try fixture.mv("moments/2024-05-01/" + name, "moments/2020-01-01/" + name)
        }
        let numbered = ["IMG_1 (2).cr2", "IMG_1 (2).jpg", "IMG_1 (2).jpg.xmp", "IMG_1 (2).xmp"]
        #expect(try fixture.ls("moments/2020-01-01") == numbered + ["IMG_1.jpg", "IMG_1.jpg.xmp"])
        #expect(try fixture.get("moments/2020-01-01/IMG_1 (2).jpg.xmp") == Array("<old/>".utf8))
        #expect(try fixture.get("moments/2020-01-01/IMG_1.jpg.xmp") == Array("<new/>".utf8))
        #expect(try fixture.get("moments/2020-01-01/IMG_1.jpg") == there)
        // They are companions still.
        try fixture.mv("moments/2020-01-01/IMG_1 (2).jpg", "moments/2020-02-02/Beach.jpg")
        #expect(
            try fixture.ls("moments/2020-02-02")
                == ["Beach.cr2", "Beach.jpg", "Beach.jpg.xmp", "Beach.xmp"])
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.jpg", "IMG_1.jpg.xmp"])
        try fixture.remount()
        #expect(try fixture.ls("albums").contains("IMG_1.cr2"))
    }

    private func picture(at time: String) -> [UInt8] {
        [0xFF, 0xD8] + exifSegment("2024:05:01 " + time) + jpeg(nil, more: 70).dropFirst(2)
    }

    /// Another camera's photo has the picture's name.
    @Test(arguments: [["jpg", "cr2"], ["cr2", "jpg"]])
    func `a raw file and its picture get the same number`(order: [String]) throws {
        let fixture = try Fixture(trashDays: 30)
        for album in ["Other", "Own"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/Other/R1.jpg", picture(at: "09:00:00"))
        for ending in order {
            let bytes = ending == "jpg" ? jpeg("2024-05-01", more: 1) : raw("2024-05-01")
            try fixture.put("albums/Own/R1." + ending, bytes)
        }
        #expect(try fixture.ls("moments/2024-05-01") == ["R1 (2).cr2", "R1 (2).jpg", "R1.jpg"])
        #expect(try fixture.get("moments/2024-05-01/R1 (2).jpg") == jpeg("2024-05-01", more: 1))
        try fixture.rm("moments/2024-05-01/R1 (2).cr2")
        #expect(try fixture.ls("moments/2024-05-01") == ["R1 (2).jpg", "R1.jpg"])
    }

    @Test func `a pair that has its name keeps it`() throws {
        for album in ["Other", "Third"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/Other/IMG_1.jpg", picture(at: "09:00:00"))
        try fixture.put("albums/Third/IMG_2.jpg", picture(at: "10:00:00"))
        #expect(
            try fixture.ls("moments/2024-05-01") == [
                "IMG_1 (2).jpg", "IMG_1.cr2", "IMG_1.dng", "IMG_1.jpg", "IMG_2.cr2", "IMG_2.jpg",
            ])
    }

    // MARK: The trash

    private let trash = ".Trash-0/files"
    private let other = Caller(uid: 0, gid: 0, pid: 77)

    @Test(arguments: [["jpg", "cr2"], ["cr2", "jpg"]])
    func `removed from its day, a photo leaves its partner, which is an ordinary photo then`(
        _ endings: [String]
    ) throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        let (gone, left) = ("IMG_1." + endings[0], "IMG_1." + endings[1])
        try fixture.rm("moments/2024-05-01/" + gone)
        #expect(try fixture.moments() == ["2024-05-01/" + left])
        #expect(try fixture.ls("albums") == [left])
        #expect(try fixture.ls(trash) == [gone])
        // It moves alone, and is restored alone.
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2024-05-01/" + left, "moments/2020-01-01/" + left)
        try fixture.remount()
        try fixture.mkdir("moments/2024-05-01")
        try fixture.mv(trash + "/" + gone, "moments/2024-05-01/" + gone)
        #expect(try fixture.moments() == ["2020-01-01/" + left, "2024-05-01/" + gone])
        #expect(try fixture.ls("albums") == ["IMG_1.cr2", "IMG_1.jpg"])
        // As a file manager removes it.
        try fixture.mv("moments/2020-01-01/" + left, trash + "/x")
        #expect(try fixture.ls(trash) == ["x"])
        #expect(try fixture.moments() == ["2024-05-01/" + gone])
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
        try fixture.rm("moments/2024-05-01/IMG_1.jpg")
        let day = try fixture.ino("moments/2024-05-01")
        #expect(throws: Never.self) { _ = try fixture.library.lookup(day, "IMG_1.cr2", other) }
    }

    @Test func `where nothing is kept in the trash, the partner stays`() throws {
        let fixture = try Fixture(trashDays: 0)
        try fixture.put("albums/IMG_1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/IMG_1.cr2", raw("2024-05-01"))
        try fixture.rm("moments/2024-05-01/IMG_1.jpg")
        #expect(try fixture.moments() == ["2024-05-01/IMG_1.cr2"])
    }

    /// Other pictures and videos only happen to have the stem.
    @Test func `a picture of the same stem and time stays`() throws {
        try fixture.put("albums/IMG_3.tif", raw("2024-05-01", more: 3))
        try fixture.put("albums/IMG_3.jpg", jpeg("2024-05-01", more: 4))
        try fixture.mv("moments/2024-05-01/IMG_3.jpg", "moments/2020-01-01/IMG_3.jpg")
        try fixture.rm("moments/2020-01-01/IMG_3.jpg")
        #expect(try fixture.ls("moments/2024-05-01").contains("IMG_3.tif"))
        #expect(fixture.exists("albums/IMG_3.tif"))
    }

    @Test func `out of an album goes only the name`() throws {
        try fixture.rm("albums/IMG_1.jpg")
        #expect(try fixture.ls("albums").contains("IMG_1.cr2"))
        #expect(try fixture.moments().count == 4)
    }

    // MARK: Identifiers

    /// A day with a Live Photo whose halves have different names, and a pair of one stem that is none.
    private func live(trashDays: Int = 30) throws -> Fixture {
        let fixture = try Fixture(trashDays: trashDays)
        try fixture.put("albums/IMG_1.jpg", appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 1))
        try fixture.put("albums/clip.mov", movie("2024-05-01", "AAAA-1"))
        try fixture.put("albums/IMG_1.mov", movie("2024-05-01", "BBBB-2", more: 1))
        for day in ["2020-01-01", "2020-02-02"] { try fixture.mkdir("moments/" + day) }
        #expect(try fixture.ls("moments/2024-05-01") == ["IMG_1.jpg", "IMG_1.mov", "clip.mov"])
        return fixture
    }

    @Test func `an identifier joins what names part, and parts what a name joins`() throws {
        let fixture = try live()
        try fixture.mv("moments/2024-05-01/clip.mov", "moments/2020-01-01/clip.mov")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.jpg", "clip.mov"])
        #expect(try fixture.ls("moments/2024-05-01") == ["IMG_1.mov"])
        try fixture.remount()
        try fixture.mv("moments/2020-01-01/IMG_1.jpg", "moments/2020-02-02/IMG_1.jpg")
        #expect(try fixture.ls("moments/2020-02-02") == ["IMG_1.jpg", "clip.mov"])
        // A day by its name.
        try fixture.mv("moments/2020-02-02", "moments/2020-03-03")
        #expect(try fixture.ls("moments/2020-03-03") == ["IMG_1.jpg", "clip.mov"])
    }

    /// Its own time is that of another zone, or lost.
    @Test(arguments: ["2024-05-02", nil], [true, false])
    func `a Live Photo's video is on the day of its still`(day: String?, isFirst: Bool) throws {
        let fixture = try Fixture()
        let video = movie(day, "AAAA-1")
        if isFirst { try fixture.put("albums/IMG_1.mov", video) }
        try fixture.put("albums/IMG_1.jpg", appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 1))
        if !isFirst { try fixture.put("albums/IMG_1.mov", video) }
        let both = ["2024-05-01/IMG_1.jpg", "2024-05-01/IMG_1.mov"]
        #expect(try fixture.moments() == both)
        #expect(
            try fixture.captured("albums/IMG_1.mov") == fixture.captured("albums/IMG_1.jpg"))
        // A copy of it is no video of its own.
        try fixture.put("albums/copy.mov", video)
        #expect(try fixture.moments() == both)
        try fixture.put("albums/IMG_1.mov", movie(day, "AAAA-1", more: 3))
        #expect(try fixture.moments() == both + ["2024-05-01/copy.mov"])
    }

    @Test func `a video on a day that the user chose stays there`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("moments/2020-01-01/IMG_1.mov", movie("2024-05-02", "AAAA-1"))
        try fixture.put("albums/IMG_1.jpg", appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 1))
        #expect(try fixture.moments() == ["2020-01-01/IMG_1.mov", "2024-05-01/IMG_1.jpg"])
    }

    @Test func `a video without an identifier goes by its stem`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/IMG_1.jpg", appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 1))
        try fixture.put("albums/IMG_1.mov", movie("2024-05-01", nil))
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2024-05-01/IMG_1.mov", "moments/2020-01-01/IMG_1.mov")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.jpg", "IMG_1.mov"])
    }

    @Test func `a raw file of the still goes with the video, too`() throws {
        let fixture = try live()
        try fixture.put("albums/IMG_1.dng", raw("2024-05-01", more: 5))
        try fixture.mv("moments/2024-05-01/clip.mov", "moments/2020-01-01/clip.mov")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.dng", "IMG_1.jpg", "clip.mov"])
    }

    @Test func `an edit that drops the identifier does not part a Live Photo, and re-dates both`()
        throws
    {
        let fixture = try live()
        try fixture.put("albums/IMG_1.jpg", jpeg("2021-06-07", more: 9))
        #expect(try fixture.ls("moments/2021-06-07") == ["IMG_1.jpg", "clip.mov"])
        try fixture.put("albums/.t", jpeg("2022-06-07", more: 10))
        try fixture.mv("albums/.t", "albums/IMG_1.jpg")
        #expect(try fixture.ls("moments/2022-06-07") == ["IMG_1.jpg", "clip.mov"])
        #expect(try fixture.ls("moments/2024-05-01") == ["IMG_1.mov"])
    }

    @Test func `thirty photos of a burst move together, and are removed one by one`() throws {
        let fixture = try Fixture(trashDays: 30)
        for number in 0..<30 {
            // At one second each: the last ones are not of the first one's time.
            try fixture.put("albums/B\(number).jpg", appleJPEG("2024-05-01", tag: 11, "C0FFEE", more: number))
        }
        let google = Array("<x xmp:CreateDate='2024-05-01' GCamera:BurstID='C0FFEE' />".utf8)
        let packet = Array("http://ns.adobe.com/xap/1.0/\0".utf8) + google
        var pixel = jpeg(nil, more: 77)
        pixel.insert(contentsOf: [0xFF, 0xE1, 0, UInt8(packet.count + 2)] + packet, at: 2)
        try fixture.put("albums/pixel.jpg", pixel)
        try fixture.put("albums/other.jpg", appleJPEG("2024-05-01", tag: 11, "DECAF", more: 99))
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2024-05-01/B7.jpg", "moments/2020-01-01/B7.jpg")
        #expect(try fixture.ls("moments/2020-01-01").count == 31)
        #expect(try fixture.ls("moments/2024-05-01") == ["other.jpg"])
        // But one is removed, and restored, alone.
        try fixture.rm("moments/2020-01-01/B0.jpg")
        #expect(try fixture.moments().count == 31 && fixture.ls(trash) == ["B0.jpg"])
        try fixture.rm("moments/2020-01-01/B29.jpg")
        try fixture.mv(trash + "/B29.jpg", "albums/back.jpg")
        #expect(try fixture.ls(trash) == ["B0.jpg"])
        try fixture.rm(trash + "/B0.jpg")
        #expect(try fixture.moments().count == 31 && fixture.ls("albums").count == 32)
    }

    @Test func `an edit of one photo re-dates its whole burst`() throws {
        let fixture = try Fixture()
        for number in 0..<5 {
            try fixture.put("albums/B\(number).jpg", appleJPEG("2024-05-01", tag: 11, "C0FFEE", more: number))
        }
        try fixture.put("albums/B3.jpg", jpeg("2019-01-01", more: 5))
        #expect(try fixture.ls("moments/2019-01-01") == (0..<5).map { "B\($0).jpg" })
    }

    @Test func `a program that moves a whole burst finds each photo where it was`() throws {
        let fixture = try Fixture(trashDays: 30)
        for number in 0..<5 {
            try fixture.put("albums/B\(number).jpg", appleJPEG("2024-05-01", tag: 11, "C0FFEE", more: number))
        }
        try fixture.mkdir("moments/2020-01-01")
        for number in 0..<5 {
            try fixture.mv("moments/2024-05-01/B\(number).jpg", "moments/2020-01-01/B\(number).jpg")
        }
        for number in 0..<5 { try fixture.rm("moments/2020-01-01/B\(number).jpg") }
        #expect(try fixture.ls(trash).count == 5)
        for number in 0..<5 { try fixture.mv(trash + "/B\(number).jpg", "albums/r\(number).jpg") }
        #expect(try fixture.ls("moments/2020-01-01").count == 5)
    }

    @Test func `a rebuilt catalogue knows the pairs of the lost one`() throws {
        let fixture = try live()
        try fixture.library.makeDurable()
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        try fixture.mv("moments/2024-05-01/clip.mov", "moments/2020-01-01/clip.mov")
        #expect(try fixture.ls("moments/2020-01-01") == ["IMG_1.jpg", "clip.mov"])
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
