import Encodings
import HostFiles
import LinuxIO
import PhotoLibrary
import Recovery
import VaultStore

/// A finding of a check, in the vault's files or in the space.
struct CheckFinding: Equatable {
    /// The raw value of a `FindingKind`, or `vault_file`.
    var kind: String
    /// From the root of a mount, or for `vault_file` from the vault's directory; in moments first.
    var paths: [[UInt8]] = []
    /// The line that is printed.
    var text: String
    /// See `Finding.isNote`.
    var isNote = false

    /// A finding that a mount told.
    init(kind: String, paths: [[UInt8]] = [], text: String) {
        (self.kind, self.paths, self.text) = (kind, paths, text)
    }

    /// A finding in the space.
    init(_ finding: Finding) {
        self.init(kind: finding.kind.rawValue, paths: finding.paths, text: finding.text)
        isNote = finding.isNote
    }

    /// A finding in the vault's files.
    init(_ damage: FileDamage) {
        self.init(
            kind: "vault_file", paths: [Array(damage.file.utf8)],
            text: printable("\(damage.file): \(damage.cause)"))
    }

    /// A member of `findings` or `still_damaged`.
    var json: JSON {
        .object([
            ("kind", .text(kind)), ("path", paths.first.map { .path($0) } ?? .null),
            ("other_paths", .list(paths.dropFirst().map { .path($0) })), ("text", .text(text)),
        ])
    }
}

/// The results of a check: lines that are printed at once, or with `--json` one object at the end.
struct CheckOutput {
    /// Whether `--json` was given.
    let isJSON: Bool
    /// A vault or the directory of a mount.
    let place: String
    /// All findings before a repair.
    private(set) var findings: [CheckFinding] = []
    /// Regular files of the space; nil for a mount.
    var fileCount: Int?
    /// Bytes read.
    var bytes: UInt64 = 0
    /// The space was opened. Before, only findings in the vault's files are a result.
    var hasBegun = false
    /// All was checked.
    var isComplete = false
    /// Findings that are no damage.
    private(set) var notes: [CheckFinding] = []
    private var strays: [String] = []
    /// Nil if nothing was to be repaired.
    private var repairs: [String]?
    private var isRepaired = false
    /// Damage after a repair; nil before.
    private var remaining: [CheckFinding]?

    /// - Parameter place: the operand.
    init(_ place: String, isJSON: Bool) {
        self.place = place
        self.isJSON = isJSON
    }

    /// Prints the object, if there is a result: also that of a check that failed.
    func end() {
        if isJSON, hasBegun || !findings.isEmpty { say(json.line) }
    }

    /// Prints a line of text.
    func line(_ text: String) { if !isJSON { say(text) } }

    /// Adds findings, and prints them.
    mutating func add(_ new: [CheckFinding]) {
        findings += new
        for finding in new { line(finding.text) }
    }

    /// Adds findings that are no damage, and prints them.
    mutating func add(notes new: [CheckFinding]) {
        notes += new
        for finding in new { line("note: \(finding.text)") }
    }

    /// Adds files that do not belong to the vault.
    mutating func add(strays paths: [String]) {
        strays = paths.sorted()
        if !isJSON, !paths.isEmpty { note(strayLine(paths, place)) }
    }

    /// Lists the planned steps of a repair.
    ///
    /// - Parameter isAsked: whether the user is asked, and so has to see the list also where standard output is JSON.
    mutating func add(repairs steps: [String], keepsDamagedFiles: Bool, isAsked: Bool) {
        repairs = (repairs ?? []) + steps
        var lines = ["To be repaired:"] + steps.map { "  \($0)" }
        if keepsDamagedFiles { lines.append("Damaged files stay; their intact parts stay readable.") }
        for text in lines {
            if !isJSON { say(text) } else if isAsked { note(text) }
        }
    }

    /// Lists the damage that a repair left.
    mutating func conclude(repaired left: [CheckFinding]) {
        isRepaired = true
        remaining = left
        if !left.isEmpty { line("Still damaged:") }
        for finding in left { line("  \(finding.text)") }
    }

    /// The output of `obscura check --json`.
    var json: JSON {
        .object([
            ("checked", .path(place)), ("complete", .bool(isComplete)),
            ("files", fileCount.map { .count($0) } ?? .null), ("bytes_read", .number(bytes)),
            ("findings", .list(findings.map(\.json))), ("notes", .list(notes.map(\.json))),
            ("unexpected_files", .list(strays.map { .path($0) })),
            ("repairs", repairs.map { .list($0.map { .text($0) }) } ?? .null),
            ("repaired", .bool(isRepaired)),
            ("still_damaged", remaining.map { .list($0.map(\.json)) } ?? .null),
        ])
    }
}
