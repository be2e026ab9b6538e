import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

private let trash = ".Trash-0"
private let files = ".Trash-0/files"

extension Fixture {
    /// A library whose trash keeps removed files, with one photo of 2024-05-01 in two albums.
    static func withAlbums(trashDays: Int = 30, clocks: Clocks = Clocks()) throws -> Fixture {
        let fixture = try Fixture(trashDays: trashDays, clocks: clocks)
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("albums/A/x.jpg", "albums/B/y.jpg")
        return fixture
    }

    /// The directories that a file manager makes before it moves anything.
    func makeTrash() throws {
        for path in [trash, files, trash + "/info"] where !exists(path) { try mkdir(path, mode: 0o700) }
    }

    /// The files of moments, albums and the trash, one by one.
    func everything() throws -> [String] {
        try moments() + below("albums") + (exists(files) ? below(files) : [])
    }

    private func below(_ directory: String) throws -> [String] {
        try list(directory).sorted { $0.name.description < $1.name.description }.flatMap { entry in
            let path = directory + "/" + entry.name.description
            return try entry.mode & 0o170000 == 0o040000 ? below(path) : [path]
        }
    }
}

/// Removing into the trash, and restoring.
@Suite("Trash: removed and restored") struct TrashTests {
    static let standing = ["2024-05-01/x.jpg", "albums/A/x.jpg", "albums/B/y.jpg"]

    /// Nothing changes; a new mount; a mount after the daemon was killed.
    enum Turn: CaseIterable { case none, remount, kill }

    func turn(_ fixture: Fixture, _ turn: Turn) throws {
        switch turn {
        case .none: break
        case .remount: try fixture.remount()
        case .kill: try fixture.kill()
        }
    }

    @Test func `the kernel keeps no name that a restore may give to another file`() throws {
        let fixture = try Fixture.withAlbums()
        try fixture.rm("moments/2024-05-01/x.jpg")
        func seconds(_ directory: String, _ name: Name) throws -> Double {
            try fixture.library.lookup(fixture.ino(directory), name, fixture.caller).entryTimeout
        }
        #expect(try seconds(files, "x.jpg") == 0)
        try fixture.put("albums/A/z.jpg", jpeg("2024-05-02", more: 2))
        #expect(try seconds("albums/A", "z.jpg") > 0)
        #expect(try seconds("moments/2024-05-02", "z.jpg") == 0)
    }

    @Test func `hundreds of photos of one name have places in a day and in the trash`() throws {
        let fixture = try Fixture(trashDays: 30)
        let count = 500
        for number in 0..<count {
            try fixture.mkdir("albums/\(number)")
            try fixture.put("albums/\(number)/x.jpg", jpeg("2024-05-01", more: number))
        }
        let photos = try fixture.moments()
        #expect(photos.count == count)
        for photo in photos { try fixture.rm("moments/" + photo) }
        #expect(try fixture.ls(files).count == count)
        #expect(try fixture.ls(trash + "/info").count == count)
    }

    @Test func `only a trash can be made at the root`() throws {
        let fixture = try Fixture()
        for name in [".Trash-0", ".Trash-1000", ".Trash-4294967295"] {
            try fixture.mkdir(name)
            #expect(try fixture.ls("/").contains(name))
            try fixture.rmdir(name)
        }
        for name in [".Trash", ".Trash-", ".Trash-x", ".Trash-01", ".Trash-+1", ".Trash-4294967296", "other"]
        {
            expectError(.notPermitted) { try fixture.mkdir(name) }
        }
        expectError(.notPermitted) { try fixture.put(".Trash-0", [1]) }
        expectError(.notPermitted) { try fixture.rmdir("albums") }
        try fixture.makeTrash()
        expectError(.notPermitted) { try fixture.mv(trash, "albums/trash") }
        expectError(.notEmpty) { try fixture.rmdir(trash) }
        #expect(try fixture.stat("/").nlink == 5)
    }

