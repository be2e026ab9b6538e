import Glibc
import TestSupport
import TestThreads
import Testing

/// *Commands* of the contract: `obscura trash DIR list|restore|empty`.
@Suite("Commands: trash", .serialized, .waiting) struct TrashCommandTests {
    private let place: Place
    private static let day = "moments/2019-03-04"

    /// Mounted, with two photos of one day, one of them in an album, and a plain file beside it.
    init() throws {
        place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.source("b.jpg", Photo(seed: 2).bytes)
        try place.shell("mkdir D/albums/T; cp source/a.jpg D/albums/T; cp source/b.jpg D/moments/2019-03-04")
        try place.shell("echo text >D/albums/T/note.txt")
    }

    private func trash(_ words: String...) throws -> (status: Int32, lines: [String], error: String) {
        let ended = try place.run([obscura, "trash", place.mountPoint] + words)
        return (ended.status, ended.lines, ended.errors)
    }

    @Test func `an empty trash is said to be empty, whether it was ever used or not`() throws {
        #expect(try trash("list").lines == ["the trash is empty"])
        #expect(try trash("empty").lines == ["the trash is empty"])
        try place.shell("rm D/\(Self.day)/b.jpg")
        #expect(try trash("empty").status == 0)
        #expect(try trash("list").lines == ["the trash is empty"])
    }

    @Test func `a photo that rm removed is listed with its place, and returns to its day and albums`()
        throws
    {
        let before = try place.files(place.mountPoint)
        try place.shell("rm D/\(Self.day)/a.jpg")
        // The kernel keeps names of albums until it is notified.
        #expect(eventually { !exists(place.albums + "/T/a.jpg") })
        let listed = try trash("list")
        #expect(listed.status == 0 && listed.lines.count == 1)
        let line = try #require(listed.lines.first)
        #expect(line.hasSuffix("  a.jpg  from \(Self.day)/a.jpg"), "\(line)")
        let date = line.prefix(19).map { $0.isNumber ? "0" : $0 }
        #expect(String(date) == "0000-00-00 00:00:00", "\(line)")
        let removed = String(line.prefix(19).map { $0 == " " ? "T" : $0 })
        let entry = #"{"name": "a.jpg", "removed": "\#(removed)", "path": "\#(Self.day)/a.jpg"}"#
        let json = try trash("list", "--json")
        #expect(json.lines == [#"{"mounted_at": "\#(place.mountPoint)", "entries": [\#(entry)]}"#])
        #expect(try trash("empty", "--json").status == 2)
        #expect(try trash("restore", "a.jpg").status == 0)
        #expect(try place.files(place.mountPoint) == before)
        #expect(try place.bytes(place.albums + "/T/a.jpg") == Photo().bytes)
    }

