import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Files that programs wrote into a mount point while its vault was locked.
@Suite("Mount options: files in a locked mount point", .serialized, .waiting) struct LockedDirectoryTests {
    private func mount(_ place: Place, _ words: String...) throws -> Ended {
        try place.run([obscura, "mount", "V", "D", "--password-stdin"] + words, "one\n")
    }

    @Test func `they are counted, and brought in by the command that is named`() throws {
        let place = try Place()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("mkdir -p 'D/albums/Our Trip'; cp source/a.jpg 'D/albums/Our Trip'; echo x >D/note")
        #expect(try mount(place).errors.contains("D: 2 files lie unencrypted in D: bring them in with"))
        try place.shell("mv D/note 'D/albums/Our Trip'")
        let refused = try mount(place)
        let command = "obscura import V 'D/albums/Our Trip' --album 'Our Trip' --move"
        #expect(refused.status == 1)
        #expect(
            refused.errors
                == "obscura: D: 2 files lie unencrypted in D/albums/Our Trip: bring them in with \(command), "
                + "or mount over them with -o nonempty, which hides them meanwhile\n")
        let hidden = try mount(place, "-o", "nonempty")
        #expect(hidden.status == 0)
        #expect(hidden.errors.contains("2 files lie unencrypted in D/albums/Our Trip, and this mount"))
        #expect(hidden.errors.hasSuffix(command + "\n"), "\(hidden.errors)")
        try place.unmount()

        let moved = try place.shell("PATH=\(obscura.dropLast(8)):$PATH; \(command) --password-stdin <<<one")
        let left = place.albums + "/Our Trip/note"
        #expect(moved.contains("1 file stays where it was: \(left)\n"), "\(moved)")
        #expect(try mount(place).errors.contains("1 file lies unencrypted in D/albums/Our Trip"))
        try place.shell("rm 'D/albums/Our Trip/note'")
        // Directories alone lose nothing when they are hidden.
        try place.mount()
        #expect(try place.bytes(place.albums + "/Our Trip/a.jpg") == Photo().bytes)
        try place.unmount()
    }
}
