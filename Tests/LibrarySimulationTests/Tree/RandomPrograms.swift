import CatalogueRows
import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import PhotoRules
import Synchronization
import TestSupport
import VaultCatalogue
import VaultFormat

/// A wall clock on which every operation takes two minutes: each edit is due a version of its own.
private final class SlowWork: Sendable {
    private let seconds = Atomic<Int64>(1_800_000_000)
    func pass() { seconds.add(120, ordering: .relaxed) }
    var clocks: Clocks {
        var clocks = Clocks()
        clocks.wall = { [self] in seconds.load(ordering: .relaxed) }
        return clocks
    }
}

/// Programs that write, edit, link, move, trash and restore photos at random, but destroy nothing in the trash.
struct RandomPrograms {
    let fixture: Fixture
    private let work = SlowWork()
    private var random: RandomSource
    /// What was done.
    private(set) var done: [String] = []
    /// Contents of photos, by their first place.
    private var due: [[UInt8]: String] = [:]
    /// Where each content was found last.
    private var places: [[UInt8]: [String]] = [:]
    private var count = 0
    private var files: [String] = []
    private var directories: [String] = []

    static let trash = ".Trash-0/files"
    static let days = ["2024-05-01", "2024-05-02", "2020-01-01", "2021-02-02", "2022-03-03"].map {
        "moments/" + $0
    }

    init(_ seed: UInt64) throws {
        random = RandomSource(seed)
        fixture = try Fixture(
            trashDays: 30, clocks: work.clocks, limits: seed % 2 == 0 ? .least : .production)
        for path in [".Trash-0", Self.trash, ".Trash-0/info"] { try fixture.mkdir(path, mode: 0o700) }
        for path in ["albums/A", "albums/B", "albums/A/.w"] { try fixture.mkdir(path) }
        for day in Self.days.prefix(3) { try fixture.mkdir(day) }
    }

    mutating func note(_ words: String) { done.append(words) }

    // MARK: Operations

