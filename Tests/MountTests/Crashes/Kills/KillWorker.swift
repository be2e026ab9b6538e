import Foundation
import Glibc
import Synchronization
import TestSupport

/// Strikes when programs have made so many calls, and ends their work with the last strike.
final class KillSwitch: Sendable {
    private struct State {
        /// Calls until each strike.
        var left: [Int]
        var isOver = false
    }
    private let state: Mutex<State>
    private let strike: @Sendable () -> Void

    /// - Parameter counts: calls before the first strike, between it and the second, and so on.
    init(after counts: [Int], strike: @escaping @Sendable () -> Void) {
        state = Mutex(State(left: counts))
        self.strike = strike
    }

    /// Whether the last strike has come, or is about to.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Ends the work without a strike.
    func end() { state.withLock { $0.isOver = true } }

    /// A call is about to be made.
    func count() {
        let isDue = state.withLock { state in
            guard !state.isOver, !state.left.isEmpty else { return false }
            state.left[0] -= 1
            guard state.left[0] <= 0 else { return false }
            state.left.removeFirst()
            state.isOver = state.left.isEmpty
            return true
        }
        if isDue { strike() }
    }
}

/// A program that works in a directory of its own in a mount, one call after the other, and writes down the files that
/// it must find again.
final class KillWorker: @unchecked Sendable {
    /// Its directory in `albums`, and how the names of its photos begin.
    let name: String
    let journal = Journal()
    /// Errors that the kill does not explain.
    private(set) var failure: (any Error)?

    private let place: Place
    private let isCarrier: Bool
    private let number: Int
    private var random: RandomSource
    private var made = 0
    private var clock = KillSwitch(after: []) {}

    private static let days = ["2024-05-01", "2024-05-02", "2023-12-31"]
    private static let filesMax = 40

    /// A call that failed, or gave a wrong result.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// - Parameter isCarrier: it works by rsync, cp, mv and rm.
    init(_ place: Place, number: Int, isCarrier: Bool, seed: UInt64) {
        self.place = place
        self.number = number
        self.isCarrier = isCarrier
        name = "w\(number)"
        random = RandomSource(seed)
    }

    private var home: String { "albums/" + name }

    /// Works until the switch ends it.
    func work(_ clock: KillSwitch) {
        self.clock = clock
        do {
            if journal.now[home] == nil { try makeDirectory(home) }
            while !clock.isOver { if isCarrier { try carry() } else { try act() } }
        } catch {
            // All errors after the daemon was killed come from that.
            if !clock.isOver { failure = error }
        }
    }

    private func act() throws {
        if journal.now.count > Self.filesMax, let path = pick(photos) { return try removePhoto(path) }
        switch Int.random(in: 0..<24, using: &random) {
        case 0..<3: try writePhoto()
        case 3..<5: try writePlain()
        case 5..<7: if let path = pick(files) { try rewrite(path) }
        case 7..<9: if let path = pick(plain) { try rewriteWithin(path) }
        case 9..<12: if let path = pick(files) { try save(path) }
        case 12: if let path = pick(files) { try move(path, to: newPath(like: path)) }
        case 13: if let path = pick(files) { try remove(path) }
        case 14: if let path = pick(photos) { try removePhoto(path) }
        case 15: if let path = pick(photos) { try addToAlbum(path) }
        case 16: if let path = pick(plain) { try truncate(path) }
        case 17: try makeDirectory("\(somewhere())/d\(next())")
        case 18: if let path = pick(directories) { try move(path, to: "\(home)/d\(next())") }
        case 19: if let path = pick(files) { try sync(path) }
        case 20: try sync(somewhere())
        case 21: if let path = pick(photos) { try lookAt(path) }
        default: if let path = pick(files) { try readBack(path) }
        }
    }

    // MARK: Existing files

    private func next() -> Int {
        made += 1
        return made
    }

    private func pick(_ all: [String]) -> String? { all.isEmpty ? nil : all.randomElement(using: &random) }

    private func paths(_ isWanted: (String, Held, Content) -> Bool) -> [String] {
        journal.now.filter { path, held in
            guard let content = held.allowed[0] else { return false }
            return isWanted(path, held, content)
        }.keys.sorted()
    }

    /// Files in the directory of this worker.
    private var files: [String] { paths { $0.hasPrefix(home + "/") && !$2.isDirectory } }
    private var plain: [String] {
        paths { $0.hasPrefix(home + "/") && !$2.isDirectory && $1.moment == nil }
    }
    /// Directories but for the first.
    private var directories: [String] { paths { $0.hasPrefix(home + "/") && $2.isDirectory } }
    /// Photos, by their paths in moments.
    var photos: [String] { paths { path, _, _ in path.hasPrefix("moments/") } }

