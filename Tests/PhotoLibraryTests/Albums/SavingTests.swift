import FileRequests
import Foundation
import LibraryFixtures
import PhotoLibrary
import TestSupport
import Testing
import VaultFormat

/// Programs that save by writing a new file and renaming it, and backups.
@Suite("Albums: saving by rename") struct SavingTests {
    /// A photo in two albums, saved anew in one of them, and its former inode.
    private func savedPhoto(_ limits: Limits = .production) throws -> (Fixture, old: UInt64) {
        let fixture = try Fixture(limits: limits)
        try fixture.mkdir("albums/A")
        let old = try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/other.jpg")
        try fixture.put("albums/A/.x.jpg.Ab12Cd", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/A/.x.jpg.Ab12Cd", "albums/A/x.jpg")
        return (fixture, old)
    }

    @Test func `a new file renamed over a photo keeps moment and memberships`() throws {
        let (fixture, old) = try savedPhoto()
        let new = try fixture.ino("albums/A/x.jpg")
        #expect(new != old)
        #expect(try fixture.ino("albums/other.jpg") == new)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.ino("moments/2024-05-01/x.jpg") == new)
        #expect(try fixture.stat("albums/other.jpg").nlink == 3)
        #expect(try fixture.get("albums/other.jpg") == jpeg("2024-05-01", more: 2))
        #expect(fixture.observer.entries.contains { $0.1 == "other.jpg" })
        fixture.library.forget(old)
    }

    /// Else a program's writes by another name of the photo go into a file that no name leads to.
    /// Also if the inode has left memory meanwhile: the request may be older than the notice that the kernel had.
    @Test(arguments: [Limits.production, .least])
    func `a name that means another file now is stale to the kernel`(limits: Limits) throws {
        let (fixture, old) = try savedPhoto(limits)
        for directory in ["albums", "albums/A", "moments"] { _ = try fixture.ls(directory) }
        expectError(.stale) { _ = try fixture.library.open(old, flags: O_RDWR, fixture.caller) }
        fixture.library.forget(old)
    }

    /// A thumbnail is being made of it, or its bytes are compared: no program has it open.
    @Test func `a name that means another file now is stale while this program reads the file`() throws {
        let (fixture, old) = try savedPhoto()
        try fixture.library.session.withState(of: old) { _ in
            expectError(.stale) {
                _ = try fixture.library.setAttributes(old, AttributeChanges(mode: 0o600), fixture.caller)
            }
        }
        fixture.library.forget(old)
    }

    @Test func `the day is read anew unless pinned`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/.t", jpeg("2023-03-03"))
        try fixture.mv("albums/.t", "albums/x.jpg")
        #expect(try fixture.moments() == ["2023-03-03/x.jpg"])
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2023-03-03/x.jpg", "moments/2020-01-01/x.jpg")
        let time = try fixture.captured("albums/x.jpg")
        for bytes in [jpeg("2022-02-02"), jpeg(nil)] {
            try fixture.put("albums/.t", bytes)
            try fixture.mv("albums/.t", "albums/x.jpg")
            #expect(try fixture.captured("albums/x.jpg") == time)
        }
        #expect(try fixture.moments() == ["2020-01-01/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") == "moved")
    }