    /// The listing of the trash at the same time brings them back with their photos at once.
    @Test func `sidecars that came back with their photos are restored`() throws {
        let names = (0..<20).map { "s\($0).jpg" }
        for (number, name) in names.enumerated() {
            try place.source("shoot/" + name, Photo(seed: UInt8(100 + number)).bytes)
            try place.source("shoot/\(name).xmp", Array("<x:xmpmeta/>\(number)".utf8))
        }
        try place.shell("mkdir D/albums/S; cp source/shoot/* D/albums/S")
        let day = try #require(
            try place.files(place.mountPoint).first { $0.hasPrefix("moments/") && $0.hasSuffix("/s0.jpg") })
        let before = try place.files(place.mountPoint)
        let moments = "D/" + day.dropLast("/s0.jpg".count)
        try place.shell(
            "cd \(moments); rm \(names.joined(separator: " ")); ls ../../.Trash-*/files >../../../list")
        let listing = try place.run([
            "bash", "-c", "while ls D/.Trash-*/files; do :; done >/dev/null 2>&1 & echo $!",
        ])
        let process = try #require(listing.lines.first.flatMap { pid_t($0) })
        defer { kill(process, SIGKILL) }
        let words = names.flatMap { [$0, $0 + ".xmp"] }
        let ended = try place.run([obscura, "trash", place.mountPoint, "restore"] + words)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try eventually { try place.files(place.mountPoint) == before })
    }

    /// Each named before its photo, or both by the word for everything.
    @Test(arguments: ["names", "--all"]) func `a sidecar comes back to a photo of the same request`(
        words: String
    ) throws {
        let sidecar = "<exif:DateTimeOriginal>2015-05-05T01:02:03</exif:DateTimeOriginal>"
        try place.shell(
            """
            cd D/\(Self.day)
            echo "<x:xmpmeta><rdf:Description>\(sidecar)</rdf:Description></x:xmpmeta>" >../../../x
            cp ../../../x a.jpg.xmp || :
            """)
        let both = ["2015-05-05/a.jpg", "2015-05-05/a.jpg.xmp", "2019-03-04/b.jpg"]
        #expect(try eventually { try place.shown() == both })
        try place.shell("rm D/moments/2015-05-05/a.jpg.xmp")
        #expect(try eventually { try place.shown() == ["2019-03-04/a.jpg", "2019-03-04/b.jpg"] })
        try place.shell("rm D/\(Self.day)/a.jpg")
        let ended =
            words == "--all" ? try trash("restore", "--all") : try trash("restore", "a.jpg.xmp", "a.jpg")
        #expect(ended.status == 0, "\(ended.error)")
        #expect(try eventually { try place.shown() == both })
    }

    /// The JPEG goes first; what says that it describes the raw file goes with that, and lies in the trash beside it.
    @Test(arguments: ["obscura", "mv"]) func `a sidecar that names a raw file comes back with that alone`(
        program: String
    ) throws {
        try place.source("DSC.cr2", raw("2019-03-04"))
        try place.source("DSC.xmp", xmp("2019-03-04", of: "CR2"))
        try place.shell("cp source/a.jpg D/albums/T/DSC.JPG; echo >>D/albums/T/DSC.JPG")
        try place.shell("cp source/DSC.cr2 source/DSC.xmp D/\(Self.day)")
        let others = ["2019-03-04/a.jpg", "2019-03-04/b.jpg"]
        let all = ["DSC.JPG", "DSC.cr2", "DSC.xmp"].map { "2019-03-04/" + $0 } + others
        #expect(try place.shown() == all)
        let before = try place.files(place.mountPoint)
        func restore(_ name: String) throws {
            if program == "obscura" {
                let ended = try trash("restore", name)
                #expect(ended.status == 0, "\(ended.error)")
            } else {
                try place.shell("cd D; mv .Trash-*/files/\(name) \(Self.day)")
            }
        }
        try place.shell("rm D/\(Self.day)/DSC.JPG")
        #expect(try eventually { try place.shown() == all.filter { !$0.hasSuffix("JPG") } })
        try place.shell("rm D/\(Self.day)/DSC.cr2")
        #expect(try eventually { try place.shown() == others })
        try restore("DSC.JPG")
        #expect(try eventually { try place.shown() == ["2019-03-04/DSC.JPG"] + others })
        #expect(try place.shell("cd D/.Trash-*/files; ls") == "DSC.cr2\nDSC.xmp\n")
        try restore("DSC.cr2")
        #expect(
            try eventually { try place.files(place.mountPoint).filter { !$0.hasPrefix(".Trash") } == before })
    }

    @Test func `names of any bytes are shown differently, and given so or as they are`() throws {
        // The escape is as long in all, and the last has a backslash of its own.
        let names = ["k\\xe9.jpg", "k\\xff.jpg", "k\u{FFFD}.jpg", "ctl\\x01.jpg", "k\\\\xfe.jpg"]
        try place.shell(
            """
            cd D/\(Self.day); names=($'k\\xe9.jpg' $'k\\xff.jpg' $'k\\xef\\xbf\\xbd.jpg' $'ctl\\x01.jpg')
            for n in "${names[@]}" 'k\\xfe.jpg'
            do { cat ../../../source/a.jpg; echo "$n"; } >"$n"; rm "$n"; done
            """)
        let lines = try trash("list").lines
        for name in names {
            #expect(lines.count { $0.contains("  \(name)  ") && $0.hasSuffix("/\(name)") } == 1, "\(lines)")
        }
        for name in names.dropFirst() { #expect(try trash("restore", name).status == 0, "\(name)") }
        let raw = try place.shell("'\(obscura)' trash D restore $'k\\xe9.jpg'")
        #expect(raw == "k\\xe9.jpg: restored to \(Self.day)/k\\xe9.jpg\n")
        #expect(try trash("list").lines == ["the trash is empty"])
        let left = try place.shell("ls D/\(Self.day) | od -An -c | tr -d ' \\n'")
        #expect(left.contains("k351.jpg") && left.contains("k377.jpg"), "\(left)")
    }

    @Test func `a name that means two entries is not guessed`() throws {
        try place.shell(
            """
            cd D/\(Self.day); for n in $'k\\xe9.jpg' 'k\\xe9.jpg'
            do { cat ../../../source/a.jpg; echo "$n"; } >"$n"; rm "$n"; done
            """)
        let ended = try trash("restore", "k\\xe9.jpg")
        #expect(ended.status == 1 && ended.error.contains("give k\\\\xe9.jpg"), "\(ended.error)")
        #expect(try trash("restore", "k\\\\xe9.jpg").status == 0)
        #expect(try trash("restore", "k\\xe9.jpg").status == 0)
    }

    @Test func `a day, and everything`() throws {
        let before = try place.files(place.mountPoint)
        try place.shell("rm D/\(Self.day)/*.jpg; rm -r D/albums/T; echo x >D/.Trash-$(id -u)/files/loose")
        #expect(try trash("restore", "2019-03-05").status == 1)
        #expect(try trash("restore", "2019-03-04").lines.count == 2)
        #expect(try trash("list").lines.count == 1)
        try place.shell("rm D/\(Self.day)/*.jpg")
        let all = try trash("restore", "--all")
        #expect(all.status == 1 && all.lines.count == 2 && all.error.contains("loose: no program noted"))
        #expect(try trash("restore", "--all", "a.jpg").status == 2)
        #expect(try trash("list", "--all").status == 2)
        let moments = before.filter { $0.hasPrefix("moments/") }.map { String($0.dropFirst(8)) }
        #expect(try place.files(place.moments) == moments)
    }

    @Test func `a path is a name too: of several entries the newest is meant`() throws {
        try place.shell("rm D/\(Self.day)/a.jpg; cp source/b.jpg D/albums/T/a.jpg; rm D/\(Self.day)/b.jpg")
        let photo = Self.day + "/b.jpg"
        #expect(try trash("restore", photo).lines == ["\(photo): restored to \(photo)"])
        #expect(try trash("list").lines.count == 1)
    }

    @Test func `a photo whose name is taken is numbered, and no other is replaced`() throws {
        try place.shell("rm D/\(Self.day)/a.jpg; cp source/b.jpg source/c.jpg; printf x >>source/c.jpg")
        try place.shell("cp source/c.jpg D/\(Self.day)/a.jpg")
        let ended = try trash("restore", "a.jpg")
        #expect(ended.lines == ["a.jpg: restored to \(Self.day)/a (2).jpg"])
        #expect(try place.bytes(place.mountPoint + "/\(Self.day)/a (2).jpg") == Photo().bytes)
        #expect(try place.bytes(place.mountPoint + "/\(Self.day)/a.jpg") == Photo(seed: 2).bytes + [0x78])
    }

    @Test func `a day that is there again gets its photos back`() throws {
        let albums = try place.files(place.albums)
        try place.shell(
            """
            mkdir -p D/.Trash-$(id -u)/files D/.Trash-$(id -u)/info
            printf '[Trash Info]\nPath=\(Self.day)\nDeletionDate=2026-01-02T03:04:05\n' \
                >D/.Trash-$(id -u)/info/2019-03-04.trashinfo
            mv D/\(Self.day) D/.Trash-$(id -u)/files
            cp source/b.jpg source/c.jpg; printf x >>source/c.jpg
            mkdir D/\(Self.day); cp source/c.jpg D/\(Self.day)/a.jpg
            """)
        #expect(try trash("restore", "2019-03-04").lines == ["2019-03-04: restored to \(Self.day)"])
        #expect(try trash("list").lines == ["the trash is empty"])
        let names = ["a (2).jpg", "a.jpg", "b.jpg"]
        #expect(try place.shown() == names.map { "2019-03-04/" + $0 })
        #expect(try place.bytes(place.moments + "/2019-03-04/a (2).jpg") == Photo().bytes)
        #expect(try place.files(place.albums) == albums)
    }

    @Test func `an album whose place is gone returns with its directories`() throws {
        try place.shell(
            """
            cd D; T=.Trash-$(id -u); mkdir -p -m 700 $T/files $T/info albums/Far/Away
            mv albums/T albums/Far/Away/
            printf '[Trash Info]\\nPath=albums/Far/Away/T\\nDeletionDate=2026-01-01T00:00:00\\n' >$T/info/T.trashinfo
            mv albums/Far/Away/T $T/files/T; rmdir albums/Far/Away albums/Far
            """)
        #expect(try trash("restore", "T").lines == ["T: restored to albums/Far/Away/T"])
        #expect(exists(place.albums + "/Far/Away/T/note.txt"))
        #expect(try trash("list").lines == ["the trash is empty"])
    }

    @Test func `one name that fails is named, and the others are restored`() throws {
        try place.shell("rm D/\(Self.day)/a.jpg D/\(Self.day)/b.jpg; echo x >D/.Trash-$(id -u)/files/loose")
        let ended = try trash("restore", "gone.jpg", "a.jpg", "loose")
        #expect(ended.status == 1)
        #expect(ended.lines == ["a.jpg: restored to \(Self.day)/a.jpg"])
        #expect(ended.error.contains("gone.jpg: not in the trash"))
        #expect(ended.error.contains("loose: no program noted where it was"))
        #expect(try trash("list").lines.count == 2)
    }

    @Test(arguments: ["/etc/passwd", "albums/../../out", "albums//x", "albums/./x", "outside"])
    func `a path that leads out of the mount, or nowhere, is not followed`(path: String) throws {
        try place.shell(
            """
            cd D; T=.Trash-$(id -u); mkdir -p -m 700 $T/files $T/info
            printf '[Trash Info]\\nPath=\(path)\\nDeletionDate=2026-01-01T00:00:00\\n' >$T/info/note.txt.trashinfo
            mv albums/T/note.txt $T/files/
            """)
        #expect(try trash("restore", "note.txt").status == 1)
        #expect(try trash("list").lines.count == 1)
    }

    @Test func `emptying destroys what was removed and nothing else`() throws {
        try place.shell("rm D/\(Self.day)/b.jpg")
        let standing = try place.files(place.mountPoint).filter { !$0.hasPrefix(".Trash") }
        let ended = try trash("empty")
        #expect(ended.lines == ["\(place.mountPoint): the trash is empty; 1 entry destroyed"])
        #expect(try place.files(place.mountPoint) == standing)
    }

    @Test func `wrong words and places are refused`() throws {
        #expect(try trash("lits").status == 2)
        #expect(try trash("lits").error.contains("did you mean list?"))
        #expect(try trash().status == 2)
        #expect(try trash("restore").status == 2)
        #expect(try trash("list", "a.jpg").status == 2)
        try place.unmount()
        #expect(try trash("list").status == 1)
        #expect(try trash("list").error.contains("no space is mounted here"))
    }
}
