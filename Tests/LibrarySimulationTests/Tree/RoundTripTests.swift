import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoImport
import PhotoLibrary
import TestSupport
import TestThreads
import Testing
import VaultFormat

/// What random programs left is exported, and imported into a new vault. There it must be the same, except for what
/// lies in the trash. Repeating the import must change nothing, nor an import into the space that it came from.
@Suite("Commands: random trees through export and import", .waiting) struct RoundTripTests {
    @Test(arguments: ConservationTests.seeds) func `an imported export is the same tree`(seed: UInt64) throws
    {
        var programs = try RandomPrograms(seed)
        for _ in 1...120 {
            programs.step()
            _ = try programs.lost()
        }
        try programs.fixture.renameWorkingPhotos()
        let before = try programs.fixture.shown()
        try programs.fixture.close()
        let directory = try makeTemporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let out = directory + "/out"
        let isLeast = programs.fixture.limits == .least
        try run("export", programs.fixture.vault.path, out, "--versions", isLeast: isLeast)
        let other = try Fixture(trashDays: 30)
        try other.close()
        for (space, task) in [
            (other, "an import"), (other, "a second import"),
            (programs.fixture, "an import where it came from"),
        ] {
            try run("import", space.vault.path, out, isLeast: space.limits == .least)
            try space.reopen()
            let after = try space.shown()
            try space.close()
            let paths = Set(before.keys).union(after.keys).sorted().filter { before[$0] != after[$0] }
            let differences = paths.map { "\($0): \(words(before[$0])), then \(words(after[$0]))" }
            let report = (["seed \(seed), \(task):"] + differences + programs.done).joined(separator: "\n")
            try #require(differences.isEmpty, "\(report)")
        }
        try other.reopen()
        try programs.fixture.reopen()
    }

    private func run(_ words: String..., isLeast: Bool = false) throws {
        var environment = Child.plainEnvironment
        if isLeast { environment["OBSCURA_LIMITS"] = "least" }
        var ended: Ended?
        // Threads of the library that was closed may have the vault open a little longer.
        eventually {
            ended = try? Child(
                [builtProgram("obscura")] + words + ["--password-stdin"], environment: environment,
                input: .text("one\n"), output: .collected, errors: .collected
            ).finish()
            return ended?.status != 5
        }
        let last = try #require(ended)
        try #require(last.status == 0, "\(words): \(last.status) \(last.output) \(last.errors)")
    }
}

/// What a user sees of an entry.
private struct Entry: Equatable {
    /// 0 for versions: they have the mode of the photo, and beside a copy that of the copy after an import.
    var mode: UInt32
    var bytes: [UInt8]
    var modified: Timestamp?
    /// The first name in albums of a photo.
    var first: String
    /// Its day; empty for what is no photo.
    var captured: String
}

private func words(_ entry: Entry?) -> String {
    guard let entry else { return "none" }
    let time = entry.modified.map { "\($0.seconds).\($0.nanoseconds)" } ?? "-"
    let digest = entry.bytes.hashValue % 1000
    return "\(String(entry.mode, radix: 8)) \(digest) \(time) \(entry.first) \(entry.captured)"
}

extension Fixture {
    /// All entries of moments and albums, with versions, by path.
    fileprivate func shown() throws -> [String: Entry] {
        var entries: [String: Entry] = [:]
        var first: [UInt64: String] = [:]
        for top in ["albums", "moments"] { try look(below: top, &entries, &first) }
        return entries
    }

    private func look(
        below path: String, _ entries: inout [String: Entry], _ first: inout [UInt64: String]
    ) throws {
        let listed = try list(path, page: 100).map(\.name.description).sorted()
        for name in listed
            + (exists(path + "/.versions") && !listed.contains(".versions") ? [".versions"] : [])
        {
            let below = path + "/" + name
            let found = try stat(below)
            if first[found.ino] == nil { first[found.ino] = below }
            let firstName = first[found.ino] ?? ""
            // A file of an album that comes first under a working name is imported as a program's file; a picture that
            // is called like a sidecar may be. An emptied photo is imported as an empty file, which is no photo.
            let isFile =
                firstName.hasPrefix("albums") && Self.isWorking(firstName)
                || ImportRules.isSidecar(Name(name)) || found.isRegular && found.size == 0
            let day = isFile ? nil : (try? captured(below)).map { $0.prefix(10) }
            // Versions are called after one of the names of their photo.
            let isVersion = path.contains("/.versions/")
            entries[isVersion ? path + "/" + (name.split(separator: ".").first ?? "") : below] = Entry(
                mode: below.contains("/.versions") ? 0 : found.mode,
                bytes: found.isRegular ? try get(below) : [],
                // Days come and go with photos.
                modified: found.isDirectory ? nil : found.modified,
                first: isVersion || day == nil || firstName.hasPrefix("moments") ? "" : firstName,
                captured: day.map(String.init) ?? "")
            if found.isDirectory { try look(below: below, &entries, &first) }
        }
    }

    /// Renames photos with working names in moments: an import would take them for programs' files, which they may be.
    fileprivate func renameWorkingPhotos() throws {
        for (number, photo) in try moments().enumerated() where Self.isWorking(photo) {
            let path = "moments/" + photo
            guard (try? captured(path)) != nil else { continue }
            try mv(path, "\(path.split(separator: "/").dropLast().joined(separator: "/"))/w\(number).jpg")
        }
    }

    private static func isWorking(_ path: String) -> Bool {
        let names = path.split(separator: "/").map { Name(String($0)) }
        return names.dropLast().contains { ImportRules.isWorkingDirectory($0) }
            || names.last.map { ImportRules.isWorkingFile($0) } == true
    }
}
