import CatalogueRows
import PhotoRules
import Testing

/// Saving: which new file is a photo's new version, and which names stay with its old bytes.
@Suite("Albums: rules of saving") struct SavingRuleTests {
    private static let album: UInt64 = 20
    private static let day: UInt64 = 30

    private func name(
        _ id: UInt64, _ text: String, in parent: UInt64 = album, isInDay: Bool = false,
        isMember: Bool = false,
        isLink: Bool = false
    ) -> PlacedName {
        PlacedName(
            DentryRow(
                parent: parent, id: id, name: Array(text.utf8), ino: 100, isMember: isMember, isLink: isLink),
            isInDay: isInDay)
    }

    private func moment(_ id: UInt64, _ text: String, in day: UInt64 = day) -> PlacedName {
        name(id, text, in: day, isInDay: true)
    }

    private func kept(
        _ names: [PlacedName], savedAs text: String, in place: UInt64 = album, isDay: Bool = false
    ) -> Set<UInt64> {
        namesStaying(withOldBytesOf: names, whenSavedAs: Array(text.utf8), in: place, isDay: isDay)
    }

    @Test func `a file renamed over a photo saves it`() {
        for flags in 0..<32 {
            let (isPhoto, hadWorkingName) = (flags & 1 != 0, flags & 2 != 0)
            let (getsPhotoName, isNew, isBeside) = (flags & 4 != 0, flags & 8 != 0, flags & 16 != 0)
            let file = SaveFacts(
                isPhoto: isPhoto, hadWorkingName: hadWorkingName, getsPhotoName: getsPhotoName, isNew: isNew,
                isBeside: isBeside)
            // Row by row: a working name gives nothing away; a linked photo; a temporary file; a new file beside.
            let expected =
                getsPhotoName
                && (isPhoto && hadWorkingName || isNew && hadWorkingName || isNew && isBeside)
            #expect(isSave(file) == expected, "\(file)")
        }
    }

    @Test func `a file renamed at once onto the name that its thread removed beside it saves the photo`() {
        var facts = RemovalFacts(
            wasBeside: true, remover: 7, caller: 7, milliseconds: removalMillisecondsMax)
        #expect(isSavedByRemoval(facts))
        facts.milliseconds += 1
        #expect(!isSavedByRemoval(facts))
        facts.milliseconds = 0
        facts.wasBeside = false
        #expect(!isSavedByRemoval(facts))
        facts.wasBeside = true
        facts.caller = 8
        #expect(!isSavedByRemoval(facts))
        // The kernel does not tell the thread of another PID namespace.
        (facts.remover, facts.caller) = (0, 0)
        #expect(!isSavedByRemoval(facts))
    }

    @Test func `a file is new while its only names are its own and its moment`() {
        func isNew(_ names: [PlacedName], inDay: Bool = false, ofSession: Bool = true, pinned: Bool = false)
            -> Bool
        {
            isNewFile(names, own: 1, isInDay: inDay, isOfSession: ofSession, isPinned: pinned)
        }
        #expect(isNew([name(1, "a.jpg")]))
        #expect(isNew([name(1, "a.jpg"), moment(2, "a.jpg")]))
        #expect(isNew([moment(1, "a.jpg")], inDay: true))
        #expect(!isNew([name(1, "a.jpg")], ofSession: false))
        #expect(!isNew([name(1, "a.jpg"), name(2, "b.jpg")]))
        #expect(!isNew([name(1, "a.jpg"), moment(2, "a.jpg")], pinned: true))
        #expect(!isNew([moment(1, "a.jpg"), name(2, "a.jpg")], inDay: true))
        #expect(!isNew([name(1, "a.jpg"), moment(2, "a.jpg"), moment(3, "a.jpg~")]))
    }

    @Test func `a photo's own moment is not its backup's, unless that is its only one`() {
        #expect(ownMoment([name(1, "a.jpg")]) == nil)
        #expect(ownMoment([moment(1, "a.jpg~"), moment(2, "a.jpg")])?.id == 2)
        #expect(ownMoment([name(1, "a.jpg"), moment(2, "a.jpg~")])?.id == 2)
    }

    @Test func `the name in moments and memberships follow the new file`() {
        let names = [name(1, "a.jpg"), moment(2, "a.jpg"), name(3, "a.jpg", in: 21, isMember: true)]
        #expect(kept(names, savedAs: "a.jpg") == [])
    }

