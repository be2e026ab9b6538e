import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

extension Place {
    /// Runs `obscura COMMAND VAULT …` with the password "one".
    @discardableResult
    func command(_ words: String..., password: String = "one") throws -> Ended {
        try run([obscura] + words + ["--password-stdin"], password + "\n")
    }

    /// A checksum over every byte of the vault.
    fileprivate func vaultBytes() throws -> String {
        try shell("find V -type f | LC_ALL=C sort | xargs cksum")
    }

    /// Types, modes, times, sizes, links, bytes and attributes of all below a directory.
    func listing(_ directory: String) throws -> String {
        try shell(
            """
            cd '\(directory)'; trash='-name .Trash-* -prune -o'; set -f
            find . -mindepth 1 $trash -type d -printf '%P|%y|%m|%T@\\n' \
            -o -printf '%P|%y|%m|%n|%T@|%s|%l\\n' | LC_ALL=C sort
            find . $trash -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
            find . -mindepth 1 $trash -print0 | LC_ALL=C sort -z | xargs -0 getfattr -h -d -e hex --
            """)
    }

    /// Starts a command that comes to a halt when it shows how far it is, because nobody reads that.
    func startHalting(_ words: [String]) throws -> (Child, errors: Int32) {
        let errors = try makePipe()
        defer { close(errors.write) }
        // Full to the last byte: the first line that is shown waits.
        let flags = fcntl(errors.write, F_GETFL)
        _ = fcntl(errors.write, F_SETFL, flags | O_NONBLOCK)
        let page = [UInt8](repeating: 0x2E, count: 4096)
        while write(errors.write, page, page.count) > 0 {}
        _ = fcntl(errors.write, F_SETFL, flags)
        let process = try Child(
            [obscura] + words + ["--password-command", "echo one"], environment: environment,
            directory: root, errors: .descriptor(errors.write))
        let wait = "/proc/\(process.id)/wchan"
        let isHalted = eventually {
            (try? String(contentsOfFile: wait, encoding: .utf8))?.contains("pipe_write") == true
        }
        #expect(isHalted)
        return (process, errors.read)
    }

    /// Photos, sidecars, copies, links, a FIFO, odd names, pinned and empty days, attributes.
    func fillLibrary() throws {
        try source("1/a.jpg", Photo().bytes, modified: 1_111_111_111)
        try source("1/b.jpg", Photo(taken: "2020:05:06 01:02:03", seed: 2).bytes)
        try source("1/undated.jpg", Photo(taken: nil, seed: 4).bytes, modified: 1_600_000_000)
        try source("1/sub/c.jpg", Photo(seed: 5).bytes)
        try source("1/sub/d.jpg", Photo(taken: "2021:05:06 01:02:03", seed: 6).bytes)
        try mount()
        let sidecar = "<exif:DateTimeOriginal>2015-05-05T01:02:03</exif:DateTimeOriginal>"
        try shell(
            """
            cd D/albums; cp -a ../../source/1 Trip
            echo notes > notes.txt; ln notes.txt Trip/hard; ln -s ../nowhere Trip/soft; mkfifo -m 622 Trip/fifo
            cp -a Trip/a.jpg 'alike a copy.jpg'; cp Trip/sub/c.jpg newer.jpg
            mkdir -p empty .work; cp Trip/a.jpg .work/a.jpg; cp ../../source/1/b.jpg Trip/b.jpg~
            echo "<x:xmpmeta><rdf:Description>\(sidecar)</rdf:Description></x:xmpmeta>" > Trip/sub/d.jpg.xmp
            ln ../moments/2020-05-06/b.jpg 'of $another name.jpg'; ln 'of $another name.jpg' twice.jpg
            mkdir ../moments/2011-11-11 ../moments/1999-01-01; mv ../moments/2019-03-04/c.jpg ../moments/2011-11-11/
            mv ../moments/2020-05-06/b.jpg ../moments/2020-05-06/shown.jpg; echo x > ../moments/2020-05-06/plain.txt
            printf x > $'odd\\xff name\\n'; chmod 4755 notes.txt; chmod 700 Trip; chmod 444 Trip/a.jpg
            setfattr -n user.one -v 0x00ff10 Trip/a.jpg; setfattr -n user.two -v yes Trip
            touch -h -d '2001-02-03 04:05:06.7' Trip/soft; touch -d '1969-12-31 23:59:58.123456789' notes.txt
            touch -d '2002-02-02 02:02:02.999999999' Trip/sub Trip empty . ../moments/2011-11-11 ../moments
            """)
        try unmount()
    }
}

