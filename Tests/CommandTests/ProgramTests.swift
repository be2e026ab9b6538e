import Foundation
import Glibc
import HostFiles
import LinuxIO
import TestSupport
import TestThreads
import Testing

@testable import obscura

/// The built program, run as a user runs it but without a terminal.
struct Program {
    let status: Int32
    let output: String
    let errors: String

    /// The program.
    static let path = builtProgram("obscura")

    /// - Parameter input: standard input.
    init(_ words: [String], in directory: String, input: String = "", as name: String? = nil) throws {
        let program = try Child(
            [name ?? Self.path] + words, directory: directory, input: .text(input), output: .collected,
            errors: .collected, asSession: true)
        let ended = try program.finish(isAlone: true)
        (status, output, errors) = (ended.status, ended.output, ended.errors)
    }
}

/// A directory with room for a vault V and a mount point D, neither mounted nor there when this is gone.
final class CommandPlace {
    let path = "/tmp/obscura-command-\(UUID().uuidString)"

    init() throws {
        try FileManager.default.createDirectory(atPath: path + "/D", withIntermediateDirectories: true)
        // Copies of the mount in private sessions of other tests then go with it, and do not hold it.
        if geteuid() == 0 {
            try #require(Glibc.mount(path, path, nil, UInt(MS_BIND), nil) == 0)
            try #require(Glibc.mount(nil, path, nil, UInt(MS_SHARED), nil) == 0)
        }
    }

    deinit {
        umount2(path + "/D", Int32(MNT_DETACH))
        if geteuid() == 0 { _ = umount2(path, Int32(MNT_DETACH)) }
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Runs the program with these words.
    func run(_ words: [String], input: String = "") throws -> Program {
        try Program(words, in: path, input: input)
    }
}

@Suite("Commands: the whole program", .serialized, .waiting) struct ProgramTests {
    private let place: CommandPlace
    private var directory: String { place.path }

    init() throws {
        place = try CommandPlace()
    }

    private func run(_ words: String..., input: String = "") throws -> Program {
        try place.run(words, input: input)
    }

    /// A vault of quick key derivation, with one space whose password is "one".
    private func makeVault(spaces: Int = 2) throws {
        let size = spaces == 1 ? [] : ["--size=48M"]
        let words = [
            "create", "V", "--spaces=\(spaces)", "--kdf-memory=8M", "--kdf-passes=1", "--password-stdin",
        ]
        let made = try Program(words + size, in: directory, input: "one\n")
        #expect(made.status == 0)
        #expect(made.errors.contains("forgotten password means lost photos"))
    }

    /// The process that serves the mount at D; nil where there is none.
    private func daemon() -> pid_t? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.first { process in
            let line = contents(ofFile: "/proc/\(process)/cmdline") ?? []
            let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            return words.dropFirst().first == "--daemon" && words.last == directory + "/D"
        }
    }