    @Test(arguments: Turn.allCases)
    func `a photo of an album goes alone, and comes back`(between: Turn) throws {
        let fixture = try Fixture.withAlbums()
        try fixture.makeTrash()
        try fixture.mv("albums/A/x.jpg", files + "/x.jpg")
        #expect(try fixture.everything() == ["2024-05-01/x.jpg", "albums/B/y.jpg", files + "/x.jpg"])
        try turn(fixture, between)
        try fixture.mv(files + "/x.jpg", "albums/A/x.jpg")
        #expect(try fixture.everything() == Self.standing)
        #expect(try fixture.stat("albums/A/x.jpg").nlink == 3)
        // Emptied, it stays in moments.
        try fixture.mv("albums/A/x.jpg", files + "/x.jpg")
        try turn(fixture, between)
        try fixture.rm(files + "/x.jpg")
        #expect(try fixture.everything() == ["2024-05-01/x.jpg", "albums/B/y.jpg"])
        #expect(try fixture.get("albums/B/y.jpg") == jpeg("2024-05-01", more: 1))
        try turn(fixture, between)
    }

    @Test(arguments: Turn.allCases) func `a photo of moments goes from its albums, and comes back to them`(
        between: Turn
    ) throws {
        let fixture = try Fixture.withAlbums()
        try fixture.makeTrash()
        let ino = try fixture.ino("albums/A/x.jpg")
        try fixture.mv("moments/2024-05-01/x.jpg", files + "/x.jpg")
        #expect(try fixture.everything() == [files + "/x.jpg"])
        #expect(try fixture.library.walk.photoCount() == 0)
        #expect(fixture.observer.entries.map(\.1).sorted() == ["x.jpg", "y.jpg"])
        #expect(try fixture.get(files + "/x.jpg") == jpeg("2024-05-01", more: 1))
        try turn(fixture, between)
        if !fixture.exists("moments/2024-05-01") { try fixture.mkdir("moments/2024-05-01") }
        try fixture.mv(files + "/x.jpg", "moments/2024-05-01/x.jpg")
        #expect(try fixture.everything() == Self.standing)
        #expect(try fixture.ino("albums/B/y.jpg") == ino)
        #expect(try fixture.stat("albums/B/y.jpg").nlink == 3)
        #expect(try fixture.source("albums/B/y.jpg") == "DateTimeOriginal")
        #expect(try fixture.library.walk.photoCount() == 1)
        try turn(fixture, between)
    }