@Suite("Commands: import", .serialized, .waiting) struct ImportCommandTests {
    /// Three days, a sidecar, an undated photo, duplicates and a file that is no photo.
    private func makeSources(_ place: Place) throws {
        try place.source("a.jpg", Photo().bytes, modified: 1_500_000_000)
        try place.source("sub/b.JPG", Photo(taken: "2020:05:06 01:02:03", seed: 2).bytes)
        try place.source("sub/deep/a.jpg", Photo(seed: 3).bytes)
        try place.source("sub/deep/a.jpg.xmp", Array("<x/>".utf8))
        try place.source("undated.jpg", Photo(taken: nil, seed: 4).bytes, modified: 1_600_000_000)
        try place.source("copy of a.jpg", Photo().bytes)
        try place.source("notes.txt", Array("notes".utf8))
        try place.source("empty.jpg", [])
        try place.source(".hidden/c.jpg", Photo(seed: 5).bytes)
        try place.source("sub/@eaDir/d.jpg", Photo(seed: 6).bytes)
        try place.source("sub/e.jpg.part", Photo(seed: 7).bytes)
        try place.shell(
            "ln -s ../../etc source/sub/link; ln -s a.jpg source/link.jpg; mkfifo source/fifo.jpg")
    }

    private let shown = [
        "2019-03-04/a (2).jpg", "2019-03-04/a (2).jpg.xmp", "2019-03-04/a.jpg", "2020-05-06/b.JPG",
        "2020-09-13/undated.jpg",
    ]

    @Test(arguments: [1, 2])
    func `photos come in under their days, once`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        try makeSources(place)
        let before = try place.vaultBytes()
        let dry = try place.command("import", "V", "source", "--dry-run")
        #expect(try dry.status == 0 && place.vaultBytes() == before, "\(dry.errors)")
        let sentence = try #require(dry.lines.first)
        #expect(sentence.hasPrefix("4 photos would be added, "))
        #expect(sentence.hasSuffix(", on 3 days from 2019-03-04 to 2020-09-13"))

        let first = try place.command("import", "V", "source")
        #expect(first.status == 0, "\(first.errors)")
        #expect(first.output == dry.output.replacingOccurrences(of: "would be ", with: ""))
        #expect(first.lines.contains("1 duplicate skipped"))
        #expect(first.lines.contains { $0.hasPrefix("1 without a date") && $0.hasSuffix("undated.jpg") })
        #expect(first.lines.contains("1 sidecar carried along"))
        #expect(first.lines.contains { $0.hasPrefix("2 left out: no photos (") })
        #expect(first.errors.contains("Importing: ") && !first.errors.contains("obscura:"))

        let second = try place.command("import", "V", "source/sub", "source/a.jpg", "source", "--quiet")
        #expect(second.status == 0 && second.errors.isEmpty)
        #expect(second.lines.prefix(2) == ["0 photos added", "5 duplicates skipped"])

