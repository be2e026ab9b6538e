import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Vaults on disks that cannot be written, or of which a part is gone, seen through mounts.
@Suite("Exit codes: vaults that cannot be written, through mounts", .serialized, .waiting)
struct HostMountTests {
    private let place: Place

    init() throws { place = try Place() }

    private func obscura(_ words: String..., input: String = "one\n", in place: Place? = nil) throws -> Ended
    {
        try (place ?? self.place).run([builtProgram("obscura")] + words, input)
    }

    /// One line, and no more, that ends as it should.
    private func expectLine(
        _ ended: Ended, _ status: Int32, _ end: String, location: SourceLocation = #_sourceLocation
    ) {
        #expect(ended.status == status, "\(ended.errors)", sourceLocation: location)
        #expect(ended.errors.hasSuffix(end + "\n"), "\(ended.errors)", sourceLocation: location)
        #expect(ended.errors.split(separator: "\n").count == 1, "\(ended.errors)", sourceLocation: location)
    }

    private func options(of place: Place) throws -> Set<Substring> {
        Set(try place.shell("findmnt -no OPTIONS D").dropLast().split(separator: ","))
    }

    private func segment(_ number: Int) -> String { "\(place.vault)/segments/00000\(number).seg" }

    /// The mount at D says that it is read-only, shows the old files, and ends at once.
    private func expectReadOnlyMount(_ place: Place, _ reason: String) throws {
        #expect(try options(of: place).contains("ro"))
        #expect(try place.shell("cat D/albums/old") == "old\n")
        for line in [
            "echo new >D/albums/new", "echo new >>D/albums/old", "mkdir D/albums/d", "rm D/albums/old",
        ] {
            #expect(try place.run(["/bin/sh", "-c", line]).errors.contains("Read-only file system"))
        }
        let status = try obscura("status", "D", in: place)
        #expect(status.output.contains("Read-only       \(reason)"), "\(status.output)")
        #expect(status.output.contains("none, everything is safe on disk"))
        try place.unmount()
        #expect(place.daemon == nil)
    }

    /// Mounts, writes the file `old`, and unmounts.
    private func writeOld(_ place: Place) throws {
        try place.mount()
        try place.shell("echo old >D/albums/old")
        try place.unmount()
    }

    // MARK: Not to be written

    /// umount(8) returns before the process has written everything, and the vault is its until then.
    @Test func `a vault can be mounted again right after umount`() throws {
        let place = try Place()
        try place.shell("mkdir source; head -c 8000000 /dev/urandom >source/big")
        for round in 0..<4 {
            try place.mount()
            try place.shell("cp source/big D/albums/\(round); patiently fusermount3 -u D")
        }
        try place.mount()
        try place.shell("for file in D/albums/*; do cmp $file source/big || exit 1; done")
    }

    @Test(arguments: [1, 2]) func `a vault on a read-only disk`(spaces: Int) throws {
        guard geteuid() == 0 else { return }
        let place = try Place(spaces: spaces)
        try writeOld(place)
        try place.shell(
            "mkdir disk; mount -t tmpfs -o size=256M none disk; mv V disk/V; mount -o remount,ro disk")
        defer { _ = try? place.run(["umount", "-l", "disk"]) }
        let reason = "the vault's disk is read-only"
        expectLine(
            try obscura("mount", "disk/V", "D", "--password-stdin", in: place), 0,
            "/D: mounted read-only: \(reason)")
        try expectReadOnlyMount(place, reason)
        // By name it was asked for to be written.
        expectLine(
            try obscura("mount", "disk/V", "D", "-o", "rw", "--password-stdin", in: place), 1,
            "disk/V: cannot be written: \(reason): mount it with -o ro")
        // mount(8) always passes rw to its helpers.
        try place.shell("ln -s \(builtProgram("obscura")) mount.obscura; echo one >pw; chmod 600 pw")
        let helper = try place.run(["./mount.obscura", "disk/V", "D", "-o", "rw,passfile=pw"])
        #expect(helper.status == 0 && helper.errors.contains("mounted read-only: \(reason)"))
        try expectReadOnlyMount(place, reason)
        let refusal = "disk/V: cannot be written: \(reason): make the disk writable"
        try place.source("a.jpg", jpeg("2024-05-01", more: 1))
        expectLine(try obscura("import", "disk/V", "source", "--password-stdin", in: place), 1, refusal)
        expectLine(
            try obscura("passwd", "disk/V", "--password-stdin", input: "one\ntwo\n", in: place), 1, refusal)
        expectLine(
            try obscura("space", "remove", "disk/V", "--yes", "--password-stdin", in: place), 1, refusal)
        if spaces == 2 {
            expectLine(
                try obscura("space", "add", "disk/V", "--password-stdin", input: "two\none\n", in: place), 1,
                refusal)
            expectLine(try obscura("grow", "disk/V", "64M", in: place), 1, refusal)
        }
        // Commands that only read work as always.
        #expect(try obscura("check", "disk/V", "--password-stdin", in: place).status == 0)
        #expect(try obscura("export", "disk/V", "out", "--password-stdin", in: place).status == 0)
        #expect(try place.shell("cat out/albums/old") == "old\n")
        #expect(try obscura("backup", "disk/V", "copy", in: place).status == 0)
    }

