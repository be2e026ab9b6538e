import Synchronization
import TestSupport

/// A file's bytes, or that it is a directory.
struct Content: Equatable, Sendable {
    let bytes: [UInt8]
    let isDirectory: Bool
    private let digest: Int

    static let directory = Content([], isDirectory: true)

    init(_ bytes: [UInt8], isDirectory: Bool = false) {
        self.bytes = bytes
        self.isDirectory = isDirectory
        var hasher = Hasher()
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        digest = hasher.finalize()
    }

    /// By digest: many states are compared.
    static func == (one: Content, other: Content) -> Bool {
        one.isDirectory == other.isDirectory && one.bytes.count == other.bytes.count
            && one.digest == other.digest
    }
}

/// The allowed contents of a path.
struct Held: Sendable {
    /// One of these; nil: nothing.
    var allowed: [Content?]
    /// Also a part of the way from the former bytes to these, because the file is being written.
    var writing: Content?
    /// It has not been closed since it was written, so nobody has looked whether it is a photo.
    var isOpen = false
    /// Of a photo, its path in `moments`.
    var moment: String?
    /// Whether the photo must be in its day as soon as this path is there.
    var isPaired = true

    static func whole(_ content: Content, moment: String? = nil) -> Held {
        Held(allowed: [content], moment: moment)
    }

    /// A file being written is old, new, or the beginning of new with the old bytes behind it.
    func accepts(_ found: Content?) -> Bool {
        if allowed.contains(found) { return true }
        guard let writing, let found, !found.isDirectory else { return false }
        let olds = allowed.compactMap { $0?.bytes }
        let sizeMax = max(writing.bytes.count, olds.map(\.count).max() ?? 0)
        return found.bytes.count <= sizeMax
            && found.bytes.indices.allSatisfy { at in
                let byte = found.bytes[at]
                return (at < writing.bytes.count && writing.bytes[at] == byte)
                    || olds.contains { at < $0.count && $0[at] == byte }
            }
    }
}

/// All that one worker has made, by path from the mount.
typealias KillState = [String: Held]

/// Every state that a worker's files went through, in order. A kill leaves one of them: not before the last that is
/// known to be in a root, and not after the step under way.
final class Journal: Sendable {
    private struct Steps {
        /// From `first` on, by number, each with its cause.
        var states: [(words: String, state: KillState)]
        /// The last operations, for the message of a failing test.
        var history: [String] = []
        var first = 0
        /// The last state that was certainly reached.
        var done = 0
        /// The last one that must be there after a kill.
        var safe = 0
    }
    private let steps: Mutex<Steps>
    private static let historyMax = 30

    init() { steps = Mutex(Steps(states: [("nothing", [:])])) }

    /// Where the worker is. It alone changes that.
    var now: KillState { steps.withLock { $0.states[$0.states.count - 1].state } }

    /// The number of the last step that is done.
    var done: Int { steps.withLock { $0.done } }

    /// Does something that leads to another state; after an error it may have led there or not.
    func step(_ words: String, to state: KillState, _ body: () throws -> Void = {}) throws {
        steps.withLock { steps in
            steps.states.append((words, state))
            steps.history = steps.history.suffix(Self.historyMax) + [words]
        }
        try body()
        steps.withLock { $0.done += 1 }
    }

    /// From now on nothing before the state of this number may be found.
    func noteSafe(_ number: Int) {
        steps.withLock { steps in
            guard number > steps.safe else { return }
            steps.safe = number
            steps.states.removeFirst(number - steps.first)
            steps.first = number
        }
    }

    /// The states that a kill may leave.
    var candidates: [(words: String, state: KillState)] { steps.withLock { $0.states } }

    /// Notes something for the message of a failing test.
    func note(_ words: String) { steps.withLock { $0.history.append(words) } }

    /// The last steps.
    var history: [String] { steps.withLock { $0.history } }

    /// The worker goes on from the state that was found.
    func restart(from state: KillState) {
        steps.withLock { steps in
            steps = Steps(states: [("what was found", state)], history: steps.history + ["what was found"])
        }
    }
}

/// The contents of a path after a mount.
struct FoundFile {
    var content: Content
    var inode: UInt64
}

/// Compares a mount's files with the allowed states.
struct KillJudge {
    let found: [String: FoundFile]

    /// The first state that equals the tree found, of each path its one content; or, if there is none, what
    /// is wrong with the most similar.
    func match(_ candidates: [(words: String, state: KillState)]) -> Result<KillState, Mismatch> {
        var least: (number: Int, wrong: [String])?
        for (number, candidate) in candidates.enumerated() {
            let wrong = differences(from: candidate.state)
            if wrong.isEmpty { return .success(settled(candidate.state)) }
            if wrong.count < least?.wrong.count ?? .max { least = (number, wrong) }
        }
        let nearest = least.map { "\($0.number): \(candidates[$0.number].words)" } ?? "none"
        return .failure(Mismatch(words: ["the nearest is \(nearest)"] + (least?.wrong.prefix(20) ?? [])))
    }

    struct Mismatch: Error {
        var words: [String]
    }

    private func differences(from state: KillState) -> [String] {
        var wrong: [String] = []
        for (path, held) in state {
            let here = found[path]
            if !held.accepts(here?.content) {
                let due = held.allowed.map { $0.map { "\($0.bytes.count) bytes" } ?? "nothing" }
                wrong.append(
                    "\(path): \(here.map { "\($0.content.bytes.count) bytes" } ?? "nothing"), not "
                        + due.joined(separator: " or ")
                        + (held.writing.map { " or part of \($0.bytes.count)" } ?? ""))
            }
            guard let here, let moment = held.moment else { continue }
            let isMissing = found[moment] == nil && held.isPaired
            let isOther = found[moment].map { $0.inode != here.inode } ?? false
            if isMissing || isOther { wrong.append("\(path): it is not in \(moment)") }
        }
        for (path, file) in found where state[path] == nil && !Self.isLeftover(path) {
            wrong.append("\(path): \(file.content.bytes.count) bytes, not nothing")
        }
        return wrong
    }

    /// rsync's name for a file until it is whole.
    static func isLeftover(_ path: String) -> Bool {
        let name = path.split(separator: "/").last ?? ""
        let parts = name.split(separator: ".")
        return name.hasPrefix(".") && parts.count > 1 && parts.last?.count == 6
    }

    private func settled(_ state: KillState) -> KillState {
        var settled: KillState = [:]
        for (path, held) in state {
            // An unfinished file is removed by the next worker.
            guard let here = found[path], !held.isOpen else { continue }
            let known = held.allowed.compactMap { $0 }.first { $0 == here.content }
            let whole = known ?? (held.writing == here.content ? held.writing : nil)
            if let whole, held.moment.map({ found[$0] != nil }) ?? true {
                settled[path] = .whole(whole, moment: held.moment)
            }
        }
        return settled
    }
}
