import Foundation
import Glibc
import TestThreads
import Testing

/// *moments* and *albums* of the contract.
@Suite("Albums: memberships, hard links and names, through a mount", .serialized, .waiting)
struct AlbumTests {
    private let place: Place

    /// Mounted, with one photo in the album T.
    init() throws {
        place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("mkdir D/albums/T D/albums/U; cp source/a.jpg D/albums/T")
    }

    private func links(_ path: String) throws -> UInt64 {
        UInt64(try status(place.mountPoint + path).st_nlink)
    }

    @Test func `removing a photo from its album, or the album, leaves it in moments`() throws {
        try place.shell("ln D/moments/2019-03-04/a.jpg D/albums/U; rm D/albums/T/a.jpg; rm -r D/albums/U")
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        #expect(try place.files(place.albums).isEmpty)
        #expect(try links("/moments/2019-03-04/a.jpg") == 1)
    }

    @Test(arguments: ["ln", "mv"])
    func `from moments into an album adds it to the album, and it stays`(command: String) throws {
        try place.shell("\(command) D/moments/2019-03-04/a.jpg D/albums/U/b.jpg")
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        #expect(try place.files(place.albums) == ["T/a.jpg", "U/b.jpg"])
        #expect(try links("/moments/2019-03-04/a.jpg") == 3)
        #expect(try links("/albums/U/b.jpg") == 3)
    }

    @Test func `removing a photo from moments takes it out of every album`() throws {
        try place.shell("ln D/moments/2019-03-04/a.jpg D/albums/U; rm D/moments/2019-03-04/a.jpg")
        #expect(try place.shown().isEmpty)
        #expect(try place.files(place.albums).isEmpty)
    }

    @Test func `written again right after it was removed from moments, a photo is there`() throws {
        let (album, moment) = (place.albums + "/T/a.jpg", place.moments + "/2019-03-04/a.jpg")
        let bytes = Photo(seed: 2).bytes
        for round in 0..<300 {
            try #require(unlink(moment) == 0)
            let descriptor = open(album, O_CREAT | O_WRONLY | O_TRUNC, 0o644)
            try #require(descriptor >= 0 && write(descriptor, bytes, bytes.count) == bytes.count)
            close(descriptor)
            try #require(exists(moment), "round \(round)")
        }
        #expect(try place.bytes(album) == bytes)
    }

    @Test func `hard links between album names are plain POSIX`() throws {
        try place.shell("ln D/albums/T/a.jpg D/albums/U/h.jpg; rm D/albums/T/a.jpg")
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        #expect(try links("/albums/U/h.jpg") == 2)
    }

    @Test func `a file put into a day is dated that day`() throws {
        try place.shell("mkdir D/moments/2020-02-29; cp source/a.jpg D/moments/2020-02-29/c.jpg")
        #expect(try place.shown() == ["2019-03-04/a.jpg", "2020-02-29/c.jpg"])
        let captured = "getfattr --only-values -n user.obscura.captured D/moments/2020-02-29/c.jpg"
        #expect(try place.shell(captured).hasPrefix("2020-02-29"))
    }

    @Test func `mv between days re-dates and pins`() throws {
        try place.shell("mkdir D/moments/2020-02-29; mv D/moments/2019-03-04/a.jpg D/moments/2020-02-29")
        #expect(try place.shown() == ["2020-02-29/a.jpg"])
        // Pinned: new bytes with a day of their own do not move it.
        try place.source("n.jpg", Photo(taken: "2011:01:01 00:00:00").bytes)
        try place.shell("cat source/n.jpg > D/albums/T/a.jpg")
        #expect(try place.shown() == ["2020-02-29/a.jpg"])
    }

    @Test func `renaming a day re-dates all of it, unless the date has photos`() throws {
        try place.shell("(cat source/a.jpg; echo b) > D/albums/b.jpg; mkdir D/moments/2020-01-01")
        try place.shell("cp source/a.jpg D/moments/2020-01-01/z.jpg")
        try place.shell("mv -T D/moments/2019-03-04 D/moments/2020-01-02")
        #expect(try place.shown() == ["2020-01-01/z.jpg", "2020-01-02/a.jpg", "2020-01-02/b.jpg"])
        let taken = rename(place.moments + "/2020-01-02", place.moments + "/2020-01-01")
        #expect(errorNumber(taken) == ENOTEMPTY)
        #expect(try links("/albums/T/a.jpg") == 2)
    }