        try place.mount()
        #expect(try place.shown() == shown)
        #expect(try place.bytes(place.moments + "/2019-03-04/a.jpg") == Photo().bytes)
        #expect(try status(place.moments + "/2019-03-04/a.jpg").st_mtim.tv_sec == 1_500_000_000)
        #expect(try place.files(place.albums).isEmpty)
        let busy = try place.command("import", "V", "source")
        #expect(busy.status == 5 && busy.errors.contains("mounted at \(place.mountPoint)"))
        try place.unmount()
    }

    @Test func `an album gets them all, also those that are there`() throws {
        let place = try Place()
        try makeSources(place)
        try place.command("import", "V", "source/a.jpg")
        let added = try place.command("import", "V", "source", "--album", "Trip/Day 2")
        #expect(
            added.status == 0 && added.lines.contains("2 duplicates skipped, 1 of them added to the album"))
        let again = try place.command("import", "V", "source", "--album=Trip/Day 2", "--dry-run")
        #expect(again.lines.prefix(2) == ["0 photos would be added", "5 duplicates skipped"])
        try place.mount()
        #expect(
            try place.files(place.albums) == [
                "Trip/Day 2/a (2).jpg", "Trip/Day 2/a (2).jpg.xmp", "Trip/Day 2/a.jpg", "Trip/Day 2/b.JPG",
                "Trip/Day 2/undated.jpg",
            ])
        #expect(try place.shown() == shown.filter { !$0.hasSuffix(".xmp") })
        try place.unmount()
        for (album, code) in [("", 2), (".x", 2), ("a/..", 2), ("Trip/Day 2/a.jpg", 1)] {
            let refused = try place.command("import", "V", "source", "--album=\(album)")
            #expect(refused.status == code, "\(album)")
        }
    }

    @Test func `files that cannot be read are named, the rest comes in`() throws {
        let place = try Place()
        try makeSources(place)
        let ended = try place.command("import", "V", "nowhere", "source/a.jpg", "--quiet")
        #expect(ended.status == 1 && ended.lines.first?.hasPrefix("1 photo added") == true)
        let lines = ended.errors.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].contains("nowhere: No such file"))
        #expect(try place.command("import", "V", "source", password: "two").status == 4)
        #expect(try place.command("import", "source", "source").status == 3)
        #expect(try place.command("import", "V").status == 2)
        #expect(try place.command("export", "V", "source").status == 1)
        #expect(try place.command("export", "V", "V/x").status == 2)
        #expect(try place.command("export", "V", "out", "--albums=lnk").status == 2)
        #expect(try place.command("export", "V", "out", password: "two").status == 4)
        #expect(!exists(place.root + "/out"))
    }

    /// `DSC.xmp` goes with `DSC.NEF`, and with the picture beside it only where no such raw file is.
    @Test func `a sidecar goes with the photo that it names`() throws {
        let place = try Place()
        try place.source("pair/DSC.JPG", Photo().bytes)
        try place.source("pair/DSC.nef", raw("2004-06-09"))
        try place.source("pair/DSC.xmp", xmp("2010-10-10", of: "NEF"))
        try place.source("alone/IMG.JPG", Photo(taken: "2018:01:02 03:04:05", seed: 2).bytes)
        try place.source("alone/IMG.xmp", xmp("2010-10-10", of: "NEF"))
        #expect(try place.command("import", "V", "source").status == 0)
        try place.mount()
        #expect(
            try place.shown() == [
                "2010-10-10/DSC.nef", "2010-10-10/DSC.xmp", "2018-01-02/IMG.JPG", "2018-01-02/IMG.xmp",
                "2019-03-04/DSC.JPG",
            ])
    }

    @Test func `--move by a link to a file is refused`() throws {
        let place = try Place()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("ln -s source/a.jpg link.jpg; ln -s source folder")
        let ended = try place.command("import", "V", "link.jpg", "--move")
        #expect(ended.status == 2 && ended.errors.contains("name the file itself"))
        #expect(try place.bytes(place.root + "/source/a.jpg") == Photo().bytes)
        // The files in a folder are those that the user means.
        #expect(try place.command("import", "V", "folder", "--move").status == 0)
        #expect(try place.files(place.root + "/source").isEmpty)
    }

    @Test func `--move takes away files that are safe, and nothing else`() throws {
        let place = try Place()
        try makeSources(place)
        try place.source("raw/r.jpg", Photo(seed: 20).bytes)
        try place.source("raw/r.jpeg", Photo(seed: 21).bytes)
        try place.source("raw/r.xmp", Array("<x/>".utf8))
        let ended = try place.command("import", "V", "source", "--move")
        #expect(
            ended.status == 0 && ended.lines.contains("9 removed from where they were"), "\(ended.output)")
        #expect(
            try place.files(place.root + "/source") == [
                ".hidden/c.jpg", "empty.jpg", "notes.txt", "sub/@eaDir/d.jpg", "sub/e.jpg.part",
            ])
        #expect(exists(place.root + "/source/sub/deep"))
        try place.mount()
        let raw = ["2019-03-04/r.jpeg", "2019-03-04/r.jpg", "2019-03-04/r.xmp"]
        #expect(try place.shown() == (shown + raw).sorted())
        try place.unmount()
    }

    @Test func `interrupted it ends in order, killed it goes on where it was`() throws {
        let place = try Place()
        for index in 0..<200 {
            try place.source(
                "p\(index).jpg", Photo(seed: UInt8(index)).bytes + [UInt8](repeating: 1, count: 20_000))
        }
        for signal in [SIGINT, SIGTERM, SIGKILL] {
            let (process, errors) = try place.startHalting(["import", "V", "source"])
            process.kill(signal)
            let text = try PipeReader(errors).rest()
            if signal == SIGKILL {
                #expect(process.wait() == .signalled(SIGKILL))
            } else {
                #expect(process.wait() == .exited(130))
                #expect(text.contains("interrupted: run the same command again"))
            }
            try place.mount()
            let names = try place.shown()
            #expect(!names.isEmpty && names.count < 200)
            for name in names {
                let source = place.root + "/source/" + name.dropFirst(11)
                #expect(try place.bytes(place.moments + "/" + name) == place.bytes(source))
            }
            try place.unmount()
            if signal == SIGTERM { #expect(names.count > 19) }
        }
        let ended = try place.command("import", "V", "source")
        #expect(ended.status == 0)
        try place.mount()
        #expect(try place.shown().count == 200)
        try place.unmount()
    }
}

