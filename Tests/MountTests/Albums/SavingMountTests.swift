import Foundation
import TestSupport
import TestThreads
import Testing

/// Programs that save by writing a new file keep the photo.
@Suite("Albums: saving by programs, through a mount", .serialized, .waiting) struct SavingMountTests {
    private let place: Place

    /// Mounted, with one photo in the albums T and U.
    init() throws {
        place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.source("new.jpg", Photo(taken: "2011:12:13 01:02:03", seed: 9).bytes)
        try place.shell("mkdir D/albums/T D/albums/U; cp source/a.jpg D/albums/T")
        try place.shell("ln D/moments/2019-03-04/a.jpg D/albums/U/b.jpg")
    }

    /// The photo has the new day and content, in moments and in both albums.
    private func expectFollowed(day: String = "2011-12-13", location: SourceLocation = #_sourceLocation)
        throws
    {
        #expect(try place.shown() == [day + "/a.jpg"], sourceLocation: location)
        let moment = place.moments + "/\(day)/a.jpg"
        for path in ["/T/a.jpg", "/U/b.jpg"] {
            #expect(try status(place.albums + path).st_ino == status(moment).st_ino, sourceLocation: location)
        }
        #expect(try status(moment).st_nlink == 3, sourceLocation: location)
    }

    @Test func `a new file renamed over the photo`() throws {
        try place.shell("cp source/new.jpg D/albums/T/.a.jpg.XYZ; mv D/albums/T/.a.jpg.XYZ D/albums/T/a.jpg")
        try expectFollowed()
        #expect(
            try place.bytes(place.albums + "/U/b.jpg") == Photo(taken: "2011:12:13 01:02:03", seed: 9).bytes)
    }

    /// mv(1) from another disk, and tar(1), remove the file and make it anew.
    @Test(arguments: [
        "mv source/new.jpg D/albums/T/a.jpg", "mv source/new.jpg D/moments/2019-03-04/a.jpg",
        "mkdir o; mv source/new.jpg o/a.jpg; tar cf t -C o a.jpg; tar xf t -C D/moments/2019-03-04",
        "rsync -a --ignore-times --temp-dir=/tmp source/new.jpg D/albums/T/a.jpg",
    ])
    func `a new file from another disk`(line: String) throws {
        try place.shell(line)
        try expectFollowed()
        #expect(try place.bytes(place.albums + "/U/.versions/b.jpg/original") == Photo().bytes)
        #expect(try place.shell("find D/.Trash-* -type f 2>/dev/null || true").isEmpty)
    }

    @Test func `rsync over the photo`() throws {
        try place.shell("cp source/new.jpg source/a.jpg; rsync -a --ignore-times source/a.jpg D/albums/T/")
        try expectFollowed()
    }

    @Test func `sed -i over the photo`() throws {
        try place.shell("sed -i s/2019:03:04/2011:12:13/ D/albums/T/a.jpg")
        try expectFollowed()
    }

    @Test(arguments: ["a.jpg~", "a.jpg_original", "a.jpg.bak", "a.jpg.orig"])
    func `a backup by renaming stays as a plain file`(backup: String) throws {
        try place.shell("cd D/albums/T; mv a.jpg '\(backup)'; cp ../../../source/new.jpg a.jpg")
        try expectFollowed()
        #expect(try status(place.albums + "/T/" + backup).st_nlink == 1)
        #expect(try place.bytes(place.albums + "/T/" + backup) == Photo().bytes)
    }

    @Test func `a backup by linking, then a new file renamed over, as GLib does it`() throws {
        try place.shell("cd D/albums/T; ln a.jpg a.jpg~; cp ../../../source/new.jpg .goutputstream-1")
        try place.shell("cd D/albums/T; mv .goutputstream-1 a.jpg")
        try expectFollowed()
        #expect(try status(place.albums + "/T/a.jpg~").st_nlink == 1)
    }

    @Test func `exiftool, with and without a backup`() throws {
        let set = "exiftool -q -DateTimeOriginal='2011:12:13 01:02:03'"
        try place.shell("\(set) -overwrite_original D/albums/T/a.jpg")
        try expectFollowed()
        #expect(try place.files(place.albums) == ["T/a.jpg", "U/b.jpg"])
        try place.shell("exiftool -q -DateTimeOriginal='2012:12:13 01:02:03' D/albums/T/a.jpg")
        try expectFollowed(day: "2012-12-13")
        #expect(try place.files(place.albums) == ["T/a.jpg", "T/a.jpg_original", "U/b.jpg"])
    }

