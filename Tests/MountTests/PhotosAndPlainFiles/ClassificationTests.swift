import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// *Photos and plain files*, and *Days*, of the contract.
@Suite("Photos and plain files: classification, through a mount", .serialized, .waiting)
struct ClassificationTests {
    @Test(arguments: ["cp", "cp -p", "mv", "rsync -a", "install -m 644"])
    func `a photo put anywhere in albums appears in moments under its day`(command: String) throws {
        let place = try Place()
        try place.mount()
        let bytes = Photo().bytes
        let source = try place.source("a.jpg", bytes)
        try place.shell("mkdir -p D/albums/Trip/'Day 2'; \(command) '\(source)' D/albums/Trip/'Day 2'/a.jpg")
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        let (album, moment) = (place.albums + "/Trip/Day 2/a.jpg", place.moments + "/2019-03-04/a.jpg")
        #expect(try place.bytes(moment) == bytes)
        #expect(try status(album).st_ino == status(moment).st_ino)
        #expect(try status(album).st_nlink == 2)
        try place.unmount()
        try place.mount()
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        #expect(try place.bytes(album) == bytes)
    }

    @Test func `a photo is known by its bytes, not its name`() throws {
        let place = try Place()
        try place.mount()
        try place.source("photo", Photo().bytes)
        try place.source("text.jpg", Array("no picture at all".utf8))
        try place.source("empty.jpg", [])
        try place.source("notes.txt", Array("notes".utf8))
        try place.shell("cp source/* D/albums")
        #expect(try place.shown() == ["2019-03-04/photo"])
        #expect(try place.files(place.albums) == ["empty.jpg", "notes.txt", "photo", "text.jpg"])
        // Written again, in place, they are looked at again.
        try place.shell("cat source/photo > D/albums/text.jpg; cat source/notes.txt > D/albums/photo")
        #expect(try place.shown() == ["2019-03-04/text.jpg"])
    }

