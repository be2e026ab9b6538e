import Foundation
import Glibc
import TestSupport

/// Plays a history in one vault by the built program, through mounts that any program could use.
final class ProgramPlayer {
    private let program: String
    private let root: String
    private let history: History
    private let world: World
    /// Photos by space, as DAY/NAME.
    private var photos: [Int: [String]] = [:]
    private var made = 0

    private var mountPoint: String { root + "/mount" }

    /// The program answered otherwise than it must.
    struct Refusal: Error { var words: String }

    init(_ program: String, _ root: String, _ history: History, _ world: World) {
        self.program = program
        self.root = root
        self.history = history
        self.world = world
    }

    func play() throws {
        try FileManager.default.createDirectory(atPath: mountPoint, withIntermediateDirectories: false)
        try makeSpaces()
        let last = history.sessions.count - 1
        for (number, session) in history.sessions.enumerated() {
            if let growth = history.growth, growth.session == number { try must(["grow", "vault", "20M"]) }
            if session.space == 0 || world == .hidden {
                try visit(session)
            } else if number == last {
                try mount(0)
                for photo in photos[0, default: []] { _ = try? bytes("moments/" + photo) }
                try unmount()
            }
        }
    }

    /// Ends whatever still runs for this vault.
    func leave() {
        while umount2(mountPoint, Int32(MNT_DETACH)) == 0 {}
        _ = eventually { isFree }
    }

    private func makeSpaces() throws {
        let isDecoyAdded = history.isDecoyAdded && world == .hidden
        let words = ["create", "vault", "--spaces=\(history.spaceCount)", "--size=16M"]
        let kdf = ["--kdf-memory=8M", "--kdf-passes=1", "--password-stdin"]
        let first = isDecoyAdded ? 1 : 0
        try must(words + kdf, "space \(first)\n")
        var present = [first]
        func add(_ space: Int) throws {
            let passwords = ([space] + present).map { "space \($0)\n" }.joined()
            try must(["space", "add", "vault", "--password-stdin"], passwords)
            present.append(space)
        }
        if isDecoyAdded { try add(0) }
        if world == .hidden {
            for space in 1..<history.usedCount where space != first { try add(space) }
        } else if history.hasDestroyed {
            try add(1)
            try must(["space", "remove", "vault", "--password-stdin"], "space 1\n")
        }
    }

    // MARK: Sessions

    private func visit(_ session: History.Session) throws {
        try mount(session.space)
        var generator = Generator(session.seed)
        for _ in 0..<session.actionCount {
            let (kind, number) = (Int.random(in: 0..<6, using: &generator), Int(generator.next() >> 33))
            switch kind {
            case 3: try write("albums/notes-\(number % 3).txt", noise(1 + number % 9000, seed: number))
            case 4:
                guard let photo = photos[session.space]?.popLast() else { continue }
                // Gone already where a kill has cost it.
                unlink("\(mountPoint)/moments/\(photo)")
            case 5: usleep(60_000)
            default: try addPhoto(session.space, number)
            }
        }
        if photos[session.space] == nil { try addPhoto(session.space, 7) }
        if case .unmount = session.ending { return try unmount() }
        usleep(120_000)
        if let daemon { kill(daemon, SIGKILL) }
        leave()
    }

    private func addPhoto(_ space: Int, _ number: Int) throws {
        made += 1
        let (name, day) = ("IMG_\(1000 + made).jpg", "2024-05-0\(1 + number % 5)")
        try write("albums/" + name, photoBytes(day, number))
        photos[space, default: []].append("\(day)/\(name)")
    }

    private func write(_ path: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(mountPoint)/\(path)"))
    }