    @Test(arguments: Turn.allCases) func `rm in moments makes entries that a file manager restores`(
        between: Turn
    ) throws {
        let fixture = try Fixture.withAlbums()
        try fixture.put("moments/2024-05-01/50% ü.jpg", jpeg("2024-05-01", more: 2))
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.rm("moments/2024-05-01/50% ü.jpg")
        #expect(try fixture.moments().isEmpty)
        #expect(try fixture.ls(files) == ["50% ü.jpg", "x.jpg"])
        #expect(try fixture.ls(trash + "/info") == ["50% ü.jpg.trashinfo", "x.jpg.trashinfo"])
        try turn(fixture, between)
        let info = String(decoding: try fixture.get(trash + "/info/50% ü.jpg.trashinfo"), as: UTF8.self)
        let lines = info.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[0] == "[Trash Info]")
        #expect(lines[1] == "Path=moments/2024-05-01/50%25%20%C3%BC.jpg")
        #expect(lines[2].wholeMatch(of: /DeletionDate=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/) != nil)
        #expect(lines[3...] == [""])
        for path in [trash, files, trash + "/info"] { #expect(try fixture.stat(path).mode & 0o777 == 0o700) }
        // Into an album: a photo of its own day and in its albums again.
        try fixture.mv(files + "/x.jpg", "albums/A/z.jpg")
        #expect(
            try fixture.everything()
                == [
                    "2024-05-01/x.jpg", "albums/A/x.jpg", "albums/A/z.jpg", "albums/B/y.jpg",
                    files + "/50% ü.jpg",
                ])
        try turn(fixture, between)
    }

    @Test func `the trash is the caller's`() throws {
        let fixture = try Fixture(byRoot: true, trashDays: 30)
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        let day = try fixture.ino("moments/2024-05-01")
        try fixture.library.unlink(day, "x.jpg", Caller(uid: 1000, gid: 100))
        #expect(try fixture.ls(".Trash-1000/files") == ["x.jpg"])
        #expect(try fixture.stat(".Trash-1000/info/x.jpg.trashinfo").uid == 1000)
        let other = try Fixture(byRoot: false, uid: 1001, trashDays: 30)
        try other.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try other.rm("moments/2024-05-01/x.jpg")
        #expect(try other.ls(".Trash-1001/files") == ["x.jpg"])
    }

    @Test func `names are numbered and fit`() throws {
        let fixture = try Fixture(trashDays: 30)
        let long = String(repeating: "n", count: 251) + ".jpg"
        for round in 0..<3 {
            try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: round))
            try fixture.rm("moments/2024-05-01/x.jpg")
        }
        try fixture.put("albums/" + long, jpeg("2024-05-01", more: 9))
        try fixture.rm("moments/2024-05-01/" + long)
        let kept = try fixture.ls(files)
        #expect(Set(kept).isSuperset(of: ["x.jpg", "x (2).jpg", "x (3).jpg"]))
        #expect(kept.count == 4)
        #expect(try fixture.ls(trash + "/info").sorted() == kept.map { $0 + ".trashinfo" }.sorted())
    }

    @Test(arguments: Turn.allCases) func `a whole day goes and comes back`(between: Turn) throws {
        let fixture = try Fixture.withAlbums()
        try fixture.put("albums/A/w.jpg", jpeg("2024-05-01", more: 2))
        try fixture.put("moments/2024-05-01/notes.txt", [1, 2])
        let before = try fixture.everything()
        try fixture.makeTrash()
        try fixture.mv("moments/2024-05-01", files + "/2024-05-01")
        #expect(
            try fixture.everything()
                == ["notes.txt", "w.jpg", "x.jpg"].map { files + "/2024-05-01/" + $0 })
        #expect(try fixture.stat("moments").nlink == 2)
        try turn(fixture, between)
        try fixture.mv(files + "/2024-05-01", "moments/2024-05-01")
        #expect(try fixture.everything() == before)
        #expect(try fixture.source("albums/A/w.jpg") == "DateTimeOriginal")
        try turn(fixture, between)
        // As another day, and file by file.
        try fixture.mv("moments/2024-05-01", files + "/again")
        try fixture.mv(files + "/again", "moments/2020-01-01")
        #expect(try fixture.captured("albums/A/w.jpg") == "2020-01-01 12:30:00")
        try fixture.mv("moments/2020-01-01", files + "/again")
        try turn(fixture, between)
        try fixture.mv(files + "/again/x.jpg", "albums/A/x.jpg")
        #expect(try fixture.moments() == ["2020-01-01/x.jpg"])
        #expect(try fixture.ls("albums/B") == ["y.jpg"])
        try fixture.mkdir(files + "/again/sub")
        expectError(.notPermitted) { try fixture.mv(files + "/again", "moments/2021-01-01") }
        expectError(.notPermitted) { try fixture.mv(files + "/again", "moments/again") }
        try fixture.rmdir(files + "/again/sub")
        expectError(.notEmpty) { try fixture.mv(files + "/again", "moments/2020-01-01") }
    }

    @Test(arguments: Turn.allCases) func `an album comes back with its photos that were removed meanwhile`(
        between: Turn
    )
        throws
    {
        let fixture = try Fixture.withAlbums()
        try fixture.mkdir("albums/A/.hidden")
        try fixture.ln("albums/A/x.jpg", "albums/A/.hidden/h.jpg")
        try fixture.makeTrash()
        try fixture.mv("albums/A", files + "/A")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(
            try fixture.everything() == [files + "/A/.hidden/h.jpg", files + "/A/x.jpg", files + "/x.jpg"])
        try turn(fixture, between)
        try fixture.mv(files + "/A", "albums/A")
        #expect(
            try fixture.everything()
                == [
                    "2024-05-01/x.jpg", "albums/A/.hidden/h.jpg", "albums/A/x.jpg", "albums/B/y.jpg",
                    files + "/x.jpg",
                ])
        try fixture.rm(files + "/x.jpg")
        #expect(try fixture.get("albums/A/x.jpg") == jpeg("2024-05-01", more: 1))
        try turn(fixture, between)
    }

    @Test(arguments: [1, 2, 3, 4])
    func `an album restored as a day keeps a photo under one of its names`(count: Int) throws {
        let fixture = try Fixture.withAlbums()
        try fixture.rm("albums/B/y.jpg")
        for number in 1..<count { try fixture.ln("albums/A/x.jpg", "albums/A/\(number).jpg") }
        try fixture.makeTrash()
        try fixture.mv("albums/A", files + "/A")
        try fixture.mv(files + "/A", "moments/2020-01-01")
        #expect(try fixture.everything() == ["2020-01-01/x.jpg"])
    }

    @Test func `an album of backup names restored as a day keeps the photo by its own`() throws {
        let fixture = try Fixture.withAlbums()
        try fixture.mv("albums/A/x.jpg", "albums/A/x.jpg~")
        try fixture.ln("albums/A/x.jpg~", "albums/A/x.jpg")
        try fixture.makeTrash()
        try fixture.mv("albums/A", files + "/A")
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.mv(files + "/A", "moments/2020-01-01")
        #expect(
            try fixture.everything()
                == ["2020-01-01/x.jpg", "2020-01-01/x.jpg~", "albums/B/y.jpg", files + "/x.jpg"])
    }

    @Test func `an album that has only backup names of a photo becomes a day with one of them`() throws {
        let fixture = try Fixture.withAlbums()
        try fixture.mv("albums/A/x.jpg", "albums/A/x.jpg~")
        try fixture.ln("albums/A/x.jpg~", "albums/A/x.jpg_original")
        try fixture.makeTrash()
        try fixture.mv("albums/A", files + "/A")
        try fixture.mv(files + "/A", "moments/2020-01-01")
        #expect(try fixture.ls("moments/2020-01-01") == ["x.jpg~"])
        try fixture.remount()
    }

    @Test func `restoring elsewhere pins and gives way where names are taken`() throws {
        let fixture = try Fixture.withAlbums()
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 2))
        try fixture.rmdir("albums/B")
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv(files + "/x.jpg", "moments/2020-01-01/back.jpg")
        #expect(
            try fixture.everything()
                == ["2020-01-01/back.jpg", "2024-05-01/x.jpg", "albums/A/x (2).jpg", "albums/A/x.jpg"])
        #expect(try fixture.captured("albums/A/x (2).jpg") == "2020-01-01 12:30:00")
        #expect(try fixture.get("albums/A/x (2).jpg") == jpeg("2024-05-01", more: 1))
        // Linked out of the trash it is a photo as well.
        try fixture.rm("moments/2020-01-01/back.jpg")
        try fixture.ln(files + "/back.jpg", "albums/linked.jpg")
        #expect(try fixture.moments() == ["2020-01-01/back.jpg", "2024-05-01/x.jpg"])
    }

    @Test func `a file restored over a photo is no save`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 2))
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.mv(files + "/x.jpg", "albums/y.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        // The trashinfo was left behind, as by mv: the next entry takes another name.
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.mv(files + "/x (2).jpg", "moments/2024-05-01/y.jpg")
        #expect(try fixture.moments() == ["2024-05-01/y (2).jpg", "2024-05-01/y.jpg"])
        #expect(try fixture.get("moments/2024-05-01/y (2).jpg") == jpeg("2024-05-01", more: 1))
        try fixture.rm("moments/2024-05-01/y.jpg")
        expectError(.notPermitted) { try fixture.mv(files + "/y.jpg", "albums/x.jpg", .exchange) }
    }

    @Test func `a photo overwritten in a day goes to the trash`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.put("albums/x.jpg", jpeg("2024-05-02", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-02", more: 2))
        try fixture.remount()
        try fixture.mv("moments/2024-05-02/x.jpg", "moments/2024-05-02/y.jpg")
        #expect(try fixture.moments() == ["2024-05-02/y.jpg"])
        #expect(try fixture.get(files + "/y.jpg") == jpeg("2024-05-02", more: 2))
        #expect(fixture.exists(trash + "/info/y.jpg.trashinfo"))
        // A save is not a removal.
        try fixture.put("moments/2024-05-02/.t", jpeg("2024-05-02", more: 3))
        try fixture.mv("moments/2024-05-02/.t", "moments/2024-05-02/y.jpg")
        #expect(try fixture.ls(files) == ["y.jpg"])
        try fixture.put("moments/2024-05-02/notes.txt", [1])
        try fixture.rm("moments/2024-05-02/notes.txt")
        #expect(try fixture.ls(files) == ["y.jpg"])
    }

    @Test func `the trash is plain but for photos`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.makeTrash()
        try fixture.put(files + "/new.jpg", jpeg())
        try fixture.mkdir(files + "/d")
        try fixture.mv(files + "/new.jpg", files + "/d/n.jpg")
        try fixture.ln(files + "/d/n.jpg", files + "/l.jpg")
        #expect(try fixture.moments().isEmpty)
        try fixture.mv(files + "/d", "albums/d")
        #expect(try fixture.moments() == ["2024-05-01/n.jpg"])
    }

    @Test func `names that are gone are stale to the kernel`() throws {
        let fixture = try Fixture.withAlbums()
        let ino = try fixture.ino("albums/A/x.jpg")
        try fixture.rm("moments/2024-05-01/x.jpg")
        expectError(.stale) { _ = try fixture.library.open(ino, flags: O_RDWR, fixture.caller) }
        #expect(try fixture.get(files + "/x.jpg") == jpeg("2024-05-01", more: 1))
    }

    @Test func `emptying destroys removed photos`() throws {
        let fixture = try Fixture(trashDays: 30)
        for number in 0..<3 { try fixture.put("albums/x\(number).jpg", jpeg("2024-05-01", more: number)) }
        try fixture.put("albums/kept.jpg", jpeg("2024-05-01", more: 7))
        for number in 0..<3 { try fixture.rm("moments/2024-05-01/x\(number).jpg") }
        try fixture.rmrf(trash)
        #expect(try fixture.everything() == ["2024-05-01/kept.jpg", "albums/kept.jpg"])
        try fixture.mv("moments/2024-05-01", "albums/May")
        try fixture.rmrf("albums/May")
        try fixture.rm("moments/2024-05-01/kept.jpg")
        try fixture.rmrf(trash)
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    @Test(arguments: Turn.allCases) func `copies go and come back with their photo`(between: Turn) throws {
        let fixture = try Fixture.withAlbums()
        try fixture.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/B/other.jpg", jpeg("2024-05-01", more: 1))
        try fixture.utimes("albums/copy.jpg", modified: 1_000_000_000)
        let before = try fixture.everything()
        let copy = try fixture.ino("albums/copy.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(try fixture.everything() == [files + "/x.jpg"])
        try turn(fixture, between)
        // The same picture comes once more: it is another photo.
        try fixture.put("albums/again.jpg", jpeg("2024-05-01", more: 1))
        #expect(try fixture.moments() == ["2024-05-01/again.jpg"])
        try fixture.rm("moments/2024-05-01/again.jpg")
        try fixture.rm(files + "/again.jpg")
        try turn(fixture, between)
        try fixture.mv(files + "/x.jpg", "albums/A/x.jpg")
        #expect(try fixture.everything() == before)
        #expect(try fixture.stat("albums/copy.jpg").ino == copy)
        #expect(try fixture.stat("albums/copy.jpg").modified.seconds == 1_000_000_000)
        #expect(try fixture.stat("albums/copy.jpg").nlink == 1)
        // Destroyed, nothing of them is left.
        try fixture.rm("moments/2024-05-01/x.jpg")
        try turn(fixture, between)
        try fixture.rmrf(trash)
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    @Test(arguments: Turn.allCases)
    func `a copy in the trash outlives its photo there`(between: Turn) throws {
        let fixture = try Fixture.withAlbums()
        try fixture.makeTrash()
        try fixture.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/more.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mv("albums/copy.jpg", files + "/copy.jpg")
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.rm(files + "/x.jpg")
        try turn(fixture, between)
        #expect(try fixture.everything() == [files + "/copy.jpg"])
        #expect(try fixture.library.walk.photoCount() == 0)
        try fixture.mv(files + "/copy.jpg", "albums/copy.jpg")
        #expect(try fixture.everything() == ["2024-05-01/x.jpg", "albums/copy.jpg", "albums/more.jpg"])
        // And restored, it brings its photo back.
        try fixture.mv("albums/more.jpg", files + "/more.jpg")
        try fixture.rm("moments/2024-05-01/x.jpg")
        try turn(fixture, between)
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv(files + "/more.jpg", "moments/2020-01-01/more.jpg")
        #expect(try fixture.moments() == ["2020-01-01/more.jpg"])
        #expect(try fixture.get("albums/copy.jpg") == jpeg("2024-05-01", more: 1))
        try turn(fixture, between)
    }

    @Test func `without trash a photo is destroyed at once`() throws {
        let fixture = try Fixture.withAlbums(trashDays: 0)
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(try fixture.ls("/") == ["albums", "moments"])
        #expect(fixture.usedBytes == 0)
        // Files that a file manager puts there are kept.
        try fixture.put("albums/A/x.jpg", jpeg())
        try fixture.makeTrash()
        try fixture.mv("moments/2024-05-01/x.jpg", files + "/x.jpg")
        try fixture.remount()
        try fixture.mkdir("moments/2024-05-01")
        try fixture.mv(files + "/x.jpg", "moments/2024-05-01/x.jpg")
        #expect(try fixture.ls("albums/A") == ["x.jpg"])
    }
}
