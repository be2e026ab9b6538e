import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@Suite("Days: sidecars") struct SidecarTests {
    /// Many names may begin with the photo's stem, and come before it and its sidecar.
    @Test func `a sidecar is found among many`() throws {
        let fixture = try Fixture()
        for number in 0..<20 { try fixture.put("albums/scan.\(100 + number).txt", [1]) }
        try fixture.put("albums/scan.xmp", xmp("2001-02-03"))
        try fixture.put("albums/scan.jpg", jpeg("2024-05-01"))
        #expect(try fixture.moments() == ["2001-02-03/scan.jpg"])
        try fixture.put("albums/scan.xmp", xmp("2001-02-04"))
        #expect(try fixture.moments() == ["2001-02-04/scan.jpg"])
    }

    @Test(arguments: ["x.jpg.xmp", "x.xmp"]) func `a sidecar's date comes first`(name: String) throws {
        let fixture = try Fixture()
        try fixture.put("albums/" + name, xmp("2010-10-10"))
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "sidecar")
        // It may come later, by a rename too, and change.
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/.tmp", xmp("2011-11-11"))
        try fixture.mv(
            "albums/.tmp",
            "albums/"
                + name.replacingOccurrences(of: "x.", with: "y.").replacingOccurrences(of: ".y.", with: ".x.")
        )
        _ = try? fixture.put("albums/y.jpg.xmp", xmp("2012-12-12"))
        #expect(try fixture.moments() == ["2010-10-10/x.jpg", "2012-12-12/y.jpg"])
    }

    /// As rclone writes, and as a photo that is moved comes to another album.
    @Test(arguments: ["x.jpg.1a2b.partial", "Other/x.jpg"])
    func `a photo that comes to where its sidecar waits gets its date`(from: String) throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Other")
        try fixture.put("albums/x.jpg.xmp", xmp("2010-10-10"))
        try fixture.put("albums/" + from, jpeg("2024-05-01"))
        try fixture.mv("albums/" + from, "albums/x.jpg")
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "sidecar")
    }

    /// As exiftool saves, by any of the photo's names.
    @Test(arguments: ["moments/2010-10-10", "albums/Other"], [false, true])
    func `a photo saved by another name keeps its sidecar's date`(place: String, withBackup: Bool) throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Other")
        try fixture.put("albums/x.jpg.xmp", xmp("2010-10-10"))
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.ln("moments/2010-10-10/x.jpg", "albums/Other/x.jpg")
        try fixture.put(place + "/x.jpg_exiftool_tmp", jpeg("2024-05-01", more: 1))
        if withBackup { try fixture.mv(place + "/x.jpg", place + "/x.jpg_original") }
        try fixture.mv(place + "/x.jpg_exiftool_tmp", place + "/x.jpg")
        #expect(try fixture.source(place + "/x.jpg") == "sidecar")
        #expect(try fixture.get("moments/2010-10-10/x.jpg") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.get("albums/x.jpg") == jpeg("2024-05-01", more: 1))
    }

    // MARK: Of one of several photos

    /// Adobe's programs write one `DSC.xmp` for the raw file, beside which its picture may lie.
    @Test(arguments: permutations(["DSC.NEF", "DSC.JPG", "DSC.xmp"]), [false, true])
    func `a sidecar that names an extension dates that photo alone`(
        order: [String], byRename: Bool
    ) throws {
        let fixture = try Fixture()
        let files = [
            // Taken together: companions, which move together where the user moves one of them.
            "DSC.NEF": raw("2004-06-09"), "DSC.JPG": jpeg("2004-06-09"),
            "DSC.xmp": xmp("2019-01-01", of: "nef"),
        ]
        for name in order {
            let bytes = try #require(files[name])
            if byRename {
                try fixture.put("albums/.\(name).1", bytes)
                try fixture.mv("albums/.\(name).1", "albums/" + name)
            } else {
                try fixture.put("albums/" + name, bytes)
            }
        }
        #expect(try fixture.moments() == ["2004-06-09/DSC.JPG", "2019-01-01/DSC.NEF"])
        #expect(try fixture.source("albums/DSC.NEF") == "sidecar")
        #expect(try fixture.source("albums/DSC.JPG") == "DateTimeOriginal")
        // Without the sidecar both are where they belong, and are not pinned.
        try fixture.rm("albums/DSC.xmp")
        #expect(try fixture.moments() == ["2004-06-09/DSC.JPG", "2004-06-09/DSC.NEF"])
        #expect(try fixture.source("albums/DSC.NEF") == "DateTimeOriginal")
        try fixture.remount()
        #expect(try fixture.moments() == ["2004-06-09/DSC.JPG", "2004-06-09/DSC.NEF"])
    }

    /// The halves of a pair, with a sidecar of both.
    @Test(arguments: permutations(["DSC.NEF", "DSC.JPG", "DSC.xmp"]))
    func `a sidecar of a stem dates all photos of the stem`(order: [String]) throws {
        let fixture = try Fixture()
        let files = [
            "DSC.NEF": raw("2004-06-09"), "DSC.JPG": jpeg("2004-06-09"), "DSC.xmp": xmp("2019-01-01"),
        ]
        for name in order { try fixture.put("albums/" + name, try #require(files[name])) }
        #expect(try fixture.moments() == ["2019-01-01/DSC.JPG", "2019-01-01/DSC.NEF"])
        #expect(try fixture.source("albums/DSC.NEF") == "sidecar")
        #expect(try fixture.source("albums/DSC.JPG") == "sidecar")
        try fixture.rm("albums/DSC.xmp")
        #expect(try fixture.moments() == ["2004-06-09/DSC.JPG", "2004-06-09/DSC.NEF"])
    }

    @Test(arguments: permutations(["x.jpg", "x.jpg.xmp", "x.xmp"]))
    func `the sidecar of the whole name comes first, then that of the stem`(order: [String]) throws {
        let fixture = try Fixture()
        let files = [
            "x.jpg": jpeg("2024-05-01"), "x.jpg.xmp": xmp("2010-10-10"), "x.xmp": xmp("2011-11-11"),
        ]
        for name in order { try fixture.put("albums/" + name, try #require(files[name])) }
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        try fixture.rm("albums/x.jpg.xmp")
        #expect(try fixture.moments() == ["2011-11-11/x.jpg"])
        try fixture.rm("albums/x.xmp")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
    }

    @Test func `a sidecar without a date leaves the date to the next one`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/x.xmp", xmp("2011-11-11"))
        try fixture.put("albums/x.jpg.xmp", Array("<x/>".utf8))
        #expect(try fixture.moments() == ["2011-11-11/x.jpg"])
    }

    // MARK: Gone again

    /// How a sidecar goes, and comes back.
    enum Way: CaseIterable {
        case removed, emptied, truncated, renamed, movedAway, trashed, replaced, exchanged
    }

    @Test(arguments: Way.allCases, ["2024-05-01", nil])
    func `a photo whose sidecar goes has its own date again`(way: Way, own: String?) throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("albums/Other")
        // Makes the trash.
        try fixture.put("albums/gone.jpg", jpeg("2023-03-03", more: 3))
        try fixture.rm("moments/2023-03-03/gone.jpg")
        try fixture.put("albums/x.jpg", jpeg(own))
        try fixture.utimes("albums/x.jpg", modified: 1_000_000_000)
        let day = own ?? "2001-09-09"
        try fixture.put("albums/x.jpg.xmp", xmp("2010-10-10"))
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        let path = "albums/x.jpg.xmp"
        let trash = ".Trash-0/files/x.jpg.xmp"
        switch way {
        case .removed: try fixture.rm(path)
        case .emptied: try fixture.put(path, [])
        case .truncated: try fixture.truncate(path, 0)
        case .renamed: try fixture.mv(path, "albums/y.jpg.xmp")
        case .movedAway: try fixture.mv(path, "albums/Other/x.jpg.xmp")
        case .trashed: try fixture.mv(path, trash)
        case .replaced:
            try fixture.put("albums/.tmp", Array("nothing".utf8))
            try fixture.mv("albums/.tmp", path)
        case .exchanged:
            try fixture.put("albums/notes.txt", Array("nothing".utf8))
            try fixture.mv("albums/notes.txt", path, .exchange)
        }
        #expect(try fixture.moments() == [day + "/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == (own == nil ? "mtime" : "DateTimeOriginal"))
        switch way {
        case .removed, .emptied, .truncated, .replaced: try fixture.put(path, xmp("2010-10-10"))
        case .renamed: try fixture.mv("albums/y.jpg.xmp", path)
        case .movedAway: try fixture.mv("albums/Other/x.jpg.xmp", path)
        case .trashed: try fixture.mv(trash, path)
        case .exchanged: try fixture.mv("albums/notes.txt", path, .exchange)
        }
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "sidecar")
    }

    /// As a program that writes its file anew, and as one that moves all files of an album.
    @Test(arguments: [["x.jpg.xmp", "x.jpg"], ["x.jpg", "x.jpg.xmp"]])
    func `a photo that goes where its sidecar goes keeps its day and its name there`(order: [String]) throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Other")
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/x.jpg.xmp", xmp("2010-10-10"))
        // In the photo's own day its name is taken: it would be numbered, and stay so.
        try fixture.mkdir("albums/Third")
        try fixture.put("albums/Third/x.jpg", jpeg("2024-05-01", more: 1))
        for name in order { try fixture.mv("albums/" + name, "albums/Other/" + name) }
        #expect(try fixture.moments() == ["2010-10-10/x.jpg", "2024-05-01/x.jpg"])
        try fixture.rm("albums/Other/x.jpg.xmp")
        try fixture.put("albums/Other/x.jpg.xmp", xmp("2010-10-10"))
        #expect(try fixture.moments() == ["2010-10-10/x.jpg", "2024-05-01/x.jpg"])
    }

    @Test(arguments: [["x.jpg.xmp", "x.jpg"], ["x.jpg", "x.jpg.xmp"]])
    func `a photo keeps its day when its album is removed, in any order`(order: [String]) throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/x.jpg.xmp", xmp("2010-10-10"))
        for name in order { try fixture.rm("albums/" + name) }
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        try fixture.remount()
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
    }

    /// A program that removes a day must find each of its files where it listed it.
    @Test(arguments: [["x.jpg.xmp", "x.jpg"], ["x.jpg", "x.jpg.xmp"]])
    func `a day goes with its sidecars, in any order`(order: [String]) throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.mkdir("moments/2010-10-10")
        try fixture.put("moments/2010-10-10/x.jpg.xmp", xmp("2010-10-10"))
        try fixture.put("moments/2010-10-10/x.jpg", jpeg("2024-05-01"))
        for name in order { try fixture.rm("moments/2010-10-10/" + name) }
        #expect(try fixture.moments().isEmpty)
    }

    @Test func `a killed mount's photo has its own date in the next one`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/x.jpg.xmp", xmp("2010-10-10"))
        try fixture.rm("albums/x.jpg.xmp")
        try fixture.kill()
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
    }

    @Test(arguments: [false, true]) func `a link counts as an arrival`(sidecarFirst: Bool) throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Other")
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/some.xmp", xmp("2010-10-10"))
        let links = [("albums/x.jpg", "albums/Other/x.jpg"), ("albums/some.xmp", "albums/Other/x.xmp")]
        for (from, to) in sidecarFirst ? links.reversed() : links { try fixture.ln(from, to) }
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
    }

    /// A video has no date of its own but its still's.
    @Test func `a Live Photo's video comes back with its still`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/IMG_1.jpg", appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 0))
        try fixture.put("albums/IMG_1.mov", movie("2024-05-01", "AAAA-1"))
        let moments = try fixture.moments()
        try fixture.put("albums/IMG_1.jpg.xmp", xmp("2010-10-10"))
        #expect(try fixture.moments() == ["2010-10-10/IMG_1.jpg", "2010-10-10/IMG_1.mov"])
        try fixture.rm("albums/IMG_1.jpg.xmp")
        #expect(try fixture.moments() == moments)
    }
}

private func permutations(_ names: [String]) -> [[String]] {
    guard names.count > 1 else { return [names] }
    return names.flatMap { first in permutations(names.filter { $0 != first }).map { [first] + $0 } }
}
