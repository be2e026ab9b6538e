import CShims
import FileRequests
import Glibc
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
    let (vault, directory) = (arguments.operands[0], arguments.operands[1])
    let text = arguments[.albums] ?? AlbumForm.link.rawValue
    guard let form = AlbumForm(rawValue: text) else {
        let words = AlbumForm.allCases.map(\.rawValue)
        throw Failure(
            .usage, "--albums \(text)",
            "must be link, copy or none: the nearest is \(nearestWord(to: text, among: words) ?? "link")")
    }
    try requireVault(vault)
    if isInside(realPath(directory), realPath(vault)) {
        throw Failure(.usage, directory, "it is the vault or inside it: export somewhere else")
    }
    let root = HostPath(realPath(directory))
    try checkEmpty(root, named: directory)
    let library = try openLibrary(vault, arguments, readOnly: true)
    let isMade = root.withCString { mkdir($0, 0o700) } == 0
    if !isMade, errno != EEXIST { throw Failure(directory, "making the directory", .last) }
    let run = ExportRun(
        library, to: root, form, special: arguments.has(.special), quiet: arguments.has(.quiet))
    var end: Failure?
    notingInterruption {
        do throws(Failure) { try run.run() } catch { end = error }
        stopForInspection()
    }
    run.progress.end()
    for line in run.report.lines { say(line) }
    for failure in run.report.failures { note(failure.line) }
    if let end { throw end }
    try conclude(run.report, vault, directory)
}

/// Refuses a directory that is not empty: the export must neither mix with existing files nor overwrite them.
private func checkEmpty(_ root: HostPath, named directory: String) throws(Failure) {
    let names: [Name]
    do throws(Errno) { names = try root.list() } catch {
        if error == .noEntry { return }
        throw Failure(directory, "looking into it", error)
    }
    if names.isEmpty { return }
    throw Failure(.failed, directory, "the directory is not empty: name a new or an empty one")
}

private func conclude(_ report: ExportReport, _ vault: String, _ directory: String) throws(Failure) {
    if wasInterrupted {
        throw Failure(
            .interrupted, directory, "interrupted: it is not complete, delete it before trying again")
    }
    if report.damaged > 0 {
        throw Failure(
            .damaged, vault,
            "damage found: \(counted(report.damaged, "file")) could not be read, the rest is exported")
    }
    if !report.failures.isEmpty {
        throw Failure(
            .failed, directory,
            "\(counted(report.failures.count, "file")) could not be written, the rest is exported")
    }
}
