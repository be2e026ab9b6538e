import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

/// A photo of more than `count` bytes.
private func big(_ day: String, _ count: Int) -> [UInt8] {
    jpeg(day) + (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}

/// Copies of photos share their bytes and stand for them.
@Suite("Albums: copies") struct CopyTests {
    @Test func `photos in the trash do not hide the one that a copy is of`() throws {
        let fixture = try Fixture(trashDays: 30)
        for _ in 0..<9 {
            try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
            try fixture.rm("moments/2024-05-01/x.jpg")
        }
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
    }

    @Test func `a copy in an album shares its bytes, and is not shown twice`() throws {
        let fixture = try Fixture()
        let picture = big("2024-05-01", 300_000)
        try fixture.put("albums/x.jpg", picture)
        let used = fixture.usedBytes
        try fixture.mkdir("albums/Trip")
        try fixture.put("albums/Trip/y.jpg", picture)
        try fixture.utimes("albums/Trip/y.jpg", modified: 1_000_000_000)
        #expect(fixture.usedBytes == used)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get("albums/Trip/y.jpg") == picture)
        let copy = try fixture.stat("albums/Trip/y.jpg")
        let photo = try fixture.stat("albums/x.jpg")
        #expect(copy.ino != photo.ino)
        #expect((copy.nlink, photo.nlink) == (1, 2))
        #expect(copy.modified.seconds == 1_000_000_000)
        #expect(photo.modified.seconds != 1_000_000_000)
        #expect(try fixture.captured("albums/Trip/y.jpg").hasPrefix("2024-05-01"))
        #expect(fixture.exists("albums/Trip/.thumbs"))
        #expect(try fixture.ls("albums/Trip/.thumbs") == ["fast", "y.jpg"])
        try fixture.remount()
        #expect(try fixture.get("albums/Trip/y.jpg") == picture)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(fixture.usedBytes == used)
    }

    @Test func `a copy in the trash stays there when its photo is edited`() throws {
        let fixture = try Fixture(trashDays: 30)
        let picture = big("2024-05-01", 3000)
        try fixture.put("albums/x.jpg", picture)
        for directory in ["albums/Trip", ".Trash-0", ".Trash-0/files"] { try fixture.mkdir(directory) }
        try fixture.put("albums/Trip/y.jpg", picture)
        try fixture.mv("albums/Trip/y.jpg", ".Trash-0/files/y.jpg")
        do {
            let edited = try fixture.open("albums/x.jpg")
            try fixture.write(edited, Array("edited".utf8), at: 2000)
            try fixture.close(edited)
        }
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get(".Trash-0/files/y.jpg") == picture)
        // From there it comes back as any file does.
        try fixture.mv(".Trash-0/files/y.jpg", "albums/Trip/y.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        try fixture.remount()
        #expect(try fixture.get("albums/Trip/y.jpg") == picture)
    }

    @Test func `a file whose name tells of another day is a photo of its own`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(nil))
        try fixture.put("albums/IMG_20090726_101112.jpg", jpeg(nil))
        try fixture.put("albums/IMG-20090726-WA0007.jpg", jpeg(nil))
        #expect(try fixture.moments().count == 2)
        #expect(try fixture.ls("moments/2009-07-26") == ["IMG_20090726_101112.jpg"])
        // The day a user chose holds for the copies.
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2009-07-26/IMG_20090726_101112.jpg", "moments/2020-01-01/y.jpg")
        try fixture.rm("albums/x.jpg")
        try fixture.put("albums/IMG_20090726_101113.jpg", try fixture.get("moments/2020-01-01/y.jpg"))
        #expect(try fixture.moments().count == 2)
    }

    @Test func `the copy goes with the photo, and not without it`() throws {
        let fixture = try Fixture()
        for number in 1...2 {
            try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
            try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
            try fixture.put("albums/z.jpg", jpeg("2024-05-01", more: 1))
            try fixture.rm("albums/z.jpg")
            #expect(try fixture.get("albums/x.jpg") == jpeg("2024-05-01", more: 1))
            // From its album: it is in moments still, and so is its copy in the album.
            if number == 2 { try fixture.rm("albums/x.jpg") }
            #expect(try fixture.get("albums/y.jpg") == jpeg("2024-05-01", more: 1))
            let reading = try fixture.open("albums/y.jpg", O_RDONLY)
            let ino = reading.ino
            try fixture.rm("moments/2024-05-01/x.jpg")
            #expect(try fixture.ls("albums").isEmpty)
            #expect(try fixture.read(reading) == jpeg("2024-05-01", more: 1))
            fixture.library.release(reading)
            fixture.library.forget(ino)
        }
        try fixture.expectNothingLeft()
    }

    @Test(arguments: [true, false], [true, false])
    func `once edited, each is a photo of its own`(isPhotoEdited: Bool, isWhole: Bool) throws {
        let fixture = try Fixture()
        let (old, new) = (big("2024-05-01", 200_000), big("2024-06-02", 200_001))
        try fixture.put("albums/x.jpg", old)
        for name in ["y.jpg", "z.jpg"] { try fixture.put("albums/" + name, old) }
        let (edited, others) = isPhotoEdited ? ("x.jpg", ["y.jpg", "z.jpg"]) : ("y.jpg", ["x.jpg", "z.jpg"])
        if isWhole {
            try fixture.put("albums/" + edited, new)
        } else {
            // Within the file, the head alone.
            let handle = try fixture.open("albums/" + edited)
            try fixture.write(handle, Array(new[..<1000]))
            try fixture.close(handle)
        }
        let bytes = try fixture.get("albums/" + edited)
        let expected: [UInt8] = isWhole ? new : Array(new[..<1000]) + Array(old[1000...])
        #expect(bytes == expected)
        for name in others { #expect(try fixture.get("albums/" + name) == old) }
        let remaining = isPhotoEdited ? "2024-05-01/y.jpg" : "2024-05-01/x.jpg"
        #expect(try fixture.moments() == [remaining, "2024-06-02/" + edited])
        try fixture.kill()
        #expect(try fixture.get("albums/" + edited) == bytes)
        for name in others { #expect(try fixture.get("albums/" + name) == old) }
        #expect(try fixture.moments() == [remaining, "2024-06-02/" + edited])
    }

    @Test func `a photo that is saved anew leaves its copies`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/.t", jpeg("2024-06-02", more: 2))
        try fixture.mv("albums/.t", "albums/x.jpg")
        #expect(try fixture.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        #expect(try fixture.get("albums/y.jpg") == jpeg("2024-05-01", more: 1))
        // A copy saved anew is a photo.
        try fixture.put("albums/z.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/.t", jpeg("2024-07-03", more: 3))
        try fixture.mv("albums/.t", "albums/z.jpg")
        #expect(try fixture.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg", "2024-07-03/z.jpg"])
        // A file saved with another photo's bytes is a copy of that.
        try fixture.put("albums/.t", jpeg("2024-05-01", more: 1))
        try fixture.mv("albums/.t", "albums/z.jpg")
        #expect(try fixture.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        #expect(try fixture.get("albums/z.jpg") == jpeg("2024-05-01", more: 1))
    }

    /// Its first copy became a photo beside it, and moments had it twice.
    @Test(arguments: [[".t"], ["x.jpg~", "x.jpg"], ["x.jpg_original", ".t"]])
    func `a photo that is saved as it was keeps its copies`(way: [String]) throws {
        let fixture = try Fixture()
        let picture = big("2024-05-01", 300_000)
        for name in ["x.jpg", "y.jpg", "z.jpg"] { try fixture.put("albums/" + name, picture) }
        let used = fixture.usedBytes
        if way.count > 1 { try fixture.mv("albums/x.jpg", "albums/" + way[0]) }
        let written = way.last ?? ""
        try fixture.put("albums/" + written, picture)
        if written != "x.jpg" { try fixture.mv("albums/" + written, "albums/x.jpg") }
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.ino("moments/2024-05-01/x.jpg") == fixture.ino("albums/x.jpg"))
        for name in way.dropLast() { try fixture.rm("albums/" + name) }
        #expect(fixture.usedBytes == used)
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(try fixture.ls("albums").isEmpty)
    }

    @Test func `a backup with the same bytes is no copy`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mv("albums/x.jpg", "albums/x.jpg~")
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        #expect(try fixture.ino("moments/2024-05-01/x.jpg") == fixture.ino("albums/x.jpg"))
        try fixture.rm("moments/2024-05-01/x.jpg")
        #expect(try fixture.ls("albums") == ["x.jpg~"])
    }

    @Test func `a copy moved into a day becomes the photo's name there`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mv("albums/y.jpg", "moments/2020-01-01/y.jpg")
        #expect(try fixture.moments() == ["2020-01-01/y.jpg"])
        #expect(try fixture.get("albums/x.jpg") == jpeg("2024-05-01", more: 1))
        try fixture.rm("moments/2020-01-01/y.jpg")
        #expect(try fixture.ls("albums").isEmpty)
        try fixture.rmdir("moments/2020-01-01")
        try fixture.expectNothingLeft()
    }

    @Test func `a file being written is not shared`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        let writing = try fixture.open("albums/x.jpg")
        try fixture.write(writing, [0xFF], at: 0)
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        #expect(try fixture.moments().count == 2)
        try fixture.close(writing)
        // As it is the same as before it stands for the other now.
        #expect(try fixture.moments() == ["2024-05-01/y.jpg"])
        #expect(try fixture.get("albums/x.jpg") == jpeg("2024-05-01", more: 1))
        try fixture.rm("moments/2024-05-01/y.jpg")
        #expect(try fixture.ls("albums").isEmpty)
    }

    @Test func `in a full space a copy can still be emptied and removed`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", big("2024-05-01", 1_000_000))
        try fixture.put("albums/y.jpg", big("2024-05-01", 1_000_000))
        let filling = [UInt8](repeating: 7, count: 64 << 20)
        #expect(throws: FileError.noRoom) { try fixture.put("albums/full.bin", filling) }
        let handle = try fixture.open("albums/y.jpg")
        // To change its head all of it would have to be stored again.
        #expect(throws: FileError.noRoom) { try fixture.write(handle, [1, 2, 3], at: 100) }
        fixture.library.release(handle)
        #expect(try fixture.get("albums/y.jpg") == big("2024-05-01", 1_000_000))
        try fixture.truncate("albums/y.jpg", 0)
        #expect(try fixture.get("albums/x.jpg") == big("2024-05-01", 1_000_000))
    }
}