    private func somewhere() -> String { pick(directories + [home]) ?? home }

    private func newPath(like path: String) -> String {
        let isPhoto = journal.now[path]?.moment != nil
        return "\(somewhere())/\(name)-\(next())" + (isPhoto ? ".jpg" : ".dat")
    }

    private func newPhoto(_ day: String? = nil) -> (content: Content, moment: String, name: String) {
        let day = day ?? Self.days.randomElement(using: &random) ?? Self.days[0]
        let name = "\(name)-\(next()).jpg"
        let size = Int.random(in: 400...60_000, using: &random)
        return (Content(jpeg(day, more: seed, size: size)), "moments/\(day)/\(name)", name)
    }

    /// No two contents are the same.
    private var seed: Int { number * 10_000_000 + next() }

    private func newContent() -> Content {
        let size = Bool.random(using: &random) ? 3000 : 300_000
        return Content(noise(Int.random(in: 0...size, using: &random), seed: seed))
    }

    /// All names of the file at this path.
    private func names(_ path: String) -> [String] {
        guard let held = journal.now[path] else { return [] }
        guard let moment = path.hasPrefix("moments/") ? path : held.moment else { return [path] }
        return paths { other, held, _ in other == moment || held.moment == moment }
    }

    /// Another content for the file, of a photo one of the same day.
    private func replacement(_ path: String) -> Content {
        guard let moment = journal.now[path]?.moment else { return newContent() }
        return newPhoto(String(moment.split(separator: "/")[1])).content
    }

    // MARK: Calls

    private func real(_ path: String) -> String { place.mountPoint + "/" + path }

    @discardableResult
    private func call<T: SignedInteger>(_ what: String, _ body: () -> T) throws -> T {
        clock.count()
        let result = body()
        if result < 0 { throw Failure(description: "\(what): \(String(cString: strerror(errno)))") }
        return result
    }

    private func open(_ path: String, _ flags: Int32) throws -> Int32 {
        try call("open \(path)") { Glibc.open(real(path), flags | O_CLOEXEC, 0o644) }
    }

