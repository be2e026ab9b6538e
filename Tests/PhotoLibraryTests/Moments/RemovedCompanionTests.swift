import FileRequests
import LibraryFixtures
import PhotoLibrary
import TestSupport
import Testing

/// A removal takes what it names, and besides only what is no photo of its own.
@Suite("Moments: companions of a removed photo") struct RemovedCompanionTests {
    private let day = "moments/2024-05-01/"
    private let trash = ".Trash-0/files"
    private let text = Array("<x/>".utf8)

    /// A pair and a Live Photo, each in an album, with sidecars of all kinds in their day and one in the album.
    private func shoot(trashDays: Int = 30) throws -> Fixture {
        let fixture = try Fixture(trashDays: trashDays)
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/DSC.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/A/DSC.cr2", raw("2024-05-01"))
        try fixture.put("albums/A/IMG.jpg", appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 2))
        try fixture.put("albums/A/clip.mov", movie("2024-05-01", "AAAA-1"))
        for name in ["IMG.jpg", "clip.mov"] { try fixture.ln("albums/A/" + name, "albums/B/" + name) }
        for name in ["DSC.jpg.xmp", "DSC.cr2.xmp", "DSC.xmp", "IMG.jpg.xmp", "clip.mov.xmp", "notes.txt"] {
            try fixture.put(day + name, text + Array(name.utf8))
        }
        try fixture.put("albums/A/IMG.jpg.xmp", text)
        return fixture
    }

    private let whole = [
        "DSC.cr2", "DSC.cr2.xmp", "DSC.jpg", "DSC.jpg.xmp", "DSC.xmp", "IMG.jpg", "IMG.jpg.xmp", "clip.mov",
        "clip.mov.xmp", "notes.txt",
    ]

    /// As file managers do, which remove the `.trashinfo` file, too.
    private func restore(_ name: String, _ fixture: Fixture) throws {
        try fixture.mv(trash + "/" + name, day + name)
        let info = ".Trash-0/info/\(name).trashinfo"
        if fixture.exists(info) { try fixture.rm(info) }
    }

    @Test func `a shared sidecar stays until the last photo that it describes goes`() throws {
        let fixture = try shoot()
        try fixture.rm(day + "DSC.jpg")
        #expect(try fixture.ls(trash) == ["DSC.jpg", "DSC.jpg.xmp"])
        #expect(fixture.exists(day + "DSC.xmp") && fixture.exists(day + "DSC.cr2.xmp"))
        try fixture.rm(day + "DSC.cr2")
        #expect(try fixture.ls(trash) == ["DSC.cr2", "DSC.cr2.xmp", "DSC.jpg", "DSC.jpg.xmp", "DSC.xmp"])
        let kept = try fixture.ls(trash).map { $0 + ".trashinfo" }
        #expect(try fixture.ls(".Trash-0/info") == kept)
        // The one that was removed first brings it back, too.
        try restore("DSC.jpg", fixture)
        #expect(try fixture.ls(trash) == ["DSC.cr2", "DSC.cr2.xmp"])
        #expect(try fixture.ls("moments/2024-05-01") == whole.filter { !$0.hasPrefix("DSC.cr2") })
        #expect(try fixture.get(day + "DSC.xmp") == text + Array("DSC.xmp".utf8))
        try fixture.remount()
        try restore("DSC.cr2", fixture)
        #expect(try fixture.ls("moments/2024-05-01") == whole)
        #expect(try fixture.ls(trash).isEmpty)
    }

    @Test func `a still takes its video along, and brings it back to its albums`() throws {
        let fixture = try shoot()
        let before = try fixture.snapshot().filter {
            $0.key.hasPrefix("moments") || $0.key.hasPrefix("albums")
        }
        try fixture.rm(day + "IMG.jpg")
        #expect(
            try fixture.ls(trash) == [
                "IMG.jpg", "IMG.jpg (2).xmp", "IMG.jpg.xmp", "clip.mov", "clip.mov.xmp",
            ])
        #expect(try fixture.ls("albums/A") == ["DSC.cr2", "DSC.jpg"] && fixture.ls("albums/B").isEmpty)
        try fixture.remount()
        try restore("IMG.jpg", fixture)
        #expect(try fixture.ls(trash).isEmpty)
        #expect(try fixture.ls("albums/A") == ["DSC.cr2", "DSC.jpg", "IMG.jpg", "IMG.jpg.xmp", "clip.mov"])
        #expect(try fixture.ls("albums/B") == ["IMG.jpg", "clip.mov"])
        let after = try fixture.snapshot().filter {
            $0.key.hasPrefix("moments") || $0.key.hasPrefix("albums")
        }
        #expect(Set(after.keys) == Set(before.keys))
        #expect(try fixture.get(day + "IMG.jpg.xmp") == text + Array("IMG.jpg.xmp".utf8))
        #expect(try fixture.get("albums/A/IMG.jpg.xmp") == text)
    }

    @Test func `a video goes and comes alone`() throws {
        let fixture = try shoot()
        try fixture.rm(day + "clip.mov")
        #expect(try fixture.ls(trash) == ["clip.mov", "clip.mov.xmp"])
        // It did not go with the still, which does not bring it back.
        try fixture.rm(day + "IMG.jpg")
        try restore("IMG.jpg", fixture)
        #expect(try fixture.ls(trash) == ["clip.mov", "clip.mov.xmp"])
        try restore("clip.mov", fixture)
        #expect(try fixture.ls("moments/2024-05-01") == whole && fixture.ls(trash).isEmpty)
        // It went with the still, but is restored alone.
        try fixture.rm(day + "IMG.jpg")
        _ = try fixture.ls(trash)
        try restore("clip.mov", fixture)
        #expect(
            try fixture.ls("moments/2024-05-01").filter { !$0.hasPrefix("DSC") }
                == ["clip.mov", "clip.mov.xmp", "notes.txt"])
        try restore("IMG.jpg", fixture)
        #expect(try fixture.ls("moments/2024-05-01") == whole && fixture.ls(trash).isEmpty)
    }

    @Test func `a video stays as long as another still of its Live Photo does`() throws {
        let fixture = try shoot()
        try fixture.put("albums/A/IMG.dng", appleTwin)
        #expect(fixture.exists(day + "IMG.dng"))
        try fixture.rm(day + "IMG.jpg")
        #expect(try fixture.ls("moments/2024-05-01").contains("clip.mov"))
        try fixture.rm(day + "IMG.dng")
        #expect(try fixture.ls(trash).contains("clip.mov"))
        try restore("IMG.jpg", fixture)
        #expect(try fixture.ls("moments/2024-05-01") == whole)
    }

    /// Another picture of the same Live Photo, in the same format: as an iPhone's two formats.
    private var appleTwin: [UInt8] { appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 9) }

    /// Every order in which a program may name all of them.
    @Test(arguments: 0..<6) func `all of them removed by name come back from the trash by name`(turn: Int)
        throws
    {
        let fixture = try shoot()
        let before = try fixture.ls("moments/2024-05-01")
        var names = before.filter { $0 != "notes.txt" }
        if turn % 2 == 1 { names.reverse() }
        names = Array(names.dropFirst(turn) + names.prefix(turn))
        for name in names {
            if turn < 3 {
                try fixture.rm(day + name)
            } else {
                try fixture.mv(day + name, trashed(name, fixture))
            }
            #expect(!fixture.exists(day + name))
        }
        #expect(try fixture.ls("moments/2024-05-01") == ["notes.txt"])
        #expect(try Set(names).isSubset(of: fixture.ls(trash)))
        if turn % 3 == 0 { try fixture.remount() }
        for name in names.reversed() where fixture.exists(trash + "/" + name) {
            try restore(name, fixture)
        }
        #expect(try fixture.ls("moments/2024-05-01") == before)
        #expect(try fixture.ls(trash).isEmpty)
        #expect(try fixture.ls("albums/A") == ["DSC.cr2", "DSC.jpg", "IMG.jpg", "IMG.jpg.xmp", "clip.mov"])
        try fixture.close()
        try fixture.reopen()
    }

    private func trashed(_ name: String, _ fixture: Fixture) throws -> String {
        for path in [".Trash-0", trash, ".Trash-0/info"] where !fixture.exists(path) {
            try fixture.mkdir(path, mode: 0o700)
        }
        return trash + "/" + name
    }

    @Test func `a whole day in the trash comes back whole, and its photos one by one`() throws {
        let fixture = try shoot()
        _ = try trashed("", fixture)
        for isWhole in [true, false] {
            try fixture.mv("moments/2024-05-01", trash + "/day")
            #expect(try fixture.ls(trash) == ["IMG.jpg.xmp", "day"])
            #expect(try fixture.ls("albums/A").isEmpty)
            if isWhole {
                try fixture.mv(trash + "/day", "moments/2024-05-01")
            } else {
                for name in ["IMG.jpg", "DSC.jpg", "DSC.cr2", "notes.txt"] {
                    if !fixture.exists("moments/2024-05-01") { try fixture.mkdir("moments/2024-05-01") }
                    try fixture.mv(trash + "/day/" + name, day + name)
                }
            }
            #expect(try fixture.ls("moments/2024-05-01") == whole)
            #expect(
                try fixture.ls("albums/A") == ["DSC.cr2", "DSC.jpg", "IMG.jpg", "IMG.jpg.xmp", "clip.mov"])
            #expect(try fixture.ls(trash) == (isWhole ? [] : ["day"]))
        }
    }

    @Test func `restored to another day, all come there`() throws {
        let fixture = try shoot()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("moments/2020-01-01/IMG.jpg", jpeg("2020-01-01", more: 77))
        try fixture.rm(day + "IMG.jpg")
        _ = try fixture.ls(trash)
        try fixture.mv(trash + "/IMG.jpg", "moments/2020-01-01/Beach.jpg")
        #expect(
            try fixture.ls("moments/2020-01-01")
                == ["Beach.jpg", "Beach.jpg.xmp", "IMG.jpg", "clip.mov", "clip.mov.xmp"])
        #expect(try fixture.captured("albums/A/clip.mov").hasPrefix("2020-01-01"))
    }

    @Test func `a sidecar whose album is gone comes back beside its photo`() throws {
        let fixture = try shoot()
        try fixture.rm(day + "IMG.jpg.xmp")
        try fixture.rm(day + "IMG.jpg")
        _ = try fixture.ls(trash)
        try fixture.rmrf("albums/A")
        try restore("IMG.jpg", fixture)
        let other = Caller(uid: 0, gid: 0, pid: 77)
        _ = try fixture.library.lookup(fixture.ino("moments/2024-05-01"), "IMG.jpg.xmp", other)
        #expect(try fixture.get(day + "IMG.jpg.xmp") == text)
    }

    @Test func `without a trash the companions go with the photo, and no other photo does`() throws {
        let fixture = try shoot(trashDays: 0)
        try fixture.rm(day + "DSC.jpg")
        try fixture.rm(day + "IMG.jpg")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.cr2", "DSC.cr2.xmp", "DSC.xmp", "notes.txt"])
        // What lies in an album and was not named could not be brought back.
        #expect(try fixture.ls("albums/A") == ["DSC.cr2", "IMG.jpg.xmp"])
        #expect(!fixture.exists(".Trash-0"))
    }

    @Test(arguments: [0, 30]) func `a program that saves a photo by removing it first loses no companion`(
        trashDays: Int
    ) throws {
        let fixture = try shoot(trashDays: trashDays)
        let program = Caller(uid: 0, gid: 0, pid: 7)
        try fixture.rm(day + "IMG.jpg", by: program)
        try fixture.makeAnew(
            day + "IMG.jpg", appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 5), by: program)
        #expect(try fixture.ls("moments/2024-05-01") == whole)
        #expect(try fixture.ls("albums/A").contains("IMG.jpg.xmp"))
        // A photo that replaces another keeps what describes it.
        try fixture.mv(day + "DSC.jpg", day + "IMG.jpg")
        #expect(try fixture.ls("moments/2024-05-01").contains("IMG.jpg.xmp"))
    }

    /// As `rm -r` does: its directory is gone before anything is listed.
    @Test(arguments: [0, 30]) func `a whole day removed by name goes, and comes back`(trashDays: Int) throws {
        let fixture = try shoot(trashDays: trashDays)
        let names = try fixture.ls("moments/2024-05-01")
        for name in names { try fixture.rm(day + name) }
        try fixture.rmdir("moments/2024-05-01")
        #expect(try fixture.ls("moments").isEmpty && fixture.ls("albums/B").isEmpty)
        guard trashDays > 0 else {
            #expect(try fixture.ls("albums/A") == ["IMG.jpg.xmp"])
            return
        }
        let kept = names.filter { $0 != "notes.txt" }
        #expect(try fixture.ls(trash).filter { $0 != "IMG.jpg (2).xmp" } == kept)
        try fixture.mkdir("moments/2024-05-01")
        for name in names where fixture.exists(trash + "/" + name) { try restore(name, fixture) }
        #expect(try fixture.ls("moments/2024-05-01") == kept)
        #expect(try fixture.ls("albums/A").count == 5 && fixture.ls(trash).isEmpty)
    }

    @Test func `a session that ends at once leaves no video behind`() throws {
        let fixture = try shoot()
        try fixture.rm(day + "IMG.jpg")
        try fixture.remount()
        #expect(try fixture.ls(trash).contains("clip.mov") && fixture.ls(trash).contains("clip.mov.xmp"))
        #expect(try fixture.ls("moments/2024-05-01").filter { !$0.hasPrefix("DSC") } == ["notes.txt"])
    }

    @Test func `emptying the trash destroys what is in it, and no more`() throws {
        let fixture = try shoot()
        try fixture.rm(day + "DSC.jpg")
        try fixture.rm(day + "IMG.jpg")
        try fixture.rmrf(".Trash-0")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.cr2", "DSC.cr2.xmp", "DSC.xmp", "notes.txt"])
        #expect(try fixture.get(day + "DSC.cr2") == raw("2024-05-01"))
        try fixture.remount()
    }

    @Test func `a rebuilt catalogue knows what went with a photo`() throws {
        let fixture = try shoot()
        try fixture.rm(day + "IMG.jpg")
        _ = try fixture.ls(trash)
        try fixture.library.makeDurable()
        try fixture.destroyCatalogue()
        _ = try fixture.salvage()
        try restore("IMG.jpg", fixture)
        #expect(try fixture.ls("moments/2024-05-01").contains("clip.mov"))
        #expect(try fixture.ls("albums/A").contains("IMG.jpg.xmp"))
    }

    // MARK: Renamed in a day

    @Test func `sidecars follow a photo that is renamed in its day, or with its album's name`() throws {
        let fixture = try shoot()
        try fixture.mv(day + "IMG.jpg", day + "Beach.jpg")
        #expect(try fixture.ls("moments/2024-05-01").contains("Beach.jpg.xmp"))
        #expect(!fixture.exists(day + "IMG.jpg.xmp"))
        // Another program finds it at once.
        try fixture.mv(day + "Beach.jpg", day + "Sea.jpg")
        _ = try fixture.library.lookup(
            fixture.ino("moments/2024-05-01"), "Sea.jpg.xmp", Caller(uid: 0, gid: 0, pid: 77))
        // The stem's sidecar stays with the other half.
        try fixture.mv("albums/A/DSC.jpg", "albums/A/Dune.jpg")
        #expect(
            try fixture.ls("moments/2024-05-01") == [
                "DSC.cr2", "DSC.cr2.xmp", "DSC.xmp", "Dune.jpg", "Dune.jpg.xmp", "Sea.jpg", "Sea.jpg.xmp",
                "clip.mov", "clip.mov.xmp", "notes.txt",
            ])
        #expect(try fixture.ls("albums/A").contains("IMG.jpg.xmp"))
    }

    @Test func `a sidecar stays where its photo is only renamed to be saved, or its new name is taken`()
        throws
    {
        let fixture = try shoot()
        try fixture.mv(day + "IMG.jpg", day + "IMG.jpg~")
        #expect(try fixture.ls("moments/2024-05-01").contains("IMG.jpg.xmp"))
        try fixture.put(day + "IMG.jpg", appleTwin)
        #expect(try fixture.ls("moments/2024-05-01").contains("IMG.jpg.xmp"))
        try fixture.put(day + "Beach.jpg.xmp", text)
        try fixture.mv(day + "DSC.jpg", day + "Beach.jpg")
        #expect(try fixture.get(day + "Beach.jpg.xmp") == text)
        #expect(fixture.exists(day + "DSC.jpg.xmp"))
        // A program that renames both.
        try fixture.mv(day + "DSC.cr2", day + "Sand.cr2")
        try fixture.mv(day + "DSC.cr2.xmp", day + "Sand.cr2.xmp")
        #expect(try fixture.ls("moments/2024-05-01").contains("Sand.cr2.xmp"))
    }

    @Test func `a photo moved on at once takes its companions along`() throws {
        let fixture = try shoot()
        for day in ["2020-01-01", "2020-02-02"] { try fixture.mkdir("moments/" + day) }
        try fixture.mv(day + "DSC.jpg", "moments/2020-01-01/DSC.jpg")
        try fixture.mv("moments/2020-01-01/DSC.jpg", "moments/2020-02-02/DSC.jpg")
        #expect(
            try fixture.ls("moments/2020-02-02")
                == ["DSC.cr2", "DSC.jpg", "DSC.jpg.xmp", "DSC.xmp"])
        // Removed at once, it takes those that have not followed yet.
        try fixture.mv("moments/2020-02-02/DSC.jpg", "moments/2020-01-01/DSC.jpg")
        try fixture.rm("moments/2020-01-01/DSC.jpg")
        #expect(try fixture.ls(trash) == ["DSC.jpg", "DSC.jpg.xmp"])
        #expect(try fixture.ls("moments/2020-01-01") == ["DSC.cr2", "DSC.xmp"])
    }
}
