import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing
import VaultCrypto

@testable import obscura

/// Spaces, passwords and headers, managed by the built program.
@Suite("Passwords: space, passwd, header", .serialized, .waiting) struct SpaceCommandTests {
    private let place: CommandPlace
    private var directory: String { place.path }
    private var header: String { directory + "/V/obscura.vault" }

    init() throws {
        place = try CommandPlace()
    }

    private func run(_ words: String..., input: String = "") throws -> Program {
        try place.run(words, input: input)
    }

    /// Runs a line of the shell; `obscura` is the program.
    private func shell(_ line: String, input: String = "") throws -> Program {
        try Program(
            ["-c", "obscura() { '\(Program.path)' \"$@\"; }; \(line)"], in: directory, input: input,
            as: "/bin/bash")
    }

    private func makeVault(spaces: Int = 2, _ more: String..., input: String = "one\n") throws {
        let words = ["create", "V", "--spaces=\(spaces)", "--kdf-memory=8M", "--kdf-passes=1"]
        let size = spaces == 1 ? [] : ["--size=16M"]
        let made = try Program(words + size + more + ["--password-stdin"], in: directory, input: input)
        #expect(made.status == 0, "\(made.errors)")
    }

    /// Lets `change` work on both copies of the header and writes right checksums: BLAKE2b over 4064 bytes.
    private func forge(_ change: (inout [UInt8]) -> Void) throws {
        var whole = Array(try Data(contentsOf: URL(fileURLWithPath: header)))
        for offset in [0, 65_536] {
            var copy = Array(whole[offset..<offset + 4096])
            change(&copy)
            copy.withUnsafeMutableBytes {
                hash(
                    [UnsafeRawBufferPointer(rebasing: $0[..<4064])],
                    into: UnsafeMutableRawBufferPointer(rebasing: $0[4064...]))
            }
            whole.replaceSubrange(offset..<offset + 4096, with: copy)
        }
        try Data(whole).write(to: URL(fileURLWithPath: header))
    }

    @Test func `a wrong password, a removed space and a damaged key are told in the same bytes`() throws {
        try makeVault()
        #expect(try run("space", "add", "V", "--password-stdin", input: "two\none\n").status == 0)
        #expect(try run("space", "remove", "V", "--yes", "--password-stdin", input: "two\n").status == 0)
        let line = "obscura: V: no space opens with this password: check it and try again\n"
        func check(_ password: String) throws {
            for command in [["mount", "V", "D"], ["import", "V", "D"], ["space", "remove", "V", "--yes"]] {
                let ended = try Program(command + ["--password-stdin"], in: directory, input: password + "\n")
                #expect(ended.status == 4 && ended.errors == line && ended.output.isEmpty, "\(command)")
            }
        }
        try check("wrong")
        try check("two")
        try forge { copy in for slot in 0..<2 { copy[64 + 128 * slot + 70] ^= 1 } }
        try check("one")
        try forge { copy in for slot in 0..<2 { copy[64 + 128 * slot + 70] ^= 1 } }
        #expect(try run("passwd", "V", "--password-stdin", input: "one\nuno\n").status == 0)
    }

    @Test func `a header cannot ask for more than the machine has`() throws {
        try makeVault()
        func setNumber(_ number: UInt64, at offset: Int) throws {
            try forge { copy in
                for byte in 0..<8 { copy[offset + byte] = UInt8(truncatingIfNeeded: number >> (8 * byte)) }
            }
        }
        // 1 TiB, a GiB, 448 MiB and a byte, a byte under 8 MiB, no memory; and passes without end.
        for memory in [1 << 40, 1 << 30, 448 << 20 + 1, 8 << 20 - 1, 0] as [UInt64] {
            try setNumber(memory, at: 24)
            let ended = try run("mount", "V", "D", "--password-stdin", input: "one\n")
            #expect(ended.status == 6 && ended.errors.contains("header"), "\(ended.errors)")
        }
        try setNumber(8 << 20, at: 24)
        for passes in [0, 65, UInt64(UInt32.max)] {
            try setNumber(passes, at: 32)
            #expect(try run("mount", "V", "D", "--password-stdin", input: "one\n").status == 6)
        }
        try setNumber(1, at: 32)
        #expect(try run("passwd", "V", "--password-stdin", input: "one\nuno\n").status == 0)
        // Allowed, and more than this process may have.
        try setNumber(448 << 20, at: 24)
        let ended = try shell("ulimit -v 400000; obscura mount V D --password-stdin", input: "uno\n")
        #expect(ended.status == 1 && ended.errors.contains("448 MiB of memory"), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1)
        let created = try shell(
            "ulimit -v 400000; obscura create W --size=16M --kdf-memory=448M --password-stdin",
            input: "one\n")
        #expect(created.status == 1 && created.errors.contains("448 MiB of memory"))
        #expect(!FileManager.default.fileExists(atPath: directory + "/W"))
    }

