import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A vault on a file server whose client dies, as sshfs does when its server is gone: each call fails with ENOTCONN. Or
/// the client waits: then so does each call.
@Suite("Space: a host that does not answer, through mounts", .serialized, .waiting)
struct DeadHostTests {
    @Test func `writing fails with EIO, and nothing makes way for it`() throws {
        let place = try Place()
        try onBindfs(place) {
            try place.shell(
                """
                head -c 3000000 /dev/urandom >some; cp some D/albums/old; cp some D/albums/gone
                cd D; T=.Trash-$(id -u); mkdir -p -m 700 $T/files $T/info
                printf '[Trash Info]\\nPath=albums/gone\\nDeletionDate=2026-01-02T03:04:05\\n' \
                    >$T/info/gone.trashinfo
                mv albums/gone $T/files/gone; sync .
                """)
            try signal(place, "KILL")
            var refusals = 0
            for line in [
                "head -c 3000000 /dev/zero >D/albums/new", "mkdir D/albums/d", "echo more >>D/albums/old",
                "fallocate -l 1000000 D/albums/allocated", "head -c 9000000 /dev/zero >D/albums/large",
                "sync D/albums",
            ] {
                let errors = try place.run(["/bin/sh", "-c", line]).errors
                #expect(!errors.contains("No space left"), "\(line): \(errors)")
                if errors.contains("Input/output error") { refusals += 1 }
            }
            #expect(refusals > 0)
            try place.run([obscura, "unmount", "--discard", "D"])
        }
        try place.mount()
        try place.shell("cmp some D/albums/old; cmp some D/.Trash-$(id -u)/files/gone")
    }

    @Test func `giving up waits for no answer of the host`() throws {
        let place = try Place()
        try onBindfs(place) {
            try place.shell("head -c 3000000 /dev/urandom >some; cp some D/albums/old; sync D/albums")
            try signal(place, "STOP")
            defer { try? signal(place, "KILL") }
            // Neither ends before its request is answered, although it is killed.
            let writer = try Child(["/bin/sh", "-c", "echo more >\(place.albums)/more; sync \(place.albums)"])
            // It gives the mount half a minute, and its process ten seconds.
            let giving = try Child(
                [obscura, "unmount", "--discard", "D"], environment: place.environment, directory: place.root,
                output: .collected, errors: .collected)
            try #require(eventually { place.daemon == nil && !exists(place.albums) })
            let ended = try giving.finish()
            #expect(ended.status == 0 && ended.output == "D: unmounted; what was not written is given up\n")
            _ = writer.wait()
        }
        try place.mount()
        try place.shell("cmp some D/albums/old")
    }

    /// Mounts a vault that lies on bindfs, and puts it back once the mount has ended.
    private func onBindfs(_ place: Place, _ body: () throws -> Void) throws {
        try place.shell("mkdir real B; mv V real/V; bindfs \(place.root)/real \(place.root)/B; ln -s B/V V")
        defer { while umount2("\(place.root)/B", Int32(MNT_DETACH)) == 0 {} }
        try place.mount()
        try body()
        #expect(eventually { place.daemon == nil })
        while umount2("\(place.root)/B", Int32(MNT_DETACH)) == 0 {}
        try place.shell("rm V; mv real/V V")
    }

    private func signal(_ place: Place, _ name: String) throws {
        try place.shell("kill -\(name) $(pgrep -f '^bindfs \(place.root)/real')")
    }
}
