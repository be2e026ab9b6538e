import CatalogueRows
import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// A vault of one space to which two or three things happen at once: segments that are away, cut, overwritten, or an
/// older copy's. It is repaired, and then they are put back.
///
/// At every step each file comes whole, with bytes that were written to a file once; or it cannot be read, and a check
/// names it. A file that could be read before a repair can be read after it, and a name that was there stays, except
/// bytes from before an edit when newer ones come back. Once all is put back, no photo is missing.
final class DamageMachine {
    /// What happens to a segment.
    enum Fault: CaseIterable {
        case away
        case cut
        case overwritten
        case older
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// A file's bytes as a member of sets. Hashing an array takes a call for each byte.
    struct Content: Hashable {
        let bytes: [UInt8]

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        func hash(into hasher: inout Hasher) {
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    /// What a mount shows.
    struct Sight {
        /// Files that come whole.
        var whole: [String: [UInt8]] = [:]
        /// Paths of files that cannot be read.
        var unreadable: Set<String> = []
        /// Paths of files that a repair found without their records.
        var guesses: Set<String> = []
        /// Names of the segments with the catalogue's pages.
        var pages: Set<String> = []
        /// What can be read of guesses that are whole but for a byte at the end, since more may have followed.
        var open: Set<Content> = []

        var contents: Set<Content> { open.union(whole.values.lazy.map(Content.init)) }
    }

    private let fixture: Fixture
    private var random: RandomSource
    private let segments: String
    /// Bytes that some file had once.
    private var written: Set<Content> = [Content([])]
    private var older: [String: Data] = [:]
    private var newest: [String: Data] = [:]
    private(set) var before = Sight()
    private var story: [String] = []
    /// Whether photos are changed in place, so that they share extents with what they were before.
    private let hasEdits: Bool

    init(seed: UInt64, hasEdits: Bool = false) throws {
        random = RandomSource(seed)
        self.hasEdits = hasEdits
        fixture = try Fixture(trashDays: 30, spaces: 1)
        segments = fixture.vault.path + "/segments"
        try fill()
    }

    private func put(_ path: String, _ bytes: [UInt8]) throws {
        written.insert(Content(bytes))
        try fixture.put(path, bytes)
    }

    /// Photos over four segments and more, in two sessions; the second renames, edits and removes.
    private func fill() throws {
        try fixture.mkdir("albums/Trip")
        // Whole chunks, whose ends nothing but a record tells, among others.
        let sizes = [400, 20_000, 1_200_000, 1_310_720, 2_100_000]
        for number in 0..<8 {
            let size = sizes.randomElement(using: &random) ?? 400
            try put(
                "albums/Trip/\(number).jpg", largeJPEG("2024-05-0\(number + 1)", more: number, size: size))
        }
        try put("albums/notes.txt", noise(300_000, seed: 5))
        try fixture.close()
        older = try files()
        try fixture.reopen()
        for number in 8..<14 {
            let size = sizes.randomElement(using: &random) ?? 400
            try put("albums/\(number).jpg", largeJPEG("2023-01-0\(number % 9 + 1)", more: number, size: size))
            // Without a commit between, an original and its edited photo have chunks of one commit.
            if hasEdits, Int.random(in: 0..<4, using: &random) == 0 { try commit("albums/\(number).jpg") }
        }
        try fixture.mv("albums/Trip/0.jpg", "albums/first.jpg")
        try fixture.rm("moments/2024-05-02/1.jpg")
        try put("albums/.new", largeJPEG("2024-05-03", more: 99, size: 900_000))
        try fixture.mv("albums/.new", "albums/Trip/2.jpg")
        for name in try fixture.ls(".Trash-0/info") {
            written.insert(Content(try fixture.get(".Trash-0/info/" + name)))
        }
        if hasEdits { try edit() }
        try fixture.close()
        newest = try files()
        before = try look()
        guard before.unreadable.isEmpty else { throw Failure(description: "it is damaged to begin with") }
    }

    private func commit(_ path: String) throws {
        let handle = try fixture.open(path)
        try fixture.library.fsync(handle, dataOnly: false)
        try fixture.close(handle)
    }

    /// Changes photos in place, and makes some that a commit found without bytes, or with a part of them.
    private func edit() throws {
        let names = try fixture.ls("albums").filter { $0.hasSuffix(".jpg") }.map { "albums/" + $0 }
        for path in try names + fixture.ls("albums/Trip").map({ "albums/Trip/" + $0 }) {
            if Int.random(in: 0..<4, using: &random) == 0 { continue }
            let size = try fixture.stat(path).size
            let handle = try fixture.open(path)
            let isAppended = Bool.random(using: &random)
            let count = [100, 4096, 140_000, 700_000].randomElement(using: &random) ?? 100
            let start = isAppended ? size : UInt64.random(in: 600...max(size, 601), using: &random)
            try fixture.write(handle, noise(count, seed: count + Int(start)), at: start)
            if Bool.random(using: &random) { try fixture.library.fsync(handle, dataOnly: false) }
            try fixture.close(handle)
            written.insert(Content(try fixture.get(path)))
        }
        for number in 20..<24 {
            let path = "albums/\(number).jpg"
            let bytes = largeJPEG("2022-03-0\(number - 19)", more: number, size: 900_000)
            let first = number == 20 ? 0 : Int.random(in: 0...bytes.count, using: &random)
            let handle = try fixture.createOpen(path)
            for part in [0..<first, first..<bytes.count] where !part.isEmpty || part.lowerBound == 0 {
                if !part.isEmpty {
                    try fixture.write(handle, Array(bytes[part]), at: UInt64(part.lowerBound))
                }
                try fixture.library.fsync(handle, dataOnly: false)
                written.insert(Content(Array(bytes[..<part.upperBound])))
            }
            try fixture.close(handle)
        }
    }

    private func segmentNames() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: segments)
    }