@Suite("Commands: export", .serialized, .waiting) struct ExportCommandTests {
    /// Where the date of every photo comes from.
    private func dates(_ place: Place) throws -> String {
        try place.mount()
        defer { try? place.unmount() }
        return try place.shell(
            """
            cd D/moments; find . -type f -print0 | LC_ALL=C sort -z |
            xargs -0 getfattr -n user.obscura.captured -n user.obscura.captured.source -- 2>/dev/null || true
            """)
    }

    @Test func `an export that is imported again is the same library`() throws {
        let (place, other) = (try Place(), try Place(spaces: 2))
        try place.fillLibrary()
        let ended = try place.command("export", "V", "out", "--special")
        #expect(ended.status == 0 && ended.errors.contains("Exporting: "), "\(ended.errors)")
        try place.mount()
        #expect(try place.listing("out") == place.listing("D"))
        try place.unmount()
        #expect(try dates(place).contains("moved"))

        for round in 0..<2 {
            let back = try other.command("import", "V", place.root + "/out", "--quiet")
            #expect(back.status == 0 && back.errors.isEmpty, "\(back.errors)")
            #expect(back.lines.first?.hasPrefix(round == 0 ? "5 photos added" : "0 photos added") == true)
            let out = "out\(round)"
            #expect(try other.command("export", "V", out, "--quiet", "--special").status == 0)
            #expect(try other.listing(out) == place.listing("out"))
            #expect(try dates(other) == dates(place))
        }
    }

    /// Those of one space alone would tell that it is in use.
    @Test func `commands that only read leave the times of segments`() throws {
        let place = try Place(spaces: 2)
        try place.source("a.jpg", Photo().bytes)
        try place.command("import", "V", "source", "--quiet")
        let times = "find V/spaces -type f -printf '%p %A@ %T@ %C@\\n' | LC_ALL=C sort"
        // So old that the kernel would note any reading, with any mount option.
        try place.shell("find V -exec touch -d 2001-01-01 {} +")
        let before = try place.shell(times)
        #expect(try place.command("export", "V", "out").status == 0)
        #expect(try place.command("import", "V", "source", "--dry-run").status == 0)
        #expect(try place.shell(times) == before)
    }

