import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// `views` of the contract, as programs see it.
@Suite("The tree: views, through a mount", .serialized, .waiting)
struct ViewMountTests {
    private let place: Place

    /// Mounted with views, with three photos of two years, two of which have the same name.
    init() throws {
        place = try Place()
        try place.mount(options: "rw,views")
        try place.source("1/a.jpg", Photo(taken: "2019:03:04 05:06:07", seed: 1).bytes)
        try place.source("2/a.jpg", Photo(taken: "2019:04:04 05:06:07", seed: 2).bytes)
        try place.source("2/b.jpg", Photo(taken: "2020:04:04 05:06:07", seed: 3).bytes)
        // In this order they arrive.
        try place.shell("cp -r source/1 D/albums; mkdir D/albums/2")
        for name in ["a.jpg", "b.jpg"] { try place.shell("cp source/2/\(name) D/albums/2") }
    }

    private func words(_ line: String) throws -> [String] {
        try place.shell(line).split(whereSeparator: \.isWhitespace).map(String.init)
    }

    @Test func `programs list, find, read and copy the photos of a view`() throws {
        #expect(try words("ls D") == ["albums", "moments", "views"])
        #expect(try words("ls D/views D/views/year/2020").contains("b.jpg"))
        #expect(try words("ls D/views/year") == ["2019", "2020"])
        #expect(try place.shell("ls D/views/year/2019") == "a (2).jpg\na.jpg\n")
        #expect(try words("ls -U D/views/recent | head -1") == ["b.jpg"])
        let numbers = try words("stat -c %i D/moments/2020-04-04/b.jpg D/views/recent/b.jpg D/albums/2/b.jpg")
        #expect(Set(numbers).count == 1)
        try place.shell("cmp D/views/month/2019-03/a.jpg source/1/a.jpg; cp -r D/views/year copied")
        #expect(try place.files(place.root + "/copied").count == 3)
        #expect(try words("find D/views -name '*.jpg' | wc -l") == ["9"])
        #expect(try words("find D/views -inum \(numbers[0]) | sort").last == "D/views/year/2020/b.jpg")
        #expect(try words("stat -c %a D/views D/views/year/2019") == ["500", "500"])
    }

    @Test func `rsync leaves views out where it is told to, and else copies nothing again`() throws {
        try place.shell("rsync -a --exclude=/views/ D/ without/; rsync -aH D/ with/")
        #expect(try words("ls without") == ["albums", "moments"])
        #expect(try words("find with -name b.jpg | wc -l") == ["5"])
        let again = try place.shell("rsync -aHi D/ with/; rsync -ai --exclude=/views/ D/ without/")
        #expect(again.isEmpty)
    }

    @Test func `files of a view can be written, and the view not`() throws {
        try place.shell("cat source/1/a.jpg > D/views/year/2020/b.jpg; cmp source/1/a.jpg D/albums/2/b.jpg")
        #expect(try words("ls D/views/year") == ["2019"])
        let view = place.mountPoint + "/views/recent"
        #expect(mkdir(view + "/x", 0o700) == -1 && errno == EROFS)
        #expect(open(view + "/x", O_CREAT | O_WRONLY, 0o600) == -1 && errno == EROFS)
        #expect(unlink(view + "/a.jpg") == -1 && errno == EROFS)
        #expect(rename(view + "/a.jpg", place.albums + "/c.jpg") == -1 && errno == EROFS)
        #expect(rename(place.albums + "/1/a.jpg", view + "/c.jpg") == -1 && errno == EROFS)
        #expect(rmdir(view) == -1 && errno == EROFS)
        #expect(chmod(view, 0o777) == -1 && errno == EROFS)
        #expect(link(place.albums + "/1/a.jpg", view + "/c.jpg") == -1 && errno == EPERM)
        // What saves by renaming is refused before it loses anything.
        let saved = try place.run(["/bin/sh", "-c", "sed -i s/x/y/ D/views/recent/a.jpg"])
        #expect(saved.status != 0)
        try place.shell("cmp source/1/a.jpg D/albums/1/a.jpg")
        try place.shell(
            "mkdir D/albums/T; cp -l D/views/recent/a.jpg D/albums/T; test D/albums/T/a.jpg -ef D/albums/1/a.jpg"
        )
    }

    @Test func `a view shows a change at once`() throws {
        try place.shell("cat D/views/recent/a.jpg D/views/rating/*/* >/dev/null 2>&1 || true")
        try place.shell(
            "setfattr -n user.baloo.rating -v 8 D/albums/1/a.jpg; cat D/views/rating/4/a.jpg >/dev/null")
        try place.shell(
            "setfattr -n user.baloo.rating -v 2 D/views/rating/4/a.jpg; cat D/views/rating/1/a.jpg >/dev/null"
        )
        #expect(try words("ls D/views/rating/4").isEmpty)
        try place.shell(
            "mkdir D/moments/2001-01-01; mv D/moments/2019-03-04/a.jpg D/moments/2001-01-01/z.jpg")
        #expect(
            try words("ls D/views/month/2001-01 D/views/month/2019-03 2>/dev/null || true").last == "z.jpg")
        try place.shell("test ! -e D/views/recent/a.jpg; cmp D/views/recent/z.jpg source/1/a.jpg")
        try place.shell(
            "rm D/moments/2001-01-01/z.jpg; test ! -e D/views/recent/z.jpg; test ! -e D/views/year/2001")
    }

    @Test func `a photo that was seen in a view is destroyed at once all the same`() throws {
        try place.unmount()
        try place.mount(options: "rw,views,trash=0")
        let large = Photo(taken: "2021:01:01 01:01:01", seed: 5).bytes + noise(8 << 20)
        try place.source("large.jpg", large)
        try place.shell(
            "cp source/large.jpg D/albums; cat D/views/*/*/large.jpg D/views/recent/large.jpg >/dev/null")
        let used = { try self.words("df --output=used -k D | tail -1").first.flatMap { Int($0) } ?? 0 }
        let before = try used()
        try place.shell("rm D/moments/2021-01-01/large.jpg")
        #expect(eventually { (try? used()).map { $0 < before - 7000 } ?? false })
    }

    @Test func `without the option there are no views`() throws {
        try place.unmount()
        try place.mount()
        #expect(try words("ls -a -I '.Trash-*' D") == [".", "..", "albums", "moments"])
        try place.shell("test ! -e D/views")
    }
}
