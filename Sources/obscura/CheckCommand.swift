import Glibc
import HostFiles
import LinuxIO
import PhotoLibrary
import Recovery
import VaultStore

/// `check VAULT`, or `check DIR` of a mounted space.
func runCheck(_ arguments: Arguments) throws(Failure) {
    let path = arguments.operands[0]
    if let entry = mountEntry(at: realPath(path)), entry.isObscura {
        if arguments.has(.repair) {
            throw Failure(
                .usage, path, "a mounted space cannot be repaired: unmount it, then name the vault")
        }
        entry.becomeOwner()
        var output = CheckOutput(path, isJSON: arguments.has(.json))
        defer { output.end() }
        return try checkMounted(path, &output)
    }
    try requireVault(path)
    try requireUnmounted(path)
    var output = CheckOutput(path, isJSON: arguments.has(.json))
    defer { output.end() }
    try checkVault(path, arguments, &output)
}

private func checkVault(
    _ vault: String, _ arguments: Arguments, _ output: inout CheckOutput
) throws(Failure) {
    let files = try onVault(vault) { () throws(VaultError) in try Vault.checkFiles(vault) }
    output.add(files.map { CheckFinding($0) })
    output.add(strays: try onVault(vault) { () throws(VaultError) in try Vault.strayFiles(vault) })
    let unlocked = try Passwords(arguments).opening(vault) { (password) throws(VaultError) in
        try unlockPatiently(vault, password, readOnly: true)
    }
    var report = try check(unlocked, vault, &output, readsContent: true)
    let damage = report.findings.filter { !$0.isNote }
    output.add(damage.map { CheckFinding($0) })
    output.add(notes: report.findings.filter(\.isNote).map { CheckFinding($0) })
    let salvage = try lookFurther(unlocked, vault, arguments, &report, &output)
    output.isComplete = true
    let count = files.count + damage.count
    let summary = "\(counted(report.fileCount, "file")), \(sizeText(report.bytes)) read"
    if count == 0, salvage == nil, !arguments.has(.repair) || report.findings.isEmpty {
        if report.findings.isEmpty { return output.line("\(vault): nothing is damaged: \(summary)") }
        output.line("\(vault): nothing is lost: \(summary)")
        return output.line(
            "\(vault): obscura check \(vault) --repair makes such copies anew, and a mount those that it reads"
        )
    }
    if unlocked.isClaimedByOthers {
        throw Failure(
            .inUse, vault,
            "another computer has this space open, or did not unmount it: some of the above may be changes in "
                + "progress; unmount it there, or take it over (obscura mount -o takeover VAULT DIR), and check again"
        )
    }
    guard arguments.has(.repair) else {
        throw Failure(.damaged, vault, "damage found: \(lines(count, output)); \(summary)")
    }
    try repair(unlocked, vault, files, report, salvage, &output)
}

/// Where the catalogue cannot be read, looks for what records tell, and names the files that a mount does not show.
/// Before a repair of a space in which something is lost, looks whether it is there again.
private func lookFurther(
    _ unlocked: UnlockedSpace, _ vault: String, _ arguments: Arguments, _ report: inout SpaceReport,
    _ output: inout CheckOutput
) throws(Failure) -> Salvage? {
    // Not before an exchange of file names: the finds would lie elsewhere afterwards.
    guard report.plan.exchange == nil else { return nil }
    let mayRepair = arguments.has(.repair) && !unlocked.isClaimedByOthers
    if report.plan.mustSalvage {
        let salvage = try survey(unlocked, vault, readOnly: !mayRepair)
        let hidden = salvage.hiddenNames()
        if !hidden.paths.isEmpty {
            output.add([
                CheckFinding(
                    kind: "catalogue", paths: hidden.paths,
                    text: printable(hidden.text(all: arguments.has(.verbose))))
            ])
        }
        if !mayRepair {
            output.line(
                "\(vault): obscura check \(vault) --repair brings back what was found: "
                    + salvage.report.summary)
        }
        return salvage
    }
    guard mayRepair, report.plan.mayFindMore else { return nil }
    let salvage = try survey(unlocked, vault, readOnly: false)
    guard salvage.findsMore else { return nil }
    report.takeUp()
    return salvage
}