    @Test func `a new file that was filed already gives its moment up`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/x.jpg_new", jpeg("2024-05-01", more: 2))
        #expect(try fixture.moments().count == 2)
        try fixture.mv("albums/x.jpg_new", "albums/x.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.stat("albums/x.jpg").nlink == 2)
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 2))
    }

    @Test func `an established photo moved over another loses nothing`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-01", more: 2))
        try fixture.remount()
        try fixture.mv("albums/y.jpg", "albums/x.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x (2).jpg", "2024-05-01/x.jpg"])
        #expect(try fixture.ls("albums") == ["x.jpg"])
        // The other photo is still there under its own name.
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.ino("albums/x.jpg") == fixture.ino("moments/2024-05-01/x (2).jpg"))
        // Likewise a new file that stands in another album already.
        try fixture.put("albums/z.jpg", jpeg("2024-05-01", more: 3))
        try fixture.ln("albums/z.jpg", "albums/z2.jpg")
        try fixture.mv("albums/z.jpg", "albums/x.jpg")
        #expect(try fixture.moments().count == 3)
    }

    @Test func `a file that is no picture takes the name, and the photo stays`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg())
        try fixture.put("albums/.t", Array("text".utf8))
        try fixture.mv("albums/.t", "albums/x.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.stat("albums/x.jpg").nlink == 1)
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg())
    }

    @Test(arguments: [
        "x.jpg~", "x.jpg_original", "x.jpg.bak", "x.jpg.orig", "x.jpg.t", "x.jpg.~1~", "x.jpg.~12~",
    ])
    func `a backup becomes plain when a new file takes its name`(backup: String) throws {
        for isRenamed in [true, false] {
            let fixture = try Fixture()
            let old = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
            try fixture.ln("moments/2024-05-01/x.jpg", "albums/member.jpg")
            try fixture.mv("albums/x.jpg", "albums/" + backup)
            #expect(try fixture.stat("albums/" + backup).nlink == 3)
            if isRenamed {
                try fixture.put("albums/x_tmp.jpg", jpeg("2024-05-02", more: 2))
                try fixture.mv("albums/x_tmp.jpg", "albums/x.jpg")
            } else {
                try fixture.put("albums/x.jpg", jpeg("2024-05-02", more: 2))
            }
            let new = try fixture.ino("albums/x.jpg")
            #expect(try fixture.ino("albums/" + backup) == old)
            #expect(try fixture.stat("albums/" + backup).nlink == 1)
            #expect(try fixture.ino("albums/member.jpg") == new)
            #expect(try fixture.moments() == ["2024-05-02/x.jpg"])
            #expect(try fixture.ino("moments/2024-05-02/x.jpg") == new)
        }
    }

    /// exiftool keeps a backup; without one, the next save by another album follows everywhere too.
    @Test func `a membership that was saved with a backup is one still`() throws {
        for isRenamed in [true, false] {
            let fixture = try Fixture()
            for path in ["albums/A", "albums/B"] { try fixture.mkdir(path) }
            try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
            try fixture.ln("moments/2024-05-01/x.jpg", "albums/B/x.jpg")
            try fixture.mv("albums/B/x.jpg", "albums/B/x.jpg_original")
            if isRenamed {
                try fixture.put("albums/B/.t", jpeg("2024-05-01", more: 2))
                try fixture.mv("albums/B/.t", "albums/B/x.jpg")
            } else {
                try fixture.put("albums/B/x.jpg", jpeg("2024-05-01", more: 2))
            }
            try fixture.put("albums/A/.t", jpeg("2024-05-01", more: 3))
            try fixture.mv("albums/A/.t", "albums/A/x.jpg")
            #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
            for path in ["albums/A/x.jpg", "albums/B/x.jpg", "moments/2024-05-01/x.jpg"] {
                #expect(try fixture.get(path) == jpeg("2024-05-01", more: 3))
            }
            try fixture.remount()
        }
    }

    @Test func `numbered backups stay as plain files`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 0))
        for number in 1...3 {
            try fixture.mv("albums/x.jpg", "albums/x.jpg.~\(number)~")
            try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: number))
            #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        }
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 3))
        for number in 1...3 {
            let backup = "albums/x.jpg.~\(number)~"
            #expect(try fixture.get(backup) == jpeg("2024-05-01", more: number - 1))
            #expect(try fixture.stat(backup).nlink == 1)
        }
    }

    /// `cp x y; mv y x`, or sed -i that changes nothing.
    @Test func `a copy that is renamed over its photo is the photo`() throws {
        let fixture = try Fixture()
        let bytes = jpeg("2024-05-01", more: 1)
        for path in ["albums/A", "albums/B"] { try fixture.mkdir(path) }
        try fixture.put("albums/x.jpg", bytes)
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2020-01-01/x.jpg")
        try fixture.ln("moments/2020-01-01/x.jpg", "albums/A/member.jpg")
        try fixture.put("albums/B/copy.jpg", bytes)
        let new = try fixture.put("albums/y.jpg", bytes)
        #expect(try fixture.stat("albums/y.jpg").nlink == 1)
        try fixture.mv("albums/y.jpg", "albums/x.jpg")
        for path in ["albums/x.jpg", "albums/A/member.jpg", "moments/2020-01-01/x.jpg"] {
            #expect(try fixture.ino(path) == new)
        }
        #expect(try fixture.moments() == ["2020-01-01/x.jpg"])
        #expect(!fixture.exists("albums/.versions/x.jpg"))
        // The other copy is one still.
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
        #expect(try fixture.moments() == ["2020-01-01/copy.jpg", "2020-01-01/x.jpg"])
        #expect(try fixture.get("albums/A/member.jpg") == jpeg("2024-05-01", more: 2))
        #expect(try fixture.get("albums/B/copy.jpg") == bytes)
        try fixture.remount()
    }

    @Test(arguments: ["x.jpg~", "x.jpg_original"])
    func `a save with a backup is one where the photo was renamed in moments too`(backup: String) throws {
        for isRemounted in [false, true] {
            let fixture = try Fixture()
            try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
            try fixture.mv("moments/2024-05-01/x.jpg", "moments/2024-05-01/Beach.jpg")
            try fixture.mv("albums/x.jpg", "albums/" + backup)
            if isRemounted { try fixture.remount() }
            try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
            #expect(try fixture.moments() == ["2024-05-01/Beach.jpg"])
            #expect(try fixture.get("moments/2024-05-01/Beach.jpg") == jpeg("2024-05-01", more: 2))
            #expect(try fixture.get("albums/" + backup) == jpeg("2024-05-01", more: 1))
        }
    }

    /// Only a rename from the name makes a backup of it.
    @Test func `a photo put into an album with a backup's name stays when another gets that name`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("moments/2024-05-01")
        try fixture.mkdir("albums/A")
        try fixture.put("moments/2024-05-01/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/A/x.jpg.bak")
        try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 2))
        #expect(try fixture.moments() == ["2024-05-01/x (2).jpg", "2024-05-01/x.jpg"])
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.get("albums/A/x.jpg.bak") == jpeg("2024-05-01", more: 1))
    }

    @Test func `a backup made by linking keeps the old bytes`() throws {
        let fixture = try Fixture()
        let old = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("albums/x.jpg", "albums/x.jpg~")
        try fixture.put("albums/.goutputstream", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/.goutputstream", "albums/x.jpg")
        #expect(try fixture.ino("albums/x.jpg~") == old)
        #expect(try fixture.stat("albums/x.jpg~").nlink == 1)
        #expect(try fixture.get("albums/x.jpg~") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 2))
    }

    @Test func `saving in a day dates it anew`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("moments/2024-05-01/.x.tmp", jpeg("2022-02-02", more: 2))
        try fixture.mv("moments/2024-05-01/.x.tmp", "moments/2024-05-01/x.jpg")
        #expect(try fixture.moments() == ["2022-02-02/x.jpg"])
        #expect(try fixture.get("albums/x.jpg") == jpeg("2022-02-02", more: 2))
        #expect(try fixture.stat("albums/x.jpg").nlink == 2)
        // Under an ordinary name, which is filed before it is renamed.
        try fixture.put("moments/2022-02-02/new.jpg", jpeg("2024-05-01", more: 4))
        #expect(try fixture.source("moments/2022-02-02/new.jpg") == "moved")
        try fixture.mv("moments/2022-02-02/new.jpg", "moments/2022-02-02/x.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.source("albums/x.jpg") != "moved")
        // With a backup.
        try fixture.put("moments/2024-05-01/x.jpg_new", jpeg("2024-05-01", more: 3))
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2024-05-01/x.jpg_original")
        try fixture.mv("moments/2024-05-01/x.jpg_new", "moments/2024-05-01/x.jpg")
        #expect(try fixture.get("albums/x.jpg") == jpeg("2024-05-01", more: 3))
        #expect(try fixture.stat("moments/2024-05-01/x.jpg_original").nlink == 1)
        #expect(try fixture.stat("moments/2024-05-01/x.jpg").nlink == 2)
    }

    @Test func `a photo moved to a day where its name is taken is numbered`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/y.jpg", jpeg("2024-05-02", more: 2))
        try fixture.remount()
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2024-05-02/y.jpg")
        #expect(try fixture.moments() == ["2024-05-02/y (2).jpg", "2024-05-02/y.jpg"])
        #expect(try fixture.ls("albums") == ["x.jpg", "y.jpg"])
        #expect(try fixture.get("moments/2024-05-02/y (2).jpg") == jpeg("2024-05-01", more: 1))
        // From an album too.
        try fixture.put("albums/z.jpg", jpeg("2024-05-03", more: 3))
        try fixture.mv("albums/z.jpg", "moments/2024-05-02/y.jpg")
        #expect(try fixture.get("moments/2024-05-02/y (3).jpg") == jpeg("2024-05-03", more: 3))
        // Within a day it is overwritten, once it is no file that a program just wrote.
        try fixture.remount()
        try fixture.mv("moments/2024-05-02/y (3).jpg", "moments/2024-05-02/y.jpg")
        #expect(try fixture.moments() == ["2024-05-02/y (2).jpg", "2024-05-02/y.jpg"])
        #expect(try fixture.ls("albums") == ["x.jpg"])
    }

    @Test func `hard links between album names are plain`() throws {
        let fixture = try Fixture()
        let old = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.ln("albums/x.jpg", "albums/y.jpg")
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/member.jpg")
        // Saved under one of the links: the other names keep the old bytes, and both are photos.
        try fixture.put("albums/.t", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/.t", "albums/x.jpg")
        #expect(try fixture.ino("albums/y.jpg") == old)
        for path in ["albums/x.jpg", "albums/member.jpg", "moments/2024-05-01/x.jpg"] {
            #expect(try fixture.get(path) == jpeg("2024-05-01", more: 2))
        }
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        // Saved as a membership: the name where it was put in follows too, hard links do not.
        try fixture.ln("albums/y.jpg", "albums/z.jpg")
        try fixture.mv("albums/member.jpg", "albums/gone.jpg")
        try fixture.rm("albums/gone.jpg")
        try fixture.ln("moments/2024-05-01/y.jpg", "albums/member.jpg")
        try fixture.put("albums/.t", jpeg("2024-05-01", more: 3))
        try fixture.mv("albums/.t", "albums/member.jpg")
        #expect(try fixture.get("albums/member.jpg") == jpeg("2024-05-01", more: 3))
        #expect(try fixture.get("albums/z.jpg") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.ino("albums/y.jpg") == old)
        #expect(try fixture.moments().count == 3)
        // Saved in moments: every album follows.
        try fixture.put("moments/2024-05-01/.t", jpeg("2024-05-01", more: 4))
        let moment = try #require(
            try fixture.ls("moments/2024-05-01").first {
                try fixture.ino("moments/2024-05-01/" + $0) == fixture.ino("albums/z.jpg")
            })
        try fixture.mv("moments/2024-05-01/.t", "moments/2024-05-01/" + moment)
        for path in ["albums/y.jpg", "albums/z.jpg"] {
            #expect(try fixture.get(path) == jpeg("2024-05-01", more: 4))
        }
        #expect(try fixture.moments().count == 3)
        try fixture.remount()
        // A link renamed over the last name of a photo takes its place.
        try fixture.ln("albums/x.jpg", "albums/.member.jpg.tmp")
        try fixture.mv("albums/.member.jpg.tmp", "albums/member.jpg")
        #expect(try fixture.ino("albums/member.jpg") == fixture.ino("albums/x.jpg"))
        #expect(try fixture.moments().count == 2)
    }

    /// One thread makes links of a name in a day and of one in an album, which the kernel does not look up again.
    @Test(arguments: [true, false]) func `the order in which links are made changes nothing`(
        isMemberFirst: Bool
    )
        throws
    {
        let fixture = try Fixture()
        let old = try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        let program = Caller(uid: 0, gid: 0, pid: 7)
        for isMember in [isMemberFirst, !isMemberFirst] {
            if isMember {
                let day = try fixture.ino("moments/2024-05-01")
                _ = try fixture.library.lookup(day, "x.jpg", program)
            }
            _ = try fixture.library.link(old, 3, isMember ? "member.jpg" : "link.jpg", program)
        }
        try fixture.put("albums/.t", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/.t", "albums/x.jpg")
        #expect(try fixture.get("albums/member.jpg") == jpeg("2024-05-01", more: 2))
        #expect(try fixture.ino("albums/link.jpg") == old)
        // The mark survives renames, the trash and a remount.
        try fixture.mv("albums/x.jpg", "albums/y.jpg")
        try fixture.ln("albums/y.jpg", "albums/z.jpg")
        try fixture.mv("albums/z.jpg", "albums/a.jpg")
        try fixture.remount()
        try fixture.put("albums/.t", jpeg("2024-05-01", more: 3))
        try fixture.mv("albums/.t", "albums/member.jpg")
        #expect(try fixture.get("albums/y.jpg") == jpeg("2024-05-01", more: 3))
        #expect(try fixture.get("albums/a.jpg") == jpeg("2024-05-01", more: 2))
    }

    /// As ImageMagick's mogrify, which appends tildes until no file has the name, the GNU programs, and Vim.
    @Test(
        arguments: ["x.jpg~~", "x.jpg~~~", "x.jpg.~1~", "x.jpg.~27~", "x.jpz~", "x.jpa~"],
        ["albums", "moments/2024-05-01"])
    func `every kind of backup is a plain file`(backup: String, directory: String) throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("\(directory)/x.jpg~", Array("older".utf8))
        try fixture.mkdir("albums/B")
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/B/m.jpg")
        try fixture.mv("\(directory)/x.jpg", "\(directory)/\(backup)")
        try fixture.put("\(directory)/x.jpg", jpeg("2024-05-01", more: 2))
        #expect(try fixture.get("albums/B/m.jpg") == jpeg("2024-05-01", more: 2))
        #expect(try fixture.get("\(directory)/\(backup)") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.stat("\(directory)/\(backup)").nlink == 1)
        #expect(try fixture.stat("albums/x.jpg").nlink == 3)
        #expect(try fixture.get("albums/.versions/x.jpg/original") == jpeg("2024-05-01", more: 1))
        #expect(try fixture.library.walk.photoCount() == 1)
    }

    /// As `sed -i.bak` that finds nothing to replace: the new file is a copy of the photo before it gets its name.
    @Test func `a photo saved with its own bytes beside a backup stays the photo`() throws {
        let fixture = try Fixture()
        let bytes = jpeg("2024-05-01", more: 1)
        try fixture.put("albums/x.jpg", bytes)
        try fixture.mkdir("albums/B")
        try fixture.ln("moments/2024-05-01/x.jpg", "albums/B/m.jpg")
        try fixture.put("albums/sedAbCdEf", bytes)
        try fixture.mv("albums/x.jpg", "albums/x.jpg.bak")
        try fixture.mv("albums/sedAbCdEf", "albums/x.jpg")
        #expect(try fixture.stat("albums/x.jpg").nlink == 3)
        #expect(try fixture.stat("albums/x.jpg.bak").nlink == 1)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get("albums/x.jpg.bak") == bytes)
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 2))
        #expect(try fixture.get("albums/B/m.jpg") == jpeg("2024-05-01", more: 2))
        #expect(try fixture.get("albums/x.jpg.bak") == bytes)
    }

    /// Between the lookup and the link other requests are served.
    @Test func `a link of a file found in a day is a membership though memory is short`() throws {
        let fixture = try Fixture(limits: .least)
        try fixture.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.mkdir("albums/B")
        let album = try fixture.ino("albums/B")
        let found = try fixture.ino("moments/2024-05-01/x.jpg")
        let other = Caller(uid: 0, gid: 0, pid: fixture.caller.pid + 1)
        for _ in 0..<8 { _ = try fixture.library.lookup(1, "albums", other) }
        _ = try fixture.library.link(found, album, "m.jpg", fixture.caller)
        try fixture.put("albums/B/.t", jpeg("2024-05-01", more: 2))
        try fixture.mv("albums/B/.t", "albums/B/m.jpg")
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get("albums/x.jpg") == jpeg("2024-05-01", more: 2))
    }

    @Test func `nothing leaks when all is gone`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(more: 1))
        for number in 2..<6 {
            try fixture.put("albums/.t", jpeg("2024-05-0\(number)", more: number))
            let old = try fixture.ino("albums/x.jpg")
            try fixture.mv("albums/.t", "albums/x.jpg")
            fixture.library.forget(old)
        }
        try fixture.rm("moments/2024-05-05/x.jpg")
        #expect(fixture.usedBytes == 0)
        #expect(try fixture.ls("moments").isEmpty)
        try fixture.expectNothingLeft()
    }

    @Test func `exchange is for albums alone`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(more: 1))
        try fixture.put("albums/t.txt", [1])
        let (photo, text) = (try fixture.ino("albums/x.jpg"), try fixture.ino("albums/t.txt"))
        try fixture.mv("albums/x.jpg", "albums/t.txt", .exchange)
        #expect(try fixture.ino("albums/t.txt") == photo)
        #expect(try fixture.ino("albums/x.jpg") == text)
        expectError(.notPermitted) { try fixture.mv("albums/x.jpg", "moments/2024-05-01/x.jpg", .exchange) }
        expectError(.exists) { try fixture.mv("albums/x.jpg", "albums/t.txt", .noReplace) }
        expectError(.noEntry) { try fixture.mv("albums/x.jpg", "albums/none", .exchange) }
    }

    /// `install -b --backup=numbered` again and again. Another album has the bytes of the first backup, so that it is a
    /// photo of its own, and stays one when that album drops it.
    @Test(arguments: [false, true]) func `a second backup is the one that is saved`(isLinkRemoved: Bool)
        throws
    {
        let fixture = try Fixture()
        for album in ["A", "P"] { try fixture.mkdir("albums/" + album) }
        let first = try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 0))
        _ = try fixture.library.link(first, try fixture.ino("albums/P"), "x.jpg", fixture.caller)
        for number in 1...3 {
            try fixture.mv("albums/A/x.jpg", "albums/A/x.jpg.~\(number)~")
            try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: number))
            if isLinkRemoved, number == 1 { try fixture.rm("albums/P/x.jpg") }
        }
        let saved = try fixture.ino("albums/A/x.jpg")
        #expect(try fixture.ino("moments/2024-05-01/x.jpg") == saved)
        let others = try fixture.moments().filter { $0 != "2024-05-01/x.jpg" }.map {
            try fixture.ino("moments/" + $0)
        }
        #expect(others == [first])
    }

    /// `sed -i` that changes nothing, twice: the first leaves two photos of the same bytes.
    @Test func `a photo saved with the bytes of another stays in its album`() throws {
        let fixture = try Fixture()
        for album in ["A", "P"] { try fixture.mkdir("albums/" + album) }
        let first = try fixture.put("albums/A/x.jpg", jpeg("2024-05-01", more: 0))
        _ = try fixture.library.link(first, try fixture.ino("albums/P"), "x.jpg", fixture.caller)
        for _ in 0..<3 {
            try fixture.put("albums/A/sedAbC", jpeg("2024-05-01", more: 0))
            try fixture.mv("albums/A/sedAbC", "albums/A/x.jpg")
            #expect(try fixture.ino("moments/2024-05-01/x.jpg") == fixture.ino("albums/A/x.jpg"))
            #expect(try fixture.ino("albums/P/x.jpg") == first)
            #expect(try fixture.moments().count == 2)
        }
        try fixture.remount()
    }
}
