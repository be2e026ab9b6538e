import FileRequests
import Glibc
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultFormat

/// Programs that empty a file and close it before they write it anew: `convert x.jpg x.jpg`, `: >x; cat y >x`.
@Suite("Albums: saving in two steps") struct TwoStepSaveTests {
    private let old = jpeg("2024-05-01", more: 1)
    private let new = jpeg("2024-05-01", more: 2)

    private func empty(_ path: String, _ fixture: Fixture) throws {
        try fixture.close(try fixture.createOpen(path))
    }

    /// A photo on a day that the user chose, under a name given there, in an album of the name it came by.
    private func pinned() throws -> Fixture {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("albums/A")
        try fixture.put("albums/A/x.jpg", old)
        try fixture.mkdir("moments/2020-02-02")
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2020-02-02/mine.jpg")
        return fixture
    }

    @Test(arguments: ["moments/2020-02-02/mine.jpg", "albums/A/x.jpg"])
    func `a photo that is emptied first stays the photo`(path: String) throws {
        let fixture = try pinned()
        let (before, time) = (try fixture.stat("albums/A/x.jpg"), try fixture.captured("albums/A/x.jpg"))
        try empty(path, fixture)
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
        #expect(try fixture.get("albums/A/x.jpg") == [])
        try fixture.put(path, new)
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
        for name in ["moments/2020-02-02/mine.jpg", "albums/A/x.jpg"] {
            #expect(try fixture.get(name) == new)
            #expect(try fixture.ino(name) == before.ino)
        }
        #expect(try fixture.stat(path).nlink == 2)
        #expect(try fixture.captured(path) == time)
        #expect(try fixture.get("albums/A/.versions/x.jpg/original") == old)
        // A name in moments that was given there stays.
        try fixture.mv("albums/A/x.jpg", "albums/A/y.jpg")
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
    }

    /// The case of an export to a stick that was full: emptied today, written again next week.
    @Test(arguments: ["moments/2020-02-02/mine.jpg", "albums/A/x.jpg"], ["remount", "kill", "salvage"])
    func `it stays the photo in a later mount`(path: String, end: String) throws {
        let fixture = try pinned()
        let time = try fixture.captured(path)
        try empty(path, fixture)
        switch end {
        case "remount": try fixture.remount()
        case "kill":
            try fixture.library.makeDurable()
            try fixture.kill()
        default:
            try fixture.destroyCatalogue()
            _ = try fixture.salvage()
        }
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
        try fixture.put(path, new)
        for name in ["moments/2020-02-02/mine.jpg", "albums/A/x.jpg"] {
            #expect(try fixture.get(name) == new)
        }
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
        #expect(try fixture.captured(path) == time)
        #expect(try fixture.source(path) == "moved")
        #expect(try fixture.get("albums/A/.versions/x.jpg/original") == old)
    }

    @Test(arguments: [true, false]) func `a file renamed over the emptied name saves the photo`(
        isRemounted: Bool
    ) throws {
        for path in ["moments/2020-02-02/mine.jpg", "albums/A/x.jpg"] {
            let fixture = try pinned()
            try empty(path, fixture)
            if isRemounted { try fixture.remount() }
            let temporary = path.split(separator: "/").dropLast().joined(separator: "/") + "/.t"
            try fixture.put(temporary, new)
            try fixture.mv(temporary, path)
            #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
            #expect(try fixture.get("albums/A/x.jpg") == new)
            #expect(try fixture.get("moments/2020-02-02/mine.jpg") == new)
            #expect(try fixture.get("albums/A/.versions/x.jpg/original") == old)
        }
    }

