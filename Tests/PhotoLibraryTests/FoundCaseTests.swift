import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary

private let files = ".Trash-0/files"

/// What random work against the model found.
@Suite struct FoundCaseTests {
    /// The day counted one file too few then, could be removed while something lay in it, and took that with it.
    @Test func aCopyMovedOverItsPhotosPlaceInADayIsCountedOnce() throws {
        let rig = try Rig()
        try rig.mkdir("moments/2024-05-01")
        try rig.put("moments/2024-05-01/x.jpg", jpeg(more: 1))
        try rig.put("moments/2024-05-01/notes.txt", [1])
        try rig.put("albums/copy.jpg", jpeg(more: 1))
        try rig.mv("albums/copy.jpg", "moments/2024-05-01/x.jpg")
        #expect(try rig.moments() == ["2024-05-01/notes.txt", "2024-05-01/x.jpg"])
        try rig.rm("moments/2024-05-01/notes.txt")
        expectError(.notEmpty) { try rig.rmdir("moments/2024-05-01") }
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.rmdir("moments/2024-05-01")
        try rig.expectNothingLeft()
    }

    /// An editor has saved a.jpg. Its link b.jpg stays with the old bytes, which so are a photo, with a backup's name
    /// beside its own in the day.
    private func rigWithABackupBesideItsPhoto() throws -> Rig {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try rig.ln("albums/a.jpg", "albums/b.jpg")
        try rig.mv("moments/2024-05-01/a.jpg", "moments/2024-05-01/a.jpg~")
        try rig.put("moments/2024-05-01/a.jpg", jpeg("2024-05-01", more: 2))
        return rig
    }

    @Test(arguments: ["moments/2024-05-01/b.jpg", "albums/b.jpg"])
    func whatIsMovedToAnotherDayLeavesNoBackupsNameBehind(path: String) throws {
        let rig = try rigWithABackupBesideItsPhoto()
        try rig.mkdir("moments/2024-06-01")
        #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-05-01/a.jpg~", "2024-05-01/b.jpg"])
        try rig.mv(path, "moments/2024-06-01/b.jpg")
        #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-06-01/b.jpg"])
        try rig.rm("moments/2024-06-01/b.jpg")
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
    }