    private func files() throws -> [String: Data] {
        var found: [String: Data] = [:]
        for name in try segmentNames() {
            found[name] = try Data(contentsOf: URL(fileURLWithPath: "\(segments)/\(name)"))
        }
        return found
    }

    private func write(_ name: String, _ bytes: Data) throws {
        try bytes.write(to: URL(fileURLWithPath: "\(segments)/\(name)"))
    }

    // MARK: Faults

    private func damage(_ name: String, _ fault: Fault) throws {
        guard let bytes = newest[name] else { return }
        story.append("\(name) \(fault)")
        switch fault {
        case .away: try FileManager.default.removeItem(atPath: "\(segments)/\(name)")
        case .cut:
            try write(name, bytes.prefix(Int.random(in: 0...bytes.count / 8192, using: &random) * 4096))
        case .overwritten:
            var bytes = bytes
            let count = min(
                bytes.count, [4096, 65_536, 1 << 20, 1 << 22].randomElement(using: &random) ?? 4096)
            let start = Int.random(in: 0...bytes.count - count, using: &random)
            bytes.replaceSubrange(start..<start + count, with: noise(count, seed: start + 7))
            try write(name, bytes)
        case .older: try write(name, older[name] ?? Data())
        }
    }

    /// Damages some segments, repairs, puts back, and repairs again.
    func run() throws {
        let names = newest.keys.sorted()
        var hit = Set<String>()
        // The two with the roots more often than others: only then is the catalogue lost.
        if Int.random(in: 0..<3, using: &random) > 0 { hit.formUnion(names.prefix(2)) }
        let count = Int.random(in: 1...(hit.isEmpty ? 3 : 2), using: &random)
        while hit.count < min(names.count, count + (hit.isEmpty ? 0 : hit.count)) {
            guard let name = names.randomElement(using: &random) else { break }
            if !hit.insert(name).inserted && Int.random(in: 0..<4, using: &random) == 0 { break }
        }
        var isRolledBack = false
        defer { fixture.closeAnyhow() }
        for name in hit.sorted() {
            let fault = Fault.allCases.randomElement(using: &random) ?? .away
            if fault == .older, names.prefix(2).contains(name) { isRolledBack = true }
            try damage(name, fault)
        }
        // A state from before the edits has names that are others now.
        let damaged = hasEdits && isRolledBack ? nil : try? look()
        let left = Set(try segmentNames())
        try judge(try repair(), "repaired", since: damaged)
        // What the repair took for free is overwritten now: with older roots that may be photos of the newer state.
        if hasEdits, !isRolledBack { try use() }
        let filled = Set(try segmentNames())
        var repaired = try look()
        // Bytes from before an edit, or of a removed file, which come up when newer ones are away, may go with their
        // return.
        let contents = before.contents
        repaired.whole = repaired.whole.filter { contents.contains(Content($0.value)) }
        // As may a name that the repair has numbered, because the removed file had the plain one.
        repaired.unreadable.formIntersection(before.whole.keys)
        // Everything, or all but the roots, whose state would be the one from before the repair.
        let isAll = Bool.random(using: &random)
        // Where nothing told of a segment, the repair may have put its pages, which take the place of files.
        let isTaken = hasEdits && !repaired.pages.isDisjoint(with: hit.subtracting(names.prefix(2)))
        // Nor did anything tell of these: what was written there since is lost with what is put back.
        let isReplaced =
            hasEdits && !filled.subtracting(left).isDisjoint(with: hit.subtracting(names.prefix(2)))
        for name in hit.sorted() where isAll || !names.prefix(2).contains(name) {
            if let bytes = newest[name] { try write(name, bytes) }
        }
        story.append(isAll ? "all put back" : "put back but for the roots")
        try judge(try repair(), "put back", since: isRolledBack || isReplaced ? nil : repaired)
        let last = try look()
        let missing = contents.subtracting(last.contents)
        // With the roots of an older copy alone the vault is that copy, which nothing outside it contradicts.
        if (isAll || !isRolledBack) && !isTaken && !isReplaced {
            let paths = before.whole.filter { missing.contains(Content($0.value)) }.keys.sorted()
            try require(missing.isEmpty, "\(missing.count) files are lost of \(contents.count): \(paths)")
            if hasEdits, isAll, !isRolledBack {
                let other = before.whole.keys.filter {
                    $0.hasPrefix("albums/") && last.whole[$0] != before.whole[$0]
                }
                try require(other.isEmpty, "these have other bytes under their names: \(other.sorted())")
            }
        }
    }

