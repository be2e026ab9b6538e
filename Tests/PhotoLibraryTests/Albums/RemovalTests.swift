import FileRequests
import Glibc
import LibraryFixtures
import PhotoLibrary
import Synchronization
import TestSupport
import Testing
import VaultFormat

/// Programs that save by unlink(2) of the old file, and rename(2) of the new one onto its name, as digiKam does, or a
/// new file of that name.
@Suite("Albums: saving by removing the old file") struct RemovalTests {
    private let old = jpeg("2024-05-01", more: 1)
    private let new = jpeg("2024-05-01", more: 2)

    /// A photo in the album A, and by another name in B.
    private func withPhoto(trashDays: Int = 30, clocks: Clocks = Clocks()) throws -> Fixture {
        let fixture = try Fixture(trashDays: trashDays, clocks: clocks)
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/x.jpg", old)
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/B/other.jpg")
        return fixture
    }

    private func expectSaved(_ fixture: Fixture, _ comment: Comment) throws {
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"], comment)
        for path in ["albums/A/x.jpg", "albums/B/other.jpg", "moments/2024-05-01/x.jpg"] {
            #expect(try fixture.get(path) == new, comment)
        }
        #expect(try fixture.ls("albums/A") == ["x.jpg"], comment)
        #expect(try fixture.get("albums/A/.versions/x.jpg/original") == old, comment)
    }

    @Test(arguments: ["t.jpg", ".t", "x.jpg.part"], ["albums/A", "moments/2024-05-01"])
    func `the new file is the photo everywhere, and the old one its original`(
        temporary: String, directory: String
    ) throws {
        let fixture = try withPhoto()
        try fixture.put("\(directory)/\(temporary)", new)
        try fixture.replace("\(directory)/x.jpg", by: "\(directory)/\(temporary)")
        try expectSaved(fixture, "\(directory)")
        for place in ["files", "info"] where fixture.exists(".Trash-0") {
            #expect(try fixture.ls(".Trash-0/" + place) == [])
        }
        try fixture.kill()
        try expectSaved(fixture, "after a crash")
    }

    // MARK: Making the file anew

    private let mover = Caller(uid: 0, gid: 0, pid: 7)

    /// As mv(1) from another disk, tar(1) and git do, and unzip(1) without O_EXCL.
    @Test(
        arguments: ["albums/A/x.jpg", "moments/2024-05-01/x.jpg"],
        [(O_EXCL, 30), (O_TRUNC, 30), (0, 30), (O_EXCL, 0), (O_TRUNC, 0)])
    func `a file that the thread which removed it makes anew is the photo`(
        path: String, kind: (flag: Int32, trashDays: Int)
    ) throws {
        let fixture = try withPhoto(trashDays: kind.trashDays)
        let time = try fixture.captured(path)
        try fixture.rm(path, by: mover)
        let ino = try fixture.makeAnew(path, new, by: mover, kind.flag)
        try expectSaved(fixture, "\(path)")
        #expect(try fixture.stat(path).mode == 0o100640)
        #expect(try fixture.stat(path).ino == ino)
        #expect(try fixture.captured(path) == time)
        for place in ["files", "info"] where fixture.exists(".Trash-0") {
            #expect(try fixture.ls(".Trash-0/" + place) == [])
        }
        try fixture.kill()
        try expectSaved(fixture, "after a crash")
    }

    @Test func `it is a new photo if another program makes it`() throws {
        let fixture = try withPhoto()
        let path = "moments/2024-05-01/x.jpg"
        try fixture.rm(path, by: mover)
        try fixture.makeAnew(path, new, by: Caller(uid: 0, gid: 0, pid: 8))
        #expect(try fixture.get(".Trash-0/files/x.jpg") == old)
        #expect(!fixture.exists("albums/A/x.jpg"))
    }

    @Test(arguments: [30, 0]) func `a program that has the old file open keeps its bytes`(trashDays: Int)
        throws
    {
        let fixture = try withPhoto(trashDays: trashDays)
        let path = "moments/2024-05-01/x.jpg"
        let handle = try fixture.open("albums/A/x.jpg", O_RDONLY)
        try fixture.rm(path, by: mover)
        try fixture.makeAnew(path, new, by: mover)
        #expect(try fixture.read(handle) == old)
        try expectSaved(fixture, "while the old file is open")
        fixture.library.release(handle)
        try expectSaved(fixture, "afterwards")
    }