    @Test(arguments: ["cp -p", "rsync -a", "mv"])
    func `without a date inside, the file's mtime decides`(command: String) throws {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo(taken: nil).bytes, modified: 1_000_000_000)
        try place.shell("\(command) source/a.jpg D/albums/")
        #expect(try place.shown() == ["2001-09-09/a.jpg"])
        #expect(try status(place.albums + "/a.jpg").st_mtim.tv_sec == 1_000_000_000)
    }

    @Test func `a date in the name comes before the mtime, a sidecar before all`() throws {
        let place = try Place()
        try place.mount()
        try place.source("IMG_20150607_080910.jpg", Photo(taken: nil).bytes, modified: 1_000_000_000)
        try place.source("a.jpg", Photo().bytes)
        try place.source(
            "a.jpg.xmp",
            Array(
                """
                <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF \
                xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" \
                xmlns:exif="http://ns.adobe.com/exif/1.0/" exif:DateTimeOriginal="2004-05-06T07:08:09"/>\
                </rdf:RDF></x:xmpmeta>
                """.utf8))
        try place.shell("cp -p source/* D/albums")
        #expect(try place.shown() == ["2004-05-06/a.jpg", "2015-06-07/IMG_20150607_080910.jpg"])
    }

    /// Adobe's programs write `DSC.xmp` for `DSC.NEF`, beside which `DSC.JPG` may lie.
    @Test func `a sidecar dates its photo in any order, until it is removed, emptied, renamed or trashed`()
        throws
    {
        let place = try Place()
        try place.mount()
        try place.source("DSC.JPG", Photo().bytes)
        try place.source("DSC.NEF", raw("2004-06-09"))
        try place.source("DSC.xmp", xmp("2010-10-10", of: "NEF"))
        let orders = [
            "JPG NEF xmp", "JPG xmp NEF", "NEF JPG xmp", "NEF xmp JPG", "xmp JPG NEF", "xmp NEF JPG",
        ]
        for order in orders {
            try place.shell("for e in \(order); do cp -p source/DSC.$e D/albums/; done")
            #expect(try place.shown() == ["2010-10-10/DSC.NEF", "2019-03-04/DSC.JPG"], "\(order)")
            try place.shell("rm D/albums/DSC.xmp")
            #expect(try place.shown() == ["2004-06-09/DSC.NEF", "2019-03-04/DSC.JPG"], "\(order)")
            try place.shell("rm D/moments/*/*")
        }
        try place.shell("cp -p source/* D/albums/")
        let ways = [
            "rm D/albums/DSC.xmp", ": > D/albums/DSC.xmp", "mv D/albums/DSC.xmp D/albums/Other.xmp",
            "mv D/albums/DSC.xmp D/.Trash-$(id -u)/files/",
        ]
        for way in ways {
            try place.shell(way)
            // Asked for at once, by a path that no listing comes before.
            let source = try place.shell(
                "getfattr --only-values -n user.obscura.captured.source D/albums/DSC.NEF")
            #expect(source == "DateTimeOriginal", "\(way)")
            #expect(exists(place.moments + "/2004-06-09/DSC.NEF"), "\(way)")
            try place.shell(
                """
                if [ -e D/.Trash-$(id -u)/files/DSC.xmp ]; then mv D/.Trash-$(id -u)/files/DSC.xmp D/albums/
                else rm -f D/albums/Other.xmp; cp source/DSC.xmp D/albums/; fi
                """)
            #expect(try place.shown() == ["2010-10-10/DSC.NEF", "2019-03-04/DSC.JPG"], "\(way)")
        }
        try place.shell("rm -r D/albums/*")
        #expect(try place.shown() == ["2010-10-10/DSC.NEF", "2019-03-04/DSC.JPG"])
    }

    @Test func `working files are never taken for photos until they are renamed`() throws {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("cp source/a.jpg source/b.jpg; printf more >> source/b.jpg")
        try place.shell(
            """
            cd D/albums; mkdir -p .git/objects @eaDir
            for name in .a.jpg.x7 a.jpg~ a.jpg.part a.tmp a.crdownload @eaDir/a.jpg
            do cp ../../source/a.jpg $name; done; cp ../../source/b.jpg .git/objects/a.jpg
            """)
        #expect(try place.shown().isEmpty)
        try place.shell("cd D/albums; mv a.jpg.part b.jpg; mv .git visible")
        #expect(try place.shown() == ["2019-03-04/a.jpg", "2019-03-04/b.jpg"])
    }

    @Test func `the date and its source are to be had as attributes that nothing lists`() throws {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo(orientation: 6).bytes)
        try place.shell("cp source/a.jpg D/albums")
        let get = "getfattr --only-values -n user.obscura.captured"
        #expect(try place.shell("\(get) D/albums/a.jpg") == "2019-03-04 05:06:07")
        #expect(try place.shell("\(get).source D/albums/a.jpg") == "DateTimeOriginal")
        for (name, value) in [("width", "64"), ("height", "48"), ("orientation", "6")] {
            #expect(try place.shell("getfattr --only-values -n user.obscura.\(name) D/albums/a.jpg") == value)
        }
        for name in ["camera", "latitude", "longitude", "aperture"] {
            #expect(try place.run(["getfattr", "-n", "user.obscura.\(name)", "D/albums/a.jpg"]).status == 1)
        }
        #expect(try place.shell("getfattr -d D/albums/a.jpg").isEmpty)
        #expect(
            try place.run(["setfattr", "-n", "user.obscura.captured", "-v", "x", "D/albums/a.jpg"]).status
                == 1)
    }

    /// The shared photos, where a checkout has them beside it.
    private static let shared: String = {
        let beside = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../../shared/photos")
        return ProcessInfo.processInfo.environment["OBSCURA_PHOTOS"] ?? beside.standardized.path
    }()

    @Test func `every JPEG of the shared photos with an exact day is under that day`() throws {
        guard let table = try? String(contentsOfFile: Self.shared + "/expected.tsv", encoding: .utf8) else {
            return
        }
        /// Dates that are not plausible by the contract's own rule.
        let accepted: Set = [
            "cameras/Piexif/01.jpg", "edge/made/dto_2099.jpg", "edge/made/dto_1980_default.jpg",
            "cameras/exif-samples/WWL_(Polaroid)_ION230.jpg",
        ]
        let place = try Place()
        try place.mount()
        try place.shell("rsync -a '\(Self.shared)/dev/' D/albums/dev/")
        var days: [ino_t: Substring] = [:]
        let listing = try place.shell("cd D/moments; find . -type f -printf '%i %P\\n'")
        for line in listing.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1)
            days[ino_t(words[0]) ?? 0] = words[1].prefix(10)
        }
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            let path = String(fields[0])
            let file = place.albums + "/dev/" + path
            var day = days[try status(file).st_ino]
            if day == nil {
                // A copy of another stands for it.
                let asked = try place.run(
                    ["getfattr", "--only-values", "-n", "user.obscura.captured", file])
                if asked.status == 0 { day = asked.output.prefix(10) }
            }
            if fields[2] == "exact" && fields[3] == "image/jpeg" && !accepted.contains(path) {
                #expect(day == fields[1], "\(path)")
            }
            if fields[2] == "not a photo" { #expect(day == nil, "\(path)") }
        }
    }
}
