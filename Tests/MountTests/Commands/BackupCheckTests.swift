import Foundation
import TestSupport
import TestThreads
import Testing

/// `backup --check`: what does not open is not copied over what does.
@Suite("Commands: backup with a check", .serialized, .waiting) struct BackupCheckTests {
    @Test(arguments: [1, 2]) func `rot is not copied over a good copy`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        try place.shell(
            "mkdir -p source; head -c 1000000 /dev/urandom > source/big; head -c 300000 /dev/urandom > source/new"
        )
        try place.mount()
        try place.shell("cp source/big D/albums")
        try place.unmount()
        let words = [obscura, "backup", "--check", "V", "C", "--password-stdin"]
        let first = try place.run(words, "one\n")
        #expect(first.status == 0, "\(first.errors)")
        try place.mount()
        try place.shell("cp source/new D/albums")
        try place.unmount()
        try rot(place, spaces: spaces)
        let ended = try place.run(words, "one\n")
        #expect(ended.status == 6)
        #expect(ended.output.contains("albums/big: bytes "), "\(ended.output)")
        #expect(ended.output.contains("only the space of this password was checked") == (spaces > 1))
        #expect(ended.errors.contains("the copy keeps its own bytes in 1 place"), "\(ended.errors)")
        // The copy has the new state, and the old bytes of what is damaged in the vault.
        #expect(try place.run([obscura, "check", "C", "--password-stdin"], "one\n").status == 0)
        #expect(try place.run([obscura, "check", "V", "--password-stdin"], "one\n").status == 6)
        #expect(try place.run([obscura, "export", "C", "X", "--password-stdin"], "one\n").status == 0)
        try place.shell("cmp source/big X/albums/big; cmp source/new X/albums/new")
        #expect(try place.run(words, "wrong\n").status == 4)
    }

    /// Flips a bit in every segment that may have content: the file `big` begins with one of them.
    private func rot(_ place: Place, spaces: Int) throws {
        for space in 0..<spaces {
            for number in 2..<64 {
                guard let file = try? SegmentFile(place.vault, space: space, number),
                    (try? file.read(at: 500_000, count: 1).count) == 1
                else { continue }
                try file.change(at: 500_000, count: 1) { Data($0.map { $0 ^ 1 }) }
            }
        }
    }
}
