import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// `.versions` of the contract, as programs see it.
@Suite("Albums: versions of edited photos, through a mount", .serialized, .waiting)
struct VersionMountTests {
    private let place: Place
    private let one = Photo(seed: 1).bytes
    private let two = Photo(seed: 2).bytes

    /// Mounted, with one photo in the album T.
    init() throws {
        place = try Place()
        try place.mount()
        try place.source("a.jpg", one, modified: 1_500_000_000)
        try place.source("b.jpg", two)
        try place.shell("mkdir D/albums/T; cp -p source/a.jpg D/albums/T")
    }

    private let edits = [
        "cp source/b.jpg D/albums/T/a.jpg",
        "cat source/b.jpg >D/albums/T/a.jpg",
        "cp source/b.jpg D/albums/T/.a.jpg.tmp; mv D/albums/T/.a.jpg.tmp D/albums/T/a.jpg",
        "mv D/albums/T/a.jpg D/albums/T/a.jpg~; cp source/b.jpg D/albums/T/a.jpg",
        "rsync -a --no-times --checksum source/b.jpg D/albums/T/a.jpg",
        "rsync -a --inplace --checksum source/b.jpg D/albums/T/a.jpg",
        "dd if=source/b.jpg of=D/albums/T/a.jpg bs=1000 conv=notrunc status=none",
    ]

    @Test func `every way of editing keeps the original`() throws {
        for edit in edits {
            try place.shell(
                "rm -rf D/albums/T D/moments/*/*; mkdir D/albums/T; cp -p source/a.jpg D/albums/T")
            try place.shell(edit)
            for directory in ["albums/T", "moments/2019-03-04"] {
                let original = place.mountPoint + "/\(directory)/.versions/a.jpg/original"
                #expect(try place.bytes(original) == one, "\(edit) in \(directory)")
                #expect(try status(original).st_mtim.tv_sec == 1_500_000_000)
            }
            #expect(try place.bytes(place.albums + "/T/a.jpg").starts(with: two.prefix(1000)), "\(edit)")
        }
    }

    @Test func `programs that walk the tree never see versions, and it can be entered`() throws {
        try place.shell("cp source/b.jpg D/albums/T/a.jpg")
        #expect(try place.shell("find D -path '*.versions*'").isEmpty)
        #expect(try place.shell("ls -a D/albums/T").contains(".versions") == false)
        try place.shell("cp -r D/albums copied; rsync -a D/albums/ synced/")
        #expect(try place.shell("find copied synced -name original").isEmpty)
        let names = try place.shell("cd D/albums/T/.versions; ls; ls a.jpg").split(separator: "\n")
        #expect(names == ["a.jpg", "original"])
        try place.shell("cp D/albums/T/.versions/a.jpg/original D/albums/T/a.jpg")
        #expect(try place.bytes(place.albums + "/T/a.jpg") == one)
        let original = place.albums + "/T/.versions/a.jpg/original"
        #expect(open(original, O_WRONLY) == -1 && errno == EROFS)
        #expect(unlink(original) == -1 && errno == EROFS)
    }

    @Test func `killed in an edit, the daemon leaves the old photo or the new, and the original`() throws {
        try place.shell("cp source/b.jpg D/albums/T/a.jpg")
        try place.awaitCommit()
        let descriptor = open(place.albums + "/T/a.jpg", O_WRONLY | O_TRUNC)
        try #require(descriptor >= 0 && write(descriptor, one, 200) == 200)
        try place.killAndMount()
        close(descriptor)
        #expect(try place.bytes(place.albums + "/T/.versions/a.jpg/original") == one)
        let found = try place.bytes(place.albums + "/T/a.jpg")
        #expect([two, [], Array(one.prefix(200))].contains(found))
    }

    @Test func `an export has versions only where they are asked for, and import reads them again`() throws {
        try place.shell("cp source/b.jpg D/albums/T/a.jpg")
        try place.unmount()
        try place.command("export", "V", "plain")
        #expect(try place.shell("find plain -name '.versions'").isEmpty)
        try place.command("export", "V", "out", "--versions")
        #expect(try place.shell("cmp source/a.jpg out/moments/2019-03-04/.versions/a.jpg/original") == "")
        let other = try Place()
        for _ in 0..<2 {
            #expect(try other.command("import", "V", place.root + "/out").status == 0)
        }
        try other.mount()
        let original = other.albums + "/T/.versions/a.jpg/original"
        #expect(try other.bytes(original) == one)
        #expect(try other.shell("ls D/albums/T/.versions/a.jpg").split(separator: "\n") == ["original"])
        #expect(try other.bytes(other.albums + "/T/a.jpg") == two)
        #expect(try status(original).st_mtim.tv_sec == 1_500_000_000)
    }
}
