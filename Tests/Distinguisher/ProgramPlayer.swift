import CShims
import Foundation
import Glibc
import LinuxIO
import TestSupport

/// Plays a history by the built program, through mounts that any program could use.
final class ProgramPlayer: HistoryPlayer {
    /// The photos of a space.
    private struct Shelf {
        /// As DAY/NAME.
        var photos: [String] = []
        var made = 0
    }

    let history: History
    let world: World
    private let program: String
    private let root: String
    /// By space.
    private var shelves: [Int: Shelf] = [:]
    /// Whose password opens the decoy now.
    private var decoy = 0

    private var mountPoint: String { root + "/mount" }

    /// The program answered otherwise than it must.
    struct Refusal: Error { var words: String }

    init(_ program: String, _ root: String, _ history: History, _ world: World) {
        self.program = program
        self.root = root
        self.history = history
        self.world = world
    }

    /// Ends all processes of this vault.
    func leave() {
        while umount2(mountPoint, Int32(MNT_DETACH)) == 0 {}
        _ = eventually { isFree }
    }

    // MARK: Spaces

    func create(_ space: Int) throws {
        try FileManager.default.createDirectory(atPath: mountPoint, withIntermediateDirectories: false)
        let words = ["create", "vault", "--spaces=\(history.spaceCount)", "--size=16M"]
        try must(
            words + ["--kdf-memory=8M", "--kdf-passes=1", "--password-stdin"], Self.passwords(of: [space]))
    }

    func add(_ space: Int, surviving: [Int]) throws {
        try must(["space", "add", "vault", "--password-stdin"], Self.passwords(of: [space] + surviving))
    }

    func changePassword(_ old: Int, to new: Int) throws {
        try must(["passwd", "vault", "--password-stdin"], Self.passwords(of: [old, new]))
        decoy = new
    }

    func remove(_ space: Int) throws {
        shelves[space] = nil
        try must(["space", "remove", "vault", "--yes", "--password-stdin"], Self.passwords(of: [space]))
    }

    func grow(_ growth: History.Growth) throws { try must(["grow", "vault", "20M"]) }

    /// One a line.
    private static func passwords(of spaces: [Int]) -> String {
        spaces.map { "space \($0)\n" }.joined()
    }

    // MARK: Sessions

    func visit(_ session: History.Session) throws {
        try mount(session.space)
        var shelf = shelves[session.space, default: Shelf()]
        var generator = Generator(session.seed)
        for _ in 0..<session.actionCount {
            // Drawn first, so that the random numbers do not depend on the photos.
            let (kind, number) = (Int.random(in: 0..<6, using: &generator), Int(generator.next() >> 33))
            switch kind {
            case 3: try write("albums/notes-\(number % 3).txt", noise(1 + number % 9000, seed: number))
            case 4:
                // Gone already where a kill has cost it.
                if let photo = shelf.photos.popLast() { unlink("\(mountPoint)/moments/\(photo)") }
            case 5: try awaitCommit()
            default: try addPhoto(number, &shelf)
            }
        }
        if shelf.made == 0 { try addPhoto(7, &shelf) }
        shelves[session.space] = shelf
        try end(session.ending)
    }

    private func end(_ ending: History.Ending) throws {
        if case .unmount = ending { return try unmount() }
        // Committed files survive: both vaults of a pair shall hold the same.
        try awaitCommit()
        if let daemon { kill(daemon, SIGKILL) }
        leave()
    }

    func look(_ session: History.Session) throws {
        try mount(0)
        for photo in shelves[0]?.photos ?? [] { _ = try? bytes("moments/" + photo) }
        try end(session.ending)
    }

    private func addPhoto(_ number: Int, _ shelf: inout Shelf) throws {
        shelf.made += 1
        let (name, day) = ("IMG_\(1000 + shelf.made).jpg", "2024-05-0\(1 + number % 5)")
        try write("albums/" + name, photoBytes(day, number))
        shelf.photos.append("\(day)/\(name)")
    }

    /// Waits until a kill would cost nothing.
    private func awaitCommit() throws {
        let isCommitted = try eventually {
            let root = open(mountPoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            defer { close(root) }
            var answer = [UInt8](repeating: 0, count: 4096)
            let count = obscura_get_attribute(root, "user.obscura.status", &answer, UInt(answer.count))
            guard count >= 0 else { throw Refusal(words: "user.obscura.status: \(errno)") }
            return String(decoding: answer[..<Int(count)], as: UTF8.self).contains("committed=yes\n")
        }
        guard isCommitted else { throw Refusal(words: "nothing is committed") }
    }

    private func write(_ path: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(mountPoint)/\(path)"))
    }

    private func bytes(_ path: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: "\(mountPoint)/\(path)"))
    }

    private func mount(_ space: Int, _ options: [String] = []) throws {
        try must(
            ["mount", "vault", "mount", "--password-stdin"] + options,
            Self.passwords(of: [space == 0 ? decoy : space]))
    }

    private func unmount() throws {
        let ended = try run(["unmount", "mount"])
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
            let line = contents(ofFile: "/proc/\(process)/cmdline") ?? []
            let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            return words.dropFirst().first == "--daemon" && words.last == mountPoint
        }
    }

    // MARK: Answers

    /// The program's answers with the vault and the decoy's password.
    func addAnswers(_ sample: inout Sample) throws {
        sample.words["program: info"] = try run(["info", "vault"]).words
        func words(_ arguments: [String], _ input: String) throws -> String {
            let ended = try run(arguments + ["--password-stdin"], input)
            return "\(ended.status) \(ended.words)"
        }
        // A program that another thread starts may have the vault's lock until it is a program of its own.
        func refusal(_ arguments: [String], _ input: String) throws -> String {
            var answer = ""
            try eventually {
                answer = try words(arguments, input)
                return !answer.hasPrefix("5 ")
            }
            return answer
        }
        sample.words["program: mount, wrong password"] = try refusal(["mount", "vault", "mount"], "none\n")
        sample.words["program: space remove, wrong password"] = try refusal(
            ["space", "remove", "vault", "--yes"], "none\n")
        sample.words["program: passwd, wrong password"] = try refusal(["passwd", "vault"], "none\nnew\n")
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
        let ended = try Child(
            [program] + words, environment: Child.plainEnvironment, directory: root, input: .text(input),
            output: .collected, errors: .collected, asSession: true
        ).finish()
        // The path differs from vault to vault.
        return (ended.status, (ended.output + ended.errors).replacingOccurrences(of: root, with: ""))
    }
}
