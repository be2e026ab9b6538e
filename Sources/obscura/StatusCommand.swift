import Encodings
import Glibc
import HostFiles
import LinuxIO

/// `status DIR`, or the status of every mount.
func runStatus(_ arguments: Arguments) throws(Failure) {
    let isJSON = arguments.has(.json)
    if let directory = arguments.operands.first {
        let place = realPath(directory)
        guard let entry = mountEntry(at: place), entry.isObscura else {
            let lost = lostMounts().first { $0.server.daemon.vault == place || $0.directory == place }
            if let lost { return say(isJSON ? lost.json.line : lost.statusText) }
            throw Failure(
                .failed, directory, "no space is mounted here: findmnt -t fuse.obscura lists mounts")
        }
        entry.becomeOwner()
        return say(try statusText(directory, isJSON: isJSON))
    }
    let table = mountTable()
    let directories = spacesMounted(table).filter { directory in
        geteuid() == 0 || table.last { $0.directory == directory }?.mountingUser == geteuid()
    }
    let lost = lostMounts()
    for mount in lost { say(isJSON ? mount.json.line : mount.statusText) }
    if directories.isEmpty {
        if !isJSON && lost.isEmpty { say("nothing is mounted") }
        return
    }
    // A mount may go meanwhile, which is no failure if another answers.
    var failed: Failure?
    var hanging: Failure?
    var isAnswered = false
    for directory in directories {
        if let entry = table.last(where: { $0.directory == directory }), entry.isOfOther {
            isAnswered = askAsOwner(directory, isJSON: isJSON) || isAnswered
            continue
        }
        do throws(Failure) {
            say(try statusText(directory, isJSON: isJSON))
            isAnswered = true
        } catch {
            guard error == hangingFailure(directory) else {
                failed = error
                continue
            }
            if let hanging { note(hanging.line) }
            hanging = error
        }
    }
    if let hanging { throw hanging }
    if let failed, !isAnswered { throw failed }
}

/// Has a process say the status that becomes the user of the mount.
private func askAsOwner(_ directory: String, isJSON: Bool) -> Bool {
    let words = ["/proc/self/exe", "status", directory] + (isJSON ? ["--json"] : [])
    guard let process = try? spawn(words, descriptors: [(STDOUT_FILENO, STDOUT_FILENO)]) else { return false }
    return waitForEnd(of: process) == .exited(0)
}

/// The directories where spaces are mounted, each space once: not where they, or parts of them, are bound as well.
func spacesMounted(_ table: [MountEntry]) -> [String] {
    var directories: [String] = []
    var devices: Set<String> = []
    for entry in table where entry.isObscura && entry.root == "/" && !directories.contains(entry.directory) {
        if devices.insert(entry.device).inserted { directories.append(entry.directory) }
    }
    return directories
}

extension LostMount {
    /// The output of `obscura status`.
    fileprivate var statusText: String {
        let rows = [
            ("Mounted at", "nowhere: \(text)"), ("Vault", server.daemon.vault),
            ("To end it", "obscura unmount --end \(server.daemon.vault)"),
        ]
        return rows.map { statusRow($0, $1) }.joined(separator: "\n")
    }

    /// The output of `obscura status --json`: an object whose `mounted_at` is null.
    fileprivate var json: JSON {
        .object([
            ("mounted_at", .null), ("vault", .path(server.daemon.vault)),
            ("was_mounted_at", .path(directory)), ("held_by", .list(holders.map { .text($0.text) })),
        ])
    }
}

/// A line of `obscura status`.
private func statusRow(_ label: String, _ value: String) -> String {
    label + String(repeating: " ", count: 16 - label.utf8.count) + printable(value)
}