    @Test func `backups stay with the old bytes`() {
        #expect(kept([name(1, "a.jpg~"), moment(2, "a.jpg")], savedAs: "a.jpg") == [1])
        #expect(kept([name(1, "a.jpg_original"), moment(2, "a.jpg")], savedAs: "a.jpg") == [1])
        // In moments: the backup of an earlier save too.
        let names = [moment(1, "a.jpg"), moment(2, "a.jpg~")]
        #expect(kept(names, savedAs: "a.jpg", in: Self.day, isDay: true) == [2])
    }

    @Test func `saved in moments, every album follows`() {
        let names = [
            name(1, "b.jpg"), name(4, "c.jpg", isLink: true), moment(2, "a.jpg"),
            name(3, "c.jpg", in: 21, isMember: true),
        ]
        #expect(kept(names, savedAs: "a.jpg", in: Self.day, isDay: true) == [])
    }

    /// In every order of their numbers: a rename gives a name another.
    @Test func `saved in an album, its other hard links stay, and the name where it was put in follows`() {
        for ids in [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [3, 5, 1, 4, 2]] as [[UInt64]] {
            let names = [
                name(ids[0], "own.jpg"), moment(ids[1], "own.jpg"), name(ids[2], "one.jpg", isLink: true),
                name(ids[3], "two.jpg", isLink: true), name(ids[4], "member.jpg", isMember: true),
            ].sorted { $0.row.id < $1.row.id }
            #expect(kept(names, savedAs: "own.jpg") == [ids[2], ids[3]])
            #expect(kept(names, savedAs: "member.jpg") == [ids[2], ids[3]])
            #expect(kept(names, savedAs: "one.jpg") == [ids[3]])
            // By way of a backup.
            let backed = names.map { $0.row.id == ids[2] ? name(9, "one.jpg~", isLink: true) : $0 }
            #expect(kept(backed, savedAs: "one.jpg") == [9, ids[3]])
        }
        // A photo that was put into moments, and a link of its membership.
        let names = [moment(1, "a.jpg"), name(2, "a.jpg", isMember: true), name(3, "b.jpg", isLink: true)]
        #expect(kept(names, savedAs: "a.jpg") == [3])
    }

    @Test func `of links made by earlier releases the oldest counts as the name where it was put in`() {
        let names = [
            name(1, "a.jpg"), moment(2, "a.jpg"), name(3, "b.jpg"), name(4, "c.jpg", isMember: true),
        ]
        #expect(kept(names, savedAs: "c.jpg") == [3])
        #expect(kept(names, savedAs: "b.jpg") == [])
    }

    @Test(arguments: [
        ("a.jpg~", "a.jpg"), ("a.jpg~~", "a.jpg"), ("a.jpg~~~~~~", "a.jpg"), ("a.jpg.~1~", "a.jpg"),
        ("a.jpg.~12~~", "a.jpg"), ("a.jpg.~x~", "a.jpg.~x"), (".~1~", ".~1"), ("~~", nil), ("~", nil),
        ("a.jpg_original", "a.jpg"), ("a.bak", "a"), ("a.jpg", nil),
    ])
    func `backups are known by their names`(name: String, original: String?) {
        #expect(backupOriginal(Array(name.utf8)) == original.map { Array($0.utf8) })
    }

    @Test(arguments: [
        ("a.jpz~", true), ("a.jpa~", true), ("a.jpg~~", true), ("a.jp~", false), ("a.jpz", false),
        ("a.joz~", false), ("a.jpZ~", false), ("a.jpgz~", false),
    ])
    func `Vim takes another last letter where a backup exists`(name: String, isBackup: Bool) {
        #expect(isBackupName(Array(name.utf8), of: Array("a.jpg".utf8)) == isBackup)
        #expect(isVimBackup(Array(name.utf8), of: Array("a.jpg".utf8)) == (isBackup && name != "a.jpg~~"))
        #expect(!isBackupName(Array("12~".utf8), of: Array("1a".utf8)))
    }

    @Test func `working files are no links`() {
        #expect(kept([name(1, "a.jpg"), name(4, ".a.tmp"), moment(2, "a.jpg")], savedAs: "a.jpg") == [])
    }
}
