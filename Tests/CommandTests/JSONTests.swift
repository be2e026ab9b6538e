import Encodings
import Foundation
import Glibc
import HostFiles
import TestSupport
import TestThreads
import Testing

@testable import FileRequests
@testable import obscura

/// The values that `--json` prints.
@Suite("Commands: JSON, values") struct JSONTests {
    @Test func `values are written as JSON has them`() {
        let value = JSON.object([
            ("a", .null), ("b", .list([.bool(true), .number(.max), .count(-1)])), ("c\"", .object([])),
            ("d", .optional(nil)), ("e", .optional("\u{1B}é\u{9B}\n\\")),
        ])
        #expect(
            value.line == #"{"a": null, "b": [true, 18446744073709551615, 0], "c\"": {}, "d": null, "#
                + #""e": "\u001bé\u009b\u000a\\"}"#)
    }

    /// Every path can be told from every other, and most look as they are.
    @Test(arguments: [
        ("IMG 1 – é.jpg", "IMG 1 – é.jpg"), ("a\\b", #"a\\b"#), ("\\xff", #"\\xff"#),
    ])
    func `paths that are UTF-8`(path: String, text: String) throws {
        #expect(try decoded(.path(path)) == text)
    }

    @Test func `paths that are not UTF-8`() throws {
        for (bytes, text) in [
            ([0x61, 0xFF, 0x62], #"a\xffb"#), ([0xC3], #"\xc3"#), ([0xE2, 0x82, 0x41], #"\xe2\x82A"#),
            // A surrogate, and an overlong slash.
            ([0xED, 0xA0, 0x80], #"\xed\xa0\x80"#), ([0xC0, 0xAF, 0x0A], "\\xc0\\xaf\n"), ([], ""),
        ] as [([UInt8], String)] {
            #expect(try decoded(.path(bytes)) == text)
        }
    }

    private func decoded(_ value: JSON) throws -> String? {
        let line = JSON.object([("path", value)]).line
        #expect(!line.contains("\n"))
        return (try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String])?["path"]
    }

    /// Names in an answer of a mount may hold anything; an older mount tells no kinds, a cut answer not all of them.
    @Test func `findings of a mount`() {
        let answer = [
            ("cursor", ""), ("damage", "a: b"), ("damage", "c"), ("damage", "d"), ("kind", "file"),
            ("path", "61ff0a"), ("path", "6"), ("path", "zz"), ("path", "62"), ("kind", "strange"),
        ]
        #expect(
            answeredFindings(answer) == [
                CheckFinding(kind: "file", paths: [[0x61, 0xFF, 0x0A], [0x62]], text: "a: b"),
                CheckFinding(kind: "space", text: "c"), CheckFinding(kind: "space", text: "d"),
            ])
        #expect(answeredFindings([("path", "61"), ("kind", "file")]).isEmpty)
    }
}

/// `--json` of whole commands.
@Suite("Commands: JSON, whole commands", .serialized, .waiting) struct JSONCommandTests {
    private let place: CommandPlace

    init() throws {
        place = try CommandPlace()
        let made = try place.run(
            ["create", "V", "--spaces=1", "--kdf-memory=8M", "--kdf-passes=1", "--password-stdin"],
            input: "one\n")
        #expect(made.status == 0)
    }

    /// - Parameter bytes: the name's, in the directory of sources.
    private func source(_ name: [UInt8], _ text: [UInt8]) throws {
        try FileManager.default.createDirectory(
            atPath: place.path + "/in", withIntermediateDirectories: true)
        let file = try HostPath(place.path + "/in/").appending(Name(name)).open(
            O_WRONLY | O_CREAT, mode: 0o600)
        defer { close(file) }
        #expect(write(file, text, text.count) == text.count)
    }

    /// Runs a command with `--json`, and checks that its errors are one line or none.
    private func object(_ words: String..., status: Int32 = 0) throws -> [String: Any] {
        let ended = try place.run(words + ["--json", "--password-stdin"], input: "one\n")
        #expect(ended.status == status, "\(ended.errors)")
        let errors = ended.errors.split(separator: "\n")
        #expect(errors.count == (status == 0 ? 0 : 1) && errors.allSatisfy { $0.hasPrefix("obscura: ") })
        return try parsed(ended)
    }

