import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// `obscura import` of what `obscura export` wrote, into spaces that have something already, or after others have
/// added to it.
@Suite("Commands: import of an export", .serialized, .waiting) struct ReimportTests {
    private let one = jpeg("2019-03-04", more: 1)
    private let two = jpeg("2019-03-04", more: 2)
    private let three = jpeg("2019-03-04", more: 3)

    /// An export with versions: a photo on a day that the user chose, an album with it, a note and a link.
    private func exported(_ change: (Place) throws -> Void = { _ in }) throws -> Place {
        let place = try Place()
        try place.mount()
        try place.put("albums/T/a.jpg", one)
        try place.put("albums/T/a.jpg", two)
        try place.shell(
            """
            cd D; mkdir moments/2016-06-06; mv moments/2019-03-04/a.jpg moments/2016-06-06
            echo note > albums/T/note.txt; ln -s note.txt albums/T/soft; mkfifo albums/T/fifo
            """)
        try change(place)
        try place.unmount()
        #expect(try place.command("export", "V", "out", "--versions").status == 0)
        return place
    }

    /// Imports the export of a place into a space of its own, which is left mounted.
    ///
    /// - Parameter before: fills the space.
    private func imported(
        _ place: Place, _ words: String..., before: (Place) throws -> Void = { _ in }
    ) throws -> (space: Place, ended: Ended) {
        let space = try Place()
        try space.mount()
        try before(space)
        try space.unmount()
        let ended = try space.run(
            [obscura, "import", "V", place.root + "/out", "--password-stdin"] + words, "one\n")
        #expect(try space.command("check", "V").status == 0)
        try space.mount()
        return (space, ended)
    }

