import Foundation
import TestSupport
import TestThreads
import Testing

/// Mount points that have files of their own.
@Suite("Mount options: nonempty", .serialized, .waiting) struct NonEmptyTests {
    @Test func `a directory with files is mounted on only if asked`() throws {
        let place = try Place()
        try place.shell("echo mine > D/note")
        let words = [obscura, "mount", "V", "D", "--password-stdin"]
        let refused = try place.run(words, "one\n")
        #expect(refused.status == 1 && refused.errors.contains("-o nonempty"), "\(refused.errors)")
        #expect(try place.shell("cat D/note") == "mine\n")
        try place.mount(options: "nonempty")
        #expect(!exists(place.mountPoint + "/note"))
        try place.unmount()
        #expect(try place.shell("cat D/note") == "mine\n")
    }
}
