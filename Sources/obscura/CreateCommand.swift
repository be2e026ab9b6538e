import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat
import VaultStore

/// The settings of a new vault.
struct CreateSettings {
    static let spacesMax = Geometry.spacesMax

    var spaces = 2
    /// Whether the number of spaces, or their size, was given: then nobody is asked which kind of vault it is to be.
    var isKindGiven = false
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
        isKindGiven = arguments.has(.spaces) || arguments.has(.size)
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

/// Makes the vault and returns the password of its first space as it was typed.
func createVault(_ vault: String, _ settings: CreateSettings, _ passwords: Passwords) throws(Failure)
    -> SecretBytes
{
    var settings = settings
    try onVault(vault) { () throws(VaultError) in try Vault.requireReachable(vault) }
    if Vault.isVault(vault) {
        // A directory that may not be looked into may be anything.
        if access(vault + "/.", R_OK | X_OK) != 0, errno == EACCES {
            throw Failure(vault, "looking into the directory", .last)
        }
        throw Failure(.failed, vault, "already a vault: mount it, or name another directory")
    }
    try onVault(vault) { () throws(VaultError) in try Vault.requireFree(vault) }
    if !settings.isKindGiven, let terminal = try passwords.terminal() {
        settings.spaces = try chooseKind(terminal)
    }
    let bytesPerSpace = try chooseSize(vault, settings, passwords)
    try requireSize(vault, settings, bytesPerSpace)
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
                password: passwords.keyFiles.combinedNew(password), stretcher: passwords.stretcher
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
    if settings.spaces > 1, Vault.hostTraits(of: vault).showsTimesOfWrites {
        note(
            """
            obscura: \(vault): warning: a copy of the objects does not tell which spaces are in use, but the cluster \
            keeps with each object when it was last written: its operators, and whoever may run rados stat, see which \
            objects change while somebody uses it
            """)
    }
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

/// Asks which kind of vault it is to be, and returns the number of its spaces. Neither kind is proposed: what suits
/// one user is the wrong choice for another, for good.
private func chooseKind(_ terminal: Terminal) throws(Failure) -> Int {
    terminal.tell(
        """
        Which kind of vault?
          1  one password: it grows with its photos
          2  a fixed size: a second password can open other photos, and nobody
             can tell whether it does
        """)
    for _ in 1...Passwords.attemptsMax {
        guard let answer = try terminal.ask("1 or 2: ") else { break }
        if answer == "1" { return 1 }
        if answer == "2" { return 2 }
        terminal.tell("Type 1 or 2, and Enter.")
    }
    throw Failure(.usage, "--spaces", "no kind of vault was chosen: give --spaces 1, or --size SIZE")
}

/// The size of each space: the given one, else the one agreed on the terminal. Nil: one space that grows by itself.
private func chooseSize(_ vault: String, _ settings: CreateSettings, _ passwords: Passwords) throws(Failure)
    -> UInt64?
{
    if settings.bytesPerSpace != nil || settings.spaces == 1 { return settings.bytesPerSpace }
    guard case .terminal = passwords.source, let terminal = Terminal() else {
        throw Failure(.usage, "--size", "needed without a terminal to ask on, unless --spaces 1 is given")
    }
    let proposed = Vault.proposedBytesPerSpace(at: vault, spaces: settings.spaces)
    let proposal = proposalText(proposed)
    terminal.tell(sizeHint(proposed, spaces: settings.spaces))
    for _ in 1...Passwords.attemptsMax {
        guard let answer = try terminal.ask("Size [\(proposal)]: ") else { break }
        if answer.isEmpty { return parseSize(proposal) }
        guard let bytes = parseSize(answer) else {
            terminal.tell("Use a whole number with K, M, G or T, such as 20G.")
            continue
        }
        do throws(Failure) { try requireSize(vault, settings, bytes) } catch {
            guard [.usage, .noRoom].contains(error.status) else { throw error }
            terminal.tell(error.line)
            continue
        }
        terminal.tell(sizeHint(bytes, spaces: settings.spaces))
        return bytes
    }
    throw Failure(.usage, "--size", "no size was given: use a whole number with K, M, G or T, such as 20G")
}

/// Refuses a size as making the vault would, before a password is chosen.
private func requireSize(
    _ vault: String, _ settings: CreateSettings, _ bytesPerSpace: UInt64?
) throws(Failure) {
    try onVault(vault) { () throws(VaultError) in
        try Vault.requireSize(at: vault, spaces: settings.spaces, bytesPerSpace: bytesPerSpace)
    }
}

/// `4 GiB: room for at least 1,000 photos of 4 MB. The vault takes 8 GiB at once.`
func sizeHint(_ bytes: UInt64, spaces: Int) -> String {
    let whole = sizeText((Quantity(bytes) * Quantity(UInt64(spaces))).value)
    let photos = photosText(FixedSpace(newOfBytes: bytes).photosWhenNew(bytesPerPhoto: 4_000_000))
    return "\(sizeText(bytes)): room for at least \(photos) photos of 4 MB. The vault takes \(whole) at once."
}