    @Test(arguments: ["chmod -R a-w V", "chmod a-w V/segments", "chmod a-w V/segments/000001.seg"])
    func `a vault that its user may not write`(line: String) throws {
        let place = try Place()
        try writeOld(place)
        let program = builtProgram("obscura")
        try place.shell(
            """
            mkdir bin; cp \(program) \(program)-{worker,guard,sleep,desktop,archive,receiver} bin
            echo one >pw; chmod 600 pw; chmod 755 .
            """
        )
        let isRoot = geteuid() == 0
        if isRoot { try place.shell("chown -R 65534:65534 .") }
        let user = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
        try place.shell(line)
        let mounted = try place.run(user + ["bin/obscura", "mount", "V", "D", "--password-file", "pw"])
        #expect(mounted.status == 0, "\(mounted.errors)")
        #expect(
            mounted.errors.hasSuffix(
                "/D: mounted read-only: the vault's files may not be written (Permission denied): "
                    + "check the owner and mode of the vault's files\n"))
        let looked = try place.run(user + ["/bin/sh", "-c", "cat D/albums/old; echo new >D/albums/new"])
        #expect(looked.output == "old\n" && looked.errors.contains("Read-only file system"))
        #expect(try options(of: place).contains("ro"))
        #expect(try place.run(user + ["bin/obscura", "unmount", "D"]).status == 0)
        #expect(place.daemon == nil)
        let refused = try place.run(
            user + ["bin/obscura", "mount", "V", "D", "-o", "rw", "--password-file", "pw"])
        #expect(refused.status == 1 && refused.errors.contains("cannot be written"))
        try place.shell("chmod -R u+w V")
        #expect(
            try place.run(user + ["bin/obscura", "mount", "V", "D", "--password-file", "pw"]).errors == "")
        _ = try place.run(user + ["bin/obscura", "unmount", "D"])
    }

    // MARK: Gone

    @Test(arguments: [0, 1]) func `a segment of pages is missing`(number: Int) throws {
        try writeOld(place)
        try place.shell("mv V/segments/00000\(number).seg kept")
        let advice = "put it back from a backup if there is one, then run obscura check"
        let reason = "segment 00000\(number) is missing: unmount it, \(advice) \(place.vault) --repair"
        expectLine(
            try obscura("mount", "V", "D", "--password-stdin"), 0, "/D: mounted read-only: \(reason)")
        try expectReadOnlyMount(place, reason)
        expectLine(
            try obscura("mount", "V", "D", "-o", "rw", "--password-stdin"), 1,
            "V: cannot be written: segment 00000\(number) is missing: mount it with -o ro")
        expectLine(
            try obscura("import", "V", "pw", "--password-stdin"), 6,
            "V: cannot be written: segment 00000\(number) is missing: \(advice) V --repair")
        // Put back, it is as it was; lost, it is made anew.
        try place.shell("mv kept V/segments/00000\(number).seg")
        try place.mount()
        try place.unmount()
        try place.shell("rm V/segments/00000\(number).seg")
        #expect(try obscura("check", "V", "--repair", "--password-stdin").status == 0)
        try place.mount()
        #expect(try place.shell("cat D/albums/old") == "old\n")
        try place.unmount()
        try place.shell("rm V/segments/00000[01].seg")
        expectLine(
            try obscura("mount", "V", "D", "--password-stdin"), 6,
            "damage found: no state of the space can be read (obscura check --repair recovers what can be read)"
        )
    }

    @Test func `a segment is removed under a mount`() throws {
        try place.mount()
        try place.shell("echo old >D/albums/old; sync D/albums/old; rm V/segments/000000.seg")
        try place.shell("echo new >D/albums/new")
        let sync = try place.run(["sync", "D/albums/new"])
        #expect(sync.errors.contains("Read-only file system"), "\(sync.errors)")
        for line in ["echo more >D/albums/more", "rm D/albums/old"] {
            #expect(try place.run(["/bin/sh", "-c", line]).errors.contains("Read-only file system"))
        }
        #expect(try place.shell("cat D/albums/new") == "new\n")
        let advice =
            "unmount it, put it back from a backup if there is one, then run obscura check \(place.vault) --repair"
        #expect(
            try obscura("status", "D").output.hasSuffix(
                "Read-only       segment 000000 is missing: \(advice)\n"))
        let json = try obscura("status", "--json", "D").output
        let found = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(found?["read_only"] as? Bool == true && found?["unwritten"] as? Bool == true)
        #expect(found?["reason"] as? String == "segment 000000 is missing")
        #expect(found?["advice"] as? String == advice)

        let words =
            "1 file is not written: segment 000000 is missing: fix that and try again, or discard the changes with "
        let refused = try obscura("unmount", "D")
        expectLine(refused, 1, "D: \(words)obscura unmount --discard D")
        #expect(refused.output == "")
        #expect(try place.shell("cat D/albums/new") == "new\n")
        // On a terminal the names are shown.
        let seen = try place.run(["script", "-qec", "\(builtProgram("obscura")) unmount D", "/dev/null"])
        #expect(seen.output.contains("not written: albums/new\r\n"), "\(seen.output)")
        #expect(seen.status == 1)

        let given = try obscura("unmount", "--discard", "D")
        #expect(given.status == 0 && given.errors == "", "\(given.errors)")
        #expect(given.output == "D: unmounted; 1 file is not written, and given up\n")
        #expect(place.daemon == nil && !exists(place.albums))
        #expect(try obscura("check", "V", "--repair", "--password-stdin").status == 0)
        try place.mount()
        #expect(try place.shell("cat D/albums/old") == "old\n")
        try place.unmount()
    }

    @Test func `a segment that comes back is written after all`() throws {
        try place.mount()
        try place.shell("echo old >D/albums/old; sync D/albums/old; mv V/segments/000001.seg kept")
        try place.shell("echo new >D/albums/new")
        #expect(try obscura("unmount", "D").status == 1)
        #expect(try place.run(["/bin/sh", "-c", "echo more >D/albums/more"]).status != 0)
        try place.shell("mv kept V/segments/000001.seg")
        try place.unmount()
        try place.mount()
        #expect(try place.shell("cat D/albums/old D/albums/new") == "old\nnew\n")
        try place.unmount()
        #expect(try obscura("check", "V", "--password-stdin").status == 0)
    }

    @Test func `umount(8) waits for nothing, and the process ends`() throws {
        guard geteuid() == 0 else { return }
        try place.mount()
        try place.shell("echo old >D/albums/old; sync D/albums/old; rm V/segments/00000[01].seg")
        // Refused where a commit has found the loss before it.
        try place.shell("(echo new >D/albums/new) 2>refused || grep -q Read-only refused; patiently umount D")
        #expect(eventually { place.daemon == nil })
    }

    @Test func `giving up nothing is an unmount like any other`() throws {
        try place.mount()
        try place.shell("echo new >D/albums/new")
        let ended = try obscura("unmount", "--discard", "D")
        #expect(ended.status == 0 && ended.output == "" && ended.errors == "", "\(ended.errors)")
        try place.mount()
        #expect(try place.shell("cat D/albums/new") == "new\n")
        try place.unmount()
    }

    @Test func `giving up ends a mount that programs use`() throws {
        try place.mount()
        try place.shell("echo new >D/albums/new")
        let file = open(place.albums + "/new", O_RDONLY)
        defer { close(file) }
        #expect(try obscura("unmount", "D").status == 1)
        let ended = try obscura("unmount", "--discard", "D")
        #expect(ended.status == 0 && ended.errors == "", "\(ended.errors)")
        #expect(ended.output == "D: unmounted; programs that used it get errors\n")
        #expect(place.daemon == nil && !exists(place.albums))
        try place.mount()
        #expect(try place.shell("cat D/albums/new") == "new\n")
        try place.unmount()
    }

    @Test func `a mount that hangs is said to`() throws {
        try place.mount()
        let process = try #require(place.daemon)
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        let line =
            "the mount does not answer: its process, or the disk of its vault, hangs; obscura unmount ends it"
        // Each waits for ten seconds.
        let commands = [["status", "D"], ["check", "D"], ["trash", "D", "list"]]
        let running = try commands.map { words in
            try Child(
                [builtProgram("obscura")] + words, environment: place.environment, directory: place.root,
                output: .collected, errors: .collected)
        }
        for (words, command) in zip(commands, running) {
            let ended = try command.finish()
            #expect(ended.status == 1 && ended.output == "", "\(words)")
            #expect(ended.errors == "obscura: D: \(line)\n", "\(words)")
        }
    }

    @Test func `files that are open when all is given up`() throws {
        try place.mount()
        try place.shell(
            "echo old >D/albums/old; sync D/albums/old; rm V/segments/000000.seg; echo new >D/albums/new")
        #expect(try place.run(["sync", "D/albums/new"]).status != 0)
        let open = open(place.albums + "/new", O_RDONLY)
        defer { close(open) }
        #expect(try obscura("unmount", "--discard", "D").status == 0)
        #expect(place.daemon == nil && !exists(place.albums))
    }

    // MARK: Exchanged

    @Test func `segments that have each other's names`() throws {
        try place.mount()
        try place.shell(
            "head -c 60000000 /dev/urandom >D/albums/big; echo old >D/albums/old; md5sum <D/albums/big >sum")
        try place.unmount()
        func exchange(_ first: Int, _ second: Int) throws {
            try place.shell(
                "mv \(segment(first)) x; mv \(segment(second)) \(segment(first)); mv x \(segment(second))")
        }
        for (first, second) in [(0, 1), (2, 4), (1, 3)] {
            try exchange(first, second)
            let line = "segments \(first) and \(second) are exchanged"
            let mounted = try obscura("mount", "V", "D", "--password-stdin")
            #expect(mounted.status == 0)
            if first < 2 {
                let advice = "unmount it, then run obscura check \(place.vault) --repair"
                expectLine(mounted, 0, "/D: mounted read-only: \(line): \(advice)")
                try expectReadOnlyMount(place, "\(line): \(advice)")
            } else {
                try place.unmount()
                // The first write compares, and overwrites nothing.
                try place.mount()
                _ = try place.run(["cp", "sum", "D/albums/new"])
                #expect(try place.run(["sync", "D/albums/new"]).status != 0)
                #expect(try obscura("status", "D").output.contains(line))
                #expect(try obscura("unmount", "--discard", "D").status == 0)
            }
            let checked = try obscura("check", "V", "--password-stdin")
            #expect(checked.status == 6 && checked.output == "the space: \(line)\n", "\(checked.output)")
            let repaired = try obscura("check", "V", "--repair", "--password-stdin")
            #expect(repaired.status == 0, "\(repaired.output)\(repaired.errors)")
            #expect(repaired.lines.last == "V: repaired; nothing is damaged now")
            try place.mount()
            try place.shell("md5sum <D/albums/big | cmp - sum")
            try place.unmount()
        }
    }
}
