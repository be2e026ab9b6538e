import CShims
import Encodings
import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoLibrary

/// How photos in albums are exported.
enum AlbumForm: String, CaseIterable {
    /// As further names (hard links) of the files in moments.
    case link
    /// As files of their own.
    case copy
    /// Not at all, and neither is anything else in albums.
    case none
}

func runExport(_ arguments: Arguments) throws(Failure) {
    defer { stopForInspection() }
    let (vault, directory) = (arguments.operands[0], arguments.operands[1])
    let text = arguments[.albums] ?? AlbumForm.link.rawValue
    guard let form = AlbumForm(rawValue: text) else {
        let words = AlbumForm.allCases.map(\.rawValue)
        throw Failure(
            .usage, "--albums \(text)",
            "must be link, copy or none: the nearest is \(nearestWord(to: text, among: words) ?? "link")")
    }
    try requireVault(vault)
    try requireUnmounted(vault)
    if isInside(realPath(directory), realPath(vault)) {
        throw Failure(.usage, directory, "it is the vault or inside it: export somewhere else")
    }
    let root = HostPath(realPath(directory))
    _ = try ExportTarget.isUnfinished(root, named: directory)
    let library = try openLibrary(vault, arguments, readOnly: true)
    let target = try ExportTarget(root, named: directory, mark: library.walk.exportMark)
    let run = ExportRun(
        library, to: target, form, special: arguments.has(.special), versions: arguments.has(.versions),
        quiet: arguments.isQuiet)
    var end: Failure?
    notingInterruption {
        do throws(Failure) { try run.run() } catch { end = error }
        stopForInspection()
    }
    run.progress.end()
    if arguments.has(.json) {
        let isComplete =
            end == nil && !wasInterrupted && run.report.failures.isEmpty && !library.isOlderState
        say(run.report.json(vault, directory, isComplete: isComplete).line)
    } else {
        for line in run.report.lines { say(line) }
        for failure in run.report.failures { note(failure.line) }
    }
    if let end { throw end }
    try conclude(run.report, vault, directory)
    if library.isOlderState {
        throw Failure(
            .damaged, vault,
            "damage found: the newest state of the space cannot be read, an older one is exported: "
                + "run obscura check \(vault)")
    }
}

/// Throws if not everything is exported.
private func conclude(_ report: ExportReport, _ vault: String, _ directory: String) throws(Failure) {
    if wasInterrupted {
        throw Failure(.interrupted, directory, "interrupted: run the same command again to go on")
    }
    if !report.damaged.isEmpty {
        throw Failure(
            .damaged, vault,
            "damage found: \(counted(report.damaged.count, "file")) could not be read, the rest is exported: "
                + "run obscura check \(vault)"
        )
    }
    if !report.failures.isEmpty {
        throw Failure(
            .failed, directory,
            "\(counted(report.failures.count, "file")) could not be written, the rest is exported: "
                + "mend the cause, then run this again to add the missing")
    }
}
