import Foundation
import TestSupport
import TestThreads
import Testing

/// One file, two links: also for programs that ask for nothing but the link count, as `stat -c %h` does.
@Suite("Albums: link counts", .serialized, .waiting) struct LinkCountTests {
    @Test(arguments: ["cp", "cat"])
    func `a photo just written has its link in moments counted`(command: String) throws {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell(command == "cat" ? "cat source/a.jpg > D/albums/a.jpg" : "cp source/a.jpg D/albums")
        #expect(try eventually { try place.shell("stat -c %h D/albums/a.jpg") == "2\n" })
        try place.shell("rm D/moments/2019-03-04/a.jpg; cp source/a.jpg D/albums; rm D/albums/a.jpg")
        #expect(try eventually { try place.shell("stat -c %h D/moments/2019-03-04/a.jpg") == "1\n" })
    }
}
