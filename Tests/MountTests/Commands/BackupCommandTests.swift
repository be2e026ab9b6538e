import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

@testable import VaultStore

/// Copies of vaults in use, and backups that are killed, through the real program.
@Suite("Commands: backup", .serialized, .waiting) struct BackupCommandTests {
    private func mount(_ place: Place, _ vault: String) throws {
        let ended = try place.run(
            [obscura, "mount", vault, place.mountPoint, "--password-stdin"], "one\n")
        try #require(ended.status == 0, "\(ended.errors)")
    }

    private func makeSource(_ place: Place, _ range: Range<Int>) throws {
        for index in range {
            try place.source("p\(index).jpg", Photo(width: 240, height: 180, seed: UInt8(index)).bytes)
        }
    }

    /// With files written and removed meanwhile, a copy has all that was safe before its beginning.
    @Test(arguments: [1, 2]) func `a copy of a vault in use opens and has what was safe`(spaces: Int) throws {
        let place = try Place(spaces: spaces, size: "32M")
        try makeSource(place, 0..<40)
        try place.mount()
        try place.shell("rsync -a source/ D/albums/kept/; sync D/albums/kept/*")
        // Every round writes pictures of its own, and removes those of the round before for good.
        try place.shell("touch go")
        let workload = try Child(
            [
                "/bin/bash", "-c",
                """
                n=0
                while [ -e go ]; do
                    n=$((n + 1)); mkdir D/albums/$n
                    for f in source/p?.jpg; do { cat $f; echo $n; } > D/albums/$n/x$n-${f##*/}; done
                    sync D/albums/$n/*; rm -rf D/moments/*/x$n-*.jpg D/albums/$n D/.Trash-*/*/*
                done
                """,
            ], directory: place.root)
        defer {
            unlink(place.root + "/go")
            workload.wait()
        }
        #expect(eventually { exists(place.albums + "/2") })
        for _ in 0..<3 {
            let ended = try place.run([obscura, "backup", "V", "C", "--quiet"])
            #expect(ended.status == 0 && ended.output.hasPrefix("C: copied "), "\(ended.errors)")
        }
        unlink(place.root + "/go")
        workload.wait()
        try place.unmount()
        try place.shell("cp -a C K; \(obscura) backup V K")
        try expectCopy(place, "K")
        try mount(place, "C")
        try place.shell("diff -r source D/albums/kept")
        try place.unmount()
        let ended = try place.run([obscura, "backup", "V", "C"])
        #expect(ended.status == 0, "\(ended.errors)")
        try expectCopy(place, "C")
        #expect(try place.run([obscura, "backup", "V", "C"]).output.hasPrefix("C: copied 0 bytes of "))
    }

    /// Both have the same in them, but for the pages of claims: a copy keeps its own. It also keeps files, and their
    /// ends, that the vault had once.
    private func expectCopy(_ place: Place, _ copy: String) throws {
        let claim = RootSnapshot.claimBytes
        let files = try place.shell("cd V; find . -type f").split(separator: "\n").map(String.init)
        for file in files {
            var vault = try Data(contentsOf: url(place, "V", file))
            var copy = try Data(contentsOf: url(place, copy, file))
            #expect(copy.count >= vault.count, "\(file)")
            copy = copy.prefix(vault.count)
            for (space, number) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let segment = try SegmentFile(place.vault, space: space, number)
                guard segment.path.hasSuffix(file.dropFirst()) else { continue }
                let start = Int(segment.start)
                let range = (start + claim.lowerBound..<start + claim.upperBound).clamped(to: 0..<vault.count)
                vault.replaceSubrange(range, with: Data(count: range.count))
                copy.replaceSubrange(range, with: Data(count: range.count))
            }
            #expect(vault == copy, "\(file)")
        }
    }

    private func url(_ place: Place, _ vault: String, _ file: String) -> URL {
        URL(fileURLWithPath: "\(place.root)/\(vault)/\(file)")
    }

    /// Killed sooner or later, a copy opens with its old or its new files.
    @Test func `kill -9 of a backup, the copy opens, and the next one is right`() throws {
        let place = try Place(spaces: 2, size: "16M")
        try makeSource(place, 0..<20)
        try place.shell("mkdir first; cp source/* first; \(obscura) backup V B")
        try place.run([obscura, "import", "V", "source", "--password-stdin"], "one\n")
        try place.shell("\(obscura) backup V B; rm source/*")
        try makeSource(place, 20..<40)
        try place.run([obscura, "import", "V", "source", "--password-stdin"], "one\n")
        for round in 0..<8 {
            try place.shell("rm -rf C; cp -a B C")
            let backup = try Child([obscura, "backup", "V", "C"], directory: place.root)
            usleep(UInt32(round) * 11_000)
            backup.kill(SIGKILL)
            backup.wait()
            let ended = try place.run(
                [obscura, "export", "C", "E\(round)", "--password-stdin", "--quiet"], "one\n")
            #expect(ended.status == 0, "\(ended.errors)")
            let count = try place.files(place.root + "/E\(round)/moments").count
            #expect(count == 20 || count == 40)
            for photo in try place.files(place.root + "/first") {
                let found = try place.shell("cmp first/\(photo) E\(round)/moments/*/\(photo) && echo same")
                #expect(found == "same\n")
            }
            try place.shell("\(obscura) backup V C")
            try expectCopy(place, "C")
        }
    }

    @Test func `refuses places that cannot be a copy`() throws {
        let place = try Place(spaces: 1)
        let (inside, around) = ("V/copy", ".")
        #expect(try place.run([obscura, "backup", "V", inside]).status == 2)
        #expect(try place.run([obscura, "backup", "V", around]).status == 2)
        #expect(try place.run([obscura, "backup", "source", "C"]).status == 3)
        #expect(!exists(place.root + "/C"))
        try place.shell("mkdir N; echo kept > N/file")
        #expect(try place.run([obscura, "backup", "V", "N"]).status == 1)
        #expect(try place.shell("ls N") == "file\n")
        try place.shell("\(obscura) backup V C")
        try mount(place, "C")
        #expect(try place.run([obscura, "backup", "V", "C"]).status == 5)
        try place.unmount()
    }

    /// A disk that is too small says so, and keeps the copy that it has.
    @Test func `without room the old copy stays`() throws {
        let place = try Place(spaces: 2, size: "16M")
        try makeSource(place, 0..<4)
        try place.run([obscura, "import", "V", "source", "--password-stdin"], "one\n")
        try place.shell("mkdir T; mount -t tmpfs -o size=35M tmpfs T")
        defer { umount2(place.root + "/T", Int32(MNT_DETACH)) }
        try place.shell("\(obscura) backup V T/C; cp -a T/C B")
        // Larger than the disk's free room: a log of all that changes.
        try place.shell("for n in 1 2; do head -c 2200000 /dev/urandom > source/n$n; done; mkdir D2")
        try place.mount()
        try place.shell("cp source/n? D/albums; sync D/albums/*")
        try place.unmount()
        let ended = try place.run([obscura, "backup", "V", "T/C"])
        #expect(ended.status == 7, "\(ended.errors)")
        try place.shell("diff -r B T/C")
        #expect(try place.run([obscura, "backup", "V", "T/D"]).status == 7)
    }
}
