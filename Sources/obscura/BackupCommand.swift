import VaultStore

func runBackup(_ arguments: Arguments) throws(Failure) {
    let (vault, destination) = (arguments.operands[0], arguments.operands[1])
    try requireVault(vault)
    let (source, target) = (realPath(vault), realPath(destination))
    if isInside(target, source) {
        throw Failure(.usage, destination, "it is the vault or inside it: copy it to somewhere else")
    }
    if isInside(source, target) {
        throw Failure(.usage, destination, "the vault is inside it: name a directory of its own for the copy")
    }
    let progress = ProgressLine("Copying", quiet: arguments.has(.quiet))
    var result: Result<BackupReport, BackupError>?
    notingInterruption {
        do throws(BackupError) {
            let report = try Vault.backup(vault, to: destination) { (done, total) throws(BackupError) in
                if wasInterrupted { throw .interrupted }
                progress.show(done: done, total: total)
            }
            result = .success(report)
        } catch { result = .failure(error) }
    }
    progress.end()
    switch result {
    case .success(let report):
        if arguments.has(.json) {
            say(report.json(vault, destination).line)
        } else {
            describe(report, vault, destination)
        }
        try conclude(report, vault)
    case .failure(let error): throw failure(error, vault, destination)
    case nil: preconditionFailure("the backup has ended")
    }
}

/// Prints the report as text.
private func describe(_ report: BackupReport, _ vault: String, _ destination: String) {
    say("\(destination): copied \(sizeText(report.bytesWritten)) of \(sizeText(report.bytes))")
    for place in report.unreadable.prefix(placesMax) {
        let bytes = "\(place.bytes) bytes from \(place.offset) on"
        say("\(vault)/\(place.path): \(bytes) cannot be read; the copy keeps what it had there")
    }
    if report.unreadable.count > placesMax { say("and \(report.unreadable.count - placesMax) more places") }
    if !report.strays.isEmpty { note(strayLine(report.strays, vault)) }
}

extension BackupReport {
    /// The output of `obscura backup --json`.
    func json(_ vault: String, _ destination: String) -> JSON {
        let places = unreadable.map { place in
            JSON.object([
                ("path", .path(place.path)), ("offset", .number(place.offset)),
                ("bytes", .number(place.bytes)),
            ])
        }
        return .object([
            ("vault", .path(vault)), ("destination", .path(destination)),
            ("complete", .bool(missingSegments == 0 && unreadable.isEmpty)), ("bytes", .number(bytes)),
            ("bytes_written", .number(bytesWritten)), ("missing_segments", .count(missingSegments)),
            ("unreadable", .list(places)), ("unexpected_files", .list(strays.sorted().map { .path($0) })),
        ])
    }
}

/// Throws if the vault is damaged.
private func conclude(_ report: BackupReport, _ vault: String) throws(Failure) {
    let found = [
        (report.missingSegments, "segment", "of it missing"),
        (report.unreadable.count, "place", "of it cannot be read"),
    ].filter { $0.0 > 0 }.map { "\(counted($0.0, $0.1)) \($0.2)" }
    guard !found.isEmpty else { return }
    throw Failure(
        .damaged, vault,
        "damage found: \(found.joined(separator: ", ")); the copy keeps what it had there: run obscura check"
    )
}

/// The line about files in a vault that do not belong to it.
func strayLine(_ paths: [String], _ vault: String) -> String {
    let shown = paths.sorted().prefix(straysMax).joined(separator: ", ")
    let more = paths.count > straysMax ? " and \(paths.count - straysMax) more" : ""
    return printable("obscura: \(vault): unexpected files, ignored: \(shown)\(more)")
}

/// Maximum number of unexpected files that are named.
private let straysMax = 5

/// Maximum number of damaged places that are listed.
private let placesMax = 20

/// The message about a failed backup.
func failure(_ error: BackupError, _ vault: String, _ destination: String) -> Failure {
    switch error {
    case .source(let error): failure(error, vault: vault)
    case .destination(.headerDamaged):
        Failure(.damaged, destination, "its header is damaged: name a new directory for the copy")
    case .destination(.noRoom):
        Failure(
            .noRoom, destination, "not enough room for the copy: free some, then run the same command again")
    case .destination(.inUse):
        Failure(
            .inUse, destination, "the copy is in use: unmount it, or wait for the backup that writes it")
    case .destination(let error): failure(error, vault: destination)
    case .changing:
        Failure(
            .inUse, vault,
            "it changes faster than it can be copied: try again when less is written to it, or unmount it first"
        )
    case .interrupted:
        Failure(.interrupted, destination, "interrupted: run the same command again to go on")
    }
}