    private func parsed(_ ended: Program) throws -> [String: Any] {
        #expect(ended.output.hasSuffix("}\n") && ended.output.split(separator: "\n").count == 1)
        return try #require(
            try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any])
    }

    /// A picture of one pixel, and bytes that tell it from others.
    private func picture(_ tail: String) -> [UInt8] {
        let gif: [UInt8] = [
            0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255, 0x2C, 0, 0, 0,
            0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B,
        ]
        return gif + Array(tail.utf8)
    }

    @Test func `import and export tell what they did, and what they left out`() throws {
        try source(Array("a.gif".utf8), picture("a"))
        try source([0x62, 0xFF, 0x5C, 0x0A], picture("b"))
        try source(Array("notes.txt".utf8), Array("notes".utf8))
        let directory = place.path + "/in/"
        let dry = try object("import", "V", "in", "--dry-run")
        #expect(dry["dry_run"] as? Bool == true && dry["photos"] as? Int == 2)
        let first = try object("import", "V", "in", "nowhere", status: 1)
        #expect(first["complete"] as? Bool == false && first["photos"] as? Int == 2)
        #expect(first["bytes"] as? Int == picture("a").count * 2)
        #expect(
            (first["undated"] as? [String])?.sorted() == [directory + "a.gif", directory + "b\\xff\\\\\n"])
        #expect(first["not_photos"] as? [String] == [directory + "notes.txt"])
        #expect(
            first["unreadable"] as? [[String: String]] == [
                ["path": place.path + "/nowhere", "reason": "No such file or directory"]
            ])
        let second = try object("import", "V", "in")
        #expect(second["duplicates"] as? Int == 2 && second["complete"] as? Bool == true)
        let export = try object("export", "V", "out")
        #expect(export["photos"] as? Int == 2 && export["complete"] as? Bool == true)
        #expect(export["bytes"] as? Int == picture("a").count * 2)
        // Refused before it began, it has nothing to tell.
        for words in [["export", "V", "in"], ["import", "out", "in"], ["info", "out"]] {
            let ended = try place.run(words + ["--json"])
            #expect(ended.status != 0 && ended.output.isEmpty)
        }
    }

    @Test func `check and backup name files that are none of the vault's`() throws {
        try Data("x".utf8).write(to: URL(fileURLWithPath: place.path + "/V/segments/stray"))
        let report = try object("check", "V")
        #expect(report["complete"] as? Bool == true && (report["findings"] as? [Any])?.isEmpty == true)
        #expect(report["unexpected_files"] as? [String] == ["segments/stray"])
        let ended = try place.run(["backup", "V", "C", "--json"])
        let backup = try parsed(ended)
        #expect(ended.status == 0 && ended.errors.isEmpty)
        #expect(backup["unexpected_files"] as? [String] == ["segments/stray"])
        let size = try #require(backup["bytes"] as? Int)
        #expect(size > 1 << 20 && backup["missing_segments"] as? Int == 0)
    }

    /// The header is checked before a password is asked for.
    @Test func `findings before an error are told`() throws {
        let header = try FileHandle(forUpdating: URL(fileURLWithPath: place.path + "/V/obscura.vault"))
        try header.seek(toOffset: 66_000)
        try header.write(contentsOf: Data("XXXXXXXX".utf8))
        try header.close()
        let ended = try place.run(["check", "V", "--json", "--password-stdin"], input: "two\n")
        #expect(ended.status == 4 && ended.errors.split(separator: "\n").count == 1)
        let report = try parsed(ended)
        let text = "obscura.vault: copy B is damaged; the other is intact"
        #expect(report["complete"] as? Bool == false)
        let found = try #require(report["findings"] as? [[String: Any]])
        #expect(found.count == 1 && found[0]["kind"] as? String == "vault_file")
        #expect(found[0]["path"] as? String == "obscura.vault" && found[0]["text"] as? String == text)
    }

    @Test func `info has whole bytes`() throws {
        let ended = try place.run(["info", "V", "--json"])
        let info = try parsed(ended)
        #expect(ended.status == 0 && info["kdf_memory_bytes"] as? Int == 8 << 20)
        #expect(info["spaces"] as? Int == 1 && info["grows"] as? Bool == true)
    }
}
