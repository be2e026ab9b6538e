import Foundation
import LinuxIO
import TestSupport
import Testing

@testable import PhotoLibrary

private let trash = ".Trash-0"
private let files = ".Trash-0/files"

extension Rig {
    /// A library whose trash keeps what is removed, with one photo of 2024-05-01 in two albums.
    static func withAlbums(trashDays: Int = 30, clocks: Clocks = Clocks()) throws -> Rig {
        let rig = try Rig(trashDays: trashDays, clocks: clocks)
        for album in ["A", "B"] { try rig.mkdir("albums/" + album) }
        try rig.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.ln("albums/A/x.jpg", "albums/B/y.jpg")
        return rig
    }

    /// The directories that a file manager makes before it moves anything.
    func makeTrash() throws {
        for path in [trash, files, trash + "/info"] where !exists(path) { try mkdir(path, mode: 0o700) }
    }

    /// What stands in moments, albums and the trash, one by one.
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

/// What the trash is to whoever removes and restores.
@Suite struct TrashTests {
    static let standing = ["2024-05-01/x.jpg", "albums/A/x.jpg", "albums/B/y.jpg"]

    /// Nothing changes; a new mount; a mount after the daemon was killed.
    enum Turn: CaseIterable { case none, remount, kill }

    func turn(_ rig: Rig, _ turn: Turn) throws {
        switch turn {
        case .none: break
        case .remount: try rig.remount()
        case .kill: try rig.kill()
        }
    }

    @Test func hundredsOfPhotosOfOneNameHavePlacesInADayAndInTheTrash() throws {
        let rig = try Rig(trashDays: 30)
        let count = 500
        for number in 0..<count {
            try rig.mkdir("albums/\(number)")
            try rig.put("albums/\(number)/x.jpg", jpeg("2024-05-01", more: number))
        }
        let photos = try rig.moments()
        #expect(photos.count == count)
        for photo in photos { try rig.rm("moments/" + photo) }
        #expect(try rig.ls(files).count == count)
        #expect(try rig.ls(trash + "/info").count == count)
    }

    @Test func onlyATrashCanBeMadeAtTheRoot() throws {
        let rig = try Rig()
        for name in [".Trash-0", ".Trash-1000", ".Trash-4294967295"] {
            try rig.mkdir(name)
            #expect(try rig.ls("/").contains(name))
            try rig.rmdir(name)
        }
        for name in [".Trash", ".Trash-", ".Trash-x", ".Trash-01", ".Trash-+1", ".Trash-4294967296", "other"]
        {
            expectError(.notPermitted) { try rig.mkdir(name) }
        }
        expectError(.notPermitted) { try rig.put(".Trash-0", [1]) }
        expectError(.notPermitted) { try rig.rmdir("albums") }
        try rig.makeTrash()
        expectError(.notPermitted) { try rig.mv(trash, "albums/trash") }
        expectError(.notEmpty) { try rig.rmdir(trash) }
        #expect(try rig.stat("/").nlink == 5)
    }

    @Test(arguments: Turn.allCases) func aPhotoOfAnAlbumGoesAloneAndComesBack(between: Turn) throws {
        let rig = try Rig.withAlbums()
        try rig.makeTrash()
        try rig.mv("albums/A/x.jpg", files + "/x.jpg")
        #expect(try rig.everything() == ["2024-05-01/x.jpg", "albums/B/y.jpg", files + "/x.jpg"])
        try turn(rig, between)
        try rig.mv(files + "/x.jpg", "albums/A/x.jpg")
        #expect(try rig.everything() == Self.standing)
        #expect(try rig.stat("albums/A/x.jpg").nlink == 3)
        // Emptied, it stays in moments.
        try rig.mv("albums/A/x.jpg", files + "/x.jpg")
        try turn(rig, between)
        try rig.rm(files + "/x.jpg")
        #expect(try rig.everything() == ["2024-05-01/x.jpg", "albums/B/y.jpg"])
        #expect(try rig.get("albums/B/y.jpg") == jpeg("2024-05-01", more: 1))
        try turn(rig, between)
    }

