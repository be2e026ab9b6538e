import Foundation
import Glibc

/// Where a mount differs from its model.
struct ModelFailure: Error, CustomStringConvertible {
    let description: String
}

/// A player that does random operations, on a mount and on its model, and compares them. Several may work in one space
/// at a time: each has albums, days, pictures and names of its own, and all have the trash in common.
struct ModelPlayer {
    /// Part of every name this player gives.
    let marker: String
    /// Whether nobody else works in the space.
    let isAlone: Bool
    let model = ModelTree(uid: getuid())
    let mounted: MountedTree
    private var random: RandomSource
    private let seed: UInt64
    /// Where its albums are.
    let base: String
    let days: [String]
    /// How often something new was made.
    private var count = 0
    /// All that was done; nil: a new mount.
    private(set) var done: [ModelOperation?] = []
    /// Paths that once led somewhere.
    private var known: Set<String> = []
    /// States since the last sync, one of which a crash leaves; nil while nobody wants to know.
    private(set) var history: [ShownTree]?

    /// - Parameter number: of the player, from 0; nil: it is alone.
    init(root: String, number: Int?, seed: UInt64) {
        mounted = MountedTree(root: root)
        isAlone = number == nil
        marker = "t\(number ?? 0)"
        base = number == nil ? "albums" : "albums/\(marker)"
        let year = 2010 + (number ?? 0)
        days = ["01-01", "02-02", "03-03", "04-04"].map { "\(year)-\($0)" }
        random = RandomSource(seed &* 64 &+ UInt64(number ?? 63))
        self.seed = seed
    }

    var trash: String { model.trashName }
    var files: String { trash + "/files" }

    /// A number below `bound`.
    mutating func roll(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    /// A number that no other thing has.
    mutating func anew() -> Int {
        count += 1
        return count
    }

    // MARK: Doing

    /// Makes the directories of a player.
    mutating func begin() throws {
        if !isAlone {
            try perform(.makeDirectory(base))
            for path in [trash, files, trash + "/info"] {
                _ = model.apply(.makeDirectory(path))
                _ = mounted.apply(.makeDirectory(path))
            }
        }
        for day in days.dropLast() { try perform(.makeDirectory("moments/" + day)) }
        for album in ["A", "B"] { try perform(.makeDirectory("\(base)/\(album)\(marker)")) }
    }

    /// Does it to both; throws where they answer differently.
    @discardableResult
    mutating func perform(_ operation: ModelOperation) throws -> Int32 {
        // No rule is about a half-done entry in the trash.
        if changesTrashed(operation) { return EPERM }
        done.append(operation)
        let found: Int32
        if case .replace(let path, let temporary) = operation {
            (found, model.isReplacedAtOnce) = mounted.replace(path, by: temporary)
        } else {
            found = mounted.apply(operation)
        }
        let expected: Int32
        if history == nil {
            expected = model.apply(operation)
        } else {
            var passed: [ShownTree] = []
            model.passing = { [model, isAlone] in passed.append(model.shown(isAlone: isAlone)) }
            expected = model.apply(operation)
            model.passing = {}
            history?.append(contentsOf: passed + [model.shown(isAlone: isAlone)])
        }
        if expected != found {
            throw failure("\(operation): \(name(found)) instead of \(name(expected))")
        }
        return found
    }

    private func changesTrashed(_ operation: ModelOperation) -> Bool {
        switch operation {
        case .write(let path, _), .append(let path, _), .truncate(let path, _):
            model.node(path).map { model.trashedPhoto(behind: $0) != nil } ?? false
        default: false
        }
    }

    private func name(_ error: Int32) -> String { error == 0 ? "done" : String(cString: strerror(error)) }

    private func failure(_ words: String) -> ModelFailure {
        let last = done.suffix(40).map { $0.map { "\($0)" } ?? "mount" }.joined(separator: "\n")
        return ModelFailure(
            description: "seed \(seed), \(marker), after \(done.count) operations: \(words)\n\(last)")
    }

    // MARK: Comparing

    /// Compares all that can be seen. Notifications of changes reach the kernel a little later.
    mutating func compare(_ words: String = "") throws {
        if let lost = model.photoOutsideMoments { throw failure("\(words)\(lost) is in no day") }
        let due = model.shown(isAlone: isAlone)
        var difference = ""
        eventually {
            difference = Self.difference(of: look(), from: due)
            return difference.isEmpty
        }
        if !difference.isEmpty { throw failure(words + difference) }
        try checkGone()
        known.formUnion(due.keys)
    }

    /// The visible state of this player's files.
    func look() -> ShownTree {
        let (marker, base, trash, isAlone) = (marker, base, trash, isAlone)
        let year = days.first?.prefix(4) ?? ""
        return mounted.shown(isAlone: isAlone) { path in
            if isAlone || path == base || path.hasPrefix(base + "/") { return true }
            if path.hasPrefix("moments/\(year)-") { return true }
            let parts = path.split(separator: "/")
            return path.hasPrefix(trash + "/") && parts.count > 2 && parts[2].contains(marker)
        }
    }

    /// The differences of two trees; empty if they are the same.
    static func difference(of found: ShownTree, from due: ShownTree) -> String {
        Set(found.keys).union(due.keys).sorted().filter { found[$0] != due[$0] }.map { path in
            "\n\(path)\n    is     \(found[path] ?? "not there")\n    not    \(due[path] ?? "not there")"
        }.joined()
    }

    /// No path may lead anywhere that led somewhere once and is gone.
    private mutating func checkGone() throws {
        for path in known.sorted() where model.node(path) == nil {
            known.remove(path)
            let isGone = eventually { !mounted.exists(path) }
            if !isGone { throw failure("\(path) is not listed but there") }
        }
    }

    /// From now on states are kept.
    mutating func beginHistory() { history = [model.shown(isAlone: isAlone)] }

    /// A crash left some state of the history; throws where it did not.
    mutating func expectHistory() throws {
        var nearest = ""
        let isOne = eventually {
            let found = look()
            let differences = (history ?? []).map { Self.difference(of: found, from: $0) }
            nearest = differences.min { $0.count < $1.count } ?? ""
            return nearest.isEmpty
        }
        if !isOne {
            throw failure("a crash left none of the last \(history?.count ?? 0) states, but: \(nearest)")
        }
    }

    mutating func remounted() {
        model.remount()
        done.append(nil)
    }
}