    private func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws {
        var rest = bytes
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...100_000, using: &random))
            rest = rest.dropFirst(
                try call("write") { piece.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) } })
        }
    }

    /// Changes made by now must be there after any kill.
    private func fsync(_ file: Int32) throws {
        try call("fsync") { Glibc.fsync(file) }
        journal.noteSafe(journal.done)
    }

    /// Opens, writes, perhaps syncs, and closes: `names` hold the new bytes then.
    private func write(
        _ content: Content, from start: Int = 0, to names: [String], _ flags: Int32, moment: String? = nil
    ) throws {
        var (writing, written, closed) = (journal.now, journal.now, journal.now)
        for name in names {
            let old = writing[name]?.allowed ?? [nil]
            let day = name == moment || name.hasPrefix("moments/") ? nil : writing[name]?.moment
            writing[name] = Held(allowed: old, writing: content, isOpen: true, moment: day)
            written[name] = Held(allowed: [content], isOpen: true, moment: day)
            closed[name] = .whole(content, moment: moment ?? day)
        }
        if let moment {
            // A program that another thread starts closes a copy of the descriptor: that alone may classify it. Synced
            // but not closed, it is filed by the next mount.
            writing[moment] = Held(allowed: [nil], writing: content)
            written[moment] = Held(allowed: [nil, content])
            closed[moment] = .whole(content)
        }
        var file: Int32 = -1
        defer { if file >= 0 { Glibc.close(file) } }
        try journal.step("write \(names)", to: writing) {
            file = try open(names[0], flags)
            if start > 0 { try call("lseek") { lseek(file, start, SEEK_SET) } }
            try write(file, content.bytes[start...])
        }
        if Int.random(in: 0..<3, using: &random) == 0 {
            try journal.step("before fsync", to: written)
            try fsync(file)
        }
        try journal.step("close", to: closed) {
            let closing = file
            file = -1
            try call("close \(names[0])") { Glibc.close(closing) }
        }
    }

    private func writePhoto() throws {
        let photo = newPhoto()
        try write(
            photo.content, to: ["\(somewhere())/\(photo.name)"], O_WRONLY | O_CREAT | O_EXCL,
            moment: photo.moment)
    }

    private func writePlain() throws {
        try write(newContent(), to: ["\(somewhere())/\(name)-\(next()).dat"], O_WRONLY | O_CREAT | O_EXCL)
    }

    /// As cp does over a file.
    private func rewrite(_ path: String) throws {
        try write(
            replacement(path), to: [path] + names(path).filter { $0 != path }, O_WRONLY | O_TRUNC)
    }

    private func rewriteWithin(_ path: String) throws {
        guard let old = journal.now[path]?.allowed[0] else { return }
        let start = Int.random(in: 0...old.bytes.count, using: &random)
        let part = noise(Int.random(in: 0...100_000, using: &random), seed: seed)
        let bytes = old.bytes[..<start] + part
        // The write ends the file, or lies within it.
        if bytes.count < old.bytes.count { return try truncate(path) }
        try write(Content(Array(bytes)), from: start, to: [path], O_WRONLY)
    }

    /// As editors do: a new file, renamed over the old.
    private func save(_ path: String) throws {
        let new = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) + "/.new~"
        let content = replacement(path)
        try write(content, to: [new], O_WRONLY | O_CREAT | O_EXCL)
        var state = journal.now
        state[new] = nil
        for name in names(path) { state[name] = .whole(content, moment: state[name]?.moment) }
        try journal.step("save \(path)", to: state) {
            try call("rename \(new)") { rename(real(new), real(path)) }
        }
    }

    private func move(_ from: String, to: String) throws {
        guard !to.hasPrefix(from + "/") else { return }
        var state = journal.now
        for (path, held) in state where path == from || path.hasPrefix(from + "/") {
            state[path] = nil
            state[to + path.dropFirst(from.count)] = held
        }
        followName(from, to: to, &state)
        try journal.step("move \(from) to \(to)", to: state) {
            if isCarrier {
                try run(["mv", "-T", "D/" + from, "D/" + to])
            } else {
                try call("rename \(from)") { rename(real(from), real(to)) }
            }
        }
    }

    /// The moment that is named after a file of an album follows its new name; names are not used twice.
    private func followName(_ from: String, to: String, _ state: inout [String: Held]) {
        guard let old = journal.now[from]?.moment, old.hasSuffix("/" + base(from)), base(from) != base(to)
        else { return }
        let new = old.dropLast(base(from).count) + base(to)
        state[String(new)] = state.removeValue(forKey: old)
        for (path, held) in state where held.moment == old { state[path]?.moment = String(new) }
    }

    private func base(_ path: String) -> String { String(path.split(separator: "/").last ?? "") }

    private func remove(_ path: String) throws {
        var state = journal.now
        state[path] = nil
        try journal.step("remove \(path)", to: state) { try call("unlink \(path)") { unlink(real(path)) } }
    }

    /// Takes it out of the space, its albums included.
    private func removePhoto(_ moment: String) throws {
        var state = journal.now
        for name in names(moment) { state[name] = nil }
        try journal.step("remove \(moment)", to: state) {
            try call("unlink \(moment)") { unlink(real(moment)) }
        }
    }

    private func addToAlbum(_ moment: String) throws {
        guard let content = journal.now[moment]?.allowed[0] else { return }
        var state = journal.now
        let path = "\(somewhere())/\(name)-\(next()).jpg"
        state[path] = .whole(content, moment: moment)
        try journal.step("link \(moment) to \(path)", to: state) {
            try call("link \(path)") { link(real(moment), real(path)) }
        }
    }

    private func truncate(_ path: String) throws {
        guard let old = journal.now[path]?.allowed[0] else { return }
        let size = Int.random(in: 0...old.bytes.count, using: &random)
        var state = journal.now
        state[path] = .whole(Content(Array(old.bytes.prefix(size))))
        try journal.step("cut \(path)", to: state) {
            try call("truncate \(path)") { Glibc.truncate(real(path), size) }
        }
    }

    private func makeDirectory(_ path: String) throws {
        var state = journal.now
        state[path] = .whole(.directory)
        try journal.step("make \(path)", to: state) { try call("mkdir \(path)") { mkdir(real(path), 0o755) } }
    }

    private func sync(_ path: String) throws {
        let file = try open(path, O_RDONLY)
        defer { Glibc.close(file) }
        try fsync(file)
    }

    private func readBack(_ path: String) throws {
        let bytes = try place.bytes(real(path))
        clock.count()
        if let content = journal.now[path]?.allowed[0], Content(bytes) != content {
            throw Failure(description: "\(path): other bytes than were written")
        }
    }

    /// Asks for a thumbnail, which may fail: workers are killed too.
    private func lookAt(_ moment: String) throws {
        _ = try? place.bytes(thumbnail(moment))
        clock.count()
    }

    func thumbnail(_ moment: String) -> String {
        let parts = moment.split(separator: "/")
        return real("moments/\(parts[1])/.thumbs/\(parts[2])")
    }
}

// MARK: - By programs