private func statusText(_ directory: String, isJSON: Bool) throws(Failure) -> String {
    let daemon = runningDaemon(of: realPath(directory))
    if let daemon, let seconds = daemon.waitingSeconds {
        // It answers when the cluster does.
        return waitingText(realPath(directory), daemon.daemon.vault, seconds, isJSON: isJSON)
    }
    let answer = try MountedSpace(directory).ask("status", doing: "asking for its status")
    var values = Dictionary(answer.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    values["missing"] = answer.filter { $0.key == "missing" }.map(\.value).joined(separator: " ")
    let place = realPath(directory)
    if let entry = mountEntry(at: place) {
        let holders = mountHolders(ofDevice: entry.device, besides: entry)
        if !holders.isEmpty { values["holders"] = holdersText(holders) }
    }
    values["vault"] = daemon?.daemon.vault
    return isJSON ? statusJSON(place, values) : statusText(place, values)
}

/// The output of `obscura status` for a mount whose requests to a cluster wait.
func waitingText(_ directory: String, _ vault: String, _ seconds: Int, isJSON: Bool) -> String {
    if isJSON { return statusJSON(directory, ["vault": vault, "waiting": "\(seconds)"]) }
    let rows = [
        ("Mounted at", directory), ("Vault", vault), ("Waiting", "waiting for the cluster, \(seconds) s"),
    ]
    return rows.map { statusRow($0, $1) }.joined(separator: "\n")
}

/// The output of `obscura status --json` for one mount: an object on one line.
func statusJSON(_ directory: String, _ values: [String: String]) -> String {
    var members = [
        ("mounted_at", JSON.path(directory)), ("vault", values["vault"].map { .path($0) } ?? .null),
    ]
    let numbers = [
        "total", "free", "available", "photos", "trashed", "thumbnails", "versions", "version_bytes",
        "unsaved",
    ]
    // Of a space that is out of reach nothing is counted.
    let isCounted = values["photos"] != nil
    for key in numbers {
        let number = values[key].flatMap { UInt64($0) }
        members.append((key, number == nil && !isCounted ? .null : .number(number ?? 0)))
    }
    for (key, name) in [
        ("committed", "committed"), ("durable", "durable"), ("readonly", "read_only"),
        ("unwritten", "unwritten"),
    ] {
        members.append((name, .bool(values[key] == "yes")))
    }
    for key in ["reason", "advice"] { members.append((key, .optional(values[key]))) }
    members.append(("missing_helpers", .list(missingHelpers(values).map { .text($0) })))
    if let reason = values["no_places"] { members.append(("no_places", .text(reason))) }
    if let holders = values["holders"] { members.append(("also_held_by", .text(holders))) }
    if let requests = values["requests"] { members.append(("requests", requestCounts(requests))) }
    if let requests = values["cluster"] { members.append(("cluster", requestCounts(requests))) }
    if let seconds = values["waiting"] {
        members.append(("waiting_seconds", .number(answeredNumber(seconds))))
    }
    return JSON.object(members).line
}

/// The names of programs that the mount does without.
private func missingHelpers(_ values: [String: String]) -> [String] {
    (values["missing"] ?? "").split(separator: " ").map(String.init)
}

/// Requests of the kernel since the mount, by operation: of `NAME:COUNT` separated by spaces.
private func requestCounts(_ text: String) -> JSON {
    .object(
        text.split(separator: " ").compactMap { word in
            let parts = word.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2, let count = UInt64(parts[1]) else { return nil }
            return (parts[0], .number(count))
        })
}

/// The output of `obscura status` for one mount.
func statusText(_ directory: String, _ values: [String: String]) -> String {
    func number(_ key: String) -> UInt64 { answeredNumber(values[key]) }
    let used = number("total") - min(number("free"), number("total"))
    let unsaved = Int(number("unsaved"))
    let isReadOnly = values["readonly"] == "yes"
    let isStopped = isReadOnly && values["unwritten"] == "yes" && values["reason"] != nil
    let pending =
        isStopped
        ? "some changes cannot be written: obscura unmount names them"
        : unsaved > 0
            ? "\(counted(unsaved, "file")) in memory"
            : values["durable"] == "yes"
                ? "none, everything is safe on disk" : "written, not yet synced to the disk"
    let trashed = number("trashed") > 0 ? ", \(number("trashed")) more in the trash" : ""
    let versionBytes = number("versions") > 0 ? ", \(sizeText(number("version_bytes"))) of their own" : ""
    var rows = [
        ("Mounted at", directory + (isReadOnly ? " (read-only)" : "")),
        (
            "Size",
            "\(sizeText(number("total"))), \(sizeText(used)) used, \(sizeText(number("available"))) available"
        ),
    ]
    if values["photos"] != nil {
        rows += [
            ("Photos", "\(number("photos"))\(trashed)"),
            ("Thumbnails", "\(number("thumbnails"))"),
            ("Versions", "\(number("versions"))\(versionBytes)"),
        ]
    }
    rows.append(("Pending writes", pending))
    if let holders = values["holders"] { rows.append(("Also held by", holders)) }
    if let reason = values["reason"] {
        rows.append(
            (isReadOnly ? "Read-only" : "Full", "\(reason)\(values["advice"].map { ": \($0)" } ?? "")"))
    }
    if let reason = values["no_places"] { rows.append(("No views/place", reason)) }
    if let missing = Helper.missingText(missingHelpers(values)) { rows.append(("Missing", missing)) }
    return rows.map { statusRow($0, $1) }.joined(separator: "\n")
}