    @Test func `a key file is needed beside the password`() throws {
        try Data("any file".utf8).write(to: URL(fileURLWithPath: directory + "/key"))
        try Data("another".utf8).write(to: URL(fileURLWithPath: directory + "/other"))
        try makeVault("--key-file=key")
        func opens(_ password: String, _ options: String...) throws -> Bool {
            let words = ["import", "V", "D", "--dry-run", "--password-stdin"]
            let ended = try Program(words + options, in: directory, input: password + "\n")
            #expect(ended.status == 0 || ended.status == 4, "\(ended.errors)")
            return ended.status == 0
        }
        #expect(try opens("one", "--key-file", "key"))
        #expect(try !opens("one") && !opens("one", "--key-file=other") && !opens("two", "--key-file=key"))
        // The new password takes the same file, another, or none.
        let changes: [([String], String, [String])] = [
            (["--key-file=key"], "one\ntwo\n", ["--key-file=key"]),
            (["--key-file=key", "--new-key-file=other"], "two\nthree\n", ["--key-file=other"]),
            (["--key-file=other", "--new-key-file=none"], "three\nfour\n", []),
            (["--new-key-file=key"], "four\nfour\n", ["--key-file=key"]),
        ]
        for (options, passwords, needed) in changes {
            let words = ["passwd", "V", "--password-stdin"] + options
            #expect(try Program(words, in: directory, input: passwords).status == 0)
            let new = passwords.split(separator: "\n").last ?? ""
            let dry = ["import", "V", "D", "--dry-run", "--password-stdin"]
            #expect(try Program(dry + needed, in: directory, input: new + "\n").status == 0)
        }
        #expect(try !opens("four"))
        // A surviving space is known with its key file; without it no space is taken.
        let add = ["space", "add", "V", "--password-stdin"]
        #expect(try Program(add, in: directory, input: "new\nfour\n").status == 4)
        #expect(try Program(add + ["--key-file=key", "--key-file=other"], in: directory).status == 2)
        #expect(
            try Program(
                add + ["--key-file=key", "--new-key-file=other"], in: directory, input: "new\nfour\n"
            )
            .status == 0)
        #expect(try opens("four", "--key-file=key") && opens("new", "--key-file=other") && !opens("new"))
        #expect(
            try run("space", "remove", "V", "--yes", "--key-file=other", "--password-stdin", input: "new\n")
                .status
                == 0)
        #expect(try !opens("new", "--key-file=other"))
    }

    @Test func `a key file that is none is refused`() throws {
        try makeVault()
        try Data().write(to: URL(fileURLWithPath: directory + "/empty"))
        for (file, status) in [("nowhere", 1), ("D", 1), ("empty", 2), ("/dev/zero", 2)] as [(String, Int32)]
        {
            let ended = try run("mount", "V", "D", "--password-stdin", "--key-file", file, input: "one\n")
            #expect(ended.status == status, "\(ended.errors)")
            #expect(ended.errors.hasPrefix("obscura: --key-file \(file): "))
        }
        // One that comes through a pipe is as good as any.
        let piped = try shell(
            "obscura passwd V --password-stdin --new-key-file <(echo key)", input: "one\ntwo\n")
        #expect(piped.status == 0, "\(piped.errors)")
        #expect(
            try shell(
                "echo key > key; obscura passwd V --password-stdin --key-file=key", input: "two\nthree\n"
            )
            .status == 0)
    }

    @Test func `a header is exported and put back`() throws {
        try makeVault()
        let exported = try run("header", "export", "V", "H")
        #expect(
            exported.status == 0 && exported.errors.isEmpty && exported.output.hasPrefix("H: the header of V")
        )
        var status = stat()
        #expect(
            stat(directory + "/H", &status) == 0 && status.st_mode & 0o777 == 0o600
                && status.st_size == 131_072)
        let copy = contents(ofFile: directory + "/H")
        #expect(try run("header", "export", "V", "H").status == 1)
        #expect(contents(ofFile: directory + "/H") == copy)
        #expect(try run("header", "export", "V", "V/H").status == 2)
        #expect(try run("header", "export", "D", "H2").status == 3)
        #expect(try run("passwd", "V", "--password-stdin", input: "one\ntwo\n").status == 0)
        try Data(count: 131_072).write(to: URL(fileURLWithPath: header))
        let damaged = try run("mount", "V", "D", "--password-stdin", input: "two\n")
        #expect(damaged.status == 6 && damaged.errors.contains("obscura header restore"))
        let restored = try run("header", "restore", "V", "H")
        #expect(restored.status == 0 && restored.output.contains("the passwords of its time open again"))
        #expect(try run("mount", "V", "D", "--password-stdin", input: "two\n").status == 4)
        #expect(try run("mount", "V", "D", "--password-stdin", input: "one\n").status == 0)
        #expect(try run("header", "restore", "V", "H").status == 5)
        #expect(try run("header", "export", "V", "H2").status == 0)
        #expect(try run("unmount", "D").status == 0)
        for (file, status) in [("nowhere", 1), ("D", 1), ("V/spaces", 6)] as [(String, Int32)] {
            let ended = try run("header", "restore", "V", file)
            #expect(
                ended.status == status && ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
        }
        #expect(try run("header", "restore", "V", "H2").output.contains("nothing to do"))
    }

    /// script(1) gives the program a terminal, on which the input is typed.
    private func onTerminal(_ command: String, typing input: String) throws -> Program {
        try Program(
            ["-qefc", "'\(Program.path)' \(command)", "/dev/null"], in: directory, input: input,
            as: "/usr/bin/script")
    }

    @Test func `a terminal is told what the vault cannot know`() throws {
        try makeVault(spaces: 3)
        let added = try onTerminal("space add V", typing: "two\ntwo\none\n\n")
        #expect(added.status == 0, "\(added.output)")
        let words =
            "The vault cannot know which of its other spaces are in use. Type the password of each space that must "
            + "survive, then an empty one: a space whose password is missing may be lost."
        #expect(added.output.contains(words))
        #expect(try run("passwd", "V", "--password-stdin", input: "two\nzwei\n").status == 0)
        // Without any to keep, it asks once more.
        for answer in ["no", ""] {
            let left = try onTerminal("space add V", typing: "three\nthree\n\n\(answer)\n")
            #expect(left.status == 1 && left.output.contains("No space is kept"), "\(left.output)")
        }
        #expect(try onTerminal("space add V", typing: "three\nthree\n\nyes\n").status == 0)
    }

    @Test func `a terminal is asked which kind of vault, and no answer is proposed`() throws {
        let grows = try onTerminal("create V --kdf-memory 8M --kdf-passes 1", typing: "\n1\none\none\n")
        #expect(grows.status == 0 && grows.output.contains("Type 1 or 2"), "\(grows.output)")
        #expect(grows.output.contains("1 space, growing with its photos"))
        let fixed = try onTerminal("create W --kdf-memory 8M --kdf-passes 1", typing: "2\n24M\none\none\n")
        #expect(fixed.status == 0, "\(fixed.output)")
        #expect(
            fixed.output.contains(
                "24 MiB: room for at least 3 photos of 4 MB. The vault takes 48 MiB at once."))
        #expect(fixed.output.contains("2 spaces of"))
        let neither = try onTerminal("create X", typing: "3\n\ny\n")
        #expect(
            neither.status == 2 && !FileManager.default.fileExists(atPath: directory + "/X"),
            "\(neither.output)")
        #expect(
            sizeHint(4 << 30, spaces: 2)
                == "4 GiB: room for at least 1,000 photos of 4 MB. The vault takes 8 GiB at once.")
        #expect(sizeHint(1200 << 20, spaces: 3).hasPrefix("1.1 GiB: room for at least 290 photos of 4 MB."))
    }

    @Test func `no password is chosen for a size that the disk or the vault cannot have`() throws {
        for (size, status) in [("1K", 2), ("900T", 7), ("99999999T", 2)] {
            let words = "create V --spaces 2 --size \(size) --kdf-memory 8M --kdf-passes 1"
            let asked = try shell("obscura \(words) --password-command 'touch asked; echo one'")
            #expect(asked.status == Int32(status) && !asked.errors.contains("forgotten"), "\(asked.errors)")
            #expect(!FileManager.default.fileExists(atPath: directory + "/asked"))
            let typed = try onTerminal(words, typing: "")
            #expect(typed.status == Int32(status) && !typed.output.contains("password"), "\(typed.output)")
        }
        // Where the size is asked for, it is asked for again.
        let again = try onTerminal(
            "create V --kdf-memory 8M --kdf-passes 1", typing: "2\n1K\n900T\n24M\none\none\n")
        #expect(again.status == 0 && again.output.contains("at least 16M"), "\(again.output)")
    }

    @Test(.enabled(if: geteuid() == 0)) func `the proposed size fits on a small disk`() throws {
        try #require(mount("none", directory + "/D", "tmpfs", 0, "size=100M") == 0)
        defer { umount2(directory + "/D", Int32(MNT_DETACH)) }
        let made = try onTerminal("create D/V --kdf-memory 8M --kdf-passes 1", typing: "2\n\none\none\n")
        #expect(made.status == 0 && made.output.contains("Size [48M]"), "\(made.output)")
    }

    @Test func `nothing is asked for a place that no vault can have`() throws {
        #expect(try shell("touch D/photo F").status == 0)
        for (place, why) in [
            ("D", "the directory is not empty"), ("F", "Not a directory"), ("F/V", "Not a directory"),
            ("nowhere/V", "No such file"),
        ] {
            let asked = try onTerminal("create \(place)", typing: "1\none\none\n")
            #expect(asked.status == 1 && asked.output.contains(why), "\(asked.output)")
            #expect(!asked.output.contains("1 or 2") && !asked.output.contains("password"), "\(asked.output)")
        }
        try makeVault()
        #expect(try onTerminal("create V", typing: "").output.contains("already a vault"))
        // The attempt leaves nothing.
        #expect(try onTerminal("create W", typing: "").status == 2)
        #expect(!FileManager.default.fileExists(atPath: directory + "/W"))
    }

    @Test func `a terminal lets a wrong password be typed anew, twice`() throws {
        try makeVault(spaces: 3)
        let exported = try onTerminal("export V E1", typing: "two\ntwo\none\n")
        #expect(exported.status == 0 && exported.output.contains("is Caps Lock on?"), "\(exported.output)")
        #expect(try onTerminal("export V E2", typing: "two\ntwo\ntwo\none\n").status == 4)
        #expect(try onTerminal("export V E3", typing: "two\n").status == 4)
        #expect(try run("export", "V", "E4", "--password-stdin", input: "two\n").status == 4)
        // The old password is known to be right before a new one is chosen.
        let changed = try onTerminal("passwd V", typing: "two\none\nnew\nnew\n")
        #expect(changed.status == 0, "\(changed.output)")
        #expect(try onTerminal("passwd V", typing: "a\nb\nc\n").status == 4)
        // A survivor that is mistyped is named at once, and nothing is lost by it.
        let added = try onTerminal("space add V", typing: "two\ntwo\nmew\nnew\n\n")
        #expect(added.status == 0 && added.output.contains("so it keeps none"), "\(added.output)")
        for password in ["new", "two"] {
            #expect(try run("check", "V", "--password-stdin", input: password + "\n").status == 0)
        }
    }

    /// Types all lines, stops the process that derives the key, and prints whether the terminal echoes meanwhile. A
    /// derivation that ends before it is seen is tried again.
    private static let echo = """
        import glob, os, pty, signal, sys, termios

        def stretching(parent):
            for path in glob.glob(f"/proc/{parent}/task/*/children"):
                for child in open(path).read().split():
                    if b"--stretch" in open(f"/proc/{child}/cmdline", "rb").read(): return int(child)

        typed, words = sys.argv[1], sys.argv[2:]
        for attempt in range(1000):
            program, terminal = pty.fork()
            if program == 0: os.execv(words[0], words)
            os.write(terminal, typed.encode())
            while os.waitpid(program, os.WNOHANG) == (0, 0):
                try:
                    child = stretching(program)
                    if not child: continue
                    os.kill(child, signal.SIGSTOP)
                except OSError: continue
                print("on" if termios.tcgetattr(terminal)[3] & termios.ECHO else "off")
                for process in child, program: os.kill(process, signal.SIGKILL)
                sys.exit()
            os.close(terminal)
        """

    @Test func `keys that are pressed while a key is derived are not shown`() throws {
        let made = try run(
            "create", "V", "--spaces=2", "--size=16M", "--kdf-memory=8M", "--kdf-passes=64",
            "--password-stdin", input: "one\n")
        #expect(made.status == 0, "\(made.errors)")
        let commands: [([String], String)] = [
            (["create", "W", "--spaces=1", "--kdf-memory=448M", "--kdf-passes=64"], "one\none\n"),
            (["passwd", "V"], "wrong\nwrong\nwrong\n"), (["space", "add", "V"], "two\ntwo\none\n\n"),
            (["export", "V", "E"], "wrong\nwrong\nwrong\n"),
        ]
        for (words, typed) in commands {
            let seen = try Program(
                ["-c", Self.echo, typed, Program.path] + words, in: directory, as: "/usr/bin/python3")
            #expect(seen.output == "off\n", "\(words): \(seen.output)\(seen.errors)")
        }
    }

    @Test func `a terminal that cannot overwrite lines gets no codes for that`() throws {
        for (terminal, hasCodes) in [("xterm", true), ("dumb", false)] {
            let words = "create \(terminal) --size 16M --kdf-memory 8M --kdf-passes 1"
            let made = try Program(
                ["-qefc", "TERM=\(terminal) '\(Program.path)' \(words)", "/dev/null"], in: directory,
                input: "one\none\n", as: "/usr/bin/script")
            #expect(made.status == 0 && made.output.contains("\u{1B}") == hasCodes, "\(made.output)")
        }
    }

    @Test func `a size is said as it was typed`() throws {
        try makeVault()
        #expect(try run("grow", "V", "1200M").output == "V: every space now has 1200M\n")
        #expect([1 << 30, 3 << 29, 5 << 40, 10].map { sizeWord($0) } == ["1G", "1536M", "5T", "10"])
    }

    @Test func `a terminal is asked before a header is replaced`() throws {
        try makeVault()
        #expect(try run("header", "export", "V", "H").status == 0)
        #expect(try run("passwd", "V", "--password-stdin", input: "one\ntwo\n").status == 0)
        let present = contents(ofFile: header)
        let asked = try onTerminal("header restore V H", typing: "y\n")
        #expect(asked.status == 1 && asked.output.contains("a space added since is lost"), "\(asked.output)")
        #expect(contents(ofFile: header) == present)
        #expect(try onTerminal("header restore V H", typing: "yes\n").status == 0)
        #expect(try run("passwd", "V", "--password-stdin", input: "one\ntwo\n").status == 0)
    }

    @Test func `a space is removed only by a word typed on the terminal, or --yes`() throws {
        try makeVault()
        #expect(try run("space", "add", "V", "--password-stdin", input: "two\none\n").status == 0)
        for number in 1...3 {
            try Data(jpeg(more: number)).write(to: URL(fileURLWithPath: directory + "/D/\(number).jpg"))
        }
        #expect(try run("import", "V", "D", "--password-stdin", input: "one\n").status == 0)
        let present = contents(ofFile: header)
        let refused = try run("space", "remove", "V", "--password-stdin", input: "one\n")
        #expect(refused.status == 2 && refused.errors.contains("give --yes"), "\(refused.errors)")
        #expect(refused.errors.split(separator: "\n").count == 1)
        for answer in ["yes", "", "Destroy"] {
            let left = try onTerminal("space remove V", typing: "one\n\(answer)\n")
            #expect(left.status == 1 && left.output.contains("This space holds 3 photos, "), "\(left.output)")
            #expect(left.output.contains("nothing was changed"))
        }
        // The password's source is another matter.
        let piped = try onTerminal("space remove V --password-command 'echo two'", typing: "no\n")
        #expect(piped.status == 1 && piped.output.contains("This space holds 0 photos, "), "\(piped.output)")
        // Without a password nothing is learned.
        let wrong = try onTerminal("space remove V", typing: "wrong\ndestroy\n")
        #expect(wrong.status == 4 && !wrong.output.contains("This space holds"))
        #expect(contents(ofFile: header) == present)
        #expect(try onTerminal("space remove V", typing: "one\ndestroy\n").status == 0)
        #expect(try run("import", "V", "D", "--password-stdin", input: "one\n").status == 4)
        let last = try run("space", "remove", "V", "--yes", "--password-stdin", input: "two\n")
        #expect(last.status == 0 && !last.output.contains("This space holds"), "\(last.errors)")
        #expect(try run("import", "V", "D", "--password-stdin", input: "two\n").status == 4)
    }

    @Test func `a space that is damaged can be removed`() throws {
        try makeVault()
        let overwritten = try shell(
            "head -c $(stat -c %s V/spaces) /dev/zero | dd of=V/spaces conv=notrunc status=none")
        #expect(overwritten.status == 0, "\(overwritten.errors)")
        let asked = try onTerminal("space remove V", typing: "one\ndestroy\n")
        #expect(asked.status == 0 && asked.output.contains("cannot be read and counted"), "\(asked.output)")
        #expect(try run("passwd", "V", "--password-stdin", input: "one\ntwo\n").status == 4)
    }

    @Test func `the question before a space is destroyed`() {
        let text = removalText(SpaceContents(photos: 1, trashed: 2, bytes: 5 << 30))
        #expect(text.hasPrefix("This space holds 1 photo (and 2 in the trash), 5 GiB in all."))
    }

    @Test func `a password is stretched in a process of its own, which ends with the command`() throws {
        try makeVault("--kdf-memory=96M", "--kdf-passes=16")
        let command = "import '\(directory)/V' '\(directory)/D' --password-command 'echo one'"
        // The shell outlives the command: stopped processes of a group without a parent are ended by the kernel.
        let process = try Child(["/bin/bash", "-c", "'\(Program.path)' \(command); exec sleep 1000"])
        defer { process.terminate() }
        func words(_ id: pid_t) -> [String] {
            (contents(ofFile: "/proc/\(id)/cmdline") ?? []).split(separator: 0).map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        func child(of id: pid_t, _ isWanted: ([String]) -> Bool) -> pid_t? {
            let ids = String(
                decoding: contents(ofFile: "/proc/\(id)/task/\(id)/children") ?? [], as: UTF8.self)
            return ids.split(separator: " ").compactMap { pid_t($0) }.first { isWanted(words($0)) }
        }
        let shell = process.id
        var (importing, stretching) = (pid_t(0), pid_t(0))
        func residentMiB(_ id: pid_t) -> Int {
            let fields = String(decoding: contents(ofFile: "/proc/\(id)/statm") ?? [], as: UTF8.self)
            return (fields.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
                / 1_048_576
        }
        // Until it has taken the memory, and so is past its beginning.
        while stretching == 0, words(shell).first != "sleep" {
            guard let parent = child(of: shell, { $0.contains("import") }) else { continue }
            importing = parent
            stretching = child(of: parent) { $0 == ["obscura", "--stretch"] } ?? 0
            if residentMiB(stretching) < 96 { stretching = 0 }
        }
        #expect(residentMiB(importing) < 96)
        try #require(stretching != 0, "it was never seen")
        // Stopped it does not end by itself.
        kill(stretching, SIGSTOP)
        defer { kill(stretching, SIGKILL) }
        kill(importing, SIGKILL)
        #expect(eventually { words(stretching).isEmpty })
    }
}