    @Test(arguments: Turn.allCases) func aPhotoOfMomentsGoesFromItsAlbumsAndComesBack(between: Turn) throws {
        let rig = try Rig.withAlbums()
        try rig.makeTrash()
        let ino = try rig.ino("albums/A/x.jpg")
        try rig.mv("moments/2024-05-01/x.jpg", files + "/x.jpg")
        #expect(try rig.everything() == [files + "/x.jpg"])
        #expect(try rig.library.photoCount() == 0)
        #expect(rig.observer.entries.map(\.1).sorted() == ["x.jpg", "y.jpg"])
        #expect(try rig.get(files + "/x.jpg") == jpeg("2024-05-01", more: 1))
        try turn(rig, between)
        if !rig.exists("moments/2024-05-01") { try rig.mkdir("moments/2024-05-01") }
        try rig.mv(files + "/x.jpg", "moments/2024-05-01/x.jpg")
        #expect(try rig.everything() == Self.standing)
        #expect(try rig.ino("albums/B/y.jpg") == ino)
        #expect(try rig.stat("albums/B/y.jpg").nlink == 3)
        #expect(try rig.source("albums/B/y.jpg") == "DateTimeOriginal")
        #expect(try rig.library.photoCount() == 1)
        try turn(rig, between)
    }

    @Test(arguments: Turn.allCases) func rmInMomentsMakesWhatAFileManagerRestores(between: Turn) throws {
        let rig = try Rig.withAlbums()
        try rig.put("moments/2024-05-01/50% ü.jpg", jpeg("2024-05-01", more: 2))
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.rm("moments/2024-05-01/50% ü.jpg")
        #expect(try rig.moments().isEmpty)
        #expect(try rig.ls(files) == ["50% ü.jpg", "x.jpg"])
        #expect(try rig.ls(trash + "/info") == ["50% ü.jpg.trashinfo", "x.jpg.trashinfo"])
        try turn(rig, between)
        let info = String(decoding: try rig.get(trash + "/info/50% ü.jpg.trashinfo"), as: UTF8.self)
        let lines = info.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[0] == "[Trash Info]")
        #expect(lines[1] == "Path=moments/2024-05-01/50%25%20%C3%BC.jpg")
        #expect(lines[2].wholeMatch(of: /DeletionDate=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/) != nil)
        #expect(lines[3...] == [""])
        for path in [trash, files, trash + "/info"] { #expect(try rig.stat(path).mode & 0o777 == 0o700) }
        // Into an album: a photo of its own day and in its albums again.
        try rig.mv(files + "/x.jpg", "albums/A/z.jpg")
        #expect(
            try rig.everything()
                == [
                    "2024-05-01/x.jpg", "albums/A/x.jpg", "albums/A/z.jpg", "albums/B/y.jpg",
                    files + "/50% ü.jpg",
                ])
        try turn(rig, between)
    }

    @Test func theTrashIsTheCallers() throws {
        let rig = try Rig(byRoot: true, trashDays: 30)
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        let day = try rig.ino("moments/2024-05-01")
        try rig.library.unlink(day, "x.jpg", Caller(uid: 1000, gid: 100))
        #expect(try rig.ls(".Trash-1000/files") == ["x.jpg"])
        #expect(try rig.stat(".Trash-1000/info/x.jpg.trashinfo").uid == 1000)
        let other = try Rig(byRoot: false, uid: 1001, trashDays: 30)
        try other.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try other.rm("moments/2024-05-01/x.jpg")
        #expect(try other.ls(".Trash-1001/files") == ["x.jpg"])
    }

