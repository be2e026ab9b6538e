import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A tree with everything that rsync keeps goes in and comes out the same.
@Suite("Albums: rsync and cp -a", .serialized, .waiting) struct RsyncTests {
    /// Nanoseconds are compared too, which rsync leaves out by default.
    private static let rsync = "rsync -aHX --delete --modify-window=-1"

    private func makeTree(_ place: Place) throws {
        let chunk = 131_072
        for (index, count) in [0, 1, 511, 512, 4096, chunk - 1, chunk, chunk + 1, 3 * chunk + 7].enumerated()
        {
            try place.source("d ü/e/f\(index)", (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        }
        try place.source("d ü/a.jpg", Photo().bytes)
        try place.source("d ü/a.jpg~", Photo(seed: 2).bytes)
        try place.source("d ü/undated.jpg", Photo(taken: nil, seed: 3).bytes)
        try place.source(".hidden/b.jpg", Photo(seed: 4).bytes)
        try place.source("zeros", [UInt8](repeating: 0, count: 1_000_000))
        try place.shell(
            """
            cd source; mkdir empty 'd ü/links'
            ln 'd ü/e/f4' 'd ü/links/hard'; ln 'd ü/a.jpg' 'd ü/links/hard.jpg'
            ln -s ../x/../nowhere 'd ü/links/soft'; ln -s 'd ü' directory; mkfifo -m 622 fifo
            truncate -s 20M sparse; printf end | dd of=sparse bs=1 seek=9000000 conv=notrunc status=none
            printf x > $'odd\\xff\\xfe name\\n'; printf x > \(String(repeating: "n", count: 255))
            chmod 4755 'd ü/e/f1'; chmod 0 'd ü/e/f2'; chmod 2711 'd ü/e/f3'; chmod 444 'd ü/a.jpg'
            chmod 1777 empty; chmod 700 .hidden
            setfattr -n user.one -v 0x00ff10 'd ü/a.jpg'; setfattr -n user.empty 'd ü/e/f4'
            setfattr -n user.big -v "$(head -c 3000 /dev/zero | tr '\\0' x)" 'd ü/e/f5'
            setfattr -n user.directory -v yes 'd ü'
            touch -d '1969-12-31 23:59:58.123456789' 'd ü/e/f6'
            touch -d '2033-01-01 00:00:00.000000001' zeros
            touch -h -d '2001-02-03 04:05:06.7' 'd ü/links/soft'; touch -d '1903-01-01' 'd ü/undated.jpg'
            touch -d '2002-02-02 02:02:02.999999999' 'd ü/e' empty 'd ü' .
            """)
    }

    /// Types, modes, owners, times and sizes of all names; not the link count, which moments adds to.
    private func listing(_ place: Place, _ directory: String) throws -> String {
        try place.shell(
            """
            cd '\(directory)'; find . -type d -printf '%P|%y|%m|%U:%G|%T@\\0' \
            -o -printf '%P|%y|%m|%U:%G|%T@|%s|%l\\0' | LC_ALL=C sort -z | tr '\\0' '\\n'
            find . -print0 | LC_ALL=C sort -z | xargs -0 getfattr -h -d -e hex --
            """)
    }

    @Test(arguments: ["", " -S"])
    func `the second run transfers nothing, and a remount changes nothing`(option: String) throws {
        let place = try Place()
        try makeTree(place)
        try place.mount()
        let sync = Self.rsync + option
        #expect(try place.run(["/bin/sh", "-c", "\(sync) -i source/ D/albums/copy/"]).lines.count > 20)
        #expect(try place.shell("\(sync) -i source/ D/albums/copy/").isEmpty)
        try place.unmount()
        try place.mount()
        #expect(try place.shell("\(sync) -i -c source/ D/albums/copy/").isEmpty)
        #expect(try listing(place, place.root + "/source") == listing(place, place.albums + "/copy"))
        try place.shell("diff -r --no-dereference -x fifo source D/albums/copy")
        let (one, other) = (place.albums + "/copy/d ü/a.jpg", place.albums + "/copy/d ü/links/hard.jpg")
        #expect(try status(one).st_ino == status(other).st_ino)
        #expect(try status(one).st_nlink == 3)
        // Of two hard links, whichever rsync made first names the photo.
        #expect(try place.shown().map { $0.prefix(10) } == ["1903-01-01", "2019-03-04"])
    }

    @Test func `rsync finds copies of cp -a unchanged, and out again they are the same`() throws {
        let place = try Place()
        try makeTree(place)
        try place.mount()
        try place.shell("cp -a source D/albums/copy")
        #expect(try place.shell("\(Self.rsync) -i source/ D/albums/copy/").isEmpty)
        try place.shell("\(Self.rsync) D/albums/copy/ back/")
        #expect(try place.shell("\(Self.rsync) -i -c source/ back/").isEmpty)
    }

    @Test func `--delete and changes arrive, and only those`() throws {
        let place = try Place()
        try makeTree(place)
        try place.mount()
        try place.shell("\(Self.rsync) source/ D/albums/copy/")
        try place.shell("rm -r source/.hidden; echo new > source/new; chmod 600 source/zeros")
        let changes = try place.shell("\(Self.rsync) -i --omit-dir-times source/ D/albums/copy/")
        let changed = Set(
            changes.split(separator: "\n").compactMap { $0.split(separator: " ").last.map(String.init) })
        #expect(changed == [".hidden/", ".hidden/b.jpg", "new", "zeros"])
        try place.shell("diff -r --no-dereference -x fifo source D/albums/copy")
    }
}
