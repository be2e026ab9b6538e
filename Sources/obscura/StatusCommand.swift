import Glibc
import LinuxIO

/// `status DIR`, or of every mount there is.
func runStatus(_ arguments: Arguments) throws(Failure) {
    if let directory = arguments.operands.first {
        guard let entry = mountEntry(at: realPath(directory)), entry.isObscura else {
            throw Failure(
                .failed, directory, "no space is mounted here: findmnt -t fuse.obscura lists mounts")
        }
        return say(try statusText(directory))
    }
    let directories = spacesMounted(mountTable())
    if directories.isEmpty { return say("nothing is mounted") }
    // Those of others do not answer, which is no failure.
    var failed: Failure?
    var isAnswered = false
    for directory in directories {
        do throws(Failure) {
            say(try statusText(directory))
            isAnswered = true
        } catch { failed = error }
    }
    if let failed, !isAnswered { throw failed }
}

/// Where spaces are mounted, each place once.
func spacesMounted(_ table: [MountEntry]) -> [String] {
    var directories: [String] = []
    for entry in table where entry.isObscura && !directories.contains(entry.directory) {
        directories.append(entry.directory)
    }
    return directories
}

private func statusText(_ directory: String) throws(Failure) -> String {
    let answer = try MountedSpace(directory).ask("status", doing: "asking for its status")
    return statusText(directory, Dictionary(answer.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 }))
}

/// What `obscura status` prints of one mount.
func statusText(_ directory: String, _ values: [String: String]) -> String {
    func number(_ key: String) -> UInt64 { answeredNumber(values[key]) }
    let used = number("total") - min(number("free"), number("total"))
    let unsaved = Int(number("unsaved"))
    let pending =
        unsaved > 0
        ? "\(counted(unsaved, "file")) in memory"
        : values["durable"] == "yes"
            ? "none, everything is safe on disk" : "written, not yet synced to the disk"
    let trashed = number("trashed") > 0 ? ", \(number("trashed")) more in the trash" : ""
    let rows = [
        ("Mounted at", directory + (values["readonly"] == "yes" ? " (read-only)" : "")),
        (
            "Size",
            "\(sizeText(number("total"))), \(sizeText(used)) used, \(sizeText(number("available"))) available"
        ),
        ("Photos", "\(number("photos"))\(trashed)"),
        ("Thumbnails", "\(number("thumbnails"))"),
        ("Pending writes", pending),
    ]
    return rows.map { label, value in
        label + String(repeating: " ", count: 16 - label.utf8.count) + printable(value)
    }.joined(separator: "\n")
}
