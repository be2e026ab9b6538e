import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A pair of which one half was moved, and which nobody looks at before the daemon is killed.
@Suite("Moments: pairs and kill -9", .serialized, .waiting) struct PairMountTests {
    @Test func `the partner of a moved photo follows by itself`() throws {
        let place = try Place()
        try place.mount()
        try place.shell("mkdir D/moments/2020-01-01")
        try Data(jpeg("2024-05-01")).write(to: URL(fileURLWithPath: place.albums + "/x.jpg"))
        try Data(raw("2024-05-01")).write(to: URL(fileURLWithPath: place.albums + "/x.cr2"))
        let partner = open(place.albums + "/x.cr2", O_RDONLY | O_CLOEXEC)
        func captured() throws -> String {
            try place.shell(
                "getfattr --only-values -n user.obscura.captured /proc/\(getpid())/fd/\(partner)")
        }
        #expect(try captured().hasPrefix("2024-05-01"))
        try place.shell("mv D/moments/2024-05-01/x.jpg D/moments/2020-01-01/")
        // Not by its name: a program that looks it up would find it at its new place.
        #expect(try eventually { try captured().hasPrefix("2020-01-01") })
        close(partner)
        try place.awaitCommit()
        kill(try #require(place.daemon), SIGKILL)
        try place.mount()
        #expect(try place.shown() == ["2020-01-01/x.cr2", "2020-01-01/x.jpg"])
        try place.unmount()
    }
}
