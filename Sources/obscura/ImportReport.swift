import Encodings
import HostFiles
import Importing
import LinuxIO

extension PathNote {
    /// For `--json`.
    var json: JSON { .object([("path", .path(path.bytes)), ("reason", .text(reason))]) }
}

extension ImportReport {
    /// At most this many undated photos are named.
    static let namesMax = 10

    /// Sources that could not be read or removed.
    var failures: [Failure] {
        (unreadable + unremoved).map { Failure(.failed, $0.path.shown, $0.reason) }
    }

    /// At most this many files that are no photos are named, unless all are to be.
    private static let othersMax = 3

    /// The report at the end, a line for each fact.
    ///
    /// - Parameter isVerbose: whether all files that are no photos are named, in a line each.
    func lines(isVerbose: Bool) -> [String] {
        let would = isDry ? "would be " : ""
        var lines: [String] = []
        let size = added > 0 ? ", \(sizeText(addedBytes))" : ""
        lines.append("\(counted(added, "photo")) \(would)added\(size)\(daysText)")
        func line(_ count: Int, _ text: String) { if count > 0 { lines.append("\(count) \(text)") } }
        line(
            duplicates,
            "\(duplicates == 1 ? "duplicate" : "duplicates") skipped"
                + (joined > 0 ? ", \(joined) of them \(would)added to the album" : ""))
        line(undated.count, "without a date, under the day of their file's time\(undatedText)")
        line(sidecars, "\(sidecars == 1 ? "sidecar" : "sidecars") \(would)carried along")
        line(
            differingSidecars.count,
            "\(differingSidecars.count == 1 ? "sidecar" : "sidecars") left out, the photo has another: "
                + differingSidecars.prefix(Self.namesMax).map(\.shown).joined(separator: ", "))
        line(plainFiles, "other \(plainFiles == 1 ? "file" : "files") \(would)restored")
        line(links, "\(links == 1 ? "name" : "names") in albums \(would)restored")
        line(
            others.count,
            "left out: no photos"
                + (isVerbose
                    ? ":" : " (\(listed(others, most: Self.othersMax, hint: ": --verbose names them")))"))
        if isVerbose { lines += others.map { "  " + $0.shown } }
        line(unreadable.count, "could not be imported")
        line(removed, "removed from where they were")
        line(unremoved.count, "could not be removed from where they were")
        return lines + (takeout?.lines(isDry: isDry) ?? [])
    }

    /// The output of `obscura import --json`.
    ///
    /// - Parameter left: with `--move`, the files that are still below the given directories.
    func json(_ vault: String, isComplete: Bool, left: UnencryptedFiles.Sum?) -> JSON {
        let members: [(String, JSON)] = [
            ("vault", .path(vault)), ("dry_run", .bool(isDry)), ("complete", .bool(isComplete)),
            ("photos", .count(added)), ("bytes", .number(addedBytes)),
            ("days", .list(days.sorted().map { .text($0) })), ("duplicates", .count(duplicates)),
            ("duplicates_added_to_album", .count(joined)), ("sidecars", .count(sidecars)),
            ("differing_sidecars", .list(differingSidecars.map { .path($0.bytes) })),
            ("other_files", .count(plainFiles)), ("album_names", .count(links)),
            ("removed", .count(removed)), ("undated", .list(undated.map { .path($0.bytes) })),
            ("not_photos", .list(others.map { .path($0.bytes) })),
            ("unreadable", .list(unreadable.map(\.json))), ("not_removed", .list(unremoved.map(\.json))),
        ]
        let stay = left.map { [("left", JSON.list($0.paths.map { .path($0.bytes) }))] } ?? []
        return .object(members + stay + (takeout?.members ?? []))
    }

    /// `: a, b` if there are few; else empty.
    private var undatedText: String {
        undated.isEmpty || undated.count > Self.namesMax
            ? "" : ": " + undated.map(\.shown).joined(separator: ", ")
    }

    private var daysText: String {
        guard let first = days.min(), let last = days.max() else { return "" }
        return first == last ? ", on \(first)" : ", on \(days.count) days from \(first) to \(last)"
    }
}

/// `a, b, c and 15 more`.
///
/// - Parameters:
///   - count: more than there are `paths`, if not all were kept.
///   - hint: comes after the number of others.
func listed(_ paths: [HostPath], of count: Int? = nil, most: Int, hint: String = "") -> String {
    let others = (count ?? paths.count) - most
    return paths.prefix(most).map(\.shown).joined(separator: ", ")
        + (others > 0 ? " and \(others) more\(hint)" : "")
}

/// `1 photo`, `2 photos`.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
