import Foundation
import Glibc
import Testing
import VaultCrypto

@testable import obscura

extension SecretBytes {
    /// Only tests look at a password.
    fileprivate var bytes: [UInt8] { withUnsafeBytes { [UInt8]($0) } }
}

@Suite("Passwords: sources") final class PasswordTests {
    private let directory: String

    init() throws {
        directory = NSTemporaryDirectory() + "/obscura-passwords-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// A file of the owner's alone with these bytes.
    private func file(_ text: String, mode: mode_t = 0o600) throws -> String {
        let path = "\(directory)/\(UUID().uuidString)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        chmod(path, mode)
        return path
    }

    private func source(_ text: String) throws -> PasswordSource {
        .file(try file(text), option: "--password-file")
    }

    private func status(of body: () throws -> Void) -> obscura.ExitStatus? {
        do {
            try body()
            return nil
        } catch { return (error as? Failure)?.status }
    }

    @Test(arguments: [
        ("secret\n", "secret"), ("secret", "secret"), (" a b \r\n", " a b \r"), ("päß\nsecond\n", "päß"),
        ("nul\0inside\n", "nul\0inside"),
    ])
    func `drops the newline and nothing else`(text: String, password: String) throws {
        #expect(try Passwords(source: source(text)).toOpen("V").bytes == Array(password.utf8))
    }

    @Test(arguments: ["", "\n", "\nsecond\n"]) func `refuses an empty password`(text: String) throws {
        let source = try source(text)
        #expect(status { _ = try Passwords(source: source).toOpen("V") } == .usage)
        #expect(status { _ = try Passwords(source: source).toCreate("V") } == .usage)
    }

    @Test func `takes one password a line`() throws {
        let (old, new) = try Passwords(source: source("old\nnew")).toChange("V")
        #expect(old.bytes == Array("old".utf8) && new.bytes == Array("new".utf8))
        let added = try Passwords(source: source("new\na\nb\n")).toAdd("V")
        #expect(added.new.bytes == Array("new".utf8))
        #expect(added.surviving.map(\.bytes) == [Array("a".utf8), Array("b".utf8)])
        #expect(try Passwords(source: source("new\n")).toAdd("V").surviving.isEmpty)
    }

    @Test func `misses a password`() throws {
        let (one, gap) = (try source("old\n"), try source("new\n\na\n"))
        #expect(status { _ = try Passwords(source: one).toChange("V") } == .usage)
        #expect(status { _ = try Passwords(source: gap).toAdd("V") } == .usage)
        let many = try source(String(repeating: "x\n", count: 10))
        #expect(status { _ = try Passwords(source: many).toAdd("V") } == .usage)
    }

    @Test func `knows the longest password`() throws {
        let longest = String(repeating: "x", count: passwordBytesMax)
        #expect(try Passwords(source: source(longest + "\n")).toOpen("V").count == passwordBytesMax)
        let longer = try source(longest + "x\n")
        #expect(status { _ = try Passwords(source: longer).toOpen("V") } == .usage)
    }

    @Test(arguments: [0o640, 0o604, 0o644, 0o666] as [mode_t]) func `refuses a file that others may read`(
        mode: mode_t
    ) throws {
        let path = try file("secret\n", mode: mode)
        let failure = #expect(throws: Failure.self) {
            try Passwords(source: .file(path, option: "--password-file")).toOpen("V")
        }
        #expect(failure?.status == .failed)
        #expect(failure?.why.contains("chmod 600") == true)
    }

    @Test func `a missing file is a failure`() {
        #expect(
            status { _ = try Passwords(source: .file("/nowhere", option: "passfile")).toOpen("V") } == .failed
        )
    }

    @Test func `runs a command`() throws {
        let twoLines = PasswordSource.shellCommand("printf 'a\\nb\\n'", option: "askpass")
        #expect(try Passwords(source: twoLines).toOpen("V").bytes == [97])
        let endless = PasswordSource.shellCommand("yes", option: "askpass")
        #expect(
            try Passwords(source: .shellCommand("echo x; exit 0", option: "askpass")).toOpen("V").bytes == [
                120
            ])
        let failing = PasswordSource.shellCommand("echo x; exit 3", option: "askpass")
        #expect(
            throws: Failure(.failed, "askpass", "the command ended with status 3: run it by hand to see why")
        ) {
            try Passwords(source: failing).toOpen("V")
        }
        let silent = PasswordSource.shellCommand("exit 4", option: "askpass")
        #expect(
            throws: Failure(.failed, "askpass", "the command ended with status 4: run it by hand to see why")
        ) {
            try Passwords(source: silent).toOpen("V")
        }
        #expect(try Passwords(source: endless).toOpen("V").bytes == [121])
    }

    @Test func `leaves the rest of a descriptor to the next reader`() throws {
        let descriptor = open(try file("first\nsecond\n"), O_RDONLY)
        defer { close(descriptor) }
        #expect(try Passwords(source: .descriptor(descriptor)).toOpen("V").bytes == Array("first".utf8))
        #expect(try Passwords(source: .descriptor(descriptor)).toOpen("V").bytes == Array("second".utf8))
    }

    @Test func `sources come in the documented order`() throws {
        func chosen(_ words: String...) throws -> PasswordSource? {
            guard case .run(let arguments) = try parseArguments(["passwd", "V"] + words) else { return nil }
            return try PasswordSource(arguments)
        }
        let all = ["--password-stdin", "--password-command=c", "--password-file=f", "--password-fd=0"]
        #expect(try chosen(all[0], all[1], all[2], all[3]) == .descriptor(0))
        #expect(try chosen(all[0], all[1], all[2]) == .file("f", option: "--password-file"))
        #expect(try chosen(all[0], all[1]) == .shellCommand("c", option: "--password-command"))
        #expect(try chosen(all[0]) == .standardInput)
        #expect(try chosen() == nil)
        #expect(throws: Failure.self) { try chosen("--password-fd=987") }
        #expect(throws: Failure.self) { try chosen("--password-fd=x") }
    }
}
