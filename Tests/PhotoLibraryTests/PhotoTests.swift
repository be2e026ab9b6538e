import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@Suite struct PhotoTests {
    @Test func aPhotoWrittenInAnAlbumAppearsUnderItsDay() throws {
        let rig = try Rig()
        try rig.mkdir("albums/Trip")
        let ino = try rig.put("albums/Trip/a.jpg", jpeg("2024-05-01"))
        #expect(try rig.ls("moments") == ["2024-05-01"])
        #expect(try rig.stat("moments/2024-05-01/a.jpg").ino == ino)
        #expect(try rig.stat("albums/Trip/a.jpg").nlink == 2)
        #expect(try rig.stat("moments").nlink == 3)
        #expect(try rig.captured("albums/Trip/a.jpg") == "2024-05-01 12:30:00")
        #expect(try rig.source("albums/Trip/a.jpg") == "DateTimeOriginal")
        #expect(try rig.library.listExtendedAttributes(ino).isEmpty)
    }

    @Test func itIsThereWhenCloseReturnsAndNotBefore() throws {
        let rig = try Rig()
        let handle = try rig.createOpen("albums/a.jpg")
        try rig.write(handle, jpeg())
        #expect(try rig.ls("moments").isEmpty)
        try rig.library.flush(handle)
        #expect(try rig.ls("moments") == ["2024-05-01"])
        rig.library.release(handle)
    }

    @Test func onlyTheLastWriterFiles() throws {
        let rig = try Rig()
        let first = try rig.createOpen("albums/a.jpg")
        let second = try rig.open("albums/a.jpg")
        try rig.write(first, jpeg())
        try rig.library.flush(first)
        #expect(try rig.ls("moments").isEmpty)
        try rig.library.flush(second)
        #expect(try rig.ls("moments") == ["2024-05-01"])
        rig.library.release(first)
        rig.library.release(second)
    }

    @Test func plainAndEmptyAndWorkingFilesAreNoPhotos() throws {
        let rig = try Rig()
        try rig.put("albums/notes.txt", Array("hello".utf8))
        try rig.put("albums/empty.jpg", [])
        for (number, name) in [".a.jpg", "a.jpg~", "a.part", "a.tmp", "a.crdownload"].enumerated() {
            try rig.put("albums/" + name, jpeg(more: number))
        }
        try rig.mkdir("albums/.hidden")
        try rig.mkdir("albums/.hidden/deep")
        try rig.put("albums/.hidden/deep/a.jpg", jpeg(more: 11))
        try rig.mkdir("albums/@eaDir")
        try rig.put("albums/@eaDir/a.jpg", jpeg(more: 12))
        #expect(try rig.ls("moments").isEmpty)
        try rig.mv("albums/.a.jpg", "albums/a.jpg")
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
        #expect(try rig.stat("albums/a.jpg").nlink == 2)
        try rig.mv("albums/.hidden", "albums/shown")
        #expect(try rig.moments() == ["2024-05-01/a (2).jpg", "2024-05-01/a.jpg"])
        try rig.mv("albums/@eaDir/a.jpg", "albums/shown/b.jpg")
        #expect(try rig.moments().count == 3)
    }

    @Test func twoOfOneNameOnOneDayAreNumbered() throws {
        let rig = try Rig()
        try rig.mkdir("albums/A")
        try rig.mkdir("albums/B")
        try rig.put("albums/A/x.jpg", jpeg(more: 1))
        try rig.put("albums/B/x.jpg", jpeg(more: 2))
        #expect(try rig.moments() == ["2024-05-01/x (2).jpg", "2024-05-01/x.jpg"])
        let long = String(repeating: "ä", count: 125) + ".jpg"
        try rig.put("albums/A/" + long, jpeg(more: 3))
        try rig.put("albums/B/" + long, jpeg(more: 4))
        let shown = try rig.ls("moments/2024-05-01").filter { $0.hasPrefix("ä") }
        #expect(shown.count == 2)
        #expect(shown.allSatisfy { $0.utf8.count <= 255 && !$0.contains("\u{FFFD}") })
    }

    @Test func removingFromAnAlbumLeavesItInMoments() throws {
        let rig = try Rig()
        try rig.mkdir("albums/A")
        try rig.put("albums/A/x.jpg", jpeg())
        try rig.rmrf("albums/A")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.get("moments/2024-05-01/x.jpg") == jpeg())
        #expect(try rig.stat("moments/2024-05-01/x.jpg").nlink == 1)
    }

    @Test func removingFromMomentsRemovesItFromAllAlbums() throws {
        let rig = try Rig()
        try rig.mkdir("albums/A")
        try rig.put("albums/A/x.jpg", jpeg())
        try rig.ln("albums/A/x.jpg", "albums/y.jpg")
        #expect(try rig.stat("albums/y.jpg").nlink == 3)
        try rig.rm("moments/2024-05-01/x.jpg")
        #expect(try rig.ls("albums/A").isEmpty)
        #expect(!rig.exists("albums/y.jpg"))
        #expect(try rig.ls("moments").isEmpty)
        #expect(rig.observer.entries.map(\.1).sorted().suffix(2) == ["x.jpg", "y.jpg"])
        #expect(rig.usedBytes == 0)
    }

    @Test func anEmptiedDayStaysResolvableButIsNotListed() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg())
        try rig.rm("moments/2024-05-01/x.jpg")
        #expect(try rig.ls("moments").isEmpty)
        #expect(try rig.stat("moments").nlink == 2)
        #expect(rig.exists("moments/2024-05-01"))
        try rig.remount()
        #expect(!rig.exists("moments/2024-05-01"))
        try rig.put("albums/x.jpg", jpeg())
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.rmdir("moments/2024-05-01")
        #expect(!rig.exists("moments/2024-05-01"))
        try rig.mkdir("moments/2024-05-02")
        #expect(try rig.ls("moments") == ["2024-05-02"])
        try rig.remount()
        #expect(try rig.ls("moments") == ["2024-05-02"])
        expectError(.notEmpty) {
            try rig.put("moments/2024-05-02/z.txt", [1])
            try rig.rmdir("moments/2024-05-02")
        }
    }

    @Test func onlyDaysOfRealDatesCanBeMadeInMoments() throws {
        let rig = try Rig()
        for name in ["2024-02-30", "2024-5-1", "Trip", "2023-02-29", "0000-01-01"] {
            expectError(.notPermitted) { try rig.mkdir("moments/" + name) }
        }
        expectError(.notPermitted) { try rig.put("moments/x.jpg", jpeg()) }
        try rig.mkdir("moments/2024-02-29")
        expectError(.notPermitted) { try rig.mkdir("moments/2024-02-29/sub") }
        expectError(.notPermitted) {
            _ = try rig.library.makeSymbolicLink(
                try rig.ino("moments/2024-02-29"), "l", target: [65], rig.caller)
        }
        expectError(.notPermitted) { try rig.mkdir("Other") }
        expectError(.notPermitted) { try rig.rmdir("albums") }
        expectError(.notPermitted) { try rig.mv("albums", "moments/2024-01-01") }
        expectError(.exists) { try rig.mkdir("moments/2024-02-29") }
    }

    @Test func aFilePutIntoADayIsDatedAndPinnedThere() throws {
        let rig = try Rig()
        try rig.mkdir("moments/2020-01-01")
        try rig.put("moments/2020-01-01/own.jpg", jpeg("2020-01-01"))
        try rig.put("moments/2020-01-01/other.jpg", jpeg("2024-05-01"))
        try rig.put("moments/2020-01-01/notes.txt", [1, 2])
        #expect(try rig.ls("moments/2020-01-01") == ["notes.txt", "other.jpg", "own.jpg"])
        #expect(try rig.ls("moments") == ["2020-01-01"])
        #expect(try rig.source("moments/2020-01-01/other.jpg") == "moved")
        #expect(try rig.captured("moments/2020-01-01/other.jpg") == "2020-01-01 12:30:00")
        #expect(try rig.source("moments/2020-01-01/own.jpg") == "DateTimeOriginal")
        // Pinned stays where it is when rewritten; what is not pinned is dated anew.
        try rig.put("moments/2020-01-01/other.jpg", jpeg("2021-07-07"))
        let own = try rig.open("moments/2020-01-01/own.jpg")
        try rig.write(own, jpeg("2021-07-07"))
        try rig.close(own)
        #expect(
            try rig.moments() == ["2020-01-01/notes.txt", "2020-01-01/other.jpg", "2021-07-07/own.jpg"])
    }

    @Test func movingBetweenDaysRedatesAndPins() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01"))
        try rig.mkdir("moments/2020-01-01")
        try rig.mv("moments/2024-05-01/x.jpg", "moments/2020-01-01/x.jpg")
        #expect(try rig.moments() == ["2020-01-01/x.jpg"])
        #expect(try rig.captured("albums/x.jpg") == "2020-01-01 12:30:00")
        try rig.put("albums/x.jpg", jpeg("2022-02-02"))
        #expect(try rig.moments() == ["2020-01-01/x.jpg"])
    }

    @Test func renamingADayRedatesAllOfIt() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 2))
        try rig.put("albums/z.jpg", jpeg("2024-06-01", more: 3))
        expectError(.notEmpty) { try rig.mv("moments/2024-05-01", "moments/2024-06-01") }
        expectError(.notPermitted) { try rig.mv("moments/2024-05-01", "moments/Trip") }
        try rig.mv("moments/2024-05-01", "moments/1999-12-31")
        #expect(try rig.moments() == ["1999-12-31/x.jpg", "1999-12-31/y.jpg", "2024-06-01/z.jpg"])
        #expect(try rig.captured("albums/x.jpg") == "1999-12-31 12:30:00")
        try rig.put("albums/x.jpg", jpeg("2023-03-03"))
        #expect(try rig.moments().first == "1999-12-31/x.jpg")
        try rig.mkdir("moments/2000-01-01")
        try rig.mv("moments/1999-12-31", "moments/2000-01-01")
        #expect(try rig.ls("moments") == ["2000-01-01", "2024-06-01"])
        #expect(try rig.stat("moments").nlink == 4)
    }

    @Test func movingFromMomentsIntoAnAlbumIsAMembership() throws {
        let rig = try Rig()
        let ino = try rig.put("albums/x.jpg", jpeg())
        try rig.rm("albums/x.jpg")
        try rig.mkdir("albums/A")
        try rig.mv("moments/2024-05-01/x.jpg", "albums/A/best.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.stat("albums/A/best.jpg").ino == ino)
        #expect(try rig.stat("albums/A/best.jpg").nlink == 2)
        try rig.ln("moments/2024-05-01/x.jpg", "albums/x2.jpg")
        #expect(try rig.stat("albums/x2.jpg").nlink == 3)
        expectError(.notPermitted) { try rig.ln("albums/x2.jpg", "moments/2024-05-01/z.jpg") }
    }

    @Test func movingADayIntoAnAlbumMakesAnAlbumOfIt() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg(more: 1))
        try rig.put("albums/y.jpg", jpeg(more: 2))
        try rig.put("moments/2024-05-01/plain.txt", [1])
        let day = try rig.ino("moments/2024-05-01")
        try rig.mv("moments/2024-05-01", "albums/May")
        #expect(try rig.ino("albums/May") == day)
        #expect(try rig.ino("moments/2024-05-01") != day)
        #expect(try rig.ls("albums/May") == ["plain.txt", "x.jpg", "y.jpg"])
        #expect(try rig.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        #expect(try rig.stat("albums/May/x.jpg").nlink == 3)
        #expect(try rig.stat("moments").nlink == 3)
        #expect(try rig.stat("albums").nlink == 3)
        // It is an ordinary album now.
        try rig.mkdir("albums/May/sub")
        try rig.rm("albums/May/x.jpg")
        #expect(rig.exists("moments/2024-05-01/x.jpg"))
    }

    @Test func movingAPhotoFromAnAlbumIntoADayPinsIt() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01"))
        try rig.mkdir("moments/2020-01-01")
        try rig.mv("albums/x.jpg", "moments/2020-01-01/new.jpg")
        #expect(try rig.moments() == ["2020-01-01/new.jpg"])
        #expect(try rig.ls("albums").isEmpty)
        #expect(try rig.stat("moments/2020-01-01/new.jpg").nlink == 1)
        try rig.mkdir("albums/A")
        expectError(.notPermitted) { try rig.mv("albums/A", "moments/2020-01-01/A") }
        expectError(.notPermitted) { try rig.mv("albums/A", "moments/2021-01-01") }
        try rig.put("albums/t.txt", [1])
        try rig.mv("albums/t.txt", "moments/2020-01-01/t.txt")
        #expect(try rig.ls("albums") == ["A"])
        expectError(.notPermitted) { try rig.mv("moments/2020-01-01/t.txt", "moments/t.txt") }
        try rig.mv("moments/2020-01-01/t.txt", "albums/t.txt")
        #expect(try rig.ls("moments/2020-01-01") == ["new.jpg"])
    }

    @Test func rewrittenInPlaceItIsFiledAnew() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01"))
        try rig.put("albums/x.jpg", jpeg("2023-04-04"))
        #expect(try rig.moments() == ["2023-04-04/x.jpg"])
        try rig.put("albums/x.jpg", Array("no picture".utf8))
        #expect(try rig.moments().isEmpty)
        #expect(try rig.stat("albums/x.jpg").nlink == 1)
        try rig.put("albums/x.jpg", jpeg("2023-04-05"))
        #expect(try rig.moments() == ["2023-04-05/x.jpg"])
        try rig.truncate("albums/x.jpg", 0)
        #expect(try rig.moments().isEmpty)
        try rig.mkdir("moments/2020-01-01")
        try rig.put("moments/2020-01-01/y.jpg", jpeg())
        try rig.put("moments/2020-01-01/y.jpg", [1, 2])
        #expect(try rig.moments() == ["2020-01-01/y.jpg"])
        expectError(.noData) { _ = try rig.captured("moments/2020-01-01/y.jpg") }
    }

    @Test func anUndatedPhotoFollowsItsMtime() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg(nil))
        #expect(try rig.source("albums/x.jpg") == "mtime")
        try rig.utimes("albums/x.jpg", modified: 1_000_000_000)
        let day = localDay(1_000_000_000)
        #expect(try rig.moments() == [day + "/x.jpg"])
        #expect(try rig.stat("albums/x.jpg").modified.nanoseconds == 5)
        try rig.put("albums/y.jpg", jpeg("2024-05-01"))
        try rig.utimes("albums/y.jpg", modified: 1_000_000_000)
        #expect(try rig.moments() == [day + "/x.jpg", "2024-05-01/y.jpg"])
    }

    /// The date of a moment in the machine's time zone.
    private func localDay(_ seconds: Int) -> String {
        var (seconds, parts) = (seconds, tm())
        localtime_r(&seconds, &parts)
        return String(format: "%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday)
    }
}