    private mutating func roll(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    private mutating func one(of list: [String]) -> String {
        list.isEmpty ? "albums" : list[roll(list.count)]
    }

    private mutating func newName() -> String {
        let stem = one(of: ["a", "b", "c"])
        let ending = one(of: [
            ".jpg", ".jpg", ".jpg", ".cr2", ".jpg.xmp", ".xmp", ".jpg~", ".jpg_original", ".part", "",
        ])
        return (roll(12) == 0 ? "." : "") + stem + ending
    }

    private mutating func newPath() -> String { one(of: directories) + "/" + newName() }

    private mutating func newContent(_ path: String) -> [UInt8] {
        let count = anew()
        let day = last(one(of: Array(Self.days.prefix(3))))
        if path.hasSuffix(".cr2") { return raw(day, more: count) }
        if path.hasSuffix("xmp") { return xmp(day) }
        return switch roll(12) {
        case 0: []
        case 1: Array("text \(count)".utf8)
        case 2: jpeg(nil, more: count)
        case 3...4:
            due.keys.sorted { $0.lexicographicallyPrecedes($1) }.randomElement(using: &random) ?? []
        case 5...6: appleJPEG(day, tag: roll(2) == 0 ? 17 : 11, "AAAA-\(roll(3))", more: count)
        default: jpeg(day, more: count)
        }
    }

    private func isTrashed(_ path: String) -> Bool { path.hasPrefix(".Trash-0") }

    /// One operation. It may be refused.
    mutating func step() {
        work.pass()
        if roll(3) == 0 { moveDirectory() } else { useFile() }
    }

    private mutating func useFile() {
        let file = one(of: files)
        let by = program()
        switch roll(17) {
        case 16:
            if isTrashed(file) { return }
            let bytes = newContent(file)
            perform("make anew \(file) by \(by.pid)") {
                try $0.rm(file, by: by)
                try $0.makeAnew(file, bytes, by: by)
            }
        case 0...4:
            let path = roll(3) == 0 ? file : newPath()
            let bytes = newContent(path)
            if !isTrashed(path) { perform("write \(path) \(bytes.count)") { try $0.put(path, bytes) } }
        case 5:
            if isTrashed(file) { return }
            perform("append \(file)") {
                let handle = try $0.open(file)
                try $0.write(handle, [1, 2, 3], at: try $0.stat(file).size)
                try $0.close(handle)
            }
        case 6:
            let size = UInt64(roll(400))
            if !isTrashed(file) { perform("truncate \(file) \(size)") { try $0.truncate(file, size) } }
        case 7...8: rename(file, roll(2) == 0 ? one(of: files) : newPath(), by)
        case 9: rename(file, one(of: directories) + "/" + last(file), by)
        case 10...11:
            let path = roll(2) == 0 ? newPath() : above(file) + "/" + newName()
            perform("link \(file) \(path)") { try $0.ln(file, path) }
        case 12:
            if !isTrashed(file) { perform("unlink \(file) by \(by.pid)") { try $0.rm(file, by: by) } }
        case 13: rename(file, Self.trash + "/t\(anew())", by)
        case 14:
            let restored = one(of: files.filter(isTrashed))
            rename(restored, one(of: directories) + "/" + newName(), by)
        default:
            let other = one(of: files)
            if isTrashed(other) || isTrashed(file) { return }
            perform("save \(other)") {
                try $0.rm(other, by: by)
                try $0.mv(file, other, by: by)
            }
        }
    }

    private mutating func moveDirectory() {
        let directory = one(of: directories)
        let album = one(of: directories.filter { $0.hasPrefix("albums/") })
        let trashed = one(of: directories.filter { $0.hasPrefix(Self.trash + "/") })
        let by = program()
        switch roll(9) {
        case 0: perform("mkdir \(directory)/D") { try $0.mkdir(directory + "/" + "D") }
        case 1:
            let day = one(of: Self.days)
            perform("mkdir \(day)") { try $0.mkdir(day) }
        case 2: if !isTrashed(directory) { perform("rmdir \(directory)") { try $0.rmdir(directory) } }
        case 3: rename(album, one(of: directories) + "/" + one(of: ["A", "B", ".w"]), by)
        case 4: rename(one(of: Self.days), one(of: Self.days), by)
        case 5: rename(one(of: Self.days), one(of: directories) + "/" + one(of: ["A", "B"]), by)
        case 6: rename(roll(2) == 0 ? album : one(of: Self.days), Self.trash + "/t\(anew())", by)
        case 7: rename(trashed, one(of: Self.days), by)
        default: rename(trashed, one(of: directories) + "/" + one(of: ["A", "B", "C"]), by)
        }
    }

    private mutating func program() -> Caller { Caller(uid: 0, gid: 0, pid: Int32(7 + roll(2))) }

    private mutating func anew() -> Int {
        count += 1
        return count
    }

    private func last(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? "" }

    private func above(_ path: String) -> String {
        path.split(separator: "/").dropLast().joined(separator: "/")
    }

    /// Renames, unless that destroys something in the trash.
    private mutating func rename(_ from: String, _ to: String, _ by: Caller) {
        let flags: RenameFlags = [[], [], [], .noReplace, .exchange][roll(5)]
        if isTrashed(to), flags == [], fixture.exists(to) { return }
        perform("rename \(from) -> \(to) \(flags) by \(by.pid)") { try $0.mv(from, to, flags, by: by) }
    }

    private mutating func perform(_ words: String, _ body: (Fixture) throws -> Void) {
        do {
            try body(fixture)
            done.append(words)
        } catch { done.append("\(words): \(error)") }
    }

    // MARK: Finding

    /// The photos that were there once, and are not any more.
    mutating func lost() throws -> [String] {
        var found: [[UInt8]: [String]] = [:]
        (files, directories) = ([], [])
        try look(below: "", &found)
        try lookAtWaiting(&found)
        defer { places = found }
        return try misplaced()
            + due.keys.filter { found[$0] == nil }.map { bytes in
                "\(due[bytes] ?? ""), last \(places[bytes, default: []].joined(separator: " and "))"
            }.sorted()
    }

    private mutating func look(below path: String, _ found: inout [[UInt8]: [String]]) throws {
        for entry in try fixture.list(path, page: 100) {
            let below = (path.isEmpty ? "" : path + "/") + entry.name.description
            if entry.mode & 0o170000 == 0o040000 {
                // Programs use neither the root nor moments itself, and no `.trashinfo`.
                if below.contains("/") && !below.hasPrefix(".Trash-0/info") || below == "albums" {
                    directories.append(below)
                }
                try look(below: below, &found)
                continue
            }
            if !below.hasPrefix(".Trash-0/info") { files.append(below) }
            let bytes = try fixture.get(below)
            found[bytes, default: []].append(below)
            // Only photos have a time of capture. An emptied one has it too.
            if !bytes.isEmpty, (try? fixture.captured(below)) != nil, due[bytes] == nil {
                due[bytes] = "\(below) (\(done.count))"
            }
        }
        guard fixture.exists(path + "/.versions"), !path.isEmpty else { return }
        for photo in try fixture.ls(path + "/.versions") {
            for version in try fixture.ls("\(path)/.versions/\(photo)") {
                let below = "\(path)/.versions/\(photo)/\(version)"
                found[try fixture.get(below), default: []].append(below)
            }
        }
    }

    /// The photos that are not in the trash, nor once in moments, under their day.
    private func misplaced() throws -> [String] {
        let files = try files.map { ($0, try fixture.ino($0)) }
        return try fixture.library.session.locked { tree throws(FileError) in
            var found: [String] = []
            for (path, ino) in files {
                let inode = try tree.inode(ino)
                guard inode.isPhoto, !inode.isTrashed else { continue }
                let day = try tree.photos.photo(inode).day
                let names = try tree.moments.moments(of: inode).filter { $0.directory.row.day == day }.map(
                    \.row.name)
                if names.count != 1 && names.count(where: { backupOriginal($0) == nil }) != 1 {
                    found.append("\(path) is in its day as \(names.map { Name($0).description })")
                }
            }
            return found
        }
    }

    /// Copies of photos in the trash have no names until they come back with them, but keep their versions.
    private func lookAtWaiting(_ found: inout [[UInt8]: [String]]) throws {
        let trashed = try files.filter(isTrashed).map { try fixture.ino($0) }
        let versions = try fixture.library.session.locked { tree throws(FileError) in
            var versions: [UInt64] = []
            for ino in Set(trashed) where try tree.inode(ino).isTrashed {
                for name in try tree.tables.trash.names(of: ino) {
                    guard let directory = try tree.versions.versionsDirectory(of: name.ino) else { continue }
                    versions += try tree.rows(of: directory).map(\.ino)
                }
            }
            return versions
        }
        for ino in versions {
            let handle = try fixture.library.open(ino, flags: O_RDONLY, fixture.caller)
            defer { fixture.library.release(handle) }
            found[try fixture.read(handle), default: []].append("a version that waits")
        }
    }
}