extension KillWorker {
    private func carry() throws {
        let trees = directories.filter { $0.split(separator: "/").count == 3 }
        let tree = pick(trees)
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<2: try copyIn(["rsync", "-a"], isWhole: true)
        case 2: try copyIn(["cp", "-rT"], isWhole: false)
        case 3: if let tree { try update(tree) }
        case 4: if let tree { try move(tree, to: "\(home)/t\(next())") }
        case 5: if let tree { try removeTree(tree) }
        case 6: try emptyTrash()
        default: try sync(tree ?? home)
        }
        if journal.now.count > 2 * Self.filesMax {
            for photo in photos.shuffled(using: &random).prefix(Self.filesMax) { try removePhoto(photo) }
        }
    }

    /// Others put something in meanwhile, so that not all of it may go.
    private func emptyTrash() throws {
        clock.count()
        try place.run(["rm", "-rf", "D/.Trash-0/files", "D/.Trash-0/info"])
    }

    private func run(_ words: [String]) throws {
        clock.count()
        let ended = try place.run(words)
        journal.note("\(words): \(ended.status) \(ended.output) \(ended.errors)")
        if ended.status != 0 { throw Failure(description: "\(words): \(ended.errors)") }
    }

    /// Fills a directory outside; returns the bytes by path from it.
    private func makeSource(_ source: String) throws -> [String: (content: Content, moment: String?)] {
        var files: [String: (content: Content, moment: String?)] = [:]
        for _ in 0..<Int.random(in: 3...10, using: &random) {
            let photo = newPhoto()
            files["sub/" + photo.name] = (photo.content, photo.moment)
            files["\(name)-\(next()).dat"] = (newContent(), nil)
        }
        for (path, file) in files { try place.source(source + "/" + path, file.content.bytes) }
        return files
    }

    /// - Parameter isWhole: a file gets its name only when it is complete.
    private func copyIn(_ program: [String], isWhole: Bool) throws {
        let tree = "t\(next())"
        let source = "\(name)-\(next())"
        let files = try makeSource(source)
        var (during, after) = (journal.now, journal.now)
        for path in ["\(home)/\(tree)", "\(home)/\(tree)/sub"] {
            during[path] = Held(allowed: [nil, .directory])
            after[path] = .whole(.directory)
        }
        for (path, file) in files {
            during["\(home)/\(tree)/\(path)"] = Held(
                allowed: [nil, file.content], writing: isWhole ? nil : file.content, moment: file.moment,
                isPaired: isWhole)
            after["\(home)/\(tree)/\(path)"] = .whole(file.content, moment: file.moment)
            if let moment = file.moment {
                during[moment] = Held(allowed: [nil, file.content])
                after[moment] = .whole(file.content)
            }
        }
        try journal.step("\(program) \(tree)", to: during) {
            let slash = isWhole ? "/" : ""
            try run(program + ["source/\(source)\(slash)", "D/\(home)/\(tree)\(slash)"])
        }
        try journal.step("done", to: after)
        try place.run(["rm", "-rf", "source/" + source])
    }

    /// Has rsync make a tree like another: some files are new ones, some are gone.
    private func update(_ tree: String) throws {
        let source = "\(name)-\(next())"
        // It may get nothing.
        try place.run(["mkdir", "-p", "source/" + source])
        var (during, after) = (journal.now, journal.now)
        for (path, held) in journal.now where path.hasPrefix(tree + "/") {
            guard let old = held.allowed[0] else { continue }
            let inside = "\(source)/\(path.dropFirst(tree.count + 1))"
            if old.isDirectory {
                try place.run(["mkdir", "-p", "source/" + inside])
                continue
            }
            // Leaving the album leaves a photo in its day.
            if Int.random(in: 0..<5, using: &random) == 0 {
                during[path] = Held(allowed: [old, nil], moment: held.moment)
                after[path] = nil
                continue
            }
            let new = replacement(path)
            try place.source(inside, new.bytes)
            for name in names(path) {
                let moment = journal.now[name]?.moment
                during[name] = Held(allowed: [old, new], moment: moment)
                after[name] = .whole(new, moment: moment)
            }
        }
        try journal.step("update \(tree)", to: during) {
            try run(["rsync", "-aI", "--delete", "source/\(source)/", "D/\(tree)/"])
        }
        try journal.step("done", to: after)
        try place.run(["rm", "-rf", "source/" + source])
    }

    private func removeTree(_ tree: String) throws {
        var (during, after) = (journal.now, journal.now)
        for (path, held) in journal.now where path == tree || path.hasPrefix(tree + "/") {
            during[path] = Held(allowed: held.allowed + [nil], moment: held.moment)
            after[path] = nil
        }
        try journal.step("remove \(tree)", to: during) { try run(["rm", "-rf", "D/" + tree]) }
        try journal.step("done", to: after)
    }
}
