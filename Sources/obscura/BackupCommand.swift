import Encodings
import HostFiles
import LinuxIO
import Recovery
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
    let check = try arguments.has(.check) ? checkSource(vault, arguments) : nil
    let progress = ProgressLine("Copying", quiet: arguments.has(.quiet))
    var result: Result<BackupReport, BackupError>?
    notingInterruption {
        do throws(BackupError) {
            let report = try Vault.backup(vault, to: destination, damaged: check?.sectors) {
                (done, total) throws(BackupError) in
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
            say(report.json(vault, destination, check).line)
        } else {
            describe(report, vault, destination)
            if let check { describe(check, destination) }
        }
        try conclude(report, vault, destination, check)
    case .failure(let error): throw failure(error, vault, destination)
    case nil: preconditionFailure("the backup has ended")
    }
}

/// The check of `backup --check`: of the space that the password opens, and of no other.
struct SourceCheck {
    /// Kept until the end, with the vault's lock: nothing changes meanwhile.
    let unlocked: UnlockedSpace
    let sectors: DamagedSectors
    let findings: [CheckFinding]
}

/// Reads all of the space that the password opens. Throws if its newest state cannot be read.
private func checkSource(_ vault: String, _ arguments: Arguments) throws(Failure) -> SourceCheck {
    let unlocked = try Passwords(arguments).opening(vault) { (password) throws(VaultError) in
        try unlockPatiently(vault, password, readOnly: true)
    }
    let progress = ProgressLine("Checking", quiet: arguments.has(.quiet))
    let report = try notingInterruption { () throws(Failure) in
        defer { progress.end() }
        return try onVault(vault) { () throws(VaultError) in
            try SpaceCheck.run(unlocked) { done, total in
                progress.show(done: done, total: total)
                return !wasInterrupted
            }
        }
    }
    if report.isInterrupted { throw Failure(.interrupted, vault, "interrupted: nothing was copied") }
    guard report.isNewestState else {
        throw Failure(
            .damaged, vault,
            "its newest state cannot be read, so nothing was copied: run obscura check \(vault) --repair first"
        )
    }
    let findings = report.findings.map { CheckFinding($0) }
    return SourceCheck(
        unlocked: unlocked, sectors: unlocked.damaged(report.damagedSectors),
        findings: findings)
}

private func describe(_ check: SourceCheck, _ destination: String) {
    for finding in check.findings { say(finding.text) }
    if check.unlocked.spaceCount > 1 {
        say(
            "\(destination): only the space of this password was checked; all else was copied as it is, "
                + "used or not")
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
    for place in report.contradicting.prefix(placesMax) {
        let bytes = "\(place.bytes) bytes from \(place.offset) on"
        say("\(vault)/\(place.path): \(bytes) differ without a change of the space; the copy keeps its own")
    }
    if report.contradicting.count > placesMax {
        say("and \(report.contradicting.count - placesMax) more places")
    }
    if !report.strays.isEmpty { note(strayLine(report.strays, vault)) }
}

extension BackupReport {
    /// The output of `obscura backup --json`.
    func json(_ vault: String, _ destination: String, _ check: SourceCheck? = nil) -> JSON {
        func list(_ places: [UnreadablePlace]) -> JSON {
            .list(
                places.map { place in
                    JSON.object([
                        ("path", .path(place.path)), ("offset", .number(place.offset)),
                        ("bytes", .number(place.bytes)),
                    ])
                })
        }
        let isComplete =
            missingSegments == 0 && unreadable.isEmpty && contradicting.isEmpty && refused.isEmpty
        return .object([
            ("vault", .path(vault)), ("destination", .path(destination)),
            ("complete", .bool(isComplete)), ("bytes", .number(bytes)),
            ("bytes_written", .number(bytesWritten)), ("missing_segments", .count(missingSegments)),
            ("unreadable", list(unreadable)), ("contradicting", list(contradicting)),
            ("refused", list(refused)), ("findings", check.map { .list($0.findings.map(\.json)) } ?? .null),
            ("unexpected_files", .list(strays.sorted().map { .path($0) })),
        ])
    }
}

/// Throws if the vault is damaged, or the copy.
private func conclude(
    _ report: BackupReport, _ vault: String, _ destination: String, _ check: SourceCheck?
) throws(Failure) {
    if let check, check.findings.contains(where: { !$0.isNote }) {
        let places = counted(report.refused.count, "place")
        throw Failure(
            .damaged, vault,
            "damage found: \(counted(check.findings.count, "line")) above; the copy keeps its own bytes in \(places): "
                + "run obscura check \(destination), and if it is whole, copy it back")
    }
    if !report.contradicting.isEmpty {
        throw Failure(
            .damaged, vault,
            "it and the copy differ in \(counted(report.contradicting.count, "place")) where nothing was changed: "
                + "one of them is damaged, or a mount was killed; run obscura check \(vault), then "
                + "obscura check \(destination)")
    }
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
