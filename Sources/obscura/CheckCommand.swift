import Glibc
import LinuxIO
import PhotoLibrary
import Recovery
import VaultStore

/// `check VAULT`, or `check DIR` of a mounted space.
func runCheck(_ arguments: Arguments) throws(Failure) {
    let path = arguments.operands[0]
    if !Vault.isVault(path), let entry = mountEntry(at: realPath(path)), entry.isObscura {
        if arguments.has(.repair) {
            throw Failure(
                .usage, path, "a mounted space cannot be repaired: unmount it, then name the vault")
        }
        return try checkMounted(path)
    }
    try requireVault(path)
    try checkVault(path, arguments)
}

private func checkVault(_ vault: String, _ arguments: Arguments) throws(Failure) {
    let files = try onVault(vault) { () throws(VaultError) in try Vault.checkFiles(vault) }
    for damage in files { say(printable("\(damage.file): \(damage.cause)")) }
    let strays = try onVault(vault) { () throws(VaultError) in try Vault.strayFiles(vault) }
    if !strays.isEmpty { note(strayLine(strays, vault)) }
    let password = try Passwords(arguments).toOpen(vault)
    let unlocked = try onVault(vault) { () throws(VaultError) in
        try Vault.unlock(vault, password: password, readOnly: true, stretcher: ChildStretcher())
    }
    let report = try check(unlocked, vault, readsContent: true)
    for finding in report.findings { say(finding.text) }
    let count = files.count + report.findings.count
    let summary = "\(counted(report.fileCount, "file")), \(sizeText(report.bytes)) read"
    guard count > 0 else { return say("\(vault): nothing is damaged: \(summary)") }
    if unlocked.isClaimedByOthers {
        throw Failure(
            .inUse, vault,
            "another computer has this space open, or did not unmount it: some of the above may be changes in "
                + "progress; unmount it there, or take it over (obscura mount -o takeover VAULT DIR), and check again"
        )
    }
    guard arguments.has(.repair) else {
        throw Failure(.damaged, vault, "damage found: \(counted(count, "line")) above; \(summary)")
    }
    try repair(unlocked, vault, files, report)
}

/// Runs a check with a progress line.
private func check(
    _ unlocked: UnlockedSpace, _ vault: String, readsContent: Bool
) throws(Failure) -> SpaceReport {
    let progress = ProgressLine("Checking")
    let report = try notingInterruption { () throws(Failure) in
        defer { progress.end() }
        return try onVault(vault) { () throws(VaultError) in
            try SpaceCheck.run(unlocked, readsContent: readsContent) { done, total in
                progress.show(done: done, total: total)
                return !wasInterrupted
            }
        }
    }
    if report.isInterrupted {
        for finding in report.findings { say(finding.text) }
        throw Failure(.interrupted, vault, "interrupted: not all of it is checked")
    }
    return report
}

// MARK: Repair

/// Lists the repairs, asks if there is a terminal, repairs, and checks again.
private func repair(
    _ unlocked: UnlockedSpace, _ vault: String, _ files: [FileDamage], _ report: SpaceReport
) throws(Failure) {
    let isExchange = report.plan.exchange != nil
    // Not before an exchange of file names: the finds would lie elsewhere afterwards.
    let salvage = report.plan.mustSalvage && !isExchange ? try survey(unlocked, vault) : nil
    let found = salvage.map { ["keep the files found: \($0.report.summary)"] } ?? []
    let steps =
        report.plan.lines + found
        + (files.isEmpty ? [] : ["repair the header's copies and the length of the vault's files"])
    let lost = report.findings.filter(\.isOfFile)
    guard !steps.isEmpty else {
        throw Failure(.damaged, vault, "nothing can be repaired: intact files stay readable")
    }
    guard access("\(vault)/obscura.vault", W_OK) == 0 else {
        throw Failure(.damaged, vault, "cannot be written, so nothing was repaired: \(Errno.last)")
    }
    say("To be repaired:")
    for step in steps { say("  \(step)") }
    if !lost.isEmpty { say("Damaged files stay; their intact parts stay readable.") }
    try askToRepair(vault)
    try onVault(vault) { () throws(VaultError) in
        try SpaceRepair.run(unlocked, report.plan, salvage: salvage)
    }
    if isExchange { return try goOn(unlocked, vault, files) }
    let left = try remaining(unlocked, vault, report)
    if left == 0 { return say("\(vault): repaired; nothing is damaged now") }
    throw Failure(.damaged, vault, "repaired, except what is lost: \(counted(left, "line")) above")
}

/// Checks and repairs everything else once files have their own names again.
private func goOn(_ unlocked: UnlockedSpace, _ vault: String, _ files: [FileDamage]) throws(Failure) {
    let report = try check(unlocked, vault, readsContent: true)
    guard !report.findings.isEmpty || !files.isEmpty else {
        return say("\(vault): repaired; nothing is damaged now")
    }
    for finding in report.findings { say(finding.text) }
    try repair(unlocked, vault, files, report)
}

/// Searches for photos that the catalogue no longer lists.
private func survey(_ unlocked: UnlockedSpace, _ vault: String) throws(Failure) -> Salvage {
    let progress = ProgressLine("Looking for photos")
    return try notingInterruption { () throws(Failure) in
        defer { progress.end() }
        return try onVault(vault) { () throws(VaultError) in
            let bytes = try Vault.info(vault).segmentBytes
            return try Salvage.survey(unlocked, options: .forThisUser) { done, total throws(VaultError) in
                let part = (Quantity(done) * Quantity(bytes), Quantity(total) * Quantity(bytes))
                progress.show(done: part.0.value, total: part.1.value)
                if wasInterrupted { throw VaultError.interrupted }
            }
        }
    }
}

private func askToRepair(_ vault: String) throws(Failure) {
    guard isatty(STDIN_FILENO) == 1, let terminal = Terminal() else { return }
    let answer = try terminal.ask("Repair \(vault)? [y/N] ") ?? ""
    guard ["y", "yes"].contains(answer.lowercased()) else {
        throw Failure(.damaged, vault, "nothing was changed: the damage is still there")
    }
}

/// Prints the remaining damage and counts it: the findings of a second check, which does not read files, and the
/// damaged files.
private func remaining(
    _ unlocked: UnlockedSpace, _ vault: String, _ before: SpaceReport
) throws(Failure) -> Int {
    let files = try onVault(vault) { () throws(VaultError) in try Vault.checkFiles(vault) }
    let again = try check(unlocked, vault, readsContent: false)
    let texts = again.findings.map(\.text)
    // Damaged files that the second check did not read, and about which it reports nothing else.
    let lost = before.findings.filter { finding in
        finding.isOfFile && !again.findings.contains { $0.isAboutBytes(of: finding) }
    }.map(\.text).filter { !texts.contains($0) }
    let lines = files.map { printable("\($0.file): \($0.cause)") } + texts + lost
    if !lines.isEmpty { say("Still damaged:") }
    for line in lines { say("  \(line)") }
    return lines.count
}