    @Test func `moving a day into an album makes an album of it; the day stays`() throws {
        try place.shell("mv D/moments/2019-03-04 D/albums/Day")
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        #expect(try place.files(place.albums) == ["Day/a.jpg", "T/a.jpg"])
        #expect(try links("/albums/Day/a.jpg") == 3)
    }

    @Test func `of two photos of one name on one day the later is numbered, cut to 255 bytes`() throws {
        let long = String(repeating: "é", count: 125) + "a.jpg"
        #expect(long.utf8.count == 255)
        for (number, path) in ["U/a.jpg", "T/\(long)", "U/\(long)"].enumerated() {
            try place.shell("(cat source/a.jpg; echo \(number)) > D/albums/\(path)")
        }
        let cut = String(repeating: "é", count: 123) + " (2).jpg"
        #expect(Set(try place.shown()) == Set(["a.jpg", "a (2).jpg", long, cut].map { "2019-03-04/" + $0 }))
        try place.unmount()
        try place.mount()
        #expect(try place.shown().count == 4)
    }

    @Test func `only days that exist can be made in moments, and nothing at the root`() throws {
        let base = place.mountPoint
        for path in ["/x", "/moments/x", "/moments/2019-02-29", "/moments/2019-13-01", "/moments/2019-1-1"] {
            #expect(errorNumber(mkdir(base + path, 0o755)) == EPERM, "\(path)")
        }
        for path in ["/x", "/moments/x.jpg"] {
            #expect(open(base + path, O_CREAT | O_WRONLY, 0o644) == -1 && errno == EPERM, "\(path)")
        }
        #expect(errorNumber(mkdir(base + "/moments/2020-02-29/x", 0o755)) == ENOENT)
        #expect(mkdir(base + "/moments/2020-02-29", 0o755) == 0)
        for path in ["/albums", "/moments"] { #expect(rmdir(base + path) == -1) }
    }

    @Test func `nothing inside a mount answers EXDEV`() throws {
        let base = place.mountPoint
        try place.shell("mkdir D/moments/2020-02-29; echo x > D/albums/plain; mkdir D/albums/E")
        let paths = [
            "/albums", "/moments", "/albums/T", "/albums/E", "/albums/T/a.jpg", "/albums/plain",
            "/moments/2020-02-29", "/moments/2019-03-04/a.jpg", "/albums/.thumbs/a.jpg", "/albums/.thumbs",
        ]
        let targets = ["/x", "/moments/x", "/moments/2020-02-29/x", "/albums/.thumbs/x", "/.thumbs/x"]
        for path in paths {
            for target in targets {
                #expect(errorNumber(link(base + path, base + target)) != EXDEV, "\(path) \(target)")
                // After a success the file must be there for the next.
                if rename(base + path, base + target) == 0 {
                    #expect(rename(base + target, base + path) == 0, "\(path) \(target)")
                } else {
                    #expect(errno != EXDEV, "\(path) \(target)")
                }
            }
        }
    }

    @Test func `names are bytes, kept as they are`() throws {
        let names: [[UInt8]] = [
            [0xFF, 0xFE, 0x0A, 0x20, 0x22, 0x01], Array("back\\slash:?*".utf8), Array("A.JPG".utf8),
            Array("a\u{308}".utf8), Array("ä".utf8), Array(String(repeating: "n", count: 255).utf8),
        ]
        for name in names {
            let path = Array((place.albums + "/U/").utf8) + name
            let descriptor = path.withCString { open($0, O_CREAT | O_EXCL | O_WRONLY, 0o600) }
            #expect(descriptor >= 0)
            close(descriptor)
        }
        let tooLong = place.albums + "/" + String(repeating: "n", count: 256)
        #expect(errorNumber(mkdir(tooLong, 0o755)) == ENAMETOOLONG)
        try place.unmount()
        try place.mount()
        for name in names {
            let path = Array((place.albums + "/U/").utf8) + name
            #expect(path.withCString { access($0, F_OK) } == 0)
        }
        #expect(try place.shell("ls -U D/albums/U | wc -l") == "7\n")
    }
}

extension [UInt8] {
    /// Calls `body` with these bytes as a C string.
    fileprivate func withCString<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        (self + [0]).withUnsafeBytes { body($0.assumingMemoryBound(to: CChar.self).baseAddress!) }
    }
}
