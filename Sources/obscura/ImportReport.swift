import LinuxIO

/// A number of files, and the names of the first few.
struct FewNames {
    static let namesMax = 10

    private(set) var count = 0
    private(set) var names: [String] = []

    mutating func add(_ name: String) {
        count += 1
        if names.count < Self.namesMax { names.append(name) }
    }

    /// `: a, b` if there are few; else empty.
    var list: String { count > 0 && count <= Self.namesMax ? ": " + names.joined(separator: ", ") : "" }
}

/// The results of an import, or those that a dry run predicts.
struct ImportReport {
    var isDry = false
    /// Number of photos that were added, and their days.
    private(set) var added = 0
    private(set) var addedBytes: UInt64 = 0
    private(set) var days: Set<String> = []
    var undated = FewNames()
    var duplicates = 0
    /// Duplicates that the album did not contain yet.
    var joined = 0
    var sidecars = 0
    /// Files of an exported library that are not photos, and names in its albums.
    var plainFiles = 0
    var links = 0
    var others = 0
    var removed = 0
    /// Sources that could not be read or removed, with the reason.
    private(set) var failures: [Failure] = []
    private(set) var unreadable = 0
    private(set) var unremoved = 0

    mutating func add(day: String, _ byteCount: UInt64) {
        added += 1
        addedBytes = sizeSum(addedBytes, byteCount)
        days.insert(day)
    }

    mutating func addUnreadable(_ path: HostPath, _ why: String) {
        unreadable += 1
        failures.append(Failure(.failed, path.shown, why))
    }

    mutating func addUnremoved(_ path: HostPath, _ why: String) {
        unremoved += 1
        failures.append(Failure(.failed, path.shown, "imported, but not removed: \(why)"))
    }

    /// The report at the end, a line for each fact.
    var lines: [String] {
        let would = isDry ? "would be " : ""
        var lines: [String] = []
        let size = added > 0 ? ", \(sizeText(addedBytes))" : ""
        lines.append("\(counted(added, "photo")) \(would)added\(size)\(daysText)")
        func line(_ count: Int, _ text: String) { if count > 0 { lines.append("\(count) \(text)") } }
        line(
            duplicates,
            "\(duplicates == 1 ? "duplicate" : "duplicates") skipped"
                + (joined > 0 ? ", \(joined) of them \(would)added to the album" : ""))
        line(undated.count, "without a date, under the day of their file's time\(undated.list)")
        line(sidecars, "\(sidecars == 1 ? "sidecar" : "sidecars") \(would)carried along")
        line(plainFiles, "other \(plainFiles == 1 ? "file" : "files") \(would)restored")
        line(links, "\(links == 1 ? "name" : "names") in albums \(would)restored")
        line(others, "left out: no photos")
        line(unreadable, "could not be read")
        line(removed, "removed from where they were")
        line(unremoved, "could not be removed from where they were")
        return lines
    }

    private var daysText: String {
        guard let first = days.min(), let last = days.max() else { return "" }
        return first == last ? ", on \(first)" : ", on \(days.count) days from \(first) to \(last)"
    }
}

/// `1 photo`, `2 photos`.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
