import Testing
import VaultCrypto
import VaultStore

@testable import obscura

@Suite("Commands: words of the command line") struct ArgumentsTests {
    private func parsed(_ words: String...) throws -> Arguments {
        guard case .run(let arguments) = try parseArguments(words) else {
            throw Failure(.failed, "test", "not a command")
        }
        return arguments
    }

    @Test func `takes values after a space, an equals sign or at once`() throws {
        let arguments = try parsed(
            "mount", "--size", "4G", "V", "--spaces=3", "-oro", "D", "-o", "idle=1m", "-f")
        #expect(arguments.command == .mount)
        #expect(arguments.operands == ["V", "D"])
        #expect(arguments[.size] == "4G")
        #expect(arguments[.spaces] == "3")
        #expect(arguments.all(.mountOptions) == ["ro", "idle=1m"])
        #expect(arguments.has(.foreground))
        #expect(!arguments.has(.create))
    }

    @Test func `takes values that look like options or are empty`() throws {
        #expect(try parsed("info", "--", "--help").operands == ["--help"])
        #expect(try parsed("passwd", "V", "--password-command", "--x")[.passwordCommand] == "--x")
        #expect(try parsed("passwd", "V", "--password-command=a=b")[.passwordCommand] == "a=b")
        #expect(try parsed("passwd", "V", "--password-file=")[.passwordFile] == "")
        #expect(try parsed("mount", "-fo", "ro", "V", "D").all(.mountOptions) == ["ro"])
        #expect(try parsed("info", "-").operands == ["-"])
    }

    @Test func `an operand that may be left out`() throws {
        #expect(try parsed("status").operands == [])
        #expect(try parsed("status", "D").operands == ["D"])
        #expect(throws: Failure.self) { try parsed("status", "D", "E") }
        #expect(throws: Failure.self) { try parsed("check") }
        #expect(Command.status.synopsis == "status [DIR] [--json]")
        #expect(Command.check.synopsis == "check VAULT|DIR [--repair] [--verbose] [--json]")
    }

    @Test func `the last of a repeated option counts`() throws {
        #expect(try parsed("create", "V", "--spaces=2", "--spaces=4")[.spaces] == "4")
    }

    @Test func `knows commands of two words`() throws {
        #expect(try parsed("space", "add", "V").command == .spaceAdd)
        #expect(try parsed("space", "remove", "V").command == .spaceRemove)
    }