@Suite struct SidecarTests {
    /// Many names may begin with the photo's stem, and come before it and its sidecar.
    @Test func aSidecarIsFoundAmongMany() throws {
        let rig = try Rig()
        for number in 0..<20 { try rig.put("albums/scan.\(100 + number).txt", [1]) }
        try rig.put("albums/scan.xmp", xmp("2001-02-03"))
        try rig.put("albums/scan.jpg", jpeg("2024-05-01"))
        #expect(try rig.moments() == ["2001-02-03/scan.jpg"])
        try rig.put("albums/scan.xmp", xmp("2001-02-04"))
        #expect(try rig.moments() == ["2001-02-04/scan.jpg"])
    }

    @Test(arguments: ["x.jpg.xmp", "x.xmp"]) func aSidecarsDateComesFirst(name: String) throws {
        let rig = try Rig()
        try rig.put("albums/" + name, xmp("2010-10-10"))
        try rig.put("albums/x.jpg", jpeg("2024-05-01"))
        #expect(try rig.moments() == ["2010-10-10/x.jpg"])
        #expect(try rig.source("albums/x.jpg") == "sidecar")
        // It may come later, by a rename too, and change.
        try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/.tmp", xmp("2011-11-11"))
        try rig.mv(
            "albums/.tmp",
            "albums/"
                + name.replacingOccurrences(of: "x.", with: "y.").replacingOccurrences(of: ".y.", with: ".x.")
        )
        _ = try? rig.put("albums/y.jpg.xmp", xmp("2012-12-12"))
        #expect(try rig.moments() == ["2010-10-10/x.jpg", "2012-12-12/y.jpg"])
    }
}
