import CatalogueRows
import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import Recovery
import TestSupport
import Testing
import VaultFormat

private let files = ".Trash-0/files"

/// Cases that random work against the model found.
@Suite("The tree: cases that models found") struct FoundCaseTests {
    /// The day counted one file too few then, could be removed while something lay in it, and took that with it.
    @Test func `a copy moved over its photo's name in a day is counted once`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2024-05-01")
        try fixture.put("moments/2024-05-01/x.jpg", jpeg(more: 1))
        try fixture.put("moments/2024-05-01/notes.txt", [1])
        try fixture.put("albums/copy.jpg", jpeg(more: 1))
        try fixture.mv("albums/copy.jpg", "moments/2024-05-01/x.jpg")
        #expect(try fixture.moments() == ["2024-05-01/notes.txt", "2024-05-01/x.jpg"])
        try fixture.rm("moments/2024-05-01/notes.txt")
        expectError(.notEmpty) { try fixture.rmdir("moments/2024-05-01") }
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.rmdir("moments/2024-05-01")
        try fixture.expectNothingLeft()
    }

    /// An editor has saved a.jpg, as earlier releases did. Its link b.jpg stays with the old bytes, which so are a
    /// photo, with a backup's name beside its own in the day.
    private func rigWithABackupBesideItsPhoto() throws -> Fixture {
        let fixture = try Fixture()
        let old = try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("albums/a.jpg", "albums/b.jpg")
        try fixture.mv("moments/2024-05-01/a.jpg", "moments/2024-05-01/b.jpg")
        try fixture.put("moments/2024-05-01/a.jpg", jpeg("2024-05-01", more: 2))
        let day = try fixture.ino("moments/2024-05-01")
        try fixture.library.session.change { change throws(FileError) in
            let (photo, directory) = (try change.tree.inode(old), try change.tree.inode(day))
            try change.tree.addEntry(directory, Array("a.jpg~".utf8), photo, now: .now())
            change.tree.addLink(to: photo, now: .now())
        }
        return fixture
    }

    @Test(arguments: ["moments/2024-05-01/b.jpg", "albums/b.jpg"])
    func `a photo moved to another day leaves no backup's name behind`(path: String) throws {
        let fixture = try rigWithABackupBesideItsPhoto()
        try fixture.mkdir("moments/2024-06-01")
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/a.jpg~", "2024-05-01/b.jpg"])
        try fixture.mv(path, "moments/2024-06-01/b.jpg")
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-06-01/b.jpg"])
        try fixture.rm("moments/2024-06-01/b.jpg")
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
    }

    @Test(arguments: [
        ("a.jpg~", "w.jpg", ["a.jpg", "w.jpg"]), ("b.jpg", "w.jpg", ["a.jpg", "a.jpg~", "w.jpg"]),
        ("a.jpg~", "w.jpg~", ["a.jpg", "b.jpg", "w.jpg~"]), ("b.jpg", "w.jpg~", ["a.jpg", "w.jpg~"]),
    ])
    func `a photo renamed in its day is there once`(from: String, to: String, shown: [String]) throws {
        let fixture = try rigWithABackupBesideItsPhoto()
        try fixture.mv("moments/2024-05-01/" + from, "moments/2024-05-01/" + to)
        #expect(try fixture.ls("moments/2024-05-01") == shown)
        // It is audited.
        try fixture.remount()
    }

    /// The links that stayed with the old bytes were gone with the backup, and the photo with them, into the trash.
    @Test func `an editor's backup is removed without the photo that it was`() throws {
        let fixture = try rigWithABackupBesideItsPhoto()
        try fixture.close()
        do {
            let unlocked = try fixture.vault.unlock()
            #expect(try SpaceCheck.run(unlocked).findings.map(\.text) == [])
        }
        try fixture.reopen()
        try fixture.rm("moments/2024-05-01/a.jpg~")
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        for path in ["albums/a.jpg", "albums/b.jpg", "moments/2024-05-01/b.jpg"] {
            #expect(try fixture.get(path) == jpeg("2024-05-01", more: 1))
        }
    }

    /// Saving the photo again, by another of its names, gave the backup the new bytes.
    @Test func `an earlier backup keeps its bytes`() throws {
        let fixture = try rigWithABackupBesideItsPhoto()
        try fixture.put("moments/2024-05-01/.new", jpeg("2024-07-01", more: 3))
        try fixture.mv("moments/2024-05-01/.new", "moments/2024-05-01/b.jpg")
        #expect(try fixture.get("moments/2024-05-01/a.jpg~") == jpeg("2024-05-01", more: 1))
    }

    /// A program that writes to it at once would write into a file that has no name any more.
    @Test func `a file saved by another name is stale by this one`() throws {
        let fixture = try Fixture()
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        let old = try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mv("moments/2024-05-01/x.jpg", "albums/B/y.jpg")
        try fixture.put("albums/A/.new", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/A/.new", "albums/A/x.jpg")
        expectError(.stale) { _ = try fixture.library.open(old, flags: O_RDWR, fixture.caller) }
        expectError(.stale) {
            _ = try fixture.library.setAttributes(old, AttributeChanges(size: 0), fixture.caller)
        }
        expectError(.stale) {
            try fixture.library.setExtendedAttribute(
                old, name: Array("user.a".utf8), value: [1], policy: .any, fixture.caller)
        }
        #expect(try fixture.get("albums/B/y.jpg") == jpeg("2024-05-01", more: 2))
    }

    /// The kernel moved the dentry of the old photo, which then went by the new name for an hour (model, seed 103).
    @Test func `a name that the kernel may have of another file is looked up before it is renamed`() throws {
        let fixture = try Fixture()
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mv("moments/2024-05-01/x.jpg", "albums/B/y.jpg")
        fixture.observer.hasUnsent = true
        try fixture.put("albums/A/.new", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/A/.new", "albums/A/x.jpg")
        expectError(.stale) { try fixture.mv("albums/B/y.jpg", "albums/B/z.jpg") }
        // The kernel repeats it once, after a lookup.
        try fixture.mv("albums/B/y.jpg", "albums/B/z.jpg")
        #expect(try fixture.get("albums/B/z.jpg") == jpeg("2024-05-01", more: 2))
        fixture.observer.hasUnsent = false
        try fixture.mv("albums/B/z.jpg", "albums/B/y.jpg")
    }

    /// The kernel believes that it has the name it asked for, and for as long as it believed the old one.
    @Test func `the kernel is told of a name that came into a day`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("moments/2020-01-01/x.jpg", jpeg("2020-01-01", more: 1))
        let moved = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
        #expect(try fixture.moments() == ["2020-01-01/x (2).jpg", "2020-01-01/x.jpg"])
        let day = try fixture.ino("moments/2020-01-01")
        #expect(fixture.observer.entries.contains { $0 == (day, "x.jpg") })
        expectError(.stale) { _ = try fixture.library.open(moved, flags: O_RDWR, fixture.caller) }
        #expect(try fixture.get("moments/2020-01-01/x (2).jpg") == jpeg("2024-05-01", more: 2))
        #expect(try fixture.library.open(moved, flags: O_RDONLY, fixture.caller).ino == moved)
    }

    /// It was told of the name that the file had in the restored day, too late, and believed the next one for an hour.
    @Test func `the kernel is told of a name that moves on at once`() throws {
        let fixture = try Fixture(trashDays: 30)
        try fixture.makeTrash()
        for day in ["2020-01-01", "2024-05-01"] { try fixture.mkdir("moments/" + day) }
        try fixture.put("moments/2024-05-01/n.txt", [1])
        try fixture.mv("moments/2024-05-01", ".Trash-0/files/d")
        fixture.observer.hasUnsent = true
        try fixture.mv(".Trash-0/files/d", "moments/2024-05-01")
        try fixture.mv("moments/2024-05-01/n.txt", "moments/2020-01-01/m.txt")
        let day = try fixture.ino("moments/2020-01-01")
        #expect(fixture.observer.entries.contains { $0 == (day, "m.txt") })
        fixture.observer.hasUnsent = false
        _ = try fixture.ino("moments/2020-01-01/m.txt")
        try fixture.mv("moments/2020-01-01/m.txt", "moments/2024-05-01/o.txt")
        #expect(!fixture.observer.entries.contains { $0.1 == "o.txt" })
    }

    /// Looked up by its new name it was no longer stale by the old one, and writes there reached it.
    @Test func `a file that was looked up anew is stale until the kernel is told`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("moments/2020-01-01/x.jpg", jpeg("2020-01-01", more: 1))
        let moved = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
        fixture.observer.hasUnsent = true
        try fixture.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
        let day = try fixture.ino("moments/2020-01-01")
        func caller(_ thread: Int32) -> Caller { Caller(uid: 0, gid: 0, pid: thread) }
        func open(_ thread: Int32) throws -> UInt64 {
            let handle = try fixture.library.open(moved, flags: O_RDWR, caller(thread))
            fixture.library.release(handle)
            return handle.ino
        }
        func cut(_ thread: Int32) throws {
            _ = try fixture.library.setAttributes(moved, AttributeChanges(size: 9), caller(thread))
        }
        func lookUp(_ thread: Int32) throws -> UInt64 {
            try fixture.library.lookup(day, Name("x (2).jpg"), caller(thread)).attributes.ino
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
        // So are other requests by a name; requests by a descriptor come only while the file is open.
        let (label, albums) = (Array("user.label".utf8), try fixture.ino("albums"))
        let changes: [(Int32) throws -> Void] = [
            { _ = try fixture.library.setAttributes(moved, AttributeChanges(mode: 0o600), caller($0)) },
            {
                try fixture.library.setExtendedAttribute(
                    moved, name: label, value: [1], policy: .any, caller($0))
            },
            { try fixture.library.removeExtendedAttribute(moved, name: label, caller($0)) },
            { _ = try fixture.library.link(moved, albums, Name("linked \($0)"), caller($0)) },
        ]
        for change in changes {
            expectError(.stale) { try change(4) }
            #expect(try lookUp(4) == moved)
            try change(4)
        }
        expectError(.stale) { _ = try open(5) }
        #expect(try lookUp(5) == moved)
        let handle = try fixture.library.open(moved, flags: O_RDWR, caller(5))
        try changes[0](6)
        // A link is to a name, but where it is made by a descriptor that a few milliseconds later would do.
        expectError(.stale) { try changes[3](6) }
        fixture.library.release(handle)
        fixture.observer.hasUnsent = false
        #expect(try open(3) == moved)
        fixture.observer.hasUnsent = true
        #expect(try open(3) == moved)
    }

    /// The kernel looks up a stale name once more: twice stale is an error to the program.
    @Test func `a file found by a name that is asked for again is not stale`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        let (thread, other) = (Caller(uid: 0, gid: 0, pid: 1), Caller(uid: 0, gid: 0, pid: 2))
        func open(_ ino: UInt64, _ caller: Caller) throws {
            fixture.library.release(try fixture.library.open(ino, flags: O_RDWR, caller))
        }
        fixture.observer.hasUnsent = true
        let photos = try (0..<3).map { number in
            let photo = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: number))
            try fixture.ln("albums/x.jpg", "albums/\(number).jpg")
            try fixture.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
            return photo
        }
        let day = try fixture.library.lookup(WellKnownInode.moments, Name("2020-01-01"), other).attributes.ino
        func lookUp(_ name: String) throws -> UInt64 {
            try fixture.library.lookup(day, Name(name), thread).attributes.ino
        }
        // The kernel believes the newest to be the one of that name; the one that is was never asked for since it came.
        expectError(.stale) { try open(photos[2], thread) }
        #expect(try lookUp("x.jpg") == photos[0])
        try open(photos[0], thread)
        // A removed file is stale too.
        expectError(.stale) { try open(1 << 40, thread) }
        #expect(try lookUp("x (2).jpg") == photos[1])
        try open(photos[1], thread)
        expectError(.stale) { try open(photos[1], other) }
        // Found, but not used then: by now it may come by another name.
        expectError(.stale) { try open(photos[2], thread) }
        #expect(try lookUp("x.jpg") == photos[0])
        try fixture.mv("albums/0.jpg", "moments/2020-01-01/z.jpg")
        #expect(try fixture.ino("moments/2020-01-01/z.jpg") == photos[0])
        expectError(.stale) { try open(photos[0], thread) }
        #expect(try lookUp("z.jpg") == photos[0])
        #expect(try lookUp("x (2).jpg") == photos[1])
        expectError(.stale) { try open(photos[0], thread) }
    }

    /// `ln` failed: the kernel had counted the old photo's names down to none, and was told so again.
    @Test func `attributes are not those of a photo that lost the name`() throws {
        let fixture = try Fixture()
        let old = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        fixture.observer.hasUnsent = true
        let handle = try fixture.open("albums/x.jpg")
        let new = try fixture.put("albums/.x", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/.x", "moments/2024-05-01/x.jpg")
        // The kernel believes the name in the album to be the old one's. A program that has that open may ask for it.
        #expect(try fixture.library.attributes(old, handle: handle).0.nlink == 0)
        #expect(try fixture.library.attributes(old).0.nlink == 0)
        try fixture.close(handle)
        expectError(.stale) { _ = try fixture.library.attributes(old) }
        #expect(try fixture.ino("albums/x.jpg") == new)
        #expect(try fixture.library.attributes(new).0.nlink == 2)
        fixture.observer.hasUnsent = false
        #expect(try fixture.library.attributes(old).0.nlink == 0)
    }

    @Test func `a stale name stays so though many inodes pass through memory`() throws {
        let fixture = try Fixture()
        let caller = Caller(uid: 0, gid: 0, pid: 1)
        fixture.observer.hasUnsent = true
        try fixture.mkdir("moments/2020-01-01")
        let moved = try (0..<16).map { number in
            let photo = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: number))
            try fixture.mv("albums/x.jpg", "moments/2020-01-01/x.jpg")
            return photo
        }
        let albums = try fixture.ino("albums")
        for number in 0...Limits.production.cachedInodes {
            let name = Name("\(number)")
            _ = try fixture.library.makeNode(albums, name, mode: S_IFIFO | 0o600, rdev: 0, fixture.caller)
        }
        for photo in moved {
            expectError(.stale) { _ = try fixture.library.open(photo, flags: O_RDWR, caller) }
        }
    }

    /// A plain file may have names in days and albums; once it is a photo, moments has it once.
    @Test func `a file in a day and in an album has one name in moments`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2020-01-01")
        try fixture.put("albums/.a", jpeg("2024-05-01", more: 1))
        for name in ["b", "c"] { try fixture.ln("albums/.a", "albums/.\(name)") }
        for name in [".a", ".b"] { try fixture.mv("albums/" + name, "moments/2020-01-01/" + name) }
        try fixture.mv("albums/.c", "albums/c.jpg")
        #expect(try fixture.moments() == ["2020-01-01/.a"])
        #expect(try fixture.stat("albums/c.jpg").nlink == 2)
        #expect(try fixture.captured("albums/c.jpg").hasPrefix("2020-01-01"))
        try fixture.rm("moments/2020-01-01/.a")
        #expect(try fixture.ls("albums").isEmpty)
        try fixture.rmdir("moments/2020-01-01")
        try fixture.expectNothingLeft()
    }

    @Test(arguments: [0, 1000])
    func `a copy that is cut or lengthened is a photo of its own`(size: UInt64) throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(more: 1))
        try fixture.put("albums/y.jpg", jpeg(more: 1))
        try fixture.truncate("albums/y.jpg", size)
        let own = size == 0 ? [] : ["2024-05-01/y.jpg"]
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"] + own)
    }

    /// It has the content of its former copy, and was filed as a photo of its own.
    @Test func `a backup that is moved away stands for the photo of its bytes`() throws {
        let fixture = try Fixture()
        for name in ["x.jpg", "y.jpg"] { try fixture.put("albums/" + name, jpeg(more: 1)) }
        try fixture.mv("albums/x.jpg", "albums/x.jpg~")
        try fixture.put("albums/x.jpg", jpeg("2024-06-02", more: 2))
        #expect(try fixture.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        try fixture.mv("albums/x.jpg~", "albums/z.jpg")
        #expect(try fixture.moments() == ["2024-05-01/y.jpg", "2024-06-02/x.jpg"])
        try fixture.remount()
        #expect(try fixture.get("albums/z.jpg") == jpeg(more: 1))
        for path in ["2024-05-01/y.jpg", "2024-06-02/x.jpg"] { try fixture.rm("moments/" + path) }
        #expect(try fixture.ls("albums").isEmpty)
        try fixture.expectNothingLeft()
    }

    @Test func `an exchange brings working directories into sight`() throws {
        let fixture = try Fixture()
        for directory in [".w", "A"] { try fixture.mkdir("albums/" + directory) }
        try fixture.put("albums/.w/x.jpg", jpeg(more: 1))
        try fixture.mv("albums/A", "albums/.w", .exchange)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.stat("albums/A/x.jpg").nlink == 2)
    }

    /// Emptied from the trash while a program has it open, it is no photo any more that a copy could bring back.
    @Test func `a photo that was emptied while open stays destroyed`() throws {
        let fixture = try Fixture.withAlbums()
        try fixture.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try fixture.makeTrash()
        try fixture.mv("albums/copy.jpg", files + "/copy.jpg")
        try fixture.rm("moments/2024-05-01/x.jpg")
        try empty(fixture)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        try fixture.remount()
        #expect(try fixture.get("albums/copy.jpg") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 1))
    }

    /// Destroys the photo x.jpg in the trash, and restores its copy, while it is open.
    private func empty(_ fixture: Fixture) throws {
        let reading = try fixture.open(files + "/x.jpg", O_RDONLY)
        try fixture.rm(files + "/x.jpg")
        try fixture.mv(files + "/copy.jpg", "albums/copy.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.read(reading) == jpeg("2024-05-01", more: 1))
        fixture.library.release(reading)
        fixture.library.forget(reading.ino)
    }

    /// Of two names of one copy, the one in an album comes back with the photo, also if that changed in the trash.
    @Test func `a copy's name comes back though another of its names was emptied`() throws {
        let fixture = try Fixture.withAlbums()
        try fixture.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("albums/copy.jpg", "albums/A/copy.jpg")
        try fixture.makeTrash()
        try fixture.mv("albums/copy.jpg", files + "/copy.jpg")
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.rm(files + "/copy.jpg")
        try fixture.mv(files + "/x.jpg", "moments/2024-05-01/x.jpg")
        #expect(try fixture.ls("albums/A") == ["copy.jpg", "x.jpg"])
        try fixture.remount()
        #expect(try fixture.get("albums/A/copy.jpg") == jpeg("2024-05-01", more: 1))
    }
}
