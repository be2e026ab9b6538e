import FileRequests
import Foundation
import LibraryFixtures
import PhotoLibrary
import TestSupport
import Testing

/// A moment named after a file of an album follows when that one is renamed; new content without
/// a date of its own stays on its day.
@Suite("Albums: moments named after files of albums") struct MomentNameTests {
    // MARK: Names

    @Test(arguments: [".02430b31.partial", ".filepart", ".uploading", ".new"])
    func `a program's suffix is gone from moments once it is gone from the album`(suffix: String) throws {
        let fixture = try Fixture()
        try fixture.put("albums/IMG.jpg" + suffix, jpeg("2024-05-01"))
        #expect(try fixture.moments() == ["2024-05-01/IMG.jpg" + suffix])
        try fixture.mv("albums/IMG.jpg" + suffix, "albums/IMG.jpg")
        #expect(try fixture.moments() == ["2024-05-01/IMG.jpg"])
        #expect(try fixture.ino("moments/2024-05-01/IMG.jpg") == fixture.ino("albums/IMG.jpg"))
        #expect(try fixture.stat("albums/IMG.jpg").nlink == 2)
    }

    @Test func `a moment follows after a remount, to another album, and numbered where its name is taken`()
        throws
    {
        let fixture = try Fixture()
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/n1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/A/n2.jpg", jpeg("2024-05-01", more: 2))
        try fixture.put("albums/A/n3.jpg", jpeg("2024-05-02", more: 3))
        try fixture.remount()
        try fixture.mv("albums/A/n1.jpg", "albums/A/Beach.jpg")
        try fixture.mv("albums/A/n2.jpg", "albums/B/Beach.jpg")
        try fixture.mv("albums/A/n3.jpg", "albums/A/Beach (3).jpg")
        #expect(
            try fixture.moments() == [
                "2024-05-01/Beach (2).jpg", "2024-05-01/Beach.jpg", "2024-05-02/Beach (3).jpg",
            ])
        // Renamed to a name whose numbered form it has, and back to a free one.
        try fixture.mv("albums/B/Beach.jpg", "albums/B/Sand.jpg")
        #expect(try fixture.ino("albums/B/Sand.jpg") == fixture.ino("moments/2024-05-01/Sand.jpg"))
    }

    @Test func `a name given in moments stays, and so does that of a moved photo`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mv("moments/2024-05-01/a.jpg", "moments/2024-05-01/b.jpg")
        try fixture.mv("albums/a.jpg", "albums/b.jpg")
        try fixture.mv("albums/b.jpg", "albums/c.jpg")
        #expect(try fixture.moments() == ["2024-05-01/b.jpg"])
        // A move to another day under the same name gives it none.
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2020-01-01/x.jpg")
        try fixture.mv("albums/x.jpg", "albums/y.jpg")
        #expect(try fixture.moments() == ["2020-01-01/y.jpg", "2024-05-01/b.jpg"])
        // Written in moments, and added to an album.
        try fixture.put("moments/2020-01-01/own.jpg", jpeg("2020-01-01", more: 3))
        try fixture.mv("moments/2020-01-01/own.jpg", "albums/own.jpg")
        try fixture.mv("albums/own.jpg", "albums/other.jpg")
        #expect(fixture.exists("moments/2020-01-01/own.jpg"))
    }

    @Test func `a membership's rename changes nothing while the name that the moment is named after stands`()
        throws
    {
        let fixture = try Fixture()
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/n1.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("moments/2024-05-01/n1.jpg", "albums/B/n1.jpg")
        try fixture.mv("albums/B/n1.jpg", "albums/B/Sand.jpg")
        #expect(try fixture.moments() == ["2024-05-01/n1.jpg"])
        try fixture.mv("albums/A/n1.jpg", "albums/A/Beach.jpg")
        #expect(try fixture.moments() == ["2024-05-01/Beach.jpg"])
        #expect(try fixture.ls("albums/B") == ["Sand.jpg"])
    }

    @Test func `a moment does not follow to a working or a backup name, and follows from there`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        for name in ["a.jpg.part", ".a.jpg", "a.jpg.bak"] {
            try fixture.mv("albums/a.jpg", "albums/" + name)
            #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
            try fixture.mv("albums/" + name, "albums/a.jpg")
        }
        try fixture.mv("albums/a.jpg", "albums/.hidden")
        try fixture.mv("albums/.hidden", "albums/b.jpg")
        #expect(try fixture.moments() == ["2024-05-01/b.jpg"])
    }

    @Test func `moving to another album, the trash and back changes no moment's name`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("albums/A")
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/A/a.jpg", jpeg("2024-05-01", more: 2))
        let both = ["2024-05-01/a (2).jpg", "2024-05-01/a.jpg"]
        try fixture.mv("albums/A/a.jpg", "albums/A/a2.jpg")
        try fixture.mv("albums/A/a2.jpg", "albums/A/a.jpg")
        #expect(try fixture.moments() == both)
        try fixture.mkdir("albums/B")
        try fixture.mv("albums/A/a.jpg", "albums/B/a.jpg")
        #expect(try fixture.moments() == both)
        try fixture.rm("moments/2024-05-01/a (2).jpg")
        let kept = try fixture.ls(".Trash-0/files")[0]
        try fixture.mv(".Trash-0/files/" + kept, "moments/2024-05-01/a (2).jpg")
        #expect(try fixture.moments() == both)
        try fixture.mv("albums/B/a.jpg", "albums/B/Beach.jpg")
        #expect(try fixture.moments() == ["2024-05-01/Beach.jpg", "2024-05-01/a.jpg"])
    }

    @Test func `a name given in moments stays after a salvage`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/c.jpg", jpeg("2024-05-01", more: 2))
        try fixture.mv("moments/2024-05-01/a.jpg", "moments/2024-05-01/b.jpg")
        try fixture.mv("albums/a.jpg", "albums/b.jpg")
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        try fixture.mv("albums/b.jpg", "albums/x.jpg")
        try fixture.mv("albums/c.jpg", "albums/y.jpg")
        #expect(try fixture.moments() == ["2024-05-01/b.jpg", "2024-05-01/y.jpg"])
    }

    @Test func `the kernel is told that the moment's former name is gone`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg("2024-05-01"))
        let day = try fixture.ino("moments/2024-05-01")
        try fixture.mv("albums/a.jpg", "albums/b.jpg")
        #expect(fixture.observer.entries.contains { $0.0 == day && $0.1 == "a.jpg" })
    }

    // MARK: Days

    @Test func `a save that lost its date keeps its day, in place and by rename`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/x.jpg", jpeg(nil, more: 2))
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "kept")
        #expect(try fixture.captured("albums/x.jpg").hasPrefix("2024-05-01"))
        // jpegtran -outfile .t x.jpg; mv .t x.jpg
        try fixture.put("albums/y.jpg", jpeg("2024-05-02", more: 3))
        try fixture.put("albums/.t", jpeg(nil, more: 4))
        try fixture.mv("albums/.t", "albums/y.jpg")
        #expect(try fixture.source("albums/y.jpg") == "kept")
        // mogrify: y.jpg to y.jpg~, y.jpg anew, y.jpg~ removed.
        try fixture.mv("albums/y.jpg", "albums/y.jpg~")
        try fixture.put("albums/y.jpg", jpeg(nil, more: 5))
        try fixture.rm("albums/y.jpg~")
        // The new file was a photo of its own day before it was renamed.
        try fixture.put("albums/z_new.jpg", jpeg(nil, more: 6))
        try fixture.put("albums/z.jpg", jpeg("2024-05-03", more: 7))
        try fixture.mv("albums/z_new.jpg", "albums/z.jpg")
        let days = ["2024-05-01/x.jpg", "2024-05-02/y.jpg", "2024-05-03/z.jpg"]
        #expect(try fixture.moments() == days)
        // Its time of modification says nothing of a kept day, now or after a crash.
        try fixture.utimes("albums/x.jpg", modified: 1_000_000_000)
        #expect(try fixture.moments() == days)
        try fixture.kill()
        #expect(try fixture.moments() == days)
        #expect(try fixture.source("albums/z.jpg") == "kept")
    }

    /// exiftran -b -i: x.jpg to x.jpg~, then the new file, a photo in the day already, to x.jpg.
    @Test func `a save in a day by a backup and a new photo does not choose the day`() throws {
        let fixture = try Fixture()
        let day = "moments/2024-05-01"
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put(day + "/x.jpg.t1", jpeg(nil, more: 2))
        try fixture.mv(day + "/x.jpg", day + "/x.jpg~")
        try fixture.mv(day + "/x.jpg.t1", day + "/x.jpg")
        #expect(try fixture.source("albums/x.jpg") == "kept")
        try fixture.put(day + "/x.jpg.t2", jpeg(nil, more: 3))
        try fixture.mv(day + "/x.jpg.t2", day + "/x.jpg")
        #expect(try fixture.source("albums/x.jpg") == "kept")
        try fixture.put("albums/x.jpg", jpeg("2023-03-03", more: 4))
        #expect(try fixture.moments().contains("2023-03-03/x.jpg"))
        // With a date of its own.
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 5))
        try fixture.put(day + "/y.jpg.t3", jpeg("2024-05-02", more: 6))
        try fixture.mv(day + "/y.jpg", day + "/y.jpg~")
        try fixture.mv(day + "/y.jpg.t3", day + "/y.jpg")
        #expect(try fixture.moments().contains("2024-05-02/y.jpg"))
    }

    @Test func `new content with a date is filed by it, also after one without`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/x.jpg", jpeg(nil, more: 2))
        try fixture.put("albums/x.jpg", jpeg("2023-03-03", more: 3))
        #expect(try fixture.moments() == ["2023-03-03/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "DateTimeOriginal")
    }

    @Test func `a photo dated by its mtime keeps its day when edited, and follows when that is set`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(nil, more: 1))
        try fixture.utimes("albums/x.jpg", modified: 1_400_000_000)
        #expect(try fixture.moments() == ["2014-05-13/x.jpg"])
        try fixture.put("albums/x.jpg", jpeg(nil, more: 2))
        #expect(try fixture.moments() == ["2014-05-13/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "kept")
        try fixture.utimes("albums/x.jpg", modified: 1_500_000_000)
        #expect(try fixture.moments() == ["2017-07-14/x.jpg"])
    }

    @Test func `a photo that the user put into a day stays there`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2020-01-01/x.jpg")
        try fixture.put("albums/x.jpg", jpeg(nil, more: 2))
        #expect(try fixture.moments() == ["2020-01-01/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "moved")
    }
}
