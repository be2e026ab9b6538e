import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@Suite("Photos and plain files: photos in moments and albums") struct PhotoTests {
    @Test func `a photo written in an album appears under its day`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Trip")
        let ino = try fixture.put("albums/Trip/a.jpg", jpeg("2024-05-01"))
        #expect(try fixture.ls("moments") == ["2024-05-01"])
        #expect(try fixture.stat("moments/2024-05-01/a.jpg").ino == ino)
        #expect(try fixture.stat("albums/Trip/a.jpg").nlink == 2)
        #expect(try fixture.stat("moments").nlink == 3)
        #expect(try fixture.captured("albums/Trip/a.jpg") == "2024-05-01 12:30:00")
        #expect(try fixture.source("albums/Trip/a.jpg") == "DateTimeOriginal")
        #expect(try fixture.library.listExtendedAttributes(ino).isEmpty)
    }

    @Test func `a photo is in moments when close returns, and not before`() throws {
        let fixture = try Fixture()
        let handle = try fixture.createOpen("albums/a.jpg")
        try fixture.write(handle, jpeg())
        #expect(try fixture.ls("moments").isEmpty)
        try fixture.library.flush(handle)
        #expect(try fixture.ls("moments") == ["2024-05-01"])
        fixture.library.release(handle)
    }

    @Test func `only the last writer's close classifies`() throws {
        let fixture = try Fixture()
        let first = try fixture.createOpen("albums/a.jpg")
        let second = try fixture.open("albums/a.jpg")
        try fixture.write(first, jpeg())
        try fixture.library.flush(first)
        #expect(try fixture.ls("moments").isEmpty)
        try fixture.library.flush(second)
        #expect(try fixture.ls("moments") == ["2024-05-01"])
        fixture.library.release(first)
        fixture.library.release(second)
    }

    @Test func `plain, empty and working files are no photos`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/notes.txt", Array("hello".utf8))
        try fixture.put("albums/empty.jpg", [])
        for (number, name) in [".a.jpg", "a.jpg~", "a.part", "a.tmp", "a.crdownload"].enumerated() {
            try fixture.put("albums/" + name, jpeg(more: number))
        }
        try fixture.mkdir("albums/.hidden")
        try fixture.mkdir("albums/.hidden/deep")
        try fixture.put("albums/.hidden/deep/a.jpg", jpeg(more: 11))
        try fixture.mkdir("albums/@eaDir")
        try fixture.put("albums/@eaDir/a.jpg", jpeg(more: 12))
        #expect(try fixture.ls("moments").isEmpty)
        try fixture.mv("albums/.a.jpg", "albums/a.jpg")
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        #expect(try fixture.stat("albums/a.jpg").nlink == 2)
        try fixture.mv("albums/.hidden", "albums/shown")
        #expect(try fixture.moments() == ["2024-05-01/a (2).jpg", "2024-05-01/a.jpg"])
        try fixture.mv("albums/@eaDir/a.jpg", "albums/shown/b.jpg")
        #expect(try fixture.moments().count == 3)
    }

    @Test func `two of one name on one day are numbered`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/A")
        try fixture.mkdir("albums/B")
        try fixture.put("albums/A/x.jpg", jpeg(more: 1))
        try fixture.put("albums/B/x.jpg", jpeg(more: 2))
        #expect(try fixture.moments() == ["2024-05-01/x (2).jpg", "2024-05-01/x.jpg"])
        let long = String(repeating: "ä", count: 125) + ".jpg"
        try fixture.put("albums/A/" + long, jpeg(more: 3))
        try fixture.put("albums/B/" + long, jpeg(more: 4))
        let shown = try fixture.ls("moments/2024-05-01").filter { $0.hasPrefix("ä") }
        #expect(shown.count == 2)
        #expect(shown.allSatisfy { $0.utf8.count <= 255 && !$0.contains("\u{FFFD}") })
    }

    @Test func `removing from an album leaves it in moments`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/A")
        try fixture.put("albums/A/x.jpg", jpeg())
        try fixture.rmrf("albums/A")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg())
        #expect(try fixture.stat("moments/2024-05-01/x.jpg").nlink == 1)
    }

    @Test func `removing from moments removes it from all albums`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/A")
        try fixture.put("albums/A/x.jpg", jpeg())
        try fixture.ln("albums/A/x.jpg", "albums/y.jpg")
        #expect(try fixture.stat("albums/y.jpg").nlink == 3)
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(try fixture.ls("albums/A").isEmpty)
        #expect(!fixture.exists("albums/y.jpg"))
        #expect(try fixture.ls("moments").isEmpty)
        #expect(fixture.observer.entries.map(\.1).sorted().suffix(2) == ["x.jpg", "y.jpg"])
        #expect(fixture.usedBytes == 0)
    }

    @Test func `an emptied day stays resolvable but is not listed`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg())
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(try fixture.ls("moments").isEmpty)
        #expect(try fixture.stat("moments").nlink == 2)
        #expect(fixture.exists("moments/2024-05-01"))
        try fixture.remount()
        #expect(!fixture.exists("moments/2024-05-01"))
        try fixture.put("albums/x.jpg", jpeg())
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.rmdir("moments/2024-05-01")
        #expect(!fixture.exists("moments/2024-05-01"))
        try fixture.mkdir("moments/2024-05-02")
        #expect(try fixture.ls("moments") == ["2024-05-02"])
        try fixture.remount()
        #expect(try fixture.ls("moments") == ["2024-05-02"])
        expectError(.notEmpty) {
            try fixture.put("moments/2024-05-02/z.txt", [1])
            try fixture.rmdir("moments/2024-05-02")
        }
    }

    @Test func `only days of real dates can be made in moments`() throws {
        let fixture = try Fixture()
        for name in ["2024-02-30", "2024-5-1", "Trip", "2023-02-29", "0000-01-01"] {
            expectError(.notPermitted) { try fixture.mkdir("moments/" + name) }
        }
        expectError(.notPermitted) { try fixture.put("moments/x.jpg", jpeg()) }
        try fixture.mkdir("moments/2024-02-29")
        expectError(.notPermitted) { try fixture.mkdir("moments/2024-02-29/sub") }
        expectError(.notPermitted) {
            _ = try fixture.library.makeSymbolicLink(
                try fixture.ino("moments/2024-02-29"), "l", target: [65], fixture.caller)
        }
        expectError(.notPermitted) { try fixture.mkdir("Other") }
        expectError(.notPermitted) { try fixture.rmdir("albums") }
        expectError(.notPermitted) { try fixture.mv("albums", "moments/2024-01-01") }
        expectError(.exists) { try fixture.mkdir("moments/2024-02-29") }
    }

    @Test func `a file put into a day is dated and pinned there`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("moments/2020-01-01/own.jpg", jpeg("2020-01-01"))
        try fixture.put("moments/2020-01-01/other.jpg", jpeg("2024-05-01"))
        try fixture.put("moments/2020-01-01/notes.txt", [1, 2])
        #expect(try fixture.ls("moments/2020-01-01") == ["notes.txt", "other.jpg", "own.jpg"])
        #expect(try fixture.ls("moments") == ["2020-01-01"])
        #expect(try fixture.source("moments/2020-01-01/other.jpg") == "moved")
        #expect(try fixture.captured("moments/2020-01-01/other.jpg") == "2020-01-01 12:30:00")
        #expect(try fixture.source("moments/2020-01-01/own.jpg") == "DateTimeOriginal")
        // A pinned photo stays in its day when rewritten; others are dated anew.
        try fixture.put("moments/2020-01-01/other.jpg", jpeg("2021-07-07"))
        let own = try fixture.open("moments/2020-01-01/own.jpg")
        try fixture.write(own, jpeg("2021-07-07"))
        try fixture.close(own)
        #expect(
            try fixture.moments() == ["2020-01-01/notes.txt", "2020-01-01/other.jpg", "2021-07-07/own.jpg"])
    }

    @Test func `moving between days re-dates and pins`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2020-01-01/x.jpg")
        #expect(try fixture.moments() == ["2020-01-01/x.jpg"])
        #expect(try fixture.captured("albums/x.jpg") == "2020-01-01 12:30:00")
        try fixture.put("albums/x.jpg", jpeg("2022-02-02"))
        #expect(try fixture.moments() == ["2020-01-01/x.jpg"])
    }

    @Test func `renaming a day re-dates all of it`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 2))
        try fixture.put("albums/z.jpg", jpeg("2024-06-01", more: 3))
        expectError(.notEmpty) { try fixture.mv("moments/2024-05-01", "moments/2024-06-01") }
        expectError(.notPermitted) { try fixture.mv("moments/2024-05-01", "moments/Trip") }
        try fixture.mv("moments/2024-05-01", "moments/1999-12-31")
        #expect(try fixture.moments() == ["1999-12-31/x.jpg", "1999-12-31/y.jpg", "2024-06-01/z.jpg"])
        #expect(try fixture.captured("albums/x.jpg") == "1999-12-31 12:30:00")
        try fixture.put("albums/x.jpg", jpeg("2023-03-03"))
        #expect(try fixture.moments().first == "1999-12-31/x.jpg")
        try fixture.mkdir("moments/2000-01-01")
        try fixture.mv("moments/1999-12-31", "moments/2000-01-01")
        #expect(try fixture.ls("moments") == ["2000-01-01", "2024-06-01"])
        #expect(try fixture.stat("moments").nlink == 4)
    }

    @Test func `moving from moments into an album is a membership`() throws {
        let fixture = try Fixture()
        let ino = try fixture.put("albums/x.jpg", jpeg())
        try fixture.rm("albums/x.jpg")
        try fixture.mkdir("albums/A")
        try fixture.mv("moments/2024-05-01/x.jpg", "albums/A/best.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.stat("albums/A/best.jpg").ino == ino)
        #expect(try fixture.stat("albums/A/best.jpg").nlink == 2)
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/x2.jpg")
        #expect(try fixture.stat("albums/x2.jpg").nlink == 3)
        expectError(.notPermitted) { try fixture.ln("albums/x2.jpg", "moments/2024-05-01/z.jpg") }
    }

    @Test func `moving a day into an album makes an album of it`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(more: 1))
        try fixture.put("albums/y.jpg", jpeg(more: 2))
        try fixture.put("moments/2024-05-01/plain.txt", [1])
        let day = try fixture.ino("moments/2024-05-01")
        try fixture.mv("moments/2024-05-01", "albums/May")
        #expect(try fixture.ino("albums/May") == day)
        #expect(try fixture.ino("moments/2024-05-01") != day)
        #expect(try fixture.ls("albums/May") == ["plain.txt", "x.jpg", "y.jpg"])
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        #expect(try fixture.stat("albums/May/x.jpg").nlink == 3)
        #expect(try fixture.stat("moments").nlink == 3)
        #expect(try fixture.stat("albums").nlink == 3)
        // It is an ordinary album now.
        try fixture.mkdir("albums/May/sub")
        try fixture.rm("albums/May/x.jpg")
        #expect(fixture.exists("moments/2024-05-01/x.jpg"))
    }

    @Test func `moving a photo from an album into a day pins it`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("albums/x.jpg", "moments/2020-01-01/new.jpg")
        #expect(try fixture.moments() == ["2020-01-01/new.jpg"])
        #expect(try fixture.ls("albums").isEmpty)
        #expect(try fixture.stat("moments/2020-01-01/new.jpg").nlink == 1)
        try fixture.mkdir("albums/A")
        expectError(.notPermitted) { try fixture.mv("albums/A", "moments/2020-01-01/A") }
        expectError(.notPermitted) { try fixture.mv("albums/A", "moments/2021-01-01") }
        try fixture.put("albums/t.txt", [1])
        try fixture.mv("albums/t.txt", "moments/2020-01-01/t.txt")
        #expect(try fixture.ls("albums") == ["A"])
        expectError(.notPermitted) { try fixture.mv("moments/2020-01-01/t.txt", "moments/t.txt") }
        try fixture.mv("moments/2020-01-01/t.txt", "albums/t.txt")
        #expect(try fixture.ls("moments/2020-01-01") == ["new.jpg"])
    }

    @Test func `a photo rewritten in place is filed anew`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/x.jpg", jpeg("2023-04-04"))
        #expect(try fixture.moments() == ["2023-04-04/x.jpg"])
        try fixture.put("albums/x.jpg", Array("no picture".utf8))
        #expect(try fixture.moments().isEmpty)
        #expect(try fixture.stat("albums/x.jpg").nlink == 1)
        try fixture.put("albums/x.jpg", jpeg("2023-04-05"))
        #expect(try fixture.moments() == ["2023-04-05/x.jpg"])
        try fixture.truncate("albums/x.jpg", 0)
        #expect(try fixture.moments() == ["2023-04-05/x.jpg"])
        try fixture.rm("moments/2023-04-05/x.jpg")
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("moments/2020-01-01/y.jpg", jpeg())
        try fixture.put("moments/2020-01-01/y.jpg", [1, 2])
        #expect(try fixture.moments() == ["2020-01-01/y.jpg"])
        expectError(.noData) { _ = try fixture.captured("moments/2020-01-01/y.jpg") }
    }

    @Test func `an undated photo follows its mtime`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(nil))
        #expect(try fixture.source("albums/x.jpg") == "mtime")
        try fixture.utimes("albums/x.jpg", modified: 1_000_000_000)
        let day = localDay(1_000_000_000)
        #expect(try fixture.moments() == [day + "/x.jpg"])
        #expect(try fixture.stat("albums/x.jpg").modified.nanoseconds == 5)
        try fixture.put("albums/y.jpg", jpeg("2024-05-01"))
        try fixture.utimes("albums/y.jpg", modified: 1_000_000_000)
        #expect(try fixture.moments() == [day + "/x.jpg", "2024-05-01/y.jpg"])
    }

    /// The date of a moment in the machine's time zone.
    private func localDay(_ seconds: Int) -> String {
        var (seconds, parts) = (seconds, tm())
        localtime_r(&seconds, &parts)
        return String(format: "%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday)
    }
}
