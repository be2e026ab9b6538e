import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Photos of one picture, one of which is removed in `views/similar`, through a mount.
@Suite("The tree: similar photos through a mount", .serialized, .waiting) struct SimilarMountTests {
    private let place: Place

    init() throws {
        place = try Place(spaces: 1)
        try place.mount(options: "rw,views")
        // The same pixels, other files.
        for number in 1...3 {
            try place.source("a\(number).jpg", Photo(taken: "2019:03:0\(number) 05:06:07", seed: 1).bytes)
        }
        try place.source("b.jpg", Photo(taken: "2019:03:09 05:06:07", seed: 7).bytes)
        try place.shell("cp source/a?.jpg source/b.jpg D/albums")
        try awaitGroup(of: 3)
    }

    /// Waits until the only group has so many photos. Pictures are made, and hashed, while no requests come.
    private func awaitGroup(of count: Int) throws {
        try place.shell(
            """
            for step in $(seq 60); do sleep 1; set -- D/views/similar/*/*; [ $# -ne \(count) ] || break; done
            [ $# -eq \(count) ]
            """)
    }

    private func words(_ line: String) throws -> [String] {
        try place.shell(line).split(separator: "\n").map(String.init)
    }

    @Test func `rm, a file manager's rename and rm -r remove what is named`() throws {
        #expect(try words("ls D/views/similar") == ["0001 a1.jpg"])
        let group = place.mountPoint + "/views/similar/0001 a1.jpg"
        try place.shell("cat '\(group)/a2.jpg' D/moments/2019-03-02/a2.jpg > seen; rm '\(group)/a2.jpg'")
        #expect(try words("ls '\(group)'") == ["a1.jpg", "a3.jpg"])
        #expect(try words("ls D/albums") == ["a1.jpg", "a3.jpg", "b.jpg"])
        try place.shell("test ! -e D/moments/2019-03-02/a2.jpg; test ! -e D/views/recent/a2.jpg")
        try place.shell(
            "cmp source/a2.jpg D/.Trash-0/files/a2.jpg; mv '\(group)/a3.jpg' D/.Trash-0/files/a3.jpg")
        #expect(try words("ls D/albums") == ["a1.jpg", "b.jpg"])
        #expect(rename(group + "/a1.jpg", place.albums + "/c.jpg") == -1 && errno == EROFS)
        #expect(rmdir(group) == -1 && errno == ENOTEMPTY)
        try place.shell("rm -r '\(group)'")
        #expect(try words("ls D/albums") == ["b.jpg"])
        #expect(try words("ls D/.Trash-0/files") == ["a1.jpg", "a2.jpg", "a3.jpg"])
        #expect(try words("ls D/views/similar").isEmpty)
        try place.unmount()
    }

    /// The sidecar says that it is the raw file's, which is elsewhere. So does one that nobody has looked at yet.
    @Test(arguments: [0, 30]) func `a raw file's sidecar stays where its JPEG is removed`(trashDays: Int)
        throws
    {
        try place.unmount()
        try place.mount(options: "rw,views,trash=\(trashDays)")
        try awaitGroup(of: 3)
        try place.source("raw.xmp", xmp("2019-03-01", of: "NEF"))
        try place.source("own.xmp", xmp("2019-03-03", of: "JPG"))
        let group = place.mountPoint + "/views/similar/0001 a1.jpg"
        try place.shell(
            """
            cd D/moments
            cp ../../source/raw.xmp 2019-03-01/a1.xmp; rm '\(group)/a1.jpg'
            cp ../../source/raw.xmp 2019-03-02/a2.xmp; rm 2019-03-02/a2.jpg
            cp ../../source/own.xmp 2019-03-03/a3.xmp; rm 2019-03-03/a3.jpg
            cmp 2019-03-01/a1.xmp ../../source/raw.xmp; cmp 2019-03-02/a2.xmp ../../source/raw.xmp
            ls . */ >/dev/null; test ! -e 2019-03-03/a3.xmp
            """)
        #expect(
            try words("cd D/moments; ls -d */*") == [
                "2019-03-01/a1.xmp", "2019-03-02/a2.xmp", "2019-03-09/b.jpg",
            ])
        if trashDays > 0 {
            #expect(try words("ls D/.Trash-0/files") == ["a1.jpg", "a2.jpg", "a3.jpg", "a3.xmp"])
        }
        try place.unmount()
    }

    @Test func `a photo that is removed there is destroyed at once where there is no trash`() throws {
        try place.unmount()
        try place.mount(options: "rw,views,trash=0")
        try place.source("large.jpg", Photo(taken: "2021:01:01 01:01:01", seed: 1).bytes + noise(8 << 20))
        try place.shell("cp source/large.jpg D/albums; cat D/moments/2021-01-01/large.jpg >/dev/null")
        try awaitGroup(of: 4)
        let used = {
            try self.words("df --output=used -k D | tail -1").first.flatMap { Int($0.filter(\.isNumber)) }
                ?? 0
        }
        let before = try used()
        try place.shell("rm 'D/views/similar/0001 a1.jpg/large.jpg'")
        #expect(eventually { (try? used()).map { $0 < before - 7000 } ?? false })
        try place.unmount()
    }
}