    @Test func `exiftool in place leaves nothing beside the photo`() throws {
        let set = "exiftool -q -DateTimeOriginal='2011:12:13 01:02:03' -overwrite_original_in_place"
        try place.shell("\(set) D/albums/T/a.jpg")
        try expectFollowed()
    }

    @Test func `a photo written in place`() throws {
        try place.shell("cat source/new.jpg > D/albums/U/b.jpg")
        try expectFollowed()
    }

    @Test func `emptied and written again by a shell, it keeps the day and the name it was given`() throws {
        try place.shell("mkdir D/moments/1999-01-01")
        try place.shell("mv D/moments/2019-03-04/a.jpg D/moments/1999-01-01/own.jpg")
        try place.shell("cat source/new.jpg > D/albums/T/a.jpg")
        #expect(try place.shown() == ["1999-01-01/own.jpg"])
        // Left empty, it stays where it is, also in the next mount.
        try place.shell(
            """
            : > D/albums/T/a.jpg
            dd if=source/a.jpg of=D/moments/1999-01-01/own.jpg conv=notrunc status=none
            cmp source/a.jpg D/albums/U/b.jpg
            : > D/moments/1999-01-01/own.jpg
            """)
        try place.unmount()
        try place.mount()
        try place.shell("cat source/new.jpg > D/moments/1999-01-01/own.jpg")
        try place.shell("cmp source/new.jpg D/albums/U/b.jpg")
        #expect(try place.shown() == ["1999-01-01/own.jpg"])
        #expect(try place.files(place.albums) == ["T/a.jpg", "U/b.jpg"])
    }

    /// unzip -o removes the file and makes it anew without O_EXCL.
    @Test(arguments: ["albums/T", "moments/2019-03-04"], ["30", "0"])
    func `removed and made anew`(directory: String, trash: String) throws {
        try place.unmount()
        try place.mount(options: "rw,trash=\(trash)")
        try place.source(
            "anew.py",
            Array(
                """
                import os, sys
                os.unlink(sys.argv[2])
                new = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
                os.write(new, open(sys.argv[1], "rb").read())
                """.utf8))
        try place.shell("python3 source/anew.py source/new.jpg D/\(directory)/a.jpg")
        try expectFollowed()
        #expect(try place.bytes(place.albums + "/U/.versions/b.jpg/original") == Photo().bytes)
        #expect(try place.shell("find D/.Trash-* -type f 2>/dev/null || true").isEmpty)
    }

    @Test func `hard links of albums by ln and cp -al`() throws {
        try place.shell("cp -al D/albums/T D/albums/V; ln D/albums/T/a.jpg D/albums/W.jpg")
        try place.shell("cp source/new.jpg D/albums/T/.a.jpg.XYZ; mv D/albums/T/.a.jpg.XYZ D/albums/T/a.jpg")
        try expectBytes(["T/a.jpg", "U/b.jpg"], Photo(taken: "2011:12:13 01:02:03", seed: 9).bytes)
        try expectBytes(["V/a.jpg", "W.jpg"], Photo().bytes)
        #expect(try place.shown() == ["2011-12-13/a.jpg", "2019-03-04/a (2).jpg"])
        // In moments a save is in every album.
        try place.shell("exiftool -q -overwrite_original -Artist=me 'D/moments/2019-03-04/a (2).jpg'")
        try place.shell(
            "cmp 'D/moments/2019-03-04/a (2).jpg' D/albums/V/a.jpg; cmp D/albums/V/a.jpg D/albums/W.jpg")
        #expect(try place.shown() == ["2011-12-13/a.jpg", "2019-03-04/a (2).jpg"])
    }

    private func expectBytes(_ names: [String], _ bytes: [UInt8]) throws {
        for name in names { #expect(try place.bytes(place.albums + "/" + name) == bytes, "\(name)") }
    }

    @Test func `unless pinned, its day is read anew`() throws {
        try place.shell("mkdir D/moments/1999-01-01; mv D/moments/2019-03-04/a.jpg D/moments/1999-01-01")
        try place.shell("cp source/new.jpg D/albums/T/.new; mv D/albums/T/.new D/albums/T/a.jpg")
        try expectFollowed(day: "1999-01-01")
    }
}