/// `3 lines above`, or where they are members of an object.
private func lines(_ count: Int, _ output: CheckOutput) -> String {
    output.isJSON ? counted(count, "finding") : "\(counted(count, "line")) above"
}

/// Runs a check with a progress line. Its findings are added to the output only if it is interrupted.
private func check(
    _ unlocked: UnlockedSpace, _ vault: String, _ output: inout CheckOutput, readsContent: Bool
) throws(Failure) -> SpaceReport {
    let progress = ProgressLine("Checking")
    output.hasBegun = true
    let report = try notingInterruption { () throws(Failure) in
        defer { progress.end() }
        return try onVault(vault) { () throws(VaultError) in
            try SpaceCheck.run(unlocked, readsContent: readsContent) { done, total in
                progress.show(done: done, total: total)
                return !wasInterrupted
            }
        }
    }
    if readsContent { (output.bytes, output.fileCount) = (report.bytes, report.fileCount) }
    if report.isInterrupted {
        output.isComplete = false
        output.add(report.findings.map { CheckFinding($0) })
        throw Failure(.interrupted, vault, "interrupted: not all of it is checked")
    }
    return report
}

/// Checks a space in steps while it is in use.
private func checkMounted(_ directory: String, _ output: inout CheckOutput) throws(Failure) {
    let progress = ProgressLine("Checking")
    let space = try MountedSpace(directory)
    output.hasBegun = true
    var (found, notes): ([CheckFinding], [CheckFinding]) = ([], [])
    var (known, bytes) = (Set<String>(), UInt64(0))
    // Also if the mount ends meanwhile.
    defer { output.bytes = bytes }
    try notingInterruption { () throws(Failure) in
        defer { progress.end() }
        var cursor = CheckCursor.start.description
        while !cursor.isEmpty, !wasInterrupted {
            let answer = try space.ask("check.\(cursor)", doing: "checking it")
            var total: UInt64 = 0
            cursor = ""
            for (key, value) in answer {
                switch key {
                case "cursor": cursor = value
                case "bytes": bytes = sizeSum(bytes, answeredNumber(value))
                case "total": total = answeredNumber(value)
                default: continue
                }
            }
            found += answeredFindings(answer).filter { known.insert($0.text).inserted }
            notes += answer.filter { $0.key == "note" && known.insert($0.value).inserted }.map {
                CheckFinding(kind: FindingKind.structure.rawValue, text: $0.value)
            }
            progress.show(done: cursor.isEmpty ? total : min(bytes, total), total: total)
        }
    }
    output.add(found)
    output.add(notes: notes)
    if wasInterrupted {
        throw Failure(.interrupted, directory, "interrupted: not all of it is checked")
    }
    output.isComplete = true
    guard found.isEmpty else {
        throw Failure(
            .damaged, directory,
            "damage found: \(lines(found.count, output)); unmount it, then obscura check VAULT --repair")
    }
    guard !notes.isEmpty else {
        return output.line("\(directory): nothing is damaged: \(sizeText(bytes)) read")
    }
    output.line("\(directory): nothing is lost: \(sizeText(bytes)) read")
    output.line(
        "\(directory): a copy that does not open is made anew when the mount next writes, unless it is read-only"
    )
}

/// The findings in an answer of a mount: their lines, then in the same order their kinds and paths. An older mount does
/// not give those.
func answeredFindings(_ answer: [(key: String, value: String)]) -> [CheckFinding] {
    var findings = answer.filter { $0.key == "damage" }.map { CheckFinding(kind: "space", text: $0.value) }
    var index = -1
    for (key, value) in answer {
        if key == "kind" { index += 1 }
        guard findings.indices.contains(index) else { continue }
        if key == "kind", FindingKind(rawValue: value) != nil { findings[index].kind = value }
        if key == "path", let path = bytes(hexadecimal: value) { findings[index].paths.append(path) }
    }
    return findings
}

private func bytes(hexadecimal text: String) -> [UInt8]? {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
}

// MARK: Repair