    @Test func `version and help are on standard output`() throws {
        #expect(try run("--version").output == "obscura \(programVersion)\n")
        for words in [["--help"], ["mount", "--help"], ["space", "--help"]] {
            let program = try Program(words, in: directory)
            #expect(
                program.status == 0 && program.output.hasPrefix("usage: obscura") && program.errors.isEmpty)
        }
    }

    @Test func `a result that cannot be written is a failure`() throws {
        try makeVault(spaces: 1)
        let program = Program.path
        func shell(_ text: String) throws -> Ended {
            try Child(["/bin/sh", "-c", text], directory: directory, output: .collected, errors: .collected)
                .finish()
        }
        for words in ["info V", "--help", "check V --password-command 'echo one'"] {
            let ended = try shell("\(program) \(words) >/dev/full")
            #expect(ended.status == 1, "\(words)")
            #expect(
                ended.errors == "obscura: standard output: writing the result: No space left on device\n",
                "\(words): \(ended.errors)")
        }
        // No file of the vault takes the place of a closed stream.
        try Data(noise(5000, seed: 1)).write(to: URL(fileURLWithPath: directory + "/notes"))
        let imported = try shell("\(program) import V notes --password-command 'echo one' <&- >&-")
        #expect(imported.status == 1, "\(imported.errors)")
        #expect(try shell("\(program) import V notes --password-command 'echo one' >&- 2>&-").status == 1)
        #expect(try run("check", "V", "--password-stdin", input: "one\n").status == 0)
        // A reader that has read enough.
        #expect(try shell("\(program) --help | head -1").errors == "")
    }

    @Test func `alone it shows how it is used`() throws {
        let alone = try run()
        #expect(alone.status == 2)
        #expect(alone.errors == helpText() + "\n")
        #expect(alone.output.isEmpty)
    }

    @Test func `every failure is one line and a status`() throws {
        try makeVault()
        let cases: [([String], String, Int32)] = [
            (["frob"], "", 2),
            (["info", "nowhere"], "", 3),
            (["mount", "nowhere", "D", "--password-stdin"], "one\n", 3),
            (["mount", "V", "D"], "", 2),
            (["mount", "V", "D", "--password-stdin"], "\n", 2),
            (["mount", "V", "V", "--password-stdin"], "one\n", 2),
            (["mount", "V", ".", "--password-stdin"], "one\n", 2),
            (["mount", "V", "D", "-o", "thumbs=some", "--password-stdin"], "one\n", 2),
            (["mount", "V", "D", "--size=1G", "--password-stdin"], "one\n", 2),
            (["create", "V2", "--password-stdin"], "one\n", 2),
            (["create", "V", "--size=48M", "--password-stdin"], "one\n", 1),
            (["passwd", "V", "--password-stdin"], "two\nthree\n", 4),
            (["space", "remove", "V", "--yes", "--password-stdin"], "two\n", 4),
            (["space", "add", "V", "--password-stdin"], "one\none\n", 1),
            (["space", "add", "V", "--password-stdin"], "two\nthree\n", 4),
            (["grow", "V", "1Q"], "", 2),
            (["grow", "V", "1M"], "", 2),
            (["unmount", "D"], "", 1),
            (["unmount", "V"], "", 1),
            (["unmount", "/proc"], "", 1),
        ]
        for (words, input, status) in cases {
            let program = try Program(words, in: directory, input: input)
            #expect(program.status == status, "\(words): \(program.errors)")
            #expect(program.errors.hasPrefix("obscura: ") && program.errors.split(separator: "\n").count == 1)
            #expect(program.output.isEmpty)
        }
    }

    @Test func `passwords are changed, added and removed`() throws {
        try makeVault()
        #expect(try run("passwd", "V", "--password-stdin", input: "one\ntwo\n").status == 0)
        #expect(try run("passwd", "V", "--password-stdin", input: "one\ntwo\n").status == 4)
        #expect(try run("space", "add", "V", "--password-stdin", input: "three\ntwo\n").status == 0)
        #expect(try run("space", "add", "V", "--password-stdin", input: "four\ntwo\nthree\n").status == 7)
        #expect(try run("passwd", "V", "--password-stdin", input: "three\ntwo\n").status == 1)
        #expect(try run("space", "remove", "V", "--yes", "--password-stdin", input: "three\n").status == 0)
        #expect(try run("space", "remove", "V", "--yes", "--password-stdin", input: "three\n").status == 4)
        #expect(try run("grow", "V", "96M").status == 0)
        let info = try run("info", "V")
        #expect(info.status == 0 && info.output.contains("96 MiB"))
    }

    @Test func `mounts in the background and unmounts`() throws {
        try makeVault()
        let mounted = try run("mount", "V", "D", "--password-stdin", "-o", "ro,idle=1h", input: "one\n")
        #expect(mounted.status == 0 && mounted.errors.isEmpty && mounted.output.isEmpty)
        #expect(mountEntry(at: realPath(directory + "/D"))?.isObscura == true)
        #expect(daemon() != nil)
        #expect(try run("mount", "V", "D", "--password-stdin", input: "one\n").status == 5)
        #expect(try run("passwd", "V", "--password-stdin", input: "one\ntwo\n").status == 5)

        let descriptor = open(directory + "/D", O_RDONLY)
        // A program that another test is about to start has copies of this descriptor for a moment, and may be named.
        #expect(
            eventually {
                guard let busy = try? run("unmount", "D"), busy.status == 1 else { return false }
                return busy.errors.contains("(process \(getpid())) is using it")
            })
        close(descriptor)
        #expect(try run("unmount", "D").status == 0)
        #expect(daemon() == nil)
        #expect(mountEntry(at: realPath(directory + "/D")) == nil)
        #expect(try run("mount", "V", "D", "--password-stdin", input: "wrong\n").status == 4)
    }

    @Test func `mount --create makes the vault and the directory`() throws {
        let options = ["--spaces=1", "--kdf-memory=8M", "--kdf-passes=1", "--password-stdin"]
        let words = ["mount", "--create", "V", "New"]
        #expect(try Program(words + options, in: directory, input: "one\n").status == 0)
        #expect(try run("unmount", "New").status == 0)
        #expect(try Program(words + options, in: directory, input: "one\n").status == 0)
        #expect(try run("unmount", "New").status == 0)
        #expect(try Program(words + options, in: directory, input: "two\n").status == 4)
    }

    /// A vault that is mounted by nobody any more.
    private func makeDeadMount() throws {
        try makeVault(spaces: 1)
        #expect(try run("mount", "V", "D", "--password-stdin", input: "one\n").status == 0)
        kill(try #require(daemon()), SIGKILL)
        // Signals are not waited for by their sender.
        #expect(eventually { !isAnswered })
    }

    private var isAnswered: Bool {
        var usage = statvfs()
        return statvfs(directory + "/D", &usage) == 0
    }

    @Test func `clears a dead mount away and says so`() throws {
        try makeDeadMount()
        let again = try run("mount", "V", "D", "--password-stdin", input: "one\n")
        #expect(again.status == 0 && again.errors.contains("a dead mount was left here"), "\(again.errors)")
        #expect(try run("unmount", "D").status == 0)
    }

    /// A killed daemon may hold its vault a moment longer than its mount.
    @Test func `waits for a vault whose daemon is ending`() throws {
        try makeDeadMount()
        // Holds the vault as the daemon did.
        let header = open(directory + "/V/obscura.vault", O_RDWR | O_CLOEXEC)
        defer { close(header) }
        #expect(eventually { flock(header, LOCK_EX | LOCK_NB) == 0 })
        let opened = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        defer { close(opened) }
        #expect(inotify_add_watch(opened, directory + "/V/obscura.vault", UInt32(IN_OPEN)) >= 0)
        let mounting = try Child(
            [Program.path, "mount", "V", "D", "--password-stdin"], directory: directory,
            input: .text("one\n"), errors: .collected)
        #expect(eventually { isAnswered })
        // The mount point is free again. One try opens the header three times, and without patience the program then
        // ends with 5. Events that are not read at once become one.
        var events = 0
        var buffer = [UInt8](repeating: 0, count: 4096)
        try #require(
            eventually {
                // An event of a file has no name, and so the size of the structure.
                events += max(0, read(opened, &buffer, buffer.count)) / MemoryLayout<inotify_event>.size
                return events > 3
            })
        flock(header, LOCK_UN)
        #expect(try mounting.finish().status == 0)
        #expect(try run("unmount", "D").status == 0)
    }

    @Test func `the foreground ends with a signal, unmounted`() throws {
        try makeVault(spaces: 1)
        let process = try Child(
            [
                Program.path, "mount", "-f", directory + "/V", directory + "/D", "--password-command",
                "echo one",
            ], errors: .collected)
        let place = realPath(directory) + "/D"
        while mountEntry(at: place) == nil && process.isRunning { usleep(10_000) }
        // Answered by the mount itself: from here on a signal finds it ready.
        var usage = statvfs()
        #expect(statvfs(place, &usage) == 0)
        let command = contents(ofFile: "/proc/\(process.id)/cmdline") ?? []
        #expect(command.split(separator: 0).last.map(Array.init) == Array("\(directory)/D".utf8))
        process.kill(SIGINT)
        #expect(process.wait() == .exited(0), "\(process.errors?.present() ?? "")")
        #expect(mountEntry(at: place) == nil)
    }

    @Test func `serves mount(8) under its other names`() throws {
        try makeVault(spaces: 1)
        for name in mountHelperNames {
            let link = directory + "/" + name
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: Program.path)
            let options = ["-o", "rw,user,nofail,_netdev,x-gvfs-notrash,askpass=echo one"]
            let words = [directory + "/V", directory + "/D"]
            #expect(try Program(words + options, in: "/", as: link).status == 0)
            #expect(try run("unmount", "D").status == 0)
            let unasked = try Program(words, in: "/", as: link)
            #expect(unasked.status == 2 && unasked.errors.contains("passfile="))
            #expect(try Program(words + ["-f"] + options, in: "/", as: link).status == 0)
            #expect(mountEntry(at: realPath(directory) + "/D") == nil)
        }
    }
}
