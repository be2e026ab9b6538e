import CatalogueRows
import PhotoRules
import Testing

/// A moment named after a file of an album follows when that one is renamed; new content without
/// a date of its own stays on its day.
@Suite("Albums: rules of names in moments") struct MomentNameRuleTests {
    private func name(_ id: UInt64, _ text: String, isInDay: Bool = false, isMember: Bool = false)
        -> PlacedName
    {
        PlacedName(
            DentryRow(parent: 20, id: id, name: Array(text.utf8), ino: 100, isMember: isMember),
            isInDay: isInDay)
    }

    private func namesakeID(_ moment: String, _ names: [PlacedName]) -> UInt64? {
        namesake(of: Array(moment.utf8), among: names)?.id
    }

    @Test func `a moment is named after a name in an album that is the same, or the same without a number`() {
        #expect(namesakeID("a.jpg", [name(1, "a.jpg")]) == 1)
        #expect(namesakeID("a (2).jpg", [name(1, "a.jpg")]) == 1)
        #expect(namesakeID("b.jpg", [name(1, "a.jpg")]) == nil)
        #expect(namesakeID("a.jpg", [name(1, "a (2).jpg")]) == nil)
        #expect(namesakeID("a.jpg", [name(1, "a.jpg", isInDay: true)]) == nil)
    }

    @Test func `an ordinary name comes before a membership, and an older name before a newer one`() {
        #expect(namesakeID("a.jpg", [name(1, "a.jpg", isMember: true), name(2, "a.jpg")]) == 2)
        #expect(namesakeID("a.jpg", [name(4, "a.jpg"), name(3, "a.jpg")]) == 3)
        #expect(namesakeID("a.jpg", [name(1, "a.jpg", isMember: true), name(2, "b.jpg")]) == 1)
    }

    @Test func `a moment follows its namesake unless its name was given in moments`() {
        for flags in 0..<32 {
            var rename = MomentFollowing()
            (rename.isGiven, rename.isNamesake) = (flags & 1 != 0, flags & 2 != 0)
            (rename.wasWorking, rename.becomesWorking) = (flags & 4 != 0, flags & 8 != 0)
            rename.hasOther = flags & 16 != 0
            // Row by row: its namesake; a file that had a working name in between.
            let expected =
                !rename.isGiven && !rename.becomesWorking
                && (rename.isNamesake || rename.wasWorking && !rename.hasOther)
            #expect(follows(rename) == expected, "\(rename)")
        }
    }

    @Test func `other bytes without a date keep the day, the same bytes follow their time of modification`() {
        func row(_ source: String, fingerprint: UInt64, undated: Bool = false, pinned: Bool = false)
            -> PhotoRow
        {
            var row = PhotoRow(ino: 1, day: 20_240_501)
            (row.isDatedByMtime, row.isPinned, row.fingerprint) = (undated, pinned, fingerprint)
            row.source = Array(source.utf8)
            return row
        }
        let (dated, undated) = (row("XMP", fingerprint: 1), row("mtime", fingerprint: 2, undated: true))
        #expect(keepsDay(dated, savedAs: undated, now: 0))
        #expect(!keepsDay(dated, savedAs: row("GPS", fingerprint: 2), now: 0))
        #expect(!keepsDay(row("moved", fingerprint: 1, pinned: true), savedAs: undated, now: 0))
        #expect(keepsDay(row("mtime", fingerprint: 1, undated: true), savedAs: undated, now: 0))
        #expect(!keepsDay(row("mtime", fingerprint: 2, undated: true), savedAs: undated, now: 0))
        #expect(keepsDay(row("kept", fingerprint: 2), savedAs: undated, now: 0))
    }

    @Test func `a DateTime of the time of the save is that of the editor`() {
        var (old, new) = (PhotoRow(ino: 1, day: 20_240_501), PhotoRow(ino: 2, day: 20_261_125))
        (old.fingerprint, new.fingerprint, new.captured) = (1, 2, 1_000_000)
        new.source = Array("DateTime".utf8)
        for (source, isUndated) in [("mtime", true), ("DateTimeOriginal", false), ("DateTime", false)] {
            (old.source, old.isDatedByMtime) = (Array(source.utf8), isUndated)
            for difference in [-14, 0, 14] as [Int64] {
                #expect(keepsDay(old, savedAs: new, now: 1_000_000 + difference * 3600))
            }
            // An older one says when the photo was taken, as well as may be.
            #expect(!keepsDay(old, savedAs: new, now: 1_000_000 + 15 * 3600))
        }
        old.isPinned = true
        #expect(!keepsDay(old, savedAs: new, now: 1_000_000))
    }

    @Test func `the DateTime of an editor says nothing at later saves either`() {
        var (old, new) = (PhotoRow(ino: 1, day: 20_240_501), PhotoRow(ino: 2, day: 20_261_125))
        (old.fingerprint, new.fingerprint, old.captured, new.captured) = (1, 2, 500_000, 1_000_000)
        (old.source, new.source) = (Array("kept".utf8), Array("DateTime".utf8))
        #expect(keepsDay(old, savedAs: new, now: 9_000_000))
        // Nobody saved it before it was taken.
        new.captured = 400_000
        #expect(!keepsDay(old, savedAs: new, now: 9_000_000))
    }

    @Test func `a date in the name dates no photo whose bytes had one`() {
        var (old, new) = (PhotoRow(ino: 1, day: 20_240_501), PhotoRow(ino: 2, day: 20_240_502))
        (old.fingerprint, new.fingerprint, new.source) = (1, 2, Array("FileName".utf8))
        for (source, isUndated, isKept) in [
            ("DateTimeOriginal", false, true), ("kept", false, true), ("kept", true, false),
            ("FileName", false, false), ("mtime", true, false),
        ] {
            (old.source, old.isDatedByMtime) = (Array(source.utf8), isUndated)
            #expect(keepsDay(old, savedAs: new, now: 0) == isKept, "\(source)")
        }
    }

    @Test func `a kept day is that of the former content`() {
        var (old, new) = (PhotoRow(ino: 1, day: 20_240_501), PhotoRow(ino: 2, day: 20_261_125))
        (old.captured, old.capturedNanoseconds, old.fingerprint, new.isDatedByMtime) = (77, 5, 1, true)
        let isKept = new.inherit(from: old, now: 0)
        #expect(isKept)
        #expect(new.day == 20_240_501 && new.captured == 77 && new.capturedNanoseconds == 5)
        #expect(!new.isDatedByMtime && new.source == Array("kept".utf8) && new.ino == 2)
    }

    @Test func `a save leaves the arrival, the group and a chosen day`() {
        var (old, new) = (PhotoRow(ino: 1, day: 20_240_501), PhotoRow(ino: 2, day: 20_261_125))
        (old.arrived, old.group, old.isPinned, old.captured) = (7, [1, 2], true, 99)
        let isKept = new.inherit(from: old, now: 0)
        #expect(isKept)
        #expect(new.arrived == 7 && new.group == [1, 2] && new.isPinned && new.captured == 99)
        #expect(new.day == 20_240_501 && new.source == Array("moved".utf8))
        // New bytes with a date and a group of their own.
        var other = PhotoRow(ino: 3, day: 20_250_102)
        (other.group, other.source, old.isPinned) = ([3], Array("DateTimeOriginal".utf8), false)
        let isDayKept = other.inherit(from: old, now: 0)
        #expect(!isDayKept)
        #expect(other.arrived == 7 && other.group == [3] && other.day == 20_250_102)
    }
}