    @Test(arguments: [
        "true", "echo x > Thumbs.db", "mkdir -p @eaDir/SYNO lost+found 'System Volume Information'",
        "echo x > moments/desktop.ini", "mkdir -p moments/@eaDir moments/Best",
        "touch .DS_Store moments/.DS_Store",
    ]) func `what other programs add to an export does not hide that it is one`(addition: String) throws {
        let place = try exported()
        try place.shell("cd out; " + addition)
        let (other, ended) = try imported(place)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try other.shown() == ["2016-06-06/a.jpg"])
        #expect(try other.files(other.albums) == ["T/a.jpg", "T/note.txt"])
        #expect(try other.bytes(other.albums + "/T/.versions/a.jpg/original") == one)
    }

    @Test func `a raw file and its picture come back under the names that they had`() throws {
        let place = try exported { place in
            try place.put("albums/c.cr2", raw("2024-05-01"))
            try place.put("albums/c.jpg", jpeg("2024-05-01"))
            try place.shell("mv D/moments/2024-05-01/c.jpg 'D/moments/2024-05-01/c (2).jpg'")
        }
        let (other, _) = try imported(place)
        #expect(
            try other.shown() == ["2016-06-06/a.jpg", "2024-05-01/c (2).jpg", "2024-05-01/c.cr2"])
    }

    /// With links for the names of photos in albums, copies of them, or a target that cannot have links.
    @Test(arguments: ["", "cp -r --no-preserve=links out flat; rm -r out; mv flat out"])
    func `backups stay plain files`(change: String) throws {
        let place = try exported { place in
            try place.put("albums/T/b.jpg", three)
            try place.shell(
                """
                cd D/albums/T; for kind in jpg_original jpg.bak jpg.orig; do cp b.jpg b.new
                printf "$kind" >> b.new; mv b.jpg b.$kind; mv b.new b.jpg; done
                cd ../../moments/2019-03-04; cp b.jpg .b; printf day >> .b; mv b.jpg b.jpg_original; mv .b b.jpg
                """)
        }
        let names = ["T/a.jpg", "T/b.jpg", "T/b.jpg.bak", "T/b.jpg.orig", "T/b.jpg_original", "T/note.txt"]
        #expect(
            try place.shell("cd out/albums; find . -type f | LC_ALL=C sort").split(separator: "\n").map {
                String($0.dropFirst(2))
            } == names)
        try place.shell(change.isEmpty ? "true" : change)
        let (other, ended) = try imported(place)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try other.files(other.albums) == names)
        #expect(
            try other.files(other.moments) == [
                "2016-06-06/a.jpg", "2019-03-04/b.jpg", "2019-03-04/b.jpg_original",
            ])
        for name in ["T/b.jpg.bak", "T/b.jpg.orig", "T/b.jpg_original"] {
            #expect(try status(other.albums + "/" + name).st_nlink == 1, "\(name)")
        }
        #expect(try status(other.moments + "/2019-03-04/b.jpg_original").st_nlink == 1)
        let told = try other.run([obscura, "status", other.mountPoint, "--json"])
        #expect(try jsonObject(told.output)["photos"] as? Int == 2)
    }

    @Test func `photos that were added to an export are imported too`() throws {
        let place = try exported()
        try place.put("../out/new.jpg", three)
        try place.shell("mkdir out/moments/Best")
        try place.put("../out/moments/Best/best.jpg", jpeg("2020-01-01", more: 4))
        let (other, _) = try imported(place)
        #expect(try other.shown() == ["2016-06-06/a.jpg", "2019-03-04/new.jpg", "2020-01-01/best.jpg"])
    }

    @Test func `versions of files that are no photos any more, and of copies, come along`() throws {
        let place = try exported { place in
            for (name, bytes) in [("empty", []), ("text", [1, 2, 3]), ("copy", two)] {
                try place.put("albums/T/\(name).jpg", jpeg("2019-03-04", more: name.utf8.count))
                try place.put("albums/T/\(name).jpg", bytes)
            }
            try place.put("moments/2019-03-04/day.jpg", jpeg("2019-03-04", more: 9))
            try place.put("moments/2019-03-04/day.jpg", [])
        }
        let named = ["empty", "text", "copy"].map { ("albums/T/.versions/\($0).jpg/original", $0.utf8.count) }
        let (other, ended) = try imported(place)
        #expect(ended.status == 0, "\(ended.errors)")
        for (path, more) in named + [("moments/2019-03-04/.versions/day.jpg/original", 9)] {
            #expect(try other.bytes(other.mountPoint + "/" + path) == jpeg("2019-03-04", more: more))
        }
        #expect(try other.bytes(other.albums + "/T/.versions/a.jpg/original") == one)
        #expect(try other.files(other.albums).count == 5)
    }

    @Test func `an album named .versions stays one`() throws {
        let place = try exported { try $0.put("albums/U/.versions/a/c.txt", [1]) }
        let (other, _) = try imported(place)
        #expect(try other.files(other.albums + "/U") == [".versions/a/c.txt"])
    }

    @Test func `a photo that the space has gets the versions of the export`() throws {
        let place = try exported()
        let (other, ended) = try imported(place, before: { try $0.put("albums/mine.jpg", two) })
        #expect(ended.output.contains("1 duplicate skipped"), "\(ended.output)")
        #expect(try other.shown() == ["2019-03-04/mine.jpg"])
        #expect(try other.bytes(other.albums + "/.versions/mine.jpg/original") == one)
    }

    @Test func `an original of the export stands beside that of the space`() throws {
        let place = try exported()
        let (other, _) = try imported(
            place,
            before: {
                try $0.put("albums/mine.jpg", three)
                try $0.put("albums/mine.jpg", two)
            })
        for _ in 0..<2 {
            #expect(try other.bytes(other.albums + "/.versions/mine.jpg/original") == three)
            let versions = try other.files(other.albums + "/.versions/mine.jpg")
            #expect(versions.count == 2)
            #expect(try other.bytes(other.albums + "/.versions/mine.jpg/" + versions[0]) == one)
            try other.unmount()
            #expect(try other.command("import", "V", place.root + "/out").status == 0)
            try other.mount()
        }
    }

    @Test func `--move leaves nothing of an export in clear`() throws {
        let place = try exported { try $0.shell("ln D/albums/T/a.jpg D/albums/b.jpg") }
        let (other, ended) = try imported(place, "--move")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try place.shell("find out ! -type d").isEmpty)
        #expect(try other.files(other.albums) == ["T/a.jpg", "T/note.txt", "b.jpg"])
    }

    @Test func `what has no place is named, all else is imported, and a repetition adds nothing`() throws {
        let place = try exported { place in
            try place.put("albums/B/b.txt", [1])
            try place.put("albums/C/c.txt", [2])
        }
        let other = try Place()
        try other.mount()
        try other.put("albums/B", [9])
        try other.put("albums/T/note.txt", [9])
        try other.put("albums/T/a.jpg", three)
        try other.shell("ln -s elsewhere D/albums/T/soft")
        try other.unmount()
        var found: [[String]] = []
        for _ in 0..<2 {
            let ended = try other.command("import", "V", place.root + "/out")
            #expect(ended.status == 1)
            for path in ["albums/B", "albums/T/soft"] {
                #expect(ended.errors.contains("\(path): not restored: something else has its name"))
            }
            #expect(ended.errors.contains("2 sources could not be imported, the rest has been"))
            try other.mount()
            found.append(try other.files(other.mountPoint))
            try other.unmount()
        }
        #expect(
            found[0] == [
                "albums/B", "albums/C/c.txt", "albums/T/a (2).jpg", "albums/T/a.jpg", "albums/T/note (2).txt",
                "albums/T/note.txt", "moments/2016-06-06/a.jpg", "moments/2019-03-04/a.jpg",
            ])
        #expect(found[1] == found[0])
    }

    @Test func `an export that is not complete is said to be so`() throws {
        let place = try exported()
        try place.shell("touch out/.obscura-export-unfinished")
        let (other, ended) = try imported(place)
        #expect(ended.status == 1 && ended.errors.contains("this export is not complete"))
        #expect(try other.shown() == ["2016-06-06/a.jpg"])
    }

    @Test func `an unfinished export is no directory for another space's`() throws {
        let place = try Place()
        for index in 0..<50 {
            try place.source("p\(index).jpg", jpeg("2019-03-04", more: index, size: 20_000))
        }
        #expect(try place.command("import", "V", "source").status == 0)
        let (process, errors) = try place.startHalting(["export", "V", "out"])
        process.kill(SIGINT)
        _ = try PipeReader(errors).rest()
        #expect(process.wait() == .exited(130))
        let refused = try Place().command("export", "V", place.root + "/out")
        #expect(
            refused.status == 1 && refused.errors.contains("an export of another space was interrupted here"))
        #expect(try place.command("export", "V", "out").status == 0)
        #expect(try place.files(place.root + "/out").count == 50)
    }

    @Test func `a sidecar that differs from the photo's own is named`() throws {
        let place = try Place()
        try place.source("a.jpg", one)
        try place.source("a.jpg.xmp", xmp("2019-03-05"))
        #expect(try place.command("import", "V", "source").status == 0)
        try place.source("a.jpg.xmp", xmp("2019-03-06"))
        let again = try place.command("import", "V", "source", "--move")
        #expect(again.output.contains("1 sidecar left out, the photo has another: "), "\(again.output)")
        #expect(try place.files(place.root + "/source") == ["a.jpg.xmp"])
    }
}

extension Place {
    /// Writes a file of the mount, by its path there, with the directories above.
    fileprivate func put(_ path: String, _ bytes: [UInt8]) throws {
        let parent = path.split(separator: "/").dropLast().joined(separator: "/")
        try shell("mkdir -p 'D/\(parent)'")
        let file = open(mountPoint + "/" + path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        try #require(file >= 0)
        defer { close(file) }
        #expect(Glibc.write(file, bytes, bytes.count) == bytes.count)
    }
}
