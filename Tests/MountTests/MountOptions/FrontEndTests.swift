import Foundation
import TestSupport
import TestThreads
import Testing

/// Mount options that other programs' front ends give.
@Suite("Mount options: other front ends", .serialized, .waiting) struct FrontEndTests {
    @Test func `fsname is shown as the source, and the mount is found by its type`() throws {
        let place = try Place()
        func shown() throws -> String { try place.shell("findmnt -rno SOURCE,FSTYPE D") }
        try place.mount(options: "rw,fsname=Obscura@/home/u/a\\,b,kernel_cache,max_read=4096")
        #expect(try shown() == "Obscura@/home/u/a,b fuse.obscura\n")
        #expect(try jsonObject(place.shell("'\(obscura)' status D --json"))["photos"] as? Int == 0)
        try place.unmount()
        try place.mount(options: "fsname=name,subtype=other")
        #expect(try shown() == "obscura fuse.other\n")
        #expect(try place.run([obscura, "status", "D"]).status == 0)
        try place.unmount()
        try place.mount()
        #expect(try shown() == "obscura fuse.obscura\n")
        try place.unmount()
    }
}
