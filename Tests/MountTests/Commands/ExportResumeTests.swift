import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// Exports that go on where they were interrupted.
@Suite("Commands: export, interrupted", .serialized, .waiting) struct ExportResumeTests {
    private let marker = ".obscura-export-unfinished"

    /// Starts an export, and kills it once this many more names are there; true if it ended before.
    private func killExport(_ place: Place, afterMore more: Int) throws -> Bool {
        func count() -> Int {
            (try? FileManager.default.subpathsOfDirectory(atPath: place.root + "/out"))?.count ?? 0
        }
        let limit = count() + more
        let process = try Child(
            [obscura, "export", "V", "out", "--special", "--password-command", "echo one"],
            environment: place.environment, directory: place.root)
        while process.isRunning, count() < limit { usleep(200) }
        process.kill(SIGKILL)
        return process.wait() == .exited(0)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `killed anywhere it goes on, and the end is the same`(seed: UInt64) throws {
        let place = try Place(isLeast: true)
        // By far the largest: the first progress is shown within its bytes, and there the export halts.
        try place.source(
            "1/big.jpg",
            Photo(taken: "2019:06:07 01:02:03").bytes
                + (0..<3_000_000).map { UInt8(truncatingIfNeeded: ($0 &* 7) >> 3) })
        try place.fillLibrary()
        #expect(try place.command("export", "V", "whole", "--special").status == 0)
        let (process, errors) = try place.startHalting(["export", "V", "out", "--special"])
        process.kill(SIGKILL)
        #expect(process.wait() == .signalled(SIGKILL))
        close(errors)
        let names = try FileManager.default.contentsOfDirectory(atPath: place.root + "/out")
        #expect(Set(names) == [marker, ".obscura-export-0", "moments"])
        let temporary = try status(place.root + "/out/.obscura-export-0").st_size
        #expect(temporary > 0 && temporary < 3_000_000)
        #expect(!exists(place.root + "/out/moments/2019-06-07/big.jpg"))

        var random = RandomSource(seed)
        var hasEnded = false
        // The marker goes when all is there; only the directory's time is set after it.
        for _ in 0..<8 where !hasEnded && exists(place.root + "/out/" + marker) {
            hasEnded = try killExport(place, afterMore: Int.random(in: 1...6, using: &random))
        }
        if exists(place.root + "/out/" + marker) {
            let ended = try place.command("export", "V", "out", "--special")
            #expect(ended.status == 0, "\(ended.errors)")
            hasEnded = true
        }
        #expect(try place.listing("out") == place.listing("whole"))
        if hasEnded {
            let times = try ["out", "whole"].map { try status(place.root + "/" + $0).st_mtim.tv_sec }
            #expect(times[0] == times[1])
        }
        // Complete, it is a directory like any other.
        let again = try place.command("export", "V", "out")
        #expect(again.status == 1 && again.errors.contains("not empty"))
    }

    /// A complete export whose marker is back, as if its last step were missing.
    private func unfinished() throws -> Place {
        let place = try Place()
        try place.fillLibrary()
        #expect(try place.command("export", "V", "whole", "--special").status == 0)
        try place.shell("cp -a whole out; touch out/\(marker)")
        return place
    }

    private func resume(_ place: Place, _ words: String...) throws -> [String: Any] {
        let ended = try place.run(
            [obscura, "export", "V", "out", "--special", "--json", "--password-stdin"] + words, "one\n")
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
        return try jsonObject(ended.output)
    }

    @Test func `whole files are not written again`() throws {
        let place = try unfinished()
        let inodes = "cd out; find . -mindepth 1 ! -name '.obs*' -printf '%i %P\\n' | sort"
        let before = try place.shell(inodes)
        let object = try resume(place)
        #expect(object["photos"] as? Int == 0 && object["bytes"] as? Int == 0)
        #expect(object["complete"] as? Bool == true)
        #expect(try place.shell(inodes) == before)
        #expect(try place.listing("out") == place.listing("whole"))
    }

    @Test func `missing files are written, unfinished ones go`() throws {
        let place = try unfinished()
        try place.shell(
            """
            cd out; rm moments/2019-03-04/a.jpg albums/Trip/soft albums/Trip/fifo; rm -r albums/empty
            chmod 0 albums/Trip; chmod 600 albums/notes.txt; setfattr -x user.two albums/Trip
            touch moments albums/Trip/sub
            cp albums/notes.txt .obscura-export-0; cp albums/notes.txt .obscura-export-17
            """)
        let object = try resume(place)
        #expect(object["photos"] as? Int == 1 && (object["renamed"] as? [Any])?.isEmpty == true)
        #expect(try place.listing("out") == place.listing("whole"))
    }

    /// The same bytes, but for their times or links.
    @Test func `equal files get their times and links again, and no second name`() throws {
        let place = try unfinished()
        try place.shell(
            """
            cd out; touch moments/2020-05-06/shown.jpg
            cp -p 'albums/of $another name.jpg' x; mv x 'albums/of $another name.jpg'
            """)
        let object = try resume(place)
        #expect(object["photos"] as? Int == 0 && (object["renamed"] as? [Any])?.isEmpty == true)
        #expect(try place.listing("out") == place.listing("whole"))
        // Files of their own, where an interrupted run made links.
        try place.shell("touch out/\(marker)")
        _ = try resume(place, "--albums=copy")
        #expect(try place.shell("find out -type f -links +1").isEmpty)
        #expect(
            try place.shell("cd out; find . -type f ! -name '*.jpg' -printf '%P %s %T@ %m\\n' | sort")
                == place.shell("cd whole; find . -type f ! -name '*.jpg' -printf '%P %s %T@ %m\\n' | sort"))
    }

