import Foundation
import LinuxIO
import TestSupport
import TestThreads
import Testing
import VaultCrypto
import VaultFormat

@testable import VaultCatalogue
@testable import VaultStore

/// What the program says of vaults that a later release made: its release, with exit status 3, and never that they are
/// damaged.
@Suite("Format: vaults of later releases", .serialized, .waiting) struct NewerVaultTests {
    private static let release = Release(major: 1, minor: 3)

    private func expectRefused(
        _ place: Place, _ words: [String], _ input: String, _ number: String,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let ended = try place.run([obscura] + words, input)
        let comment = Comment(rawValue: "\(words): \(ended.errors)")
        #expect(ended.status == 3, comment, sourceLocation: location)
        #expect(ended.errors.contains("made by Obscura 1.3 (\(number)): "), comment, sourceLocation: location)
        #expect(
            !(ended.errors + ended.output).lowercased().contains("damage"), comment, sourceLocation: location)
        #expect(
            ended.errors.split(separator: "\n").count == 1 && ended.output.isEmpty, comment,
            sourceLocation: location)
    }

    private func sums(_ place: Place) throws -> String {
        try place.shell("find V -type f -print0 | sort -z | xargs -0 cksum")
    }

    private func changeHeader(_ place: Place) throws {
        let url = URL(fileURLWithPath: place.vault + "/obscura.vault")
        var file = [UInt8](try Data(contentsOf: url))
        for start in HeaderLayout.copyOffsets.map(Int.init) {
            file.withUnsafeMutableBytes { file in
                let copy = file.slice(start, HeaderLayout.copyBytes)
                copy.setNumber(UInt16(2), HeaderLayout.versionOffset)
                Self.release.encode(into: copy.slice(HeaderLayout.releaseOffset, Release.storedBytes))
                hash(
                    [UnsafeRawBufferPointer(copy).slice(0, HeaderLayout.checksumOffset)],
                    into: copy.slice(HeaderLayout.checksumOffset, HeaderLayout.checksumBytes))
            }
        }
        try Data(file).write(to: url)
    }

    /// Changes the closed space and publishes that.
    private func change(_ place: Place, _ body: (Space) throws -> Void) throws {
        let password = Array("one".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        let space = try patiently { try Vault.unlock(place.vault, password: password) }.openSpace(
            readOnly: false)
        try body(space)
        try space.close()
    }

    private func changeRoot(_ place: Place, _ change: (inout SpaceFormat) -> Void) throws {
        try self.change(place) { space in
            var root = space.commits.newest
            root.generation += 1
            root.format.release = Self.release
            change(&root.format)
            try space.parts.roots.write(root)
            space.stopWriting(.givenUp)
        }
    }

    private static let secretCommands = [
        ["check", "V"], ["check", "V", "--repair"], ["export", "V", "X"], ["import", "V", "source"],
        ["backup", "V", "B", "--check"], ["mount", "V", "D"], ["mount", "V", "D", "-o", "ro"],
    ]

    @Test(arguments: [1, 2]) func `a later header`(spaces: Int) throws {
        let place = try Place(spaces: spaces, size: "16M")
        try place.source("a.jpg", Photo().bytes)
        #expect(try place.run([obscura, "header", "export", "V", "H"]).status == 0)
        try changeHeader(place)
        let before = try sums(place)
        let number = "vault format version 2"
        for words in Self.secretCommands {
            try expectRefused(place, words + ["--password-stdin"], "one\n", number)
        }
        for words in [["passwd", "V"], ["space", "add", "V"]] {
            try expectRefused(place, words + ["--password-stdin"], "one\ntwo\n", number)
        }
        try expectRefused(place, ["space", "remove", "V", "--yes", "--password-stdin"], "one\n", number)
        for words in [
            ["info", "V"], ["header", "export", "V", "H2"], ["header", "restore", "V", "H"],
            ["backup", "V", "B"], ["grow", "V", "64M"],
        ] {
            try expectRefused(place, words, "", number)
        }
        #expect(try sums(place) == before)
    }

    @Test(arguments: [1, 2]) func `a later space`(spaces: Int) throws {
        let changes: [(String, (inout SpaceFormat) -> Void)] = [
            ("space format version 2", { $0.version = 2 }), ("features 0x10", { $0.incompatible = 16 }),
        ]
        for (number, change) in changes {
            let place = try Place(spaces: spaces, size: "16M")
            try place.source("a.jpg", Photo().bytes)
            try changeRoot(place, change)
            let before = try sums(place)
            for words in Self.secretCommands {
                try expectRefused(place, words + ["--password-stdin"], "one\n", number)
            }
            #expect(try sums(place) == before)
            // These look at the header alone.
            #expect(try place.run([obscura, "info", "V"]).status == 0)
            #expect(try place.run([obscura, "passwd", "V", "--password-stdin"], "one\nnew\n").status == 0)
            #expect(try place.run([obscura, "backup", "V", "B"]).status == 0)
            try expectRefused(place, ["check", "B", "--password-stdin"], "new\n", number)
        }
    }

    @Test(arguments: [1, 2]) func `a later catalogue`(spaces: Int) throws {
        let place = try Place(spaces: spaces, size: "16M")
        try place.source("a.jpg", Photo().bytes)
        try place.mount()
        try place.shell("cp source/a.jpg D/albums")
        try place.unmount()
        try change(place) { space in
            let database = try Connection(
                path: PageVFS.register(space), vfs: PageVFS.name, readOnly: false)
            for setting in [
                "locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "user_version=9",
                "application_id=\(Self.release.number)",
            ] {
                try database.execute("PRAGMA \(setting)")
            }
            try space.publish(space.freeze(), durable: true)
        }
        let before = try sums(place)
        for words in Self.secretCommands {
            try expectRefused(place, words + ["--password-stdin"], "one\n", "catalogue version 9")
        }
        #expect(try sums(place) == before)
    }

    @Test func `features for writing`() throws {
        let place = try Place(spaces: 2, size: "16M")
        try place.source("a.jpg", Photo().bytes)
        try place.mount()
        try place.shell("cp source/a.jpg D/albums")
        try place.unmount()
        try changeRoot(place) { $0.writing = 1 }
        let before = try sums(place)
        try expectRefused(place, ["import", "V", "source", "--password-stdin"], "one\n", "features 0x1")
        let mounted = try place.run([obscura, "mount", "V", "D", "--password-stdin"], "one\n")
        #expect(mounted.status == 0)
        #expect(mounted.errors.contains("made by Obscura 1.3 (features 0x1)"), "\(mounted.errors)")
        try place.shell("cmp source/a.jpg D/albums/a.jpg; ! touch D/albums/a.jpg")
        try place.unmount()
        for words in ["check V", "export V X"] {
            try place.shell("echo one | '\(obscura)' \(words) --password-stdin")
        }
        #expect(try sums(place) == before)
    }
}