/// Lists the repairs, asks if there is a terminal, repairs, and checks again.
private func repair(
    _ unlocked: UnlockedSpace, _ vault: String, _ files: [FileDamage], _ report: SpaceReport,
    _ salvage: Salvage?, _ output: inout CheckOutput
) throws(Failure) {
    let isExchange = report.plan.exchange != nil
    let found = salvage.map { ["keep the files found: \($0.report.summary)"] } ?? []
    let steps =
        report.plan.lines + found
        + (files.isEmpty ? [] : ["repair the header's copies and the length of the vault's files"])
    let lost = report.findings.filter(\.isOfFile)
    guard !steps.isEmpty else {
        throw Failure(.damaged, vault, "nothing can be repaired: intact files stay readable")
    }
    do throws(VaultError) { try unlocked.requireWritableHeader() } catch {
        let reason = if case .notWritable(let stop) = error { stop.reason } else { "\(error)" }
        throw Failure(.damaged, vault, "cannot be written, so nothing was repaired: \(reason)")
    }
    let terminal = isatty(STDIN_FILENO) == 1 ? Terminal() : nil
    output.add(repairs: steps, keepsDamagedFiles: !lost.isEmpty, isAsked: terminal != nil)
    if let terminal { try askToRepair(vault, terminal) }
    try onVault(vault) { () throws(VaultError) in
        try SpaceRepair.run(unlocked, report.plan, salvage: salvage)
    }
    if isExchange { return try goOn(unlocked, vault, files, &output) }
    let left = try remaining(unlocked, vault, report, readsFiles: salvage != nil, &output)
    output.conclude(repaired: left)
    if left.isEmpty { return output.line("\(vault): repaired; nothing is damaged now") }
    throw Failure(.damaged, vault, "repaired, except what is lost: \(lines(left.count, output))")
}

/// Checks and repairs everything else once files have their own names again.
private func goOn(
    _ unlocked: UnlockedSpace, _ vault: String, _ files: [FileDamage], _ output: inout CheckOutput
) throws(Failure) {
    let report = try check(unlocked, vault, &output, readsContent: true)
    guard !report.findings.isEmpty || !files.isEmpty else {
        output.conclude(repaired: [])
        return output.line("\(vault): repaired; nothing is damaged now")
    }
    output.add(report.findings.map { CheckFinding($0) })
    let salvage =
        report.plan.mustSalvage && report.plan.exchange == nil
        ? try survey(unlocked, vault, readOnly: false) : nil
    try repair(unlocked, vault, files, report, salvage, &output)
}

/// Searches for photos that the catalogue no longer lists.
private func survey(_ unlocked: UnlockedSpace, _ vault: String, readOnly: Bool) throws(Failure) -> Salvage {
    let progress = ProgressLine("Looking for photos")
    return try notingInterruption { () throws(Failure) in
        defer { progress.end() }
        return try onVault(vault) { () throws(VaultError) in
            let bytes = try Vault.info(vault).segmentBytes
            return try Salvage.survey(unlocked, options: .forThisUser, readOnly: readOnly) {
                done, total throws(VaultError) in
                let part = (Quantity(done) * Quantity(bytes), Quantity(total) * Quantity(bytes))
                progress.show(done: part.0.value, total: part.1.value)
                if wasInterrupted { throw VaultError.interrupted }
            }
        }
    }
}

private func askToRepair(_ vault: String, _ terminal: Terminal) throws(Failure) {
    let answer = try terminal.ask("Repair \(vault)? [y/N] ") ?? ""
    guard ["y", "yes"].contains(answer.lowercased()) else {
        throw Failure(.damaged, vault, "nothing was changed: the damage is still there")
    }
}

/// The remaining damage: the findings of a second check, and the damaged files that it does not read.
///
/// - Parameter readsFiles: whether the second check reads files, because the catalogue is a new one.
private func remaining(
    _ unlocked: UnlockedSpace, _ vault: String, _ before: SpaceReport, readsFiles: Bool,
    _ output: inout CheckOutput
) throws(Failure) -> [CheckFinding] {
    let files = try onVault(vault) { () throws(VaultError) in try Vault.checkFiles(vault) }
    var again = try check(unlocked, vault, &output, readsContent: readsFiles)
    again.findings.removeAll(where: \.isNote)
    let texts = again.findings.map(\.text)
    // Damaged files that the second check did not read, and about which it reports nothing else.
    let lost = before.findings.filter { finding in
        !readsFiles && finding.isOfFile && !again.findings.contains { $0.isAboutBytes(of: finding) }
    }.filter { !texts.contains($0.text) }
    return files.map { CheckFinding($0) } + (again.findings + lost).map { CheckFinding($0) }
}
