import Encodings
import FileRequests
import Glibc
import HostFiles
import Importing
import LinuxIO
import PhotoImport
import PhotoLibrary
import VaultStore

extension ImportSettings {
    /// Of `obscura import`. An interruption calls it off.
    init(_ arguments: Arguments) throws(Failure) {
        self.init { wasInterrupted }
        isDry = arguments.has(.dryRun)
        moves = arguments.has(.move)
        if arguments.has(.takeout), moves {
            throw Failure(
                .usage, "--move", "not with --takeout: remove the export yourself once it is imported")
        }
        if arguments.has(.takeout), arguments[.album] != nil {
            throw Failure(.usage, "--album", "not with --takeout: the export has albums of its own")
        }
        if let text = arguments[.album] { album = try albumNames(text) }
    }
}

/// The names of the directories of an album, as `--album` gives them: `Trip/Day 2`.
func albumNames(_ text: String) throws(Failure) -> [Name] {
    let names = text.split(separator: "/").map { Name(pathBytes(String($0))) }
    for name in names where name == "." || name == ".." || ImportRules.isWorkingDirectory(name) {
        throw Failure(
            .usage, "--album \(text)", "\(name) cannot be part of an album's name: choose another")
    }
    guard !names.isEmpty, names.allSatisfy({ $0.bytes.count <= 255 }) else {
        throw Failure(
            .usage, "--album \(text)", "not an album name: use a name such as Trip or Trip/Day 2")
    }
    return names
}

func runImport(_ arguments: Arguments) throws(Failure) {
    defer { stopForInspection() }
    let vault = arguments.operands[0]
    let settings = try ImportSettings(arguments)
    try requireVault(vault)
    try requireUnmounted(vault)
    if settings.moves {
        for path in arguments.operands.dropFirst() where isLinkToFile(path) {
            throw Failure(.usage, path, "a symbolic link: --move removes files, so name the file itself")
        }
    }
    let library = try openLibrary(vault, arguments, readOnly: settings.isDry, commitsSeldom: true)
    let paths = outermost(arguments.operands.dropFirst().map { HostPath(realPath($0)) })
    let identity = (try? HostPath(vault).status())?.identity
    var end: Failure?
    let (run, progress) = notingInterruption {
        let run: any ImportTask =
            arguments.has(.takeout)
            ? TakeoutRun(library, paths, vault: identity, settings)
            : ImportRun(library, paths, vault: identity, settings)
        let progress = TransferProgress("Importing", run.state, quiet: arguments.isQuiet)
        run.onProgress = { progress.state = $0 }
        do throws(FileError) { try run.run() } catch { end = failure(error, vault: vault) }
        stopForInspection()
        do throws(FileError) { try library.close() } catch { end = end ?? failure(error, vault: vault) }
        return (run, progress)
    }
    progress.end()
    let report = run.report
    var left: UnencryptedFiles.Sum?
    if settings.moves, !settings.isDry {
        left = UnencryptedFiles.Sum(paths.map { UnencryptedFiles(in: $0, except: identity) })
    }
    if arguments.has(.json) {
        let isComplete = end == nil && !wasInterrupted && report.failures.isEmpty
        say(report.json(vault, isComplete: isComplete, left: left).line)
    } else {
        for line in report.lines(isVerbose: arguments.has(.verbose)) { say(line) }
        if let left, left.count > 0 { say(left.line) }
        for failure in report.failures { note(failure.line) }
    }
    if let end { throw end }
    try conclude(report, vault)
}

private func isLinkToFile(_ path: String) -> Bool {
    guard let status = try? HostPath(path).status(), status.isSymbolicLink else { return false }
    return (try? HostPath(realPath(path)).status())?.isRegular == true
}

/// Opens the space that the password opens, as a mount does, but in this process.
///
/// - Parameter commitsSeldom: see `LibraryOptions.commitsSeldom`.
func openLibrary(
    _ vault: String, _ arguments: Arguments, readOnly: Bool, commitsSeldom: Bool = false
) throws(Failure) -> Library {
    return try Passwords(arguments).opening(vault) { (password) throws(VaultError) in
        let space = try unlockPatiently(vault, password, readOnly: readOnly)
        var options = LibraryOptions.forThisUser
        options.readOnly = readOnly
        options.thumbnails = .off
        options.commitsSeldom = commitsSeldom
        let library = try Library.open(space, options: options)
        library.startCoverTraffic()
        library.didGoLive()
        return library
    }
}

/// The message about a refusal by the vault itself.
func failure(_ error: FileError, vault: String) -> Failure {
    switch error {
    case .noRoom:
        failure(
            .noRoom, vault: vault,
            why: (try? Vault.info(vault))?.grows == true
                ? "its disk is full: free room there, then run this again"
                : "the space or its disk is full: free room or run obscura grow \(vault) SIZE, then run this again"
        )
    case .damaged:
        failure(
            .damaged, vault: vault, why: "damage found: some data cannot be read: run obscura check \(vault)")
    case .readOnly:
        failure(.failed, vault: vault, why: "no more can be written: check its disk, then run this again")
    case .notDirectory:
        failure(.failed, vault: vault, why: "a file has the name of the album: choose another name")
    default: failure(.failed, vault: vault, why: "the vault returned an error (\(error)): try again")
    }
}

private func failure(_ status: ExitStatus, vault: String, why: String) -> Failure {
    Failure(status, vault, why)
}

/// Throws if not everything succeeded.
private func conclude(_ report: ImportReport, _ vault: String) throws(Failure) {
    if wasInterrupted {
        throw Failure(.interrupted, vault, "interrupted: run the same command again to go on")
    }
    guard !report.failures.isEmpty else { return }
    throw Failure(
        .failed, vault,
        !report.unreadable.isEmpty
            ? "\(counted(report.unreadable.count, "source")) could not be imported, "
                + (report.isDry ? "the rest can be" : "the rest has been")
            : "\(counted(report.unremoved.count, "source")) could not be removed: all has been imported")
}

/// The paths that lie in none of the others, each once. All are resolved paths.
func outermost(_ paths: [HostPath]) -> [HostPath] {
    var kept: [HostPath] = []
    for (index, path) in paths.enumerated() where !paths[..<index].contains(path) {
        let isBelow = paths.contains { other in
            other != path && path.bytes.starts(with: other.bytes + (other.bytes == [0x2F] ? [] : [0x2F]))
        }
        if !isBelow { kept.append(path) }
    }
    return kept
}