    /// Files that a user keeps in the directory of an interrupted export stay, under other names if need be. Links are
    /// not followed out of the directory.
    @Test func `a file of somebody else keeps its bytes`() throws {
        let place = try unfinished()
        try place.shell(
            """
            mkdir outside; echo mine > outside/kept; cd out
            mkdir -p before; echo mine > before/x
            rm moments/2019-03-04/a.jpg; echo mine > moments/2019-03-04/a.jpg
            echo older > moments/2019-03-04/a.jpg~
            rm albums/Trip/soft; echo mine > albums/Trip/soft
            rm -r albums/Trip/sub; ln -s ../../../outside albums/Trip/sub
            rm albums/newer.jpg; mkdir albums/newer.jpg; echo mine > albums/newer.jpg/x
            rm albums/Trip/hard; ln -s ../../../outside/kept albums/Trip/hard
            echo mine > .obscura-export-notes
            """)
        let object = try resume(place)
        let renamed = try #require(object["renamed"] as? [[String: String]])
        #expect(
            Set(renamed.compactMap { $0["renamed_to"] }) == [
                "moments/2019-03-04/a.jpg.~2~", "albums/Trip/soft~", "albums/Trip/sub~",
                "albums/newer.jpg~", "albums/Trip/hard~",
            ])
        #expect(try place.shell("ls outside; cat outside/kept") == "kept\nmine\n")
        try place.shell(
            """
            cd out; for file in moments/2019-03-04/a.jpg.~2~ albums/Trip/soft~ albums/newer.jpg~/x before/x; do
            [ "$(cat $file)" = mine ]; rm -r $file; done
            [ -L albums/Trip/sub~ -a -L albums/Trip/hard~ ]
            rm -r .obscura-export-notes moments/2019-03-04/a.jpg~ before albums/{Trip/sub~,newer.jpg~,Trip/hard~}
            cd albums; for place in . Trip ../moments/2019-03-04; do touch -r ../../whole/albums/$place $place; done
            """)
        #expect(try place.listing("out") == place.listing("whole"))
    }

    @Test func `without the marker, or beside another export, it is refused`() throws {
        let place = try unfinished()
        let path = place.root + "/out/" + marker
        let file = open(path, O_RDONLY | O_CLOEXEC)
        #expect(flock(file, LOCK_EX) == 0)
        let busy = try place.command("export", "V", "out")
        #expect(busy.status == 5 && busy.errors.contains("another export into it is running"))
        close(file)
        for line in ["rm out/\(marker)", "mkdir out/\(marker)", "rmdir out/\(marker); ln -s x out/\(marker)"]
        {
            try place.shell(line)
            let refused = try place.command("export", "V", "out")
            #expect(refused.status == 1 && refused.errors.contains("the directory is not empty"))
        }
    }

    /// A photo that has changed in the vault since.
    @Test func `files that differ by now are written again`() throws {
        let place = try unfinished()
        try place.mount()
        try place.shell(
            "cd D/albums; printf more >> Trip/sub/d.jpg; mv notes.txt told.txt; chmod 604 twice.jpg")
        try place.unmount()
        let object = try resume(place)
        #expect((object["renamed"] as? [[String: String]])?.map { $0["path"] }.isEmpty == false)
        #expect(try place.command("export", "V", "now", "--special").status == 0)
        // Files exported before are still there.
        try place.shell(
            "cd out; cmp ../whole/albums/Trip/sub/d.jpg albums/Trip/sub/d.jpg~; rm albums/notes.txt")
        try place.shell(
            "cd out; find . -name '*~' ! -name b.jpg~ -delete; diff -r --no-dereference -x fifo . ../now")
        #expect(try status(place.root + "/out/albums/twice.jpg").st_mode & 0o777 == 0o604)
    }
}
