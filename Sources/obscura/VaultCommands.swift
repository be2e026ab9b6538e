import Encodings
import Glibc
import LinuxIO
import VaultCrypto
import VaultStore

func runPasswd(_ arguments: Arguments) throws(Failure) {
    let vault = try existingVault(arguments)
    try requireUnmounted(vault)
    let passwords = try Passwords(arguments)
    let (old, new) = try passwords.toChange(vault)
    try onVault(vault) { () throws(VaultError) in
        try Vault.changePassword(vault, old: old, new: new, stretcher: passwords.stretcher)
    }
    say(
        "\(vault): the password has been changed; copies of the vault made before still open with the old one"
    )
}

func runSpaceAdd(_ arguments: Arguments) throws(Failure) {
    let vault = try existingVault(arguments)
    try requireUnmounted(vault)
    let passwords = try Passwords(arguments)
    let (new, surviving) = try passwords.toAdd(vault)
    try onVault(vault) { () throws(VaultError) in
        try Vault.addSpace(
            vault, new: new, surviving: surviving, keyFiles: passwords.keyFiles.given,
            stretcher: passwords.stretcher)
    }
    say("\(vault): the new password opens an empty space")
}

func runGrow(_ arguments: Arguments) throws(Failure) {
    let vault = try existingVault(arguments)
    let bytesPerSpace = try size(arguments.operands[1], "SIZE")
    let progress = ProgressLine("Growing the vault")
    let interruption = Failure(
        .interrupted, vault, "interrupted while it was growing: run the same command again")
    try sayingOnInterruption(interruption) { () throws(Failure) in
        defer { progress.end() }
        try onVault(vault) { () throws(VaultError) in
            try Vault.grow(
                vault, bytesPerSpace: bytesPerSpace, progress: { progress.show(done: $0, total: $1) })
        }
    }
    say("\(vault): every space now has \(sizeWord((try? Vault.info(vault))?.bytesPerSpace ?? bytesPerSpace))")
}

func runInfo(_ arguments: Arguments) throws(Failure) {
    let vault = arguments.operands[0]
    let info = try onVault(vault) { () throws(VaultError) in try Vault.info(vault) }
    say(arguments.has(.json) ? infoJSON(vault, info).line : infoText(info))
}

/// The output of `obscura info --json`.
private func infoJSON(_ vault: String, _ info: VaultInfo) -> JSON {
    .object([
        ("vault", .path(vault)), ("format_version", .count(info.formatVersion)),
        ("spaces", .count(info.spaceCount)), ("segments_per_space", .count(info.segmentsPerSpace)),
        ("segment_bytes", .number(info.segmentBytes)), ("bytes_per_space", .number(info.bytesPerSpace)),
        ("grows", .bool(info.grows)), ("bytes_on_disk", .number(info.bytesOnDisk)),
        ("kdf", .text("Argon2id")), ("kdf_memory_bytes", .number(info.kdf.memoryBytes)),
        ("kdf_passes", .count(Int(info.kdf.passes))),
    ])
}

/// The output of `obscura info`: nothing that depends on which spaces are in use.
private func infoText(_ info: VaultInfo) -> String {
    let number = info.segmentsPerSpace
    let segments = "\(number) \(number == 1 ? "segment" : "segments") of \(sizeText(info.segmentBytes))"
    let passes = info.kdf.passes == 1 ? "1 pass" : "\(info.kdf.passes) passes"
    let rows = [
        ("Format version", "\(info.formatVersion)"),
        ("Spaces", info.spaceCount == 1 ? "1" : "\(info.spaceCount) (how many are in use cannot be seen)"),
        (
            "Size of a space",
            info.grows
                ? "grows with its photos, now \(segments)" : "\(sizeText(info.bytesPerSpace)), \(segments)"
        ),
        ("On disk", sizeText(info.bytesOnDisk)),
        ("Key derivation", "Argon2id, \(sizeText(info.kdf.memoryBytes)), \(passes)"),
    ]
    return rows.map { label, value in
        label + String(repeating: " ", count: 17 - label.utf8.count) + value
    }.joined(separator: "\n")
}

/// The VAULT operand. Throws if there is no such vault.
func existingVault(_ arguments: Arguments) throws(Failure) -> String {
    try requireVault(arguments.operands[0])
    return arguments.operands[0]
}

/// Throws if there is no vault, so that no password is asked for in vain.
func requireVault(_ vault: String) throws(Failure) {
    let isVault: Bool
    do throws(VaultError) { isVault = try Vault.answersAsVault(vault) } catch {
        throw failure(error, vault: vault)
    }
    if isVault { return }
    // A file may not be executable, and is no vault.
    if access(vault + "/.", R_OK | X_OK) != 0, errno == EACCES {
        throw Failure(vault, "looking into the vault", .last)
    }
    throw failure(.notAVault(vault), vault: vault)
}

/// Throws if the vault is mounted, and says where, so that no password is asked for in vain.
func requireUnmounted(_ vault: String) throws(Failure) {
    let place = realPath(vault)
    let letsReadersFollow = Vault.hostTraits(of: place).letsReadersFollow
    guard
        let server = runningDaemons().first(where: {
            // One that only reads there has no lock.
            $0.daemon.vault == place && $0.isMounted && !(letsReadersFollow && $0.daemon.words.readOnly)
        }),
        Vault.isInUse(vault)
    else { return }
    let directory = server.daemon.directory
    throw Failure(.inUse, vault, "mounted at \(directory): obscura unmount \(directory)")
}

/// A size as it is typed: in the largest unit of which it is a whole number.
func sizeWord(_ bytes: UInt64) -> String {
    let units = ["", "K", "M", "G", "T"]
    let power = min(bytes.trailingZeroBitCount / 10, units.count - 1)
    return "\(bytes >> UInt64(10 * power))\(units[power])"
}
