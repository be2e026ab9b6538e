import Encodings
import HostFiles
import LinuxIO

/// The results of an export.
struct ExportReport {
    /// Photos and other files that this run wrote, and their bytes.
    var photos = 0
    var otherFiles = 0
    var byteCount: UInt64 = 0
    /// Further names that it made of them.
    var links = 0
    /// Names that an interrupted run had exported.
    var present = 0
    /// Files whose extended attributes the target does not take.
    var withoutAttributes = 0
    /// Files of the library that cannot be read.
    private(set) var damaged: [PathNote] = []
    /// Files that the target did not take.
    private(set) var unwritten: [PathNote] = []
    /// Things that were left out or changed because a vault of unknown origin could harm the machine with them.
    private(set) var withheld: [PathNote] = []
    /// Files that were in the way and differed: their old and new paths.
    private(set) var renamed: [(path: HostPath, to: HostPath)] = []
    private var failed: [Failure] = []

    /// Notes a file whose bytes cannot be read.
    mutating func addDamaged(_ path: HostPath) {
        damaged.append(PathNote(path: path, reason: "damaged: its bytes cannot be read"))
        failed.append(Failure(.damaged, path.shown, "damaged: its bytes cannot be read"))
    }

    /// Notes a file that could not be written.
    mutating func addUnwritten(_ path: HostPath, _ error: Errno) {
        let failure = Failure(path.shown, "writing it", error)
        unwritten.append(PathNote(path: path, reason: failure.why))
        failed.append(failure)
    }

    /// Notes something that was left out or changed.
    mutating func addWithheld(_ path: HostPath, _ fact: String) {
        withheld.append(PathNote(path: path, reason: fact))
    }

    /// Notes a file that was in the way.
    mutating func addRenamed(_ path: HostPath, to other: HostPath) { renamed.append((path, other)) }

    /// An error for each file that could not be read or written, in the order of the export.
    var failures: [Failure] { failed }

    /// The report at the end, a line for each fact.
    var lines: [String] {
        var lines = ["\(counted(photos, "photo")) exported, \(sizeText(byteCount))"]
        func line(_ count: Int, _ text: String) { if count > 0 { lines.append("\(count) \(text)") } }
        line(links, "\(links == 1 ? "name" : "names") in albums linked")
        line(otherFiles, "other \(otherFiles == 1 ? "file" : "files") exported")
        line(present, "\(present == 1 ? "was" : "were") there already")
        line(withoutAttributes, "without their extended attributes, which the target does not take")
        line(damaged.count, "could not be read")
        lines += renamed.map { "\($0.path.shown): another file had this name, and is \($0.to.shown) now" }
        return lines + withheld.map { "\($0.path.shown): \($0.reason)" }
    }

    /// The output of `obscura export --json`.
    func json(_ vault: String, _ directory: String, isComplete: Bool) -> JSON {
        let others = renamed.map { file in
            JSON.object([("path", .path(file.path.bytes)), ("renamed_to", .path(file.to.bytes))])
        }
        return .object([
            ("vault", .path(vault)), ("directory", .path(directory)), ("complete", .bool(isComplete)),
            ("photos", .count(photos)), ("bytes", .number(byteCount)), ("other_files", .count(otherFiles)),
            ("album_names", .count(links)), ("already_there", .count(present)),
            ("without_attributes", .count(withoutAttributes)), ("damaged", .list(damaged.map(\.json))),
            ("not_written", .list(unwritten.map(\.json))), ("withheld", .list(withheld.map(\.json))),
            ("renamed", .list(others)),
        ])
    }
}