    private func bytes(_ path: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: "\(mountPoint)/\(path)"))
    }

    private func mount(_ space: Int, _ options: [String] = []) throws {
        try must(["mount", "vault", "mount", "--password-stdin"] + options, "space \(space)\n")
    }

    private func unmount() throws {
        var ended = try run(["unmount", "mount"])
        for _ in 0..<20 where ended.words.contains("is using it") {
            usleep(100_000)
            ended = try run(["unmount", "mount"])
        }
        guard ended.status == 0, eventually({ isFree }) else { throw Refusal(words: ended.words) }
    }

    /// Whether nobody holds the vault's lock: a process that ends has no command line any more, but still its files.
    private var isFree: Bool {
        let header = open(root + "/vault/obscura.vault", O_RDONLY | O_CLOEXEC)
        guard header >= 0 else { return true }
        defer { close(header) }
        return flock(header, LOCK_EX | LOCK_NB) == 0
    }

    /// The process that serves the mount; nil where there is none.
    private var daemon: pid_t? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.first { process in
            let line = (try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(process)/cmdline"))) ?? Data()
            let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            return words.dropFirst().first == "--daemon" && words.last == mountPoint
        }
    }

    // MARK: Answers

    /// What the program says to whoever has the vault and the decoy's password.
    func addAnswers(_ sample: inout Sample) throws {
        sample.words["program: info"] = try run(["info", "vault"]).words
        func words(_ arguments: [String], _ input: String) throws -> String {
            let ended = try run(arguments + ["--password-stdin"], input)
            return "\(ended.status) \(ended.words)"
        }
        sample.words["program: mount, wrong password"] = try words(["mount", "vault", "mount"], "none\n")
        sample.words["program: space remove, wrong password"] = try words(
            ["space", "remove", "vault"], "none\n")
        sample.words["program: passwd, wrong password"] = try words(["passwd", "vault"], "none\nnew\n")
        // `check` verifies all that the password opens. Its report counts what is in the decoy, which commits by the
        // clock make a little different.
        sample.words["program: status of check"] = try words(["check", "vault"], "space 0\n")
            .split(separator: " ").first.map(String.init)
        try mount(0)
        defer { try? unmount() }
        sample.words["program: second mount"] = try words(["mount", "vault", "mount"], "space 0\n")
        sample.words["program: second mount, wrong password"] = try words(
            ["mount", "vault", "mount"], "none\n")
        sample.words["program: status of status"] = "\(try run(["status", "mount"]).status)"
        var found = statvfs()
        guard statvfs(mountPoint, &found) == 0 else { throw Refusal(words: "statvfs") }
        sample.add(.answers, "df: blocks", UInt64(found.f_blocks))
        sample.add(.answers, "df: free", UInt64(found.f_bfree))
        sample.add(.answers, "df: available", UInt64(found.f_bavail))
        sample.add(.answers, "df: files", UInt64(found.f_files))
    }

    // MARK: Processes

    private func must(_ words: [String], _ input: String = "") throws {
        let ended = try run(words, input)
        guard ended.status == 0 else { throw Refusal(words: "\(words): \(ended.words)") }
    }

    /// Runs the program to its end, without a terminal, where the vault lies.
    private func run(_ words: [String], _ input: String = "") throws -> (status: Int32, words: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setsid")
        process.arguments = ["--wait", program] + words
        process.currentDirectoryURL = URL(fileURLWithPath: root)
        process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TZ": "UTC", "LC_ALL": "C.UTF-8"]
        let (stdin, output) = (Pipe(), root + "/output")
        guard FileManager.default.createFile(atPath: output, contents: nil) else {
            throw Refusal(words: "no file can be made")
        }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
        (process.standardInput, process.standardOutput, process.standardError) = (stdin, file, file)
        try process.run()
        try? stdin.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try stdin.fileHandleForWriting.close()
        process.waitUntilExit()
        try file.close()
        let printed = String(decoding: try Data(contentsOf: URL(fileURLWithPath: output)), as: UTF8.self)
        // The path differs from vault to vault.
        return (process.terminationStatus, printed.replacingOccurrences(of: root, with: ""))
    }
}