    @Test func `albums are links, copies or left out`() throws {
        let place = try Place()
        try place.fillLibrary()
        for form in ["copy", "none"] {
            let ended = try place.command("export", "V", form, "--albums", form, "--quiet")
            #expect(ended.status == 0 && ended.errors.isEmpty)
            let dropped = "albums/notes.txt: set-user-ID dropped: --special keeps it"
            #expect(ended.lines.contains(dropped) == (form == "copy"))
            #expect(try place.shell("find \(form) -type f -links +1 -o -perm /6000").isEmpty)
        }
        #expect(!exists(place.root + "/none/albums"))
        try place.mount()
        try place.shell("diff -r --no-dereference -x fifo -x .Trash-* D copy; diff -r D/moments none/moments")
        try place.unmount()
        // Copies become names of one photo again.
        let other = try Place()
        #expect(try other.command("import", "V", place.root + "/copy").status == 0)
        #expect(try other.command("export", "V", "out").status == 0)
        #expect(try place.command("export", "V", "out").status == 0)
        let named = { (place: Place) in
            try place.shell("cd out; find . -type f -name '*.jpg' -printf '%P|%n|%T@\\n' | LC_ALL=C sort")
        }
        #expect(try named(other) == named(place))
        #expect(try dates(other) == dates(place))
    }

    @Test func `damaged files are named and passed over`() throws {
        let place = try Place()
        let before = try place.segments()
        try place.source(
            "big.jpg", Photo().bytes + (0..<6_000_000).map { UInt8(truncatingIfNeeded: ($0 &* 7) >> 3) })
        try place.source("small.jpg", Photo(seed: 2).bytes)
        try place.command("import", "V", "source/big.jpg", "--quiet")
        try place.command("import", "V", "source/small.jpg", "--quiet")
        // Where most has changed are the photo's bytes: its third mebibyte.
        let after = try place.segments()
        let changed = after.keys.max { one, other in
            differences(before[one], after[one]) < differences(before[other], after[other])
        }
        let path = try #require(changed)
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try handle.seek(toOffset: 2 << 20)
        try handle.write(contentsOf: Data(repeating: 0x55, count: 4096))
        try handle.close()
        let ended = try place.command("export", "V", "out", "--quiet")
        #expect(
            ended.status == 6 && ended.lines.first?.hasPrefix("1 photo exported") == true, "\(ended.output)")
        #expect(ended.errors.contains("moments/2019-03-04/big.jpg: damaged"))
        // It is not complete: once the photo can be read, the same command adds it.
        let whole = [".obscura-export-unfinished", "moments/2019-03-04/small.jpg"]
        #expect(try place.files(place.root + "/out") == whole)
        let again = try place.command("export", "V", "out", "--json")
        #expect(again.status == 6 && again.errors.split(separator: "\n").count == 1)
        let object = try jsonObject(again.output)
        #expect(object["complete"] as? Bool == false && object["already_there"] as? Int == 1)
        #expect(
            object["damaged"] as? [[String: String]] == [
                [
                    "path": "moments/2019-03-04/big.jpg",
                    "reason": "damaged: its bytes cannot be read",
                ]
            ])
        #expect(try place.files(place.root + "/out") == whole)
    }

    @Test func `interrupted it says how to go on`() throws {
        let place = try Place()
        for index in 0..<50 {
            try place.source(
                "p\(index).jpg", Photo(seed: UInt8(index)).bytes + [UInt8](repeating: 1, count: 20_000))
        }
        try place.command("import", "V", "source")
        let (process, errors) = try place.startHalting(["export", "V", "out"])
        process.kill(SIGINT)
        let text = try PipeReader(errors).rest()
        #expect(process.wait() == .exited(130))
        #expect(text.contains("obscura: out: interrupted: run the same command again to go on"))
        let names = try place.shell("ls -A out").split(separator: "\n")
        #expect(names.contains(".obscura-export-unfinished") && !names.contains(".obscura-export-0"))
    }

    /// Pages that differ.
    private func differences(_ before: Data?, _ after: Data?) -> Int {
        guard let after else { return 0 }
        var count = 0
        for page in stride(from: 0, to: after.count, by: 4096) {
            let end = min(page + 4096, after.count)
            if let before, before.count >= end, before[page..<end] == after[page..<end] { continue }
            count += 1
        }
        return count
    }
}

extension Place {
    /// The bytes of every segment.
    fileprivate func segments() throws -> [String: Data] {
        var found: [String: Data] = [:]
        for file in try files(vault + "/segments") {
            let path = vault + "/segments/" + file
            found[path] = try Data(contentsOf: URL(fileURLWithPath: path))
        }
        return found
    }
}