    /// Writes and removes files, as a user who looks what is left.
    private func use() throws {
        try fixture.reopen(auditing: false)
        for number in 0..<3 {
            try put(
                "albums/since\(number)",
                noise(Int.random(in: 1...2_500_000, using: &random), seed: 60 + number))
        }
        try fixture.close()
        try fixture.reopen(auditing: false)
        try fixture.rm("albums/since0")
        try fixture.close()
    }

    private func require(_ holds: Bool, _ text: @autoclosure () -> String) throws {
        if !holds { throw Failure(description: (story + [text()]).joined(separator: "; ")) }
    }

    private func judge(_ findings: [Finding], _ step: String, since earlier: Sight?) throws {
        let now = try look()
        // What no record tells of is made of the newest chunks that are left, which may be older ones.
        for (path, bytes) in now.whole where !hasEdits || !now.guesses.contains(path) {
            try require(
                written.contains(Content(bytes)),
                "\(step): \(path) has \(bytes.count) bytes that nobody wrote")
        }
        let named = Set(findings.flatMap(\.paths).map { String(decoding: $0, as: UTF8.self) })
        for path in now.unreadable {
            try require(named.contains(path), "\(step): \(path) cannot be read, and no check names it")
        }
        guard let earlier else { return }
        let contents = now.contents
        for (path, bytes) in earlier.whole where !path.hasPrefix("moments/") {
            try require(contents.contains(Content(bytes)), "\(step): \(path) could be read before")
        }
        for path in earlier.unreadable where path.hasPrefix("albums/") && !path.contains("Recovered") {
            let isThere = now.whole[path] != nil || now.unreadable.contains(path)
            try require(isThere, "\(step): the name \(path) is gone")
        }
    }

    // MARK: Looking and repairing

    /// Everything that a mount shows. Throws if there is none.
    private func look() throws -> Sight {
        try fixture.reopen(auditing: false) { $0.readOnly = true }
        defer { fixture.closeAnyhow() }
        var sight = Sight()
        sight.pages = Set(fixture.space.segments.pageSegments.map { "00000\($0).seg" })
        try look(below: "", &sight)
        return sight
    }

    private func look(below path: String, _ sight: inout Sight) throws {
        // Directories of versions are found, but not listed.
        if hasEdits, path.hasPrefix("albums") || path.hasPrefix("moments/"), !path.contains(".versions"),
            fixture.exists(path + "/.versions")
        {
            try look(below: path + "/.versions", &sight)
        }
        for entry in try fixture.list(path) {
            let below = (path.isEmpty ? "" : path + "/") + entry.name.description
            // They are about others, and change with them.
            if below.hasPrefix(".Trash-0/info") { continue }
            let found = try fixture.stat(below)
            if found.isDirectory {
                // Of one whose page is lost what can be listed.
                try? look(below: below, &sight)
            } else if found.isRegular {
                do { sight.whole[below] = try fixture.get(below) } catch {
                    // A check names a version in its photo's day.
                    if below.hasPrefix("moments/") || !below.contains("/.versions/") {
                        sight.unreadable.insert(below)
                    }
                }
                let isGuess = try fixture.library.session.locked { tree throws(FileError) in
                    try tree.inode(found.ino).row.flags.contains(.foundWithoutRecord)
                }
                guard isGuess else { continue }
                sight.guesses.insert(below)
                if hasEdits, sight.unreadable.contains(below),
                    let bytes = try? readOpen(below, Int(found.size))
                {
                    sight.open.insert(Content(bytes))
                }
            }
        }
    }

    /// Reads all but the last byte.
    private func readOpen(_ path: String, _ size: Int) throws -> [UInt8] {
        let handle = try fixture.open(path, O_RDONLY)
        defer { fixture.library.release(handle) }
        var bytes: [UInt8] = []
        while bytes.count < size - 1 {
            bytes += try fixture.read(handle, min(1 << 20, size - 1 - bytes.count), at: UInt64(bytes.count))
        }
        return bytes
    }

    private func repair() throws -> [Finding] {
        guard let findings = try fixture.repair() else {
            throw Failure(description: (story + ["a repair finds more each time"]).joined(separator: "; "))
        }
        return findings
    }
}