    @Test func `asks for help and version`() throws {
        #expect(try parseArguments(["--help"]) == .help(nil))
        #expect(try parseArguments(["-h"]) == .help(nil))
        for word in ["--version", "-V", "version"] { #expect(try parseArguments([word]) == .version) }
        #expect(try parseArguments([]) == .usage)
        #expect(try parseArguments(["space", "--help"]) == .help(nil))
        for words in [["help"], ["help", "space"]] { #expect(try parseArguments(words) == .help(nil)) }
        for command in Command.all {
            let words = command.words
            #expect(try parseArguments(words + ["--help"]) == .help(command))
            #expect(try parseArguments(words + ["-h"]) == .help(command))
            #expect(try parseArguments(["help"] + words) == .help(command))
            #expect(helpText(command).contains("usage: obscura \(command.name)"))
            #expect(helpText().contains("  \(command.name) "))
            if command.tail == .optional { #expect(helpText().contains("  \(command.name) [")) }
        }
    }

    /// A terminal of 80 columns does not break lines, and no word is broken.
    @Test func `no help is wider than a terminal`() {
        for text in Command.all.map({ helpText($0) }) + [helpText()] {
            for line in text.split(separator: "\n") { #expect(line.count <= helpColumnsMax, "\(line)") }
        }
        #expect(wrapped("usage: a bb ccc", hanging: 2) == "usage: a bb ccc")
        let words = String(repeating: "word ", count: 40)
        #expect(wrapped(words, hanging: 3).split(whereSeparator: \.isWhitespace).allSatisfy { $0 == "word" })
        let long = String(repeating: "x", count: 100)
        #expect(wrapped("a \(long) b", hanging: 1) == "a\n \(long)\n b")
    }

    /// Words of other programs.
    @Test(arguments: [
        ("ls", ["status"]), ("list", ["status", "trash"]), ("open", ["mount"]), ("init", ["create"]),
        ("resize", ["grow"]), ("restore", ["trash", "header restore", "export"]), ("lock", ["unmount"]),
        ("umount", ["unmount"]), ("fsck", ["check"]), ("Unlock", ["mount"]),
        ("add", ["import", "space add"]), ("encrypt", ["create"]), ("exit", ["unmount"]),
        ("snapshot", ["backup"]),
        ("cp", ["import", "export"]), ("send", ["receive"]), ("users", ["space add"]), ("key", ["passwd"]),
        ("view", ["mount"]), ("purge", ["trash"]), ("size", ["status", "grow"]), ("usage", ["status"]),
    ])
    func `words of other programs are understood`(word: String, commands: [String]) {
        let failure = #expect(throws: Failure.self) { try parseArguments([word, "V"]) }
        for command in commands { #expect(failure?.why.contains("obscura \(command)") == true, "\(word)") }
    }

    @Test func `no word of other programs is a command`() {
        let words = Set(Command.all.flatMap { [$0.name, $0.words[0]] })
        for command in Command.all {
            #expect(words.isDisjoint(with: command.alsoTyped), "\(command.name)")
            let options = Set(command.options.map(\.spelling))
            for option in command.options {
                #expect(options.isDisjoint(with: option.alsoTyped), "\(option.name)")
            }
        }
    }

    @Test(arguments: [
        (["mont", "V"], "obscura: mont: unknown command: the nearest is mount (obscura --help lists them)"),
        (["spce"], "obscura: spce: unknown command: the nearest is space (obscura --help lists them)"),
        (["hlep"], "obscura: hlep: unknown command: the nearest is help (obscura --help lists them)"),
        (
            ["mounting"],
            "obscura: mounting: unknown command: the nearest is mount (obscura --help lists them)"
        ),
        (
            ["nonsense", "V"],
            "obscura: nonsense: unknown command: the nearest is create (obscura --help lists them)"
        ),
        (["verfy", "V"], "obscura: verfy: unknown command: did you mean obscura check?"),
        (
            ["help", "nonsense"],
            "obscura: nonsense: unknown command: the nearest is create (obscura --help lists them)"
        ),
        (["help", "open"], "obscura: open: unknown command: did you mean obscura help mount?"),
        (["help", "unlcok"], "obscura: unlcok: unknown command: did you mean obscura help mount?"),
        (["space", "wash", "V"], "obscura: space wash: unknown command: the nearest is space add"),
        ([""], "obscura: command: is empty: obscura --help lists all commands"),
        (
            ["-o", "ro", "mount"],
            "obscura: -o: options come after a command: obscura mount -o (obscura --help lists all)"
        ),
        (["space"], "obscura: space: add or remove? see obscura --help"),
        (["space", "ad", "V"], "obscura: space ad: unknown command: the nearest is space add"),
        (["--versoin"], "obscura: --versoin: unknown option here: the nearest is --version"),
        (["create", "V", "--sise=1"], "obscura: --sise: unknown option of create: the nearest is --size"),
        (["info", "V", "--size=1"], "obscura: --size: unknown option of info: the nearest is --json"),
        (
            ["mount", "V", "D", "--password=x"],
            "obscura: --password: unknown option of mount: the nearest is --password-stdin"
        ),
        (
            ["unmount", "D", "--force"],
            "obscura: --force: unknown option of unmount: the nearest is --discard"
        ),
        (["info", "V", "-x"], "obscura: -x: unknown option of info: the nearest is --json"),
        (["mount", "V", "D", "--o=ro"], "obscura: --o: unknown option of mount: the nearest is -o"),
        (["create", "V", "--size"], "obscura: --size: needs a value: --size SIZE"),
        (["mount", "V", "D", "--create=1"], "obscura: --create: takes no value"),
        (["unmount"], "obscura: unmount: DIR is missing: obscura unmount DIR [--discard] [--end]"),
        (["unmount", "a", "b"], "obscura: b: one word too many: obscura unmount DIR [--discard] [--end]"),
        (["grow", "V", ""], "obscura: grow: SIZE is empty: name one"),
        (
            ["mount", "V"],
            "obscura: mount: DIR is missing: obscura mount VAULT DIR [-o OPT,...] [-f] [--remember] [--create ...]"
        ),
    ])
    func `unknown words are refused`(words: [String], line: String) {
        let failure = #expect(throws: Failure.self) { try parseArguments(words) }
        #expect(failure?.line == line)
        #expect(failure?.status == .usage)
    }

    @Test func `settings of a new vault`() throws {
        let given = try CreateSettings(
            parsed("create", "V", "--spaces=8", "--size=2G", "--kdf-memory", "8M", "--kdf-passes=1"))
        #expect(given.spaces == 8)
        #expect(given.bytesPerSpace == 2 << 30)
        #expect(given.kdf.memoryBytes == 8 << 20)
        #expect(given.kdf.passes == 1)
        let standard = try CreateSettings(parsed("create", "V"))
        #expect(standard.spaces == 2)
        #expect(standard.bytesPerSpace == nil)
        #expect(standard.kdf.memoryBytes == 256 << 20)
    }

    @Test(arguments: [
        "--spaces=0", "--spaces=9", "--spaces=two", "--spaces=+2", "--size=0", "--size=1X", "--size=",
        "--kdf-memory=7M", "--kdf-memory=449M", "--kdf-passes=0", "--kdf-passes=65",
        "--kdf-passes=4294967296", "--kdf-passes=-1",
    ])
    func `invalid settings are refused`(option: String) throws {
        let arguments = try parsed("create", "V", option)
        let failure = #expect(throws: Failure.self) { try CreateSettings(arguments) }
        #expect(failure?.status == .usage)
    }
}