    @Test func `other hard links keep the old file`() throws {
        let fixture = try withPhoto()
        try fixture.mkdir("albums/C")
        try fixture.ln("albums/A/x.jpg", "albums/C/link.jpg")
        try fixture.rm("albums/A/x.jpg", by: mover)
        try fixture.makeAnew("albums/A/x.jpg", new, by: mover)
        #expect(try fixture.get("albums/C/link.jpg") == old)
        #expect(try fixture.get("albums/B/other.jpg") == new)
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == new)
        #expect(try fixture.moments() == ["2024-05-01/link.jpg", "2024-05-01/x.jpg"])
    }

    // MARK: Without a trash

    @Test func `without a trash copies come back with the photo, each a photo of its own`() throws {
        let fixture = try withPhoto(trashDays: 0)
        try fixture.put("albums/copy.jpg", old)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        try fixture.rm("moments/2024-05-01/x.jpg", by: mover)
        #expect(!fixture.exists("albums/copy.jpg"))
        try fixture.makeAnew("moments/2024-05-01/x.jpg", new, by: mover)
        #expect(try fixture.get("albums/copy.jpg") == old)
        #expect(try fixture.get("albums/B/other.jpg") == new)
        #expect(try fixture.moments() == ["2024-05-01/copy.jpg", "2024-05-01/x.jpg"])
    }

    @Test(arguments: [30, 0]) func `its sidecar stays`(trashDays: Int) throws {
        let fixture = try withPhoto(trashDays: trashDays)
        try fixture.put("moments/2024-05-01/x.jpg.xmp", Array("<x:xmpmeta/>".utf8))
        try fixture.rm("moments/2024-05-01/x.jpg", by: mover)
        try fixture.makeAnew("moments/2024-05-01/x.jpg", new, by: mover)
        #expect(try fixture.ls("moments/2024-05-01") == ["x.jpg", "x.jpg.xmp"])
        try fixture.remount()
        #expect(try fixture.ls("moments/2024-05-01") == ["x.jpg", "x.jpg.xmp"])
    }

    /// What is not saved anew is destroyed: in time, with the next removal, when room is needed, at the end.
    @Test(arguments: ["time", "next", "room", "end", "kill"])
    func `without a trash a removed photo is destroyed soon`(reason: String) throws {
        let now = Mutex<Int64>(0)
        var clocks = Clocks()
        clocks.monotonic = { now.withLock { $0 } }
        let fixture = try withPhoto(trashDays: 0, clocks: clocks)
        try fixture.put("albums/y.jpg", jpeg("2024-05-03", more: 3))
        let ino = try fixture.ino("albums/A/x.jpg")
        try fixture.rm("moments/2024-05-01/x.jpg", by: mover)
        func isThere() throws -> Bool {
            try fixture.library.session.locked { tree throws(FileError) in try tree.existing(ino) != nil }
        }
        #expect(try isThere())
        switch reason {
        case "time":
            now.withLock { $0 += 3001 }
            #expect(try fixture.ls("albums") == ["A", "B", "y.jpg"])
        case "next": try fixture.rm("moments/2024-05-03/y.jpg", by: mover)
        case "room":
            let isMade = try fixture.library.session.change { change throws(FileError) in
                change.tree.saves.destroyWithheld()
            }
            #expect(isMade)
        case "end": try fixture.remount()
        default:
            try fixture.library.makeDurable()
            try fixture.kill()
            fixture.library.didGoLive()
        }
        #expect(try !isThere())
        #expect(try fixture.moments() == (reason == "next" ? [] : ["2024-05-03/y.jpg"]))
    }

    // MARK: Renaming

    @Test func `it is one more name of the album where that was given in moments`() throws {
        let fixture = try withPhoto()
        try fixture.put("albums/B/t.jpg", new)
        try fixture.replace("albums/B/other.jpg", by: "albums/B/t.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get("albums/A/x.jpg") == new)
    }

    @Test func `the day that the user chose stays`() throws {
        let fixture = try withPhoto()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2020-01-01/x.jpg")
        try fixture.put("moments/2020-01-01/t.jpg", new)
        try fixture.replace("moments/2020-01-01/x.jpg", by: "moments/2020-01-01/t.jpg")
        #expect(try fixture.moments() == ["2020-01-01/x.jpg"])
        #expect(try fixture.get("albums/B/other.jpg") == new)
    }

    @Test func `its raw file stays in its day`() throws {
        let fixture = try withPhoto()
        try fixture.put("albums/A/x.cr2", raw("2024-05-01"))
        try fixture.put("moments/2024-05-01/t.jpg", new)
        try fixture.replace("moments/2024-05-01/x.jpg", by: "moments/2024-05-01/t.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.cr2", "2024-05-01/x.jpg"])
    }

    @Test(arguments: ["albums/A", "moments/2024-05-01"])
    func `two programs that remove and rename are not one`(directory: String) throws {
        let fixture = try withPhoto()
        try fixture.put("\(directory)/t.jpg", new)
        try fixture.replace("\(directory)/x.jpg", by: "\(directory)/t.jpg", remover: 7, mover: 8)
        let isInDay = directory.hasPrefix("moments")
        #expect(try fixture.get("\(directory)/x.jpg") == new)
        #expect(try fixture.moments().count == (isInDay ? 1 : 2))
        #expect(fixture.exists("albums/B/other.jpg") == !isInDay)
        if isInDay { #expect(try fixture.get(".Trash-0/files/x.jpg") == old) }
    }

    /// As digiKam's threads, which turn several photos at a time.
    @Test(arguments: ["albums/A", "moments/2024-05-01"])
    func `threads that save in one directory do not disturb each other`(directory: String) throws {
        let fixture = try withPhoto()
        try fixture.put("albums/A/y.jpg", jpeg("2024-05-01", more: 3))
        let (one, two) = (Caller(uid: 0, gid: 0, pid: 7), Caller(uid: 0, gid: 0, pid: 8))
        try fixture.put("\(directory)/t.jpg", new)
        try fixture.rm("\(directory)/x.jpg", by: one)
        try fixture.put("\(directory)/u.jpg", jpeg("2024-05-01", more: 4))
        try fixture.rm("\(directory)/y.jpg", by: two)
        try fixture.mv("\(directory)/t.jpg", "\(directory)/x.jpg", by: one)
        try fixture.mv("\(directory)/u.jpg", "\(directory)/y.jpg", by: two)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        #expect(try fixture.get("albums/B/other.jpg") == new)
        #expect(try fixture.get("albums/A/y.jpg") == jpeg("2024-05-01", more: 4))
    }

    @Test(arguments: ["albums/A", "moments/2024-05-01"])
    func `a file from elsewhere, or made after the removal, is another photo`(directory: String) throws {
        for isElsewhere in [false, true] {
            let fixture = try withPhoto()
            let from = isElsewhere ? "albums" : directory
            let caller = Caller(uid: 0, gid: 0, pid: 7)
            if isElsewhere { try fixture.put("\(from)/t.jpg", new) }
            try fixture.rm("\(directory)/x.jpg", by: caller)
            if !isElsewhere { try fixture.put("\(from)/t.jpg", new) }
            try fixture.mv("\(from)/t.jpg", "\(directory)/x.jpg", by: caller)
            let isInDay = directory.hasPrefix("moments")
            #expect(fixture.exists("albums/B/other.jpg") == !isInDay)
            if !isInDay { #expect(try fixture.get("albums/B/other.jpg") == old) }
        }
    }

    @Test func `a name that was in use since is not the removed photo's`() throws {
        let fixture = try withPhoto()
        let caller = Caller(uid: 0, gid: 0, pid: 7)
        let day = "moments/2024-05-01"
        try fixture.put("\(day)/.t", new)
        try fixture.rm("\(day)/x.jpg", by: caller)
        try fixture.put("\(day)/x.jpg", jpeg("2024-05-01", more: 3))
        try fixture.mv("\(day)/x.jpg", "\(day)/y.jpg", by: caller)
        try fixture.mv("\(day)/.t", "\(day)/x.jpg", by: caller)
        #expect(try fixture.get(".Trash-0/files/x.jpg") == old)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
    }

    @Test func `a person who deletes one photo and renames another deletes it`() throws {
        let now = Mutex<Int64>(0)
        var clocks = Clocks()
        clocks.monotonic = { now.withLock { $0 } }
        let fixture = try withPhoto(clocks: clocks)
        let caller = Caller(uid: 0, gid: 0, pid: 7)
        try fixture.put("moments/2024-05-01/t.jpg", new)
        try fixture.rm("moments/2024-05-01/x.jpg", by: caller)
        now.withLock { $0 += 3001 }
        try fixture.mv("moments/2024-05-01/t.jpg", "moments/2024-05-01/x.jpg", by: caller)
        #expect(try fixture.get(".Trash-0/files/x.jpg") == old)
        #expect(!fixture.exists("albums/B/other.jpg"))
    }

    @Test func `an older photo renamed onto a removed name stays another`() throws {
        let fixture = try withPhoto()
        try fixture.put("moments/2024-05-01/t.jpg", new)
        try fixture.remount()
        try fixture.replace("moments/2024-05-01/x.jpg", by: "moments/2024-05-01/t.jpg")
        #expect(try fixture.get(".Trash-0/files/x.jpg") == old)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
    }

    @Test func `without a trash it is the photo too`() throws {
        let fixture = try withPhoto(trashDays: 0)
        try fixture.put("moments/2024-05-01/t.jpg", new)
        try fixture.replace("moments/2024-05-01/x.jpg", by: "moments/2024-05-01/t.jpg")
        try expectSaved(fixture, "without a trash")
        try fixture.remount()
        try expectSaved(fixture, "after a remount")
    }

    @Test func `the newest removed names are remembered`() throws {
        var limits = Limits.least
        limits.removedNames = 2
        let fixture = try Fixture(trashDays: 30, limits: limits)
        let caller = Caller(uid: 0, gid: 0, pid: 7)
        for number in 0..<6 {
            try fixture.put("albums/x\(number).jpg", jpeg("2024-05-02", more: 2 * number + 3))
            try fixture.put("albums/t\(number).jpg", jpeg("2024-05-02", more: 2 * number + 4))
        }
        for number in 0..<6 { try fixture.rm("albums/x\(number).jpg", by: caller) }
        for number in 0..<6 {
            try fixture.mv("albums/t\(number).jpg", "albums/x\(number).jpg", by: caller)
        }
        // Two generations of two: the first two names are forgotten.
        #expect(try fixture.ls("moments/2024-05-02").count == 6 + 2)
    }
}