    /// The links that stayed with the old bytes were gone with the backup, and the photo with them, into the trash.
    @Test func anEditorsBackupIsRemovedWithoutThePhotoThatItWas() throws {
        let rig = try rigWithABackupBesideItsPhoto()
        try rig.rm("moments/2024-05-01/a.jpg~")
        #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        for path in ["albums/a.jpg", "albums/b.jpg", "moments/2024-05-01/b.jpg"] {
            #expect(try rig.get(path) == jpeg("2024-05-01", more: 1))
        }
    }

    /// Saving the photo again, by another of its names, gave the backup the new bytes.
    @Test func anEarlierBackupKeepsItsBytes() throws {
        let rig = try rigWithABackupBesideItsPhoto()
        try rig.put("moments/2024-05-01/.new", jpeg("2024-07-01", more: 3))
        try rig.mv("moments/2024-05-01/.new", "moments/2024-05-01/b.jpg")
        #expect(try rig.get("moments/2024-05-01/a.jpg~") == jpeg("2024-05-01", more: 1))
    }

    /// A program that writes to it at once would write into a file that has no name any more.
    @Test func whatWasSavedByAnotherNameIsStaleByThisOne() throws {
        let rig = try Rig()
        for album in ["A", "B"] { try rig.mkdir("albums/" + album) }
        let old = try rig.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.mv("moments/2024-05-01/x.jpg", "albums/B/y.jpg")
        try rig.put("albums/A/.new", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/A/.new", "albums/A/x.jpg")
        expectError(.stale) { _ = try rig.library.open(old, flags: O_RDWR, rig.caller) }
        expectError(.stale) {
            _ = try rig.library.setAttributes(old, AttributeChanges(size: 0), rig.caller)
        }
        expectError(.stale) {
            try rig.library.setExtendedAttribute(
                old, name: Array("user.a".utf8), value: [1], policy: .any, rig.caller)
        }
        #expect(try rig.get("albums/B/y.jpg") == jpeg("2024-05-01", more: 2))
    }

    /// The kernel believes that it has the name it asked for, and for as long as it believed the old one.
    @Test func theKernelIsToldOfANameThatCameIntoADay() throws {
        let rig = try Rig()
        try rig.mkdir("moments/2020-01-01")
        try rig.put("moments/2020-01-01/x.jpg", jpeg("2020-01-01", more: 1))
        let moved = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
        #expect(try rig.moments() == ["2020-01-01/x (2).jpg", "2020-01-01/x.jpg"])
        let day = try rig.ino("moments/2020-01-01")
        #expect(rig.observer.entries.contains { $0 == (day, "x.jpg") })
        expectError(.stale) { _ = try rig.library.open(moved, flags: O_RDWR, rig.caller) }
        #expect(try rig.get("moments/2020-01-01/x (2).jpg") == jpeg("2024-05-01", more: 2))
        #expect(try rig.library.open(moved, flags: O_RDONLY, rig.caller).ino == moved)
    }

    /// It was told of the name that the file had in the restored day, too late, and believed the next one for an hour.
    @Test func theKernelIsToldOfANameThatIsMovedOnAtOnce() throws {
        let rig = try Rig(trashDays: 30)
        try rig.makeTrash()
        for day in ["2020-01-01", "2024-05-01"] { try rig.mkdir("moments/" + day) }
        try rig.put("moments/2024-05-01/n.txt", [1])
        try rig.mv("moments/2024-05-01", ".Trash-0/files/d")
        rig.observer.hasUnsent = true
        try rig.mv(".Trash-0/files/d", "moments/2024-05-01")
        try rig.mv("moments/2024-05-01/n.txt", "moments/2020-01-01/m.txt")
        let day = try rig.ino("moments/2020-01-01")
        #expect(rig.observer.entries.contains { $0 == (day, "m.txt") })
        rig.observer.hasUnsent = false
        _ = try rig.ino("moments/2020-01-01/m.txt")
        try rig.mv("moments/2020-01-01/m.txt", "moments/2024-05-01/o.txt")
        #expect(!rig.observer.entries.contains { $0.1 == "o.txt" })
    }

    /// Looked up by its new name it was no longer stale by the old one, and what was written there fell on it.
    @Test func whatWasLookedUpAnewIsStaleToTheKernelUntilThatIsTold() throws {
        let rig = try Rig()
        try rig.mkdir("moments/2020-01-01")
        try rig.put("moments/2020-01-01/x.jpg", jpeg("2020-01-01", more: 1))
        let moved = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
        rig.observer.hasUnsent = true
        try rig.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
        let day = try rig.ino("moments/2020-01-01")
        func caller(_ thread: Int32) -> Caller { Caller(uid: 0, gid: 0, pid: thread) }
        func open(_ thread: Int32) throws -> UInt64 {
            let handle = try rig.library.open(moved, flags: O_RDWR, caller(thread))
            rig.library.release(handle)
            return handle.ino
        }
        func cut(_ thread: Int32) throws {
            _ = try rig.library.setAttributes(moved, AttributeChanges(size: 9), caller(thread))
        }
        func lookUp(_ thread: Int32) throws -> UInt64 {
            try rig.library.lookup(day, Name("x (2).jpg"), caller(thread)).attributes.ino
        }
        #expect(try lookUp(1) == moved)
        // By the name that the kernel believes; told that it is stale, it finds another file there.
        for thread: Int32 in [1, 2] { expectError(.stale) { _ = try open(thread) } }
        expectError(.stale) { try cut(3) }
        // By the right one; each time the kernel asks again.
        for thread: Int32 in [1, 2, 1] {
            #expect(try lookUp(thread) == moved)
            #expect(try open(thread) == moved)
            expectError(.stale) { _ = try open(thread) }
        }
        #expect(try lookUp(3) == moved)
        try cut(3)
        // So is whatever else comes by a name; by a descriptor it comes but while the file is open.
        let (label, albums) = (Array("user.label".utf8), try rig.ino("albums"))
        let changes: [(Int32) throws -> Void] = [
            { _ = try rig.library.setAttributes(moved, AttributeChanges(mode: 0o600), caller($0)) },
            {
                try rig.library.setExtendedAttribute(
                    moved, name: label, value: [1], policy: .any, caller($0))
            },
            { try rig.library.removeExtendedAttribute(moved, name: label, caller($0)) },
            { _ = try rig.library.link(moved, albums, Name("linked \($0)"), caller($0)) },
        ]
        for change in changes {
            expectError(.stale) { try change(4) }
            #expect(try lookUp(4) == moved)
            try change(4)
        }
        expectError(.stale) { _ = try open(5) }
        #expect(try lookUp(5) == moved)
        let handle = try rig.library.open(moved, flags: O_RDWR, caller(5))
        try changes[0](6)
        // A link is to a name, but where it is made by a descriptor that a few milliseconds later would do.
        expectError(.stale) { try changes[3](6) }
        rig.library.release(handle)
        rig.observer.hasUnsent = false
        #expect(try open(3) == moved)
        rig.observer.hasUnsent = true
        #expect(try open(3) == moved)
    }

    /// The kernel asks once more for the name of what was stale: twice stale is an error to the program.
    @Test func whatIsFoundByANameAskedForAgainIsNotStale() throws {
        let rig = try Rig()
        try rig.mkdir("moments/2020-01-01")
        let (thread, other) = (Caller(uid: 0, gid: 0, pid: 1), Caller(uid: 0, gid: 0, pid: 2))
        func open(_ ino: UInt64, _ caller: Caller) throws {
            rig.library.release(try rig.library.open(ino, flags: O_RDWR, caller))
        }
        rig.observer.hasUnsent = true
        let photos = try (0..<3).map { number in
            let photo = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: number))
            try rig.ln("albums/x.jpg", "albums/\(number).jpg")
            try rig.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
            return photo
        }
        let day = try rig.library.lookup(Place.moments, Name("2020-01-01"), other).attributes.ino
        func lookUp(_ name: String) throws -> UInt64 {
            try rig.library.lookup(day, Name(name), thread).attributes.ino
        }
        // The kernel believes the newest to be the one of that name; the one that is was never asked for since it came.
        expectError(.stale) { try open(photos[2], thread) }
        #expect(try lookUp("x.jpg") == photos[0])
        try open(photos[0], thread)
        // What is gone is stale too.
        expectError(.stale) { try open(1 << 40, thread) }
        #expect(try lookUp("x (2).jpg") == photos[1])
        try open(photos[1], thread)
        expectError(.stale) { try open(photos[1], other) }
        // Found, but not used then: by now it may come by another name.
        expectError(.stale) { try open(photos[2], thread) }
        #expect(try lookUp("x.jpg") == photos[0])
        try rig.mv("albums/0.jpg", "moments/2020-01-01/z.jpg")
        #expect(try rig.ino("moments/2020-01-01/z.jpg") == photos[0])
        expectError(.stale) { try open(photos[0], thread) }
        #expect(try lookUp("z.jpg") == photos[0])
        #expect(try lookUp("x (2).jpg") == photos[1])
        expectError(.stale) { try open(photos[0], thread) }
    }

    /// `ln` failed: the kernel had counted the old photo's names down to none, and was told so again.
    @Test func attributesAreNotThoseOfAPhotoThatLostTheName() throws {
        let rig = try Rig()
        let old = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        rig.observer.hasUnsent = true
        let handle = try rig.open("albums/x.jpg")
        let new = try rig.put("albums/.x", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/.x", "moments/2024-05-01/x.jpg")
        // The kernel believes the name in the album to be the old one's. Who has that open may ask for it.
        #expect(try rig.library.attributes(old, handle: handle).0.nlink == 0)
        #expect(try rig.library.attributes(old).0.nlink == 0)
        try rig.close(handle)
        expectError(.stale) { _ = try rig.library.attributes(old) }
        #expect(try rig.ino("albums/x.jpg") == new)
        #expect(try rig.library.attributes(new).0.nlink == 2)
        rig.observer.hasUnsent = false
        #expect(try rig.library.attributes(old).0.nlink == 0)
    }

    @Test func whatIsStaleStaysSoThoughManyInodesPassThroughMemory() throws {
        let rig = try Rig()
        let caller = Caller(uid: 0, gid: 0, pid: 1)
        rig.observer.hasUnsent = true
        try rig.mkdir("moments/2020-01-01")
        let moved = try (0..<16).map { number in
            let photo = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: number))
            try rig.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
            return photo
        }
        let albums = try rig.ino("albums")
        for number in 0...Limits.production.cachedInodes {
            let name = Name("\(number)")
            _ = try rig.library.makeNode(albums, name, mode: S_IFIFO | 0o600, rdev: 0, rig.caller)
        }
        for photo in moved {
            expectError(.stale) { _ = try rig.library.open(photo, flags: O_RDWR, caller) }
        }
    }

    /// A plain file may have names in days and albums; once it is a photo, moments has it once.
    @Test func aFileThatLiesInADayAndInAnAlbumHasOnePlaceInMoments() throws {
        let rig = try Rig()
        try rig.mkdir("moments/2020-01-01")
        try rig.put("albums/.a", jpeg("2024-05-01", more: 1))
        for name in ["b", "c"] { try rig.ln("albums/.a", "albums/.\(name)") }
        for name in [".a", ".b"] { try rig.mv("albums/" + name, "moments/2020-01-01/" + name) }
        try rig.mv("albums/.c", "albums/c.jpg")
        #expect(try rig.moments() == ["2020-01-01/.a"])
        #expect(try rig.stat("albums/c.jpg").nlink == 2)
        #expect(try rig.captured("albums/c.jpg").hasPrefix("2020-01-01"))
        try rig.rm("moments/2020-01-01/.a")
        #expect(try rig.ls("albums").isEmpty)
        try rig.rmdir("moments/2020-01-01")
        try rig.expectNothingLeft()
    }

    @Test(arguments: [0, 1000]) func aCopyThatIsCutOrLengthenedIsAPhotoOfItsOwn(size: UInt64) throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg(more: 1))
        try rig.put("albums/y.jpg", jpeg(more: 1))
        try rig.truncate("albums/y.jpg", size)
        let own = size == 0 ? [] : ["2024-05-01/y.jpg"]
        #expect(try rig.moments() == ["2024-05-01/x.jpg"] + own)
    }

    /// It has the content of what was copied from it before, and was filed as a photo of its own.
    @Test func aBackupThatIsMovedAwayStandsForThePhotoOfItsBytes() throws {
        let rig = try Rig()
        for name in ["x.jpg", "y.jpg"] { try rig.put("albums/" + name, jpeg(more: 1)) }
        try rig.mv("albums/x.jpg", "albums/x.jpg~")
        try rig.put("albums/x.jpg", jpeg("2024-06-02", more: 2))
        #expect(try rig.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        try rig.mv("albums/x.jpg~", "albums/z.jpg")
        #expect(try rig.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        try rig.remount()
        #expect(try rig.get("albums/z.jpg") == jpeg(more: 1))
        for path in ["2024-05-01/y.jpg", "2024-06-02/x.jpg"] { try rig.rm("moments/" + path) }
        #expect(try rig.ls("albums").isEmpty)
        try rig.expectNothingLeft()
    }

    @Test func anExchangeBringsWorkingDirectoriesIntoSight() throws {
        let rig = try Rig()
        for directory in [".w", "A"] { try rig.mkdir("albums/" + directory) }
        try rig.put("albums/.w/x.jpg", jpeg(more: 1))
        try rig.mv("albums/A", "albums/.w", .exchange)
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.stat("albums/A/x.jpg").nlink == 2)
    }

    /// Emptied from the trash while a program has it open, it is no photo any more that a copy could bring back.
    @Test func aPhotoThatWasEmptiedWhileOpenStaysDestroyed() throws {
        let rig = try Rig.withAlbums()
        try rig.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try rig.makeTrash()
        try rig.mv("albums/copy.jpg", files + "/copy.jpg")
        try rig.rm("moments/2024-05-01/x.jpg")
        try empty(rig)
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        try rig.remount()
        #expect(try rig.get("albums/copy.jpg") == jpeg("2024-05-01", more: 1))
        #expect(try rig.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 1))
    }

    /// Destroys the photo x.jpg in the trash, and restores its copy, while it is open.
    private func empty(_ rig: Rig) throws {
        let reading = try rig.open(files + "/x.jpg", O_RDONLY)
        try rig.rm(files + "/x.jpg")
        try rig.mv(files + "/copy.jpg", "albums/copy.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.read(reading) == jpeg("2024-05-01", more: 1))
        rig.library.release(reading)
        rig.library.forget(reading.ino)
    }

    /// Of two names of one copy, the one in an album comes back with the photo, whatever became of that in the trash.
    @Test func aCopysNameComesBackThoughAnotherOfItsNamesWasEmptied() throws {
        let rig = try Rig.withAlbums()
        try rig.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try rig.ln("albums/copy.jpg", "albums/A/copy.jpg")
        try rig.makeTrash()
        try rig.mv("albums/copy.jpg", files + "/copy.jpg")
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.rm(files + "/copy.jpg")
        try rig.mv(files + "/x.jpg", "moments/2024-05-01/x.jpg")
        #expect(try rig.ls("albums/A") == ["copy.jpg", "x.jpg"])
        try rig.remount()
        #expect(try rig.get("albums/A/copy.jpg") == jpeg("2024-05-01", more: 1))
    }
}