    @Test func `it has no picture, and its time of modification dates nothing`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(nil, more: 1))
        let day = try fixture.moments()
        try empty("albums/x.jpg", fixture)
        try fixture.setModified("albums/x.jpg", Timestamp(seconds: 86_400))
        _ = try fixture.ls("moments")
        #expect(try fixture.moments() == day)
        try fixture.put("albums/x.jpg", jpeg(nil, more: 2))
        #expect(try fixture.moments() == day)
    }

    @Test(arguments: [true, false])
    func `one that becomes text is in albums only, however late the first step is closed`(isLate: Bool) throws
    {
        let fixture = try pinned()
        let path = "moments/2020-02-02/mine.jpg"
        let first = try fixture.createOpen(path)
        if !isLate { try fixture.close(first) }
        let second = try fixture.createOpen(path)
        if isLate { try fixture.close(first) }
        // The shell closes a copy of its descriptor before the program writes.
        try fixture.library.flush(second)
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
        try fixture.write(second, Array("text".utf8))
        try fixture.close(second)
        #expect(try fixture.moments() == [])
        #expect(try fixture.get("albums/A/x.jpg") == Array("text".utf8))
    }

    @Test func `one that is emptied again and again stays the photo`() throws {
        let fixture = try pinned()
        let path = "moments/2020-02-02/mine.jpg"
        for _ in 0..<3 {
            try empty(path, fixture)
            #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
        }
        try fixture.put(path, new)
        #expect(try fixture.get("albums/A/x.jpg") == new)
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
    }

    @Test func `it may be open for reading meanwhile, or not quite closed`() throws {
        let fixture = try pinned()
        let path = "moments/2020-02-02/mine.jpg"
        let reader = try fixture.open("albums/A/x.jpg", O_RDONLY)
        try empty(path, fixture)
        try fixture.put(path, new)
        try fixture.close(reader)
        #expect(try fixture.get("albums/A/x.jpg") == new)
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
    }

    @Test(arguments: [true, false]) func `it is dated anew, or keeps its day`(isDated: Bool) throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", old)
        try empty("moments/2024-05-01/x.jpg", fixture)
        try fixture.put("albums/x.jpg", jpeg(isDated ? "2021-01-01" : nil, more: 3))
        #expect(try fixture.moments() == [isDated ? "2021-01-01/x.jpg" : "2024-05-01/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == (isDated ? "DateTimeOriginal" : "kept"))
    }

    @Test func `a photo with no other name stays in its day while it is empty`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-02-02")
        try fixture.put("moments/2020-02-02/x.jpg", old)
        try empty("moments/2020-02-02/x.jpg", fixture)
        #expect(try fixture.moments() == ["2020-02-02/x.jpg"])
        try fixture.put("moments/2020-02-02/x.jpg", new)
        #expect(try fixture.moments() == ["2020-02-02/x.jpg"])
        #expect(try fixture.source("moments/2020-02-02/x.jpg") == "moved")
    }

    @Test func `new files take the name in moments otherwise`() throws {
        let fixture = try pinned()
        let path = "moments/2020-02-02/mine.jpg"
        // Text is somebody's: it is not written over.
        try fixture.put("albums/A/x.jpg", Array("text".utf8))
        try fixture.put(path, new)
        #expect(try fixture.get("albums/A/x.jpg") == Array("text".utf8))
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
    }

    @Test func `text, and then a picture again, make it the photo that it was`() throws {
        let fixture = try pinned()
        try fixture.put("albums/A/x.jpg", Array("text".utf8))
        #expect(try fixture.moments() == [])
        try fixture.put("albums/A/x.jpg", new)
        #expect(try fixture.moments() == ["2020-02-02/mine.jpg"])
    }

    @Test func `a file that lies in another day by now is that day's`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-02-02")
        try fixture.put("moments/2020-02-02/x.jpg", old)
        try empty("moments/2020-02-02/x.jpg", fixture)
        try fixture.mkdir("moments/2021-03-03")
        try fixture.mv("moments/2020-02-02/x.jpg", "moments/2021-03-03/x.jpg")
        try fixture.put("moments/2021-03-03/x.jpg", new)
        #expect(try fixture.moments() == ["2021-03-03/x.jpg"])
    }

    @Test func `the newest photos that became text are remembered`() throws {
        var limits = Limits.least
        limits.formerPhotos = 2
        let fixture = try Fixture(limits: limits)
        let names = (0..<6).map { "x\($0).jpg" }
        try fixture.mkdir("moments/2020-02-02")
        for (number, name) in names.enumerated() {
            try fixture.put("albums/" + name, jpeg("2024-05-01", more: 2 * number))
            try fixture.mv("moments/2024-05-01/" + name, "moments/2020-02-02/" + name)
        }
        for name in names { try fixture.put("albums/" + name, Array("text".utf8)) }
        for (number, name) in names.enumerated() {
            try fixture.put("albums/" + name, jpeg("2024-05-01", more: 2 * number + 1))
        }
        // Two generations of two: the first two names are forgotten.
        #expect(try fixture.ls("moments/2024-05-01") == ["x0.jpg", "x1.jpg"])
    }
}