    @Test func namesAreNumberedAndFit() throws {
        let rig = try Rig(trashDays: 30)
        let long = String(repeating: "n", count: 251) + ".jpg"
        for round in 0..<3 {
            try rig.put("albums/x.jpg", jpeg("2024-05-01", more: round))
            try rig.rm("moments/2024-05-01/x.jpg")
        }
        try rig.put("albums/" + long, jpeg("2024-05-01", more: 9))
        try rig.rm("moments/2024-05-01/" + long)
        let kept = try rig.ls(files)
        #expect(Set(kept).isSuperset(of: ["x.jpg", "x (2).jpg", "x (3).jpg"]))
        #expect(kept.count == 4)
        #expect(try rig.ls(trash + "/info").sorted() == kept.map { $0 + ".trashinfo" }.sorted())
    }

    @Test(arguments: Turn.allCases) func aWholeDayGoesAndComesBack(between: Turn) throws {
        let rig = try Rig.withAlbums()
        try rig.put("albums/A/w.jpg", jpeg("2024-05-01", more: 2))
        try rig.put("moments/2024-05-01/notes.txt", [1, 2])
        let before = try rig.everything()
        try rig.makeTrash()
        try rig.mv("moments/2024-05-01", files + "/2024-05-01")
        #expect(
            try rig.everything()
                == ["notes.txt", "w.jpg", "x.jpg"].map { files + "/2024-05-01/" + $0 })
        #expect(try rig.stat("moments").nlink == 2)
        try turn(rig, between)
        try rig.mv(files + "/2024-05-01", "moments/2024-05-01")
        #expect(try rig.everything() == before)
        #expect(try rig.source("albums/A/w.jpg") == "DateTimeOriginal")
        try turn(rig, between)
        // As another day, and file by file.
        try rig.mv("moments/2024-05-01", files + "/again")
        try rig.mv(files + "/again", "moments/2020-01-01")
        #expect(try rig.captured("albums/A/w.jpg") == "2020-01-01 12:30:00")
        try rig.mv("moments/2020-01-01", files + "/again")
        try turn(rig, between)
        try rig.mv(files + "/again/x.jpg", "albums/A/x.jpg")
        #expect(try rig.moments() == ["2020-01-01/x.jpg"])
        #expect(try rig.ls("albums/B") == ["y.jpg"])
        try rig.mkdir(files + "/again/sub")
        expectError(.notPermitted) { try rig.mv(files + "/again", "moments/2021-01-01") }
        expectError(.notPermitted) { try rig.mv(files + "/again", "moments/again") }
        try rig.rmdir(files + "/again/sub")
        expectError(.notEmpty) { try rig.mv(files + "/again", "moments/2020-01-01") }
    }

    @Test(arguments: Turn.allCases) func anAlbumGoesAndComesBackWithWhatWasRemovedMeanwhile(between: Turn)
        throws
    {
        let rig = try Rig.withAlbums()
        try rig.mkdir("albums/A/.hidden")
        try rig.ln("albums/A/x.jpg", "albums/A/.hidden/h.jpg")
        try rig.makeTrash()
        try rig.mv("albums/A", files + "/A")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        try rig.rm("moments/2024-05-01/x.jpg")
        #expect(
            try rig.everything() == [files + "/A/.hidden/h.jpg", files + "/A/x.jpg", files + "/x.jpg"])
        try turn(rig, between)
        try rig.mv(files + "/A", "albums/A")
        #expect(
            try rig.everything()
                == [
                    "2024-05-01/x.jpg", "albums/A/.hidden/h.jpg", "albums/A/x.jpg", "albums/B/y.jpg",
                    files + "/x.jpg",
                ])
        try rig.rm(files + "/x.jpg")
        #expect(try rig.get("albums/A/x.jpg") == jpeg("2024-05-01", more: 1))
        try turn(rig, between)
    }

    @Test func restoringElsewherePinsAndGivesWayWhereNamesAreTaken() throws {
        let rig = try Rig.withAlbums()
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.put("albums/A/x.jpg", jpeg("2024-05-01", more: 2))
        try rig.rmdir("albums/B")
        try rig.mkdir("moments/2020-01-01")
        try rig.mv(files + "/x.jpg", "moments/2020-01-01/back.jpg")
        #expect(
            try rig.everything()
                == ["2020-01-01/back.jpg", "2024-05-01/x.jpg", "albums/A/x (2).jpg", "albums/A/x.jpg"])
        #expect(try rig.captured("albums/A/x (2).jpg") == "2020-01-01 12:30:00")
        #expect(try rig.get("albums/A/x (2).jpg") == jpeg("2024-05-01", more: 1))
        // Linked out of the trash it is a photo as well.
        try rig.rm("moments/2020-01-01/back.jpg")
        try rig.ln(files + "/back.jpg", "albums/linked.jpg")
        #expect(try rig.moments() == ["2020-01-01/back.jpg", "2024-05-01/x.jpg"])
    }

    @Test func whatIsRestoredOverAPhotoIsNoSave() throws {
        let rig = try Rig(trashDays: 30)
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 2))
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.mv(files + "/x.jpg", "albums/y.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        // What says where it came from was left behind, as by mv: another takes another name.
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.mv(files + "/x (2).jpg", "moments/2024-05-01/y.jpg")
        #expect(try rig.moments() == ["2024-05-01/y (2).jpg", "2024-05-01/y.jpg"])
        #expect(try rig.get("moments/2024-05-01/y (2).jpg") == jpeg("2024-05-01", more: 1))
        try rig.rm("moments/2024-05-01/y.jpg")
        expectError(.notPermitted) { try rig.mv(files + "/y.jpg", "albums/x.jpg", .exchange) }
    }

    @Test func aPhotoOverwrittenInADayGoesToTheTrash() throws {
        let rig = try Rig(trashDays: 30)
        try rig.put("albums/x.jpg", jpeg("2024-05-02", more: 1))
        try rig.put("albums/y.jpg", jpeg("2024-05-02", more: 2))
        try rig.remount()
        try rig.mv("moments/2024-05-02/x.jpg", "moments/2024-05-02/y.jpg")
        #expect(try rig.moments() == ["2024-05-02/y.jpg"])
        #expect(try rig.get(files + "/y.jpg") == jpeg("2024-05-02", more: 2))
        #expect(rig.exists(trash + "/info/y.jpg.trashinfo"))
        // A save is not a removal.
        try rig.put("moments/2024-05-02/.t", jpeg("2024-05-02", more: 3))
        try rig.mv("moments/2024-05-02/.t", "moments/2024-05-02/y.jpg")
        #expect(try rig.ls(files) == ["y.jpg"])
        try rig.put("moments/2024-05-02/notes.txt", [1])
        try rig.rm("moments/2024-05-02/notes.txt")
        #expect(try rig.ls(files) == ["y.jpg"])
    }

    @Test func theTrashIsPlainButForPhotos() throws {
        let rig = try Rig(trashDays: 30)
        try rig.makeTrash()
        try rig.put(files + "/new.jpg", jpeg())
        try rig.mkdir(files + "/d")
        try rig.mv(files + "/new.jpg", files + "/d/n.jpg")
        try rig.ln(files + "/d/n.jpg", files + "/l.jpg")
        #expect(try rig.moments().isEmpty)
        try rig.mv(files + "/d", "albums/d")
        #expect(try rig.moments() == ["2024-05-01/n.jpg"])
    }

    @Test func namesThatAreGoneAreStaleToTheKernel() throws {
        let rig = try Rig.withAlbums()
        let ino = try rig.ino("albums/A/x.jpg")
        try rig.rm("moments/2024-05-01/x.jpg")
        expectError(.stale) { _ = try rig.library.open(ino, flags: O_RDWR, rig.caller) }
        #expect(try rig.get(files + "/x.jpg") == jpeg("2024-05-01", more: 1))
    }

    @Test func emptyingDestroys() throws {
        let rig = try Rig(trashDays: 30)
        for number in 0..<3 { try rig.put("albums/x\(number).jpg", jpeg("2024-05-01", more: number)) }
        try rig.put("albums/kept.jpg", jpeg("2024-05-01", more: 7))
        for number in 0..<3 { try rig.rm("moments/2024-05-01/x\(number).jpg") }
        try rig.rmrf(trash)
        #expect(try rig.everything() == ["2024-05-01/kept.jpg", "albums/kept.jpg"])
        try rig.mv("moments/2024-05-01", "albums/May")
        try rig.rmrf("albums/May")
        try rig.rm("moments/2024-05-01/kept.jpg")
        try rig.rmrf(trash)
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    @Test(arguments: Turn.allCases) func copiesGoAndComeBackWithTheirPhoto(between: Turn) throws {
        let rig = try Rig.withAlbums()
        try rig.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/B/other.jpg", jpeg("2024-05-01", more: 1))
        try rig.utimes("albums/copy.jpg", modified: 1_000_000_000)
        let before = try rig.everything()
        let copy = try rig.ino("albums/copy.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        try rig.rm("moments/2024-05-01/x.jpg")
        #expect(try rig.everything() == [files + "/x.jpg"])
        try turn(rig, between)
        // The same picture comes once more: it is another photo.
        try rig.put("albums/again.jpg", jpeg("2024-05-01", more: 1))
        #expect(try rig.moments() == ["2024-05-01/again.jpg"])
        try rig.rm("moments/2024-05-01/again.jpg")
        try rig.rm(files + "/again.jpg")
        try turn(rig, between)
        try rig.mv(files + "/x.jpg", "albums/A/x.jpg")
        #expect(try rig.everything() == before)
        #expect(try rig.stat("albums/copy.jpg").ino == copy)
        #expect(try rig.stat("albums/copy.jpg").modified.seconds == 1_000_000_000)
        #expect(try rig.stat("albums/copy.jpg").nlink == 1)
        // Destroyed, nothing of them is left.
        try rig.rm("moments/2024-05-01/x.jpg")
        try turn(rig, between)
        try rig.rmrf(trash)
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    @Test(arguments: Turn.allCases) func aCopyInTheTrashOutlivesItsPhotoThere(between: Turn) throws {
        let rig = try Rig.withAlbums()
        try rig.makeTrash()
        try rig.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/more.jpg", jpeg("2024-05-01", more: 1))
        try rig.mv("albums/copy.jpg", files + "/copy.jpg")
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.rm(files + "/x.jpg")
        try turn(rig, between)
        #expect(try rig.everything() == [files + "/copy.jpg"])
        #expect(try rig.library.photoCount() == 0)
        try rig.mv(files + "/copy.jpg", "albums/copy.jpg")
        #expect(try rig.everything() == ["2024-05-01/x.jpg", "albums/copy.jpg", "albums/more.jpg"])
        // And restored, it brings its photo back.
        try rig.mv("albums/more.jpg", files + "/more.jpg")
        try rig.rm("moments/2024-05-01/x.jpg")
        try turn(rig, between)
        try rig.mkdir("moments/2020-01-01")
        try rig.mv(files + "/more.jpg", "moments/2020-01-01/more.jpg")
        #expect(try rig.moments() == ["2020-01-01/more.jpg"])
        #expect(try rig.get("albums/copy.jpg") == jpeg("2024-05-01", more: 1))
        try turn(rig, between)
    }

    @Test func withoutTrashAPhotoIsDestroyedAtOnce() throws {
        let rig = try Rig.withAlbums(trashDays: 0)
        try rig.rm("moments/2024-05-01/x.jpg")
        #expect(try rig.ls("/") == ["albums", "moments"])
        #expect(rig.usedBytes == 0)
        // What a file manager puts there is kept.
        try rig.put("albums/A/x.jpg", jpeg())
        try rig.makeTrash()
        try rig.mv("moments/2024-05-01/x.jpg", files + "/x.jpg")
        try rig.remount()
        try rig.mkdir("moments/2024-05-01")
        try rig.mv(files + "/x.jpg", "moments/2024-05-01/x.jpg")
        #expect(try rig.ls("albums/A") == ["x.jpg"])
    }
}
