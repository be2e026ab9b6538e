import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

/// A photo of more than `count` bytes.
private func big(_ day: String, _ count: Int) -> [UInt8] {
    jpeg(day) + (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}

/// Copies of photos share their bytes and stand for them.
@Suite struct CopyTests {
    @Test func aCopyInAnAlbumSharesItsBytesAndIsNotShownTwice() throws {
        let rig = try Rig()
        let picture = big("2024-05-01", 300_000)
        try rig.put("albums/x.jpg", picture)
        let used = rig.usedBytes
        try rig.mkdir("albums/Trip")
        try rig.put("albums/Trip/y.jpg", picture)
        try rig.utimes("albums/Trip/y.jpg", modified: 1_000_000_000)
        #expect(rig.usedBytes == used)
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.get("albums/Trip/y.jpg") == picture)
        let copy = try rig.stat("albums/Trip/y.jpg")
        let photo = try rig.stat("albums/x.jpg")
        #expect(copy.ino != photo.ino)
        #expect((copy.nlink, photo.nlink) == (1, 2))
        #expect(copy.modified.seconds == 1_000_000_000)
        #expect(photo.modified.seconds != 1_000_000_000)
        #expect(try rig.captured("albums/Trip/y.jpg").hasPrefix("2024-05-01"))
        #expect(rig.exists("albums/Trip/.thumbs"))
        #expect(try rig.ls("albums/Trip/.thumbs") == ["fast", "y.jpg"])
        try rig.remount()
        #expect(try rig.get("albums/Trip/y.jpg") == picture)
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(rig.usedBytes == used)
    }

    @Test func aFileWhoseNameTellsOfAnotherDayIsAPhotoOfItsOwn() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg(nil))
        try rig.put("albums/IMG_20090726_101112.jpg", jpeg(nil))
        try rig.put("albums/IMG-20090726-WA0007.jpg", jpeg(nil))
        #expect(try rig.moments().count == 2)
        #expect(try rig.ls("moments/2009-07-26") == ["IMG_20090726_101112.jpg"])
        // The day a user chose holds for the copies.
        try rig.mkdir("moments/2020-01-01")
        try rig.mv("moments/2009-07-26/IMG_20090726_101112.jpg", "moments/2020-01-01/y.jpg")
        try rig.rm("albums/x.jpg")
        try rig.put("albums/IMG_20090726_101113.jpg", try rig.get("moments/2020-01-01/y.jpg"))
        #expect(try rig.moments().count == 2)
    }

    @Test func theCopyGoesWithThePhotoAndNotWithoutIt() throws {
        let rig = try Rig()
        for number in 1...2 {
            try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
            try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
            try rig.put("albums/z.jpg", jpeg("2024-05-01", more: 1))
            try rig.rm("albums/z.jpg")
            #expect(try rig.get("albums/x.jpg") == jpeg("2024-05-01", more: 1))
            // From its album: it is in moments still, and so is its copy in the album.
            if number == 2 { try rig.rm("albums/x.jpg") }
            #expect(try rig.get("albums/y.jpg") == jpeg("2024-05-01", more: 1))
            let reading = try rig.open("albums/y.jpg", O_RDONLY)
            let ino = reading.ino
            try rig.rm("moments/2024-05-01/x.jpg")
            #expect(try rig.ls("albums").isEmpty)
            #expect(try rig.read(reading) == jpeg("2024-05-01", more: 1))
            rig.library.release(reading)
            rig.library.forget(ino)
        }
        try rig.expectNothingLeft()
    }

    @Test(arguments: [true, false], [true, false])
    func onceEditedEachIsAPhotoOfItsOwn(isPhotoEdited: Bool, isWhole: Bool) throws {
        let rig = try Rig()
        let (old, new) = (big("2024-05-01", 200_000), big("2024-06-02", 200_001))
        try rig.put("albums/x.jpg", old)
        for name in ["y.jpg", "z.jpg"] { try rig.put("albums/" + name, old) }
        let (edited, others) = isPhotoEdited ? ("x.jpg", ["y.jpg", "z.jpg"]) : ("y.jpg", ["x.jpg", "z.jpg"])
        if isWhole {
            try rig.put("albums/" + edited, new)
        } else {
            // Within the file, the head alone.
            let handle = try rig.open("albums/" + edited)
            try rig.write(handle, Array(new[..<1000]))
            try rig.close(handle)
        }
        let bytes = try rig.get("albums/" + edited)
        #expect(bytes == (isWhole ? new : Array(new[..<1000]) + old[1000...]))
        for name in others { #expect(try rig.get("albums/" + name) == old) }
        let remaining = isPhotoEdited ? "2024-05-01/y.jpg" : "2024-05-01/x.jpg"
        #expect(try rig.moments() == [remaining, "2024-06-02/" + edited])
        try rig.kill()
        #expect(try rig.get("albums/" + edited) == bytes)
        for name in others { #expect(try rig.get("albums/" + name) == old) }
        #expect(try rig.moments() == [remaining, "2024-06-02/" + edited])
    }

    @Test func aPhotoThatIsSavedAnewLeavesItsCopies() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/.t", jpeg("2024-06-02", more: 2))
        try rig.mv("albums/.t", "albums/x.jpg")
        #expect(try rig.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        #expect(try rig.get("albums/y.jpg") == jpeg("2024-05-01", more: 1))
        // A copy saved anew is a photo.
        try rig.put("albums/z.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/.t", jpeg("2024-07-03", more: 3))
        try rig.mv("albums/.t", "albums/z.jpg")
        #expect(try rig.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg", "2024-07-03/z.jpg"])
        // What is saved as another photo's bytes is a copy of that.
        try rig.put("albums/.t", jpeg("2024-05-01", more: 1))
        try rig.mv("albums/.t", "albums/z.jpg")
        #expect(try rig.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        #expect(try rig.get("albums/z.jpg") == jpeg("2024-05-01", more: 1))
    }

    /// Its first copy became a photo beside it, and moments had it twice.
    @Test(arguments: [[".t"], ["x.jpg~", "x.jpg"], ["x.jpg_original", ".t"]])
    func aPhotoThatIsSavedAsItWasKeepsItsCopies(way: [String]) throws {
        let rig = try Rig()
        let picture = big("2024-05-01", 300_000)
        for name in ["x.jpg", "y.jpg", "z.jpg"] { try rig.put("albums/" + name, picture) }
        let used = rig.usedBytes
        if way.count > 1 { try rig.mv("albums/x.jpg", "albums/" + way[0]) }
        let written = way.last ?? ""
        try rig.put("albums/" + written, picture)
        if written != "x.jpg" { try rig.mv("albums/" + written, "albums/x.jpg") }
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.ino("moments/2024-05-01/x.jpg") == rig.ino("albums/x.jpg"))
        for name in way.dropLast() { try rig.rm("albums/" + name) }
        #expect(rig.usedBytes == used)
        try rig.rm("moments/2024-05-01/x.jpg")
        #expect(try rig.ls("albums").isEmpty)
    }

    @Test func aBackupWithTheSameBytesIsNoCopy() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.mv("albums/x.jpg", "albums/x.jpg~")
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        #expect(try rig.ino("moments/2024-05-01/x.jpg") == rig.ino("albums/x.jpg"))
        try rig.rm("moments/2024-05-01/x.jpg")
        #expect(try rig.ls("albums") == ["x.jpg~"])
    }

    @Test func aCopyMovedIntoADayIsThePhotosPlace() throws {
        let rig = try Rig()
        try rig.mkdir("moments/2020-01-01")
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        try rig.mv("albums/y.jpg", "moments/2020-01-01/y.jpg")
        #expect(try rig.moments() == ["2020-01-01/y.jpg"])
        #expect(try rig.get("albums/x.jpg") == jpeg("2024-05-01", more: 1))
        try rig.rm("moments/2020-01-01/y.jpg")
        #expect(try rig.ls("albums").isEmpty)
        try rig.rmdir("moments/2020-01-01")
        try rig.expectNothingLeft()
    }

    @Test func aFileBeingWrittenIsNotShared() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        let writing = try rig.open("albums/x.jpg")
        try rig.write(writing, [0xFF], at: 0)
        try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 1))
        #expect(try rig.moments().count == 2)
        try rig.close(writing)
        // As it is the same as before it stands for the other now.
        #expect(try rig.moments() == ["2024-05-01/y.jpg"])
        #expect(try rig.get("albums/x.jpg") == jpeg("2024-05-01", more: 1))
        try rig.rm("moments/2024-05-01/y.jpg")
        #expect(try rig.ls("albums").isEmpty)
    }

    @Test func inAFullSpaceACopyCanStillBeEmptiedAndRemoved() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", big("2024-05-01", 1_000_000))
        try rig.put("albums/y.jpg", big("2024-05-01", 1_000_000))
        let filling = [UInt8](repeating: 7, count: 64 << 20)
        #expect(throws: FileError.noRoom) { try rig.put("albums/full.bin", filling) }
        let handle = try rig.open("albums/y.jpg")
        // To change its head all of it would have to be stored again.
        #expect(throws: FileError.noRoom) { try rig.write(handle, [1, 2, 3], at: 100) }
        rig.library.release(handle)
        #expect(try rig.get("albums/y.jpg") == big("2024-05-01", 1_000_000))
        try rig.truncate("albums/y.jpg", 0)
        #expect(try rig.get("albums/x.jpg") == big("2024-05-01", 1_000_000))
    }
}
