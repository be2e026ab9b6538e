import Foundation
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary

/// Programs that save by writing a new file and renaming it, and backups.
@Suite struct SavingTests {
    @Test func aNewFileRenamedOverAPhotoKeepsMomentAndMemberships() throws {
        let rig = try Rig()
        try rig.mkdir("albums/A")
        let old = try rig.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.ln("moments/2024-05-01/x.jpg", "albums/other.jpg")
        try rig.put("albums/A/.x.jpg.Ab12Cd", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/A/.x.jpg.Ab12Cd", "albums/A/x.jpg")
        let new = try rig.ino("albums/A/x.jpg")
        #expect(new != old)
        #expect(try rig.ino("albums/other.jpg") == new)
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.ino("moments/2024-05-01/x.jpg") == new)
        #expect(try rig.stat("albums/other.jpg").nlink == 3)
        #expect(try rig.get("albums/other.jpg") == jpeg("2024-05-01", more: 2))
        #expect(rig.observer.entries.contains { $0.1 == "other.jpg" })
        rig.library.forget(old)
    }

    /// Else what a program writes by another name of the photo goes into a file that nobody will find.
    @Test func aNameThatMeansAnotherFileNowIsStaleToTheKernel() throws {
        let rig = try Rig()
        try rig.mkdir("albums/A")
        let old = try rig.put("albums/A/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.ln("moments/2024-05-01/x.jpg", "albums/other.jpg")
        try rig.put("albums/A/.t", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/A/.t", "albums/A/x.jpg")
        expectError(.stale) { _ = try rig.library.open(old, flags: O_RDWR, rig.caller) }
        rig.library.forget(old)
    }

    @Test func theDayIsReadAnewUnlessPinned() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01"))
        try rig.put("albums/.t", jpeg("2023-03-03"))
        try rig.mv("albums/.t", "albums/x.jpg")
        #expect(try rig.moments() == ["2023-03-03/x.jpg"])
        try rig.mkdir("moments/2020-01-01")
        try rig.mv("moments/2023-03-03/x.jpg", "moments/2020-01-01/x.jpg")
        try rig.put("albums/.t", jpeg("2022-02-02"))
        try rig.mv("albums/.t", "albums/x.jpg")
        #expect(try rig.moments() == ["2020-01-01/x.jpg"])
        #expect(try rig.source("albums/x.jpg") == "moved")
    }

    @Test func aNewFileThatWasFiledAlreadyGivesItsMomentUp() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/x.jpg_new", jpeg("2024-05-01", more: 2))
        #expect(try rig.moments().count == 2)
        try rig.mv("albums/x.jpg_new", "albums/x.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.stat("albums/x.jpg").nlink == 2)
        #expect(try rig.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 2))
    }

    @Test func anEstablishedPhotoMovedOverAnotherLosesNothing() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/y.jpg", jpeg("2024-05-01", more: 2))
        try rig.remount()
        try rig.mv("albums/y.jpg", "albums/x.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg", "2024-05-01/y.jpg"])
        #expect(try rig.ls("albums") == ["x.jpg"])
        #expect(try rig.ino("albums/x.jpg") == rig.ino("moments/2024-05-01/y.jpg"))
        // Likewise what is new, but stands in another album already.
        try rig.put("albums/z.jpg", jpeg("2024-05-01", more: 3))
        try rig.ln("albums/z.jpg", "albums/z2.jpg")
        try rig.mv("albums/z.jpg", "albums/x.jpg")
        #expect(try rig.moments().count == 3)
    }

    @Test func whatIsNoPictureTakesTheNameAndThePhotoStays() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg())
        try rig.put("albums/.t", Array("text".utf8))
        try rig.mv("albums/.t", "albums/x.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.stat("albums/x.jpg").nlink == 1)
        #expect(try rig.get("moments/2024-05-01/x.jpg") == jpeg())
    }

    @Test(arguments: ["x.jpg~", "x.jpg_original", "x.jpg.bak"])
    func aBackupBecomesPlainWhenANewFileTakesItsName(backup: String) throws {
        for isRenamed in [true, false] {
            let rig = try Rig()
            let old = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
            try rig.ln("moments/2024-05-01/x.jpg", "albums/member.jpg")
            try rig.mv("albums/x.jpg", "albums/" + backup)
            #expect(try rig.stat("albums/" + backup).nlink == 3)
            if isRenamed {
                try rig.put("albums/x_tmp.jpg", jpeg("2024-05-02", more: 2))
                try rig.mv("albums/x_tmp.jpg", "albums/x.jpg")
            } else {
                try rig.put("albums/x.jpg", jpeg("2024-05-02", more: 2))
            }
            let new = try rig.ino("albums/x.jpg")
            #expect(try rig.ino("albums/" + backup) == old)
            #expect(try rig.stat("albums/" + backup).nlink == 1)
            #expect(try rig.ino("albums/member.jpg") == new)
            #expect(try rig.moments() == ["2024-05-02/x.jpg"])
            #expect(try rig.ino("moments/2024-05-02/x.jpg") == new)
        }
    }

    @Test func aBackupMadeByLinkingKeepsTheOldBytes() throws {
        let rig = try Rig()
        let old = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.ln("albums/x.jpg", "albums/x.jpg~")
        try rig.put("albums/.goutputstream", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/.goutputstream", "albums/x.jpg")
        #expect(try rig.ino("albums/x.jpg~") == old)
        #expect(try rig.stat("albums/x.jpg~").nlink == 1)
        #expect(try rig.get("albums/x.jpg~") == jpeg("2024-05-01", more: 1))
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 2))
    }

    @Test func savingInADayDatesItAnew() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("moments/2024-05-01/.x.tmp", jpeg("2022-02-02", more: 2))
        try rig.mv("moments/2024-05-01/.x.tmp", "moments/2024-05-01/x.jpg")
        #expect(try rig.moments() == ["2022-02-02/x.jpg"])
        #expect(try rig.get("albums/x.jpg") == jpeg("2022-02-02", more: 2))
        #expect(try rig.stat("albums/x.jpg").nlink == 2)
        // Under an ordinary name, which is filed before it is renamed.
        try rig.put("moments/2022-02-02/new.jpg", jpeg("2024-05-01", more: 4))
        #expect(try rig.source("moments/2022-02-02/new.jpg") == "moved")
        try rig.mv("moments/2022-02-02/new.jpg", "moments/2022-02-02/x.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.source("albums/x.jpg") != "moved")
        // With a backup.
        try rig.put("moments/2024-05-01/x.jpg_new", jpeg("2024-05-01", more: 3))
        try rig.mv("moments/2024-05-01/x.jpg", "moments/2024-05-01/x.jpg_original")
        try rig.mv("moments/2024-05-01/x.jpg_new", "moments/2024-05-01/x.jpg")
        #expect(try rig.get("albums/x.jpg") == jpeg("2024-05-01", more: 3))
        #expect(try rig.stat("moments/2024-05-01/x.jpg_original").nlink == 1)
        #expect(try rig.stat("moments/2024-05-01/x.jpg").nlink == 2)
    }

    @Test func aPhotoMovedToADayWhereItsNameIsTakenIsNumbered() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/y.jpg", jpeg("2024-05-02", more: 2))
        try rig.remount()
        try rig.mv("moments/2024-05-01/x.jpg", "moments/2024-05-02/y.jpg")
        #expect(try rig.moments() == ["2024-05-02/y (2).jpg", "2024-05-02/y.jpg"])
        #expect(try rig.ls("albums") == ["x.jpg", "y.jpg"])
        #expect(try rig.get("moments/2024-05-02/y (2).jpg") == jpeg("2024-05-01", more: 1))
        // From an album too.
        try rig.put("albums/z.jpg", jpeg("2024-05-03", more: 3))
        try rig.mv("albums/z.jpg", "moments/2024-05-02/y.jpg")
        #expect(try rig.get("moments/2024-05-02/y (3).jpg") == jpeg("2024-05-03", more: 3))
        // Within a day it is overwritten, once it is no file that a program just wrote.
        try rig.remount()
        try rig.mv("moments/2024-05-02/y (3).jpg", "moments/2024-05-02/y.jpg")
        #expect(try rig.moments() == ["2024-05-02/y (2).jpg", "2024-05-02/y.jpg"])
        #expect(try rig.ls("albums") == ["x.jpg"])
    }

    @Test func hardLinksBetweenAlbumNamesArePlain() throws {
        let rig = try Rig()
        let old = try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.ln("albums/x.jpg", "albums/y.jpg")
        try rig.ln("moments/2024-05-01/x.jpg", "albums/member.jpg")
        // Saved under one of the links: the other names keep the old bytes, and both are photos.
        try rig.put("albums/.t", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/.t", "albums/x.jpg")
        #expect(try rig.ino("albums/y.jpg") == old)
        #expect(try rig.ino("albums/member.jpg") == old)
        #expect(try rig.get("albums/x.jpg") == jpeg("2024-05-01", more: 2))
        #expect(try rig.moments() == ["2024-05-01/x (2).jpg", "2024-05-01/x.jpg"])
        // Saved as a membership: moment and memberships follow, hard links do not.
        try rig.ln("albums/y.jpg", "albums/z.jpg")
        try rig.put("albums/.t", jpeg("2024-05-01", more: 3))
        try rig.mv("albums/.t", "albums/member.jpg")
        #expect(try rig.get("albums/member.jpg") == jpeg("2024-05-01", more: 3))
        #expect(try rig.get("albums/z.jpg") == jpeg("2024-05-01", more: 1))
        #expect(try rig.ino("albums/y.jpg") == old)
        #expect(try rig.moments().count == 3)
        try rig.remount()
        // A link renamed over the last name of a photo takes its place.
        try rig.ln("albums/x.jpg", "albums/.member.jpg.tmp")
        try rig.mv("albums/.member.jpg.tmp", "albums/member.jpg")
        #expect(try rig.ino("albums/member.jpg") == rig.ino("albums/x.jpg"))
        #expect(try rig.moments().count == 2)
    }

    /// Between the lookup and the link other requests are served.
    @Test func aLinkOfWhatWasFoundInADayIsAMembershipThoughMemoryIsShort() throws {
        let rig = try Rig(limits: .least)
        try rig.put("albums/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.mkdir("albums/B")
        let album = try rig.ino("albums/B")
        let found = try rig.ino("moments/2024-05-01/x.jpg")
        let other = Caller(uid: 0, gid: 0, pid: rig.caller.pid + 1)
        for _ in 0..<8 { _ = try rig.library.lookup(1, "albums", other) }
        _ = try rig.library.link(found, album, "m.jpg", rig.caller)
        try rig.put("albums/B/.t", jpeg("2024-05-01", more: 2))
        try rig.mv("albums/B/.t", "albums/B/m.jpg")
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.get("albums/x.jpg") == jpeg("2024-05-01", more: 2))
    }

    @Test func ofManyThreadsTheNewestAreRemembered() {
        let countMax = 3
        var finds = DayFinds(threadsMax: countMax)
        for thread in Int32(1)...20 {
            finds.note(UInt64(thread) + 100, inDay: true, by: thread)
            for older in max(1, thread - 2)...thread { #expect(finds[older] == UInt64(older) + 100) }
            #expect((1...20).filter { finds[$0] != nil }.count <= 2 * countMax)
        }
        finds.note(120, inDay: false, by: 19)
        #expect(finds[19] == 119)
        finds.note(119, inDay: false, by: 19)
        #expect(finds[19] == nil)
    }

    @Test func nothingLeaksWhenAllIsGone() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg(more: 1))
        for number in 2..<6 {
            try rig.put("albums/.t", jpeg("2024-05-0\(number)", more: number))
            let old = try rig.ino("albums/x.jpg")
            try rig.mv("albums/.t", "albums/x.jpg")
            rig.library.forget(old)
        }
        try rig.rm("moments/2024-05-05/x.jpg")
        #expect(rig.usedBytes == 0)
        #expect(try rig.ls("moments").isEmpty)
        try rig.expectNothingLeft()
    }

    @Test func exchangeIsForAlbumsAlone() throws {
        let rig = try Rig()
        try rig.put("albums/x.jpg", jpeg(more: 1))
        try rig.put("albums/t.txt", [1])
        let (photo, text) = (try rig.ino("albums/x.jpg"), try rig.ino("albums/t.txt"))
        try rig.mv("albums/x.jpg", "albums/t.txt", .exchange)
        #expect(try rig.ino("albums/t.txt") == photo)
        #expect(try rig.ino("albums/x.jpg") == text)
        expectError(.notPermitted) { try rig.mv("albums/x.jpg", "moments/2024-05-01/x.jpg", .exchange) }
        expectError(.exists) { try rig.mv("albums/x.jpg", "albums/t.txt", .noReplace) }
        expectError(.noEntry) { try rig.mv("albums/x.jpg", "albums/none", .exchange) }
    }
}
