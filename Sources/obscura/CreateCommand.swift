import LinuxIO
import VaultCrypto
import VaultFormat
import VaultStore

/// The settings of a new vault.
struct CreateSettings {
    static let spacesMax = Geometry.spacesMax

    var spaces = 2
    /// Nil if not given.
    var bytesPerSpace: UInt64?
    var kdf = KDFParameters.standard

    init(_ arguments: Arguments) throws(Failure) {
        if let text = arguments[.spaces] {
            guard let number = parseNumber(text, in: 1...UInt64(Self.spacesMax)) else {
                throw Failure(.usage, "--spaces \(text)", "must be a number from 1 to \(Self.spacesMax)")
            }
            spaces = Int(number)
        }
        if let text = arguments[.size] { bytesPerSpace = try size(text, "--size") }
        if let text = arguments[.kdfMemory] {
            kdf.memoryBytes = try size(text, "--kdf-memory")
            let range = KDFParameters.memoryBytesRange
            guard range.contains(kdf.memoryBytes) else {
                let (least, most) = (range.lowerBound >> 20, range.upperBound >> 20)
                throw Failure(
                    .usage, "--kdf-memory \(text)",
                    "must be from \(least)M to \(most)M; more passes also make guesses slower")
            }
        }
        if let text = arguments[.kdfPasses] {
            let range = KDFParameters.passesRange
            let bounds = UInt64(range.lowerBound)...UInt64(range.upperBound)
            guard let passes = parseNumber(text, in: bounds) else {
                throw Failure(
                    .usage, "--kdf-passes \(text)",
                    "must be a number from \(range.lowerBound) to \(range.upperBound)")
            }
            kdf.passes = UInt32(passes)
        }
    }
}

/// Parses a SIZE of the command line.
func size(_ text: String, _ what: String) throws(Failure) -> UInt64 {
    guard let bytes = parseSize(text) else {
        throw Failure(
            .usage, "\(what) \(text)", "not a size: use a whole number with K, M, G or T, such as 20G")
    }
    return bytes
}

func runCreate(_ arguments: Arguments) throws(Failure) {
    let settings = try CreateSettings(arguments)
    _ = try createVault(arguments.operands[0], settings, Passwords(arguments))
}

/// Makes the vault and returns the password of its first space.
func createVault(_ vault: String, _ settings: CreateSettings, _ passwords: Passwords) throws(Failure)
    -> SecretBytes
{
    if Vault.isVault(vault) {
        throw Failure(.failed, vault, "already a vault: mount it, or name another directory")
    }
    let bytesPerSpace = try chooseSize(vault, settings, passwords)
    // On a terminal the warnings come before the password is chosen; otherwise after the password was read.
    let isPrompting = try passwords.terminal() != nil
    if isPrompting { warn(vault, settings) }
    let password = try passwords.toCreate(vault)
    if !isPrompting { warn(vault, settings) }
    let progress = ProgressLine("Filling the vault")
    try notingInterruption { () throws(Failure) in
        defer { progress.end() }
        try onVault(vault) { () throws(VaultError) in
            try Vault.create(
                at: vault, spaces: settings.spaces, bytesPerSpace: bytesPerSpace, kdf: settings.kdf,
                password: password, stretcher: ChildStretcher()
            ) { (done, total) throws(VaultError) in
                if wasInterrupted { throw .interrupted }
                progress.show(done: done, total: total)
            }
        }
    }
    // A given size is rounded up to whole segments.
    let made = (try? Vault.info(vault))?.bytesPerSpace ?? bytesPerSpace ?? 0
    say("\(vault): made, \(describe(spaces: settings.spaces, bytesPerSpace: made))")
    return password
}

private func warn(_ vault: String, _ settings: CreateSettings) {
    if settings.spaces == 1, settings.bytesPerSpace != nil {
        note("obscura: \(vault): --size is ignored: a vault of one space grows with its photos")
    }
    note("A forgotten password means lost photos: nobody can open a space without it.")
    guard let store = Vault.storeKeepsVersions(at: vault) else { return }
    note(
        """
        obscura: \(vault): warning: \(store) may keep old versions of files: comparing them shows which spaces are \
        in use, and an old password may still open an old copy
        """)
}

private func describe(spaces: Int, bytesPerSpace: UInt64) -> String {
    if spaces == 1 { return "1 space, growing with its photos" }
    return "\(spaces) spaces of \(sizeText(bytesPerSpace)) each"
}

/// The size of each space: the given one, else the one agreed on the terminal. Nil: one space that grows by itself.
private func chooseSize(_ vault: String, _ settings: CreateSettings, _ passwords: Passwords) throws(Failure)
    -> UInt64?
{
    if settings.bytesPerSpace != nil || settings.spaces == 1 { return settings.bytesPerSpace }
    guard case .terminal = passwords.source, let terminal = Terminal() else {
        throw Failure(.usage, "--size", "needed without a terminal to ask on, unless --spaces 1 is given")
    }
    let proposal = proposalText(Vault.proposedBytesPerSpace(at: vault, spaces: settings.spaces))
    terminal.tell(
        "All \(settings.spaces) spaces are filled at once, used or not: the vault takes \(settings.spaces) times this."
    )
    for _ in 1...Passwords.attemptsMax {
        guard let answer = try terminal.ask("Size of each space [\(proposal)]: ") else { break }
        if let bytes = parseSize(answer.isEmpty ? proposal : answer) { return bytes }
        terminal.tell("Use a whole number with K, M, G or T, such as 20G.")
    }
    throw Failure(.usage, "--size", "no size was given: use a whole number with K, M, G or T, such as 20G")
}
