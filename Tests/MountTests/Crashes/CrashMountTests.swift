import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// The daemon is killed: finished files are there.
@Suite("Crashes: kill -9 during rsync", .serialized, .waiting) struct CrashMountTests {
    @Test(arguments: [1, 2])
    func `kill -9 during rsync, mount again: every finished file is intact`(spaces: Int) throws {
        let place = try Place(spaces: spaces, size: "128M")
        for index in 0..<120 {
            let photo = Photo(width: 300, height: 200, seed: UInt8(index)).bytes
            try place.source("d\(index % 7)/p\(index).jpg", photo)
        }
        try place.mount()
        // Never at an end by itself.
        let process = try Child(
            ["/bin/sh", "-c", "n=0; while rsync -a source/ D/albums/$n/; do n=$((n + 1)); done; exit 0"],
            directory: place.root)
        #expect(eventually { exists(place.albums + "/1") })
        // Files with a final name now were renamed to it; a root that is published later has that.
        let finished = try place.run(["/bin/sh", "-c", "cd D/albums; find . -name 'p*.jpg' -printf '%P\\n'"])
            .lines
        #expect(RootWatch(vault: place.vault).awaitRoot { process.isRunning })
        kill(try #require(place.daemon), SIGKILL)
        process.wait()
        #expect(finished.count >= 120)

        // The dead mount point is cleaned up by the next mount.
        try place.mount()
        for path in finished {
            let source = place.root + "/source/" + path.drop { $0 != "/" }.dropFirst()
            #expect(try place.bytes(place.albums + "/" + path) == place.bytes(source), "\(path)")
        }
        // Each unfinished file is whole or not there; and all files with a final name are photos.
        let all = try place.files(place.albums).filter { $0.hasSuffix(".jpg") && !$0.contains("/.") }
        for path in all {
            let source = place.root + "/source/" + path.drop { $0 != "/" }.dropFirst()
            #expect(try place.bytes(place.albums + "/" + path) == place.bytes(source), "\(path)")
        }
        // The later rounds are copies of the first, which stand for its photos.
        let pictures = Set(all.map { path in path.drop { $0 != "/" } })
        #expect(try place.shown().count == pictures.count)
        try place.shell("rsync -a source/ D/albums/0/; diff -r source D/albums/0")
        try place.unmount()
        #expect(place.daemon == nil)
    }
}
