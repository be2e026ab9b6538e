import Foundation
import Glibc
import TestThreads
import Testing

@testable import TestSupport

/// *Thumbnails* of the contract, the first kind.
@Suite("Thumbnails: pictures, through a mount", .serialized, .waiting) struct ThumbnailMountTests {
    /// And everything else that may take long, as an attribute of the mount's top.
    @Test func `a mount answers any number of requests that may take long`() throws {
        let place = try Place()
        try place.mount()
        var value: UInt8 = 0
        for _ in 0..<40_000 {
            let count = lgetxattr(place.mountPoint, "user.missing", &value, 1)
            try #require(count == -1 && errno == ENODATA)
        }
        try place.unmount()
    }

    @Test func `a thumbnail fits 256 pixels, upright, its size told before it is opened`() throws {
        let place = try Place()
        try place.mount()
        // 6: the top of the picture is the left of the stored one.
        try place.source("turned.jpg", Photo(width: 800, height: 600, orientation: 6).bytes)
        try place.source("wide.JPEG", Photo(width: 640, height: 160, orientation: 1).bytes)
        try place.source("small", Photo(width: 40, height: 30).bytes)
        try place.source("text.jpg", Array("no picture".utf8))
        try place.source("broken.jpg", Array(Photo().bytes.prefix(40)))
        try place.shell(
            "mkdir D/albums/T; cp source/* D/albums/T; touch -d '2020-01-02 03:04:05.678' D/albums/T/*")
        let sizes = ["turned.jpg": (192, 256), "wide.JPEG": (256, 64), "small.jpg": (40, 30)]
        for (name, size) in sizes {
            let path = place.albums + "/T/.thumbs/" + name
            let told = try status(path)
            let bytes = try place.bytes(path)
            #expect(told.st_size == bytes.count)
            #expect(told.st_mtim.tv_sec == 1_577_934_245 && told.st_mtim.tv_nsec == 0)
            let picture = try #require(Decoded(bytes))
            #expect((picture.width, picture.height) == size, "\(name)")
            let isTurned = name == "turned.jpg"
            #expect(picture.isRed(2, 2))
            #expect(picture.isRed(picture.width - 3, 2) == isTurned, "\(name)")
            #expect(picture.isRed(2, picture.height - 3) != isTurned, "\(name)")
        }
        for name in ["text.jpg", "broken.jpg", "small", "none.jpg"] {
            var found = stat()
            #expect(errorNumber(stat(place.albums + "/T/.thumbs/" + name, &found)) == ENOENT, "\(name)")
        }
        // In moments too, the same bytes; and after a new mount that may write nothing.
        let day = place.moments + "/2019-03-04/.thumbs/turned.jpg"
        let made = try place.bytes(place.albums + "/T/.thumbs/turned.jpg")
        #expect(try place.bytes(day) == made)
        try place.unmount()
        try place.mount(options: "ro")
        #expect(try place.bytes(day) == made)
    }

    @Test func `.thumbs is not listed, can be entered, and takes nothing`() throws {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("cp source/a.jpg D/albums; echo x > D/albums/notes.txt; mkdir D/albums/none")
        #expect(try place.shell("find D -name '.thumbs*'").isEmpty)
        #expect(try place.shell("ls -a D/albums/.thumbs") == ".\n..\na.jpg\nfast\n")
        #expect(try place.run(["/bin/sh", "-c", "echo x > D/albums/.thumbs/b.jpg"]).status != 0)
        #expect(try place.run(["rm", "D/albums/.thumbs/a.jpg"]).status == 1)
        #expect(errorNumber(mkdir(place.albums + "/.thumbs/x", 0o755)) == EROFS)
        // A real directory of that name comes first.
        try place.shell("mkdir D/albums/none/.thumbs; touch D/albums/none/.thumbs/own")
        #expect(try place.shell("ls D/albums/none/.thumbs") == "own\n")
    }

    @Test func `a photo with other bytes has another thumbnail`() throws {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo(width: 400, height: 300).bytes)
        try place.source("b.jpg", Photo(width: 300, height: 400).bytes)
        try place.shell("cp source/a.jpg D/albums/a.jpg")
        let path = place.albums + "/.thumbs/a.jpg"
        #expect(Decoded(try place.bytes(path))?.height == 192)
        try place.shell("cat source/b.jpg > D/albums/a.jpg")
        #expect(Decoded(try place.bytes(path))?.height == 256)
        #expect(try status(path).st_size == place.bytes(path).count)
    }

    /// The kernel keeps pages and the size of an inode for all programs that have it open.
    @Test(arguments: ["a.jpg", "512/a.jpg", "sheet.jpg"])
    func `a picture that is open stays what it was, beside the one of the changed photo`(name: String) throws
    {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo(width: 400, height: 300).bytes)
        try place.source("b.jpg", Photo(width: 900, height: 1200).bytes)
        let path = place.albums + "/T/.thumbs/" + name
        for (old, new) in [("a.jpg", "b.jpg"), ("b.jpg", "a.jpg")] {
            try place.shell("rm -rf D/albums/T; mkdir D/albums/T; cp source/\(new) D/albums/T/a.jpg")
            let current = try place.bytes(path)
            try place.shell("cat source/\(old) > D/albums/T/a.jpg")
            let former = try place.bytes(path)
            #expect(former != current)
            let first = try FileHandle(forReadingFrom: URL(filePath: path))
            var read = try first.read(upToCount: 16) ?? Data()
            try place.shell("cat source/\(new) > D/albums/T/a.jpg")
            let second = try FileHandle(forReadingFrom: URL(filePath: path))
            var told = stat()
            #expect(fstat(first.fileDescriptor, &told) == 0 && told.st_size == former.count)
            read += try first.readToEnd() ?? Data()
            let isFormer = Array(read) == former
            let isCurrent = try second.readToEnd().map(Array.init) == current
            #expect(isFormer && isCurrent)
        }
    }

    /// As `exiftool -overwrite_original_in_place -Orientation` does: one byte becomes another.
    @Test func `a photo that is turned where it stands has another thumbnail`() throws {
        let place = try Place()
        try place.mount()
        let upright = Photo(width: 400, height: 300, orientation: 1).bytes
        let turned = Photo(width: 400, height: 300, orientation: 6).bytes
        let differences = upright.indices.filter { upright[$0] != turned[$0] }
        try #require(differences.count == 1 && upright.count == turned.count)
        try place.source("a.jpg", upright)
        try place.source("byte", [turned[differences[0]]])
        try place.shell("cp source/a.jpg D/albums/a.jpg")
        let paths = [place.albums + "/.thumbs/a.jpg", place.moments + "/2019-03-04/.thumbs/a.jpg"]
        for path in paths { #expect(Decoded(try place.bytes(path))?.height == 192) }
        try place.shell(
            "dd if=source/byte of=D/albums/a.jpg bs=1 seek=\(differences[0]) conv=notrunc status=none")
        for path in paths {
            #expect(try status(path).st_size == place.bytes(path).count)
            #expect(Decoded(try place.bytes(path))?.height == 256)
        }
    }
}
