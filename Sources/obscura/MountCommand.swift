import Glibc
import LinuxIO
import VaultCrypto
import VaultStore

/// A request to mount, by `obscura mount` or by mount(8).
struct MountRequest {
    var vault: String
    var directory: String
    var words = MountOptionParser()
    var inForeground = false
    /// Make the vault first if there is none.
    var creation: CreateSettings?
    var source: PasswordSource
    var keyFiles = KeyFiles()
    /// Take the password from the keyring, and keep it there.
    var isRemembered = false
}

func runMount(_ arguments: Arguments) throws(Failure) {
    var words = MountOptionParser()
    for list in arguments.all(.mountOptions) { try words.apply(list) }
    var creation: CreateSettings?
    if arguments.has(.create) {
        creation = try CreateSettings(arguments)
    } else if let option = Option.createOptions.first(where: { arguments.has($0) }) {
        throw Failure(.usage, option.spelling, "only with --create: an existing vault stays as it is")
    }
    let source =
        try PasswordSource(arguments) ?? words.passwordSource
        ?? .terminal(hint: PasswordSource.commandLineHint)
    try mount(
        MountRequest(
            vault: arguments.operands[0], directory: arguments.operands[1], words: words,
            inForeground: arguments.has(.foreground), creation: creation, source: source,
            keyFiles: arguments.has(.keyFile) ? KeyFiles(arguments) : words.keyFiles(),
            isRemembered: arguments.has(.remember)))
}

extension MountOptionParser {
    /// The password source that `passfile=` or `askpass=` names.
    var passwordSource: PasswordSource? {
        if let passfile { return .file(passfile, option: "passfile") }
        return askpass.map { .shellCommand($0, option: PasswordSource.askpassOption) }
    }

    /// The key file that `keyfile=` names.
    func keyFiles() throws(Failure) -> KeyFiles { try KeyFiles(keyfile, option: "keyfile") }
}

/// Returns when the mount is live. In the foreground it does not return: this process becomes the mount.
func mount(_ request: MountRequest) throws(Failure) {
    let (vault, directory) = (request.vault, request.directory)
    request.words.exportCluster()
    if request.words.takesOver && request.words.readOnly {
        throw Failure(.usage, "-o takeover", "not with ro: a space that is only read need not be taken over")
    }
    if request.creation == nil { try requireVault(vault) }
    if !request.words.readOnly || !Vault.hostTraits(of: vault).letsReadersFollow {
        try requireUnmounted(vault)
    }
    try checkApart(vault: vault, directory: directory)
    let wasDead = try clearMountPoint(directory)
    let isDirectoryMade = request.creation != nil ? try makeMountPoint(directory) : false
    do {
        try checkMayMount(request)
        try unlockAndMount(request, wasDead: wasDead)
    } catch {
        if isDirectoryMade { rmdir(directory) }
        throw error
    }
}

/// - Parameter wasDead: whether there was a dead mount, whose daemon may still be ending.
private func unlockAndMount(_ request: MountRequest, wasDead: Bool) throws(Failure) {
    let (vault, directory) = (request.vault, request.directory)
    var passwords = Passwords(source: request.source, keyFiles: request.keyFiles)
    if request.isRemembered { passwords.keyring = try Keyring(vault, request.creation) }
    func unlock(_ password: SecretBytes) throws(VaultError) -> UnlockedSpace {
        let readOnly = request.words.readOnly
        return try unlockPatiently(vault, password, readOnly: readOnly, follows: readOnly, wasDead: wasDead)
    }
    let space: UnlockedSpace
    if let creation = request.creation, !Vault.isVault(vault) {
        let password = try createVault(vault, creation, passwords)
        space = try onVault(vault) { () throws(VaultError) in
            try unlock(passwords.keyFiles.combinedNew(password))
        }
        passwords.keyring?.store(password)
    } else {
        space = try passwords.opening(vault, unlock)
    }
    let daemon = Daemon(words: request.words, vault: realPath(vault), directory: absolutePath(directory))
    if request.inForeground { try daemon.replaceThisProcess(space) }
    try daemon.start(space)
}

/// Opens the space that the password opens. Retries while the vault is in use by a daemon that is ending. A killed one
/// holds its vault until the last of its threads has ended, and one whose mount umount(8) has ended until all is
/// written: a slow disk may delay both.
///
/// - Parameters:
///   - follows: see `Vault.unlock`.
///   - wasDead: whether the daemon was killed.
func unlockPatiently(
    _ vault: String, _ password: SecretBytes, readOnly: Bool = false, follows: Bool = false,
    wasDead: Bool = false
) throws(VaultError) -> UnlockedSpace {
    func unlock() throws(VaultError) -> UnlockedSpace {
        try Vault.unlock(
            vault, password: password, readOnly: readOnly, follows: follows, stretcher: ChildStretcher())
    }
    let end = MonotonicClock.milliseconds + endingMilliseconds
    while MonotonicClock.milliseconds < end {
        do throws(VaultError) { return try unlock() } catch {
            guard case .inUse = error else { throw error }
        }
        guard wasDead || isEnding(vault) else { break }
        usleep(20_000)
    }
    // The daemon may just have ended.
    return try unlock()
}

/// Whether the mount of the vault is gone, and its process is writing the last changes.
private func isEnding(_ vault: String) -> Bool {
    let vault = realPath(vault)
    guard let server = runningDaemons().first(where: { $0.daemon.vault == vault }), !server.isMounted else {
        return false
    }
    return LostMount(server) == nil
}

private let endingMilliseconds: Int64 = 10_000

extension MountOptionParser {
    /// Puts the place of the cluster, and the user there, where librados looks for them, here and in the daemon.
    fileprivate func exportCluster() {
        if let clusterConfiguration { setenv("CEPH_CONF", absolutePath(clusterConfiguration), 1) }
        if let clusterUser {
            let others = getenv("CEPH_ARGS").map { pathText($0) + " " } ?? ""
            setenv("CEPH_ARGS", others + "--id=" + clusterUser, 1)
        }
    }
}
