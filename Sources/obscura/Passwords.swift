import VaultCrypto
import VaultStore

/// Gets the passwords that a command needs: from lines if a source was given, else from the terminal.
struct Passwords {
    /// How often a new password may be mistyped or left empty before the command gives up.
    static let attemptsMax = 3
    /// More can never survive: a vault has at most 8 spaces.
    static let survivorsMax = 8

    let source: PasswordSource
    /// Every password returned here is already combined with its key file, except that of `toCreate` and the survivors
    /// of `toAdd`.
    let keyFiles: KeyFiles
    /// Where the password of a space is kept, if the user wants that.
    var keyring: Keyring?

    /// The sources of the command line, else the terminal.
    init(_ arguments: Arguments) throws(Failure) {
        source = try PasswordSource(arguments) ?? .terminal(hint: PasswordSource.commandLineHint)
        keyFiles = try KeyFiles(arguments)
    }

    init(source: PasswordSource, keyFiles: KeyFiles = KeyFiles()) {
        self.source = source
        self.keyFiles = keyFiles
    }

    /// The terminal to ask on; nil if a source was given.
    func terminal() throws(Failure) -> Terminal? {
        guard case .terminal(let hint) = source else { return nil }
        guard let typed else { throw Failure(.usage, "password", hint) }
        return typed
    }

    /// Derives the keys of new and changed passwords.
    var stretcher: ChildStretcher { ChildStretcher(isTyped: typed != nil) }

    /// The password of a space.
    func toOpen(_ vault: String) throws(Failure) -> SecretBytes {
        keyFiles.combined(try toOpen(vault, on: typed, error: nil))
    }

    /// The password of a space as it was typed.
    ///
    /// - Parameters:
    ///   - terminal: asked if there is one. Without it and without a source, windows ask.
    ///   - error: a sentence that says why the password is asked for again.
    private func toOpen(
        _ vault: String, on terminal: Terminal?, error: String?
    ) throws(Failure) -> SecretBytes {
        if let terminal {
            if error != nil { terminal.tell(Self.refusal + Self.hint) }
            return try terminal.existingPassword("Password for \(vault): ")
        }
        if case .terminal(let hint) = source {
            for program in Askpass.all() {
                if let password = try program.ask("Password for \(vault):", error: error) { return password }
            }
            throw Failure(.usage, "password", hint)
        }
        let lines = try PasswordLines(source)
        let password = try lines.required("the password")
        try lines.finish()
        return password
    }

    /// Opens the vault with the password of a space. A wrong one can be typed anew, `attemptsMax` times in all, on a
    /// terminal, in a window, or by the command of a mount option.
    func opening<Opened>(
        _ vault: String, _ body: (SecretBytes) throws(VaultError) -> Opened
    ) throws(Failure) -> Opened {
        if let opened = try openingWithKept(vault, body) { return opened }
        guard let terminal = typed else { return try opening(vault, on: nil, body) }
        // Keys that are pressed while a key is derived would be echoed.
        return try terminal.withoutEcho { () throws(Failure) in try opening(vault, on: terminal, body) }
    }

    /// Nil if the keyring has no password that opens a space. A given source comes before it.
    private func openingWithKept<Opened>(
        _ vault: String, _ body: (SecretBytes) throws(VaultError) -> Opened
    ) throws(Failure) -> Opened? {
        guard case .terminal = source, let password = keyring?.password() else { return nil }
        do throws(Failure) {
            return try onVault(vault) { () throws(VaultError) in try body(keyFiles.combined(password)) }
        } catch {
            guard error.status == .noSpaceOpens else { throw error }
            note("obscura: \(vault): the password in the keyring opens no space")
            return nil
        }
    }

    private func opening<Opened>(
        _ vault: String, on terminal: Terminal?, _ body: (SecretBytes) throws(VaultError) -> Opened
    ) throws(Failure) -> Opened {
        var refused: (password: SecretBytes, error: Failure)?
        var attempt = 0
        while true {
            attempt += 1
            let password: SecretBytes
            do throws(Failure) {
                password = try toOpen(vault, on: terminal, error: refused.map { _ in Self.refusal + "." })
            } catch {
                // Nothing typed after a wrong password ends the dialogue.
                if let refused, error.status == .usage { throw refused.error }
                throw error
            }
            // No person types the same mistake twice, but a command prints it.
            if let refused, terminal == nil, refused.password == password { throw refused.error }
            do throws(Failure) {
                let opened = try onVault(vault) { () throws(VaultError) in
                    try body(keyFiles.combined(password))
                }
                keyring?.store(password)
                return opened
            } catch {
                guard error.status == .noSpaceOpens, attempt < Self.attemptsMax, mayAskAgain else {
                    throw error
                }
                refused = (password, error)
            }
        }
    }

    fileprivate static let refusal = "No space opens with this password"
    fileprivate static let hint = ": is Caps Lock on?"

    /// The terminal on which passwords are typed; nil if a source was given, and without a terminal.
    private var typed: Terminal? {
        if case .terminal = source { Terminal() } else { nil }
    }

    private var mayAskAgain: Bool {
        switch source {
        case .terminal: true
        case .program(_, PasswordSource.askpassOption): true
        default: false
        }
    }

    /// A new password, asked for twice.
    func toCreate(_ vault: String) throws(Failure) -> SecretBytes {
        if let terminal = try terminal() { return try terminal.newPassword("New password for \(vault): ") }
        let lines = try PasswordLines(source)
        let password = try lines.required("the new password")
        try lines.finish()
        return password
    }

    func toChange(_ vault: String) throws(Failure) -> (old: SecretBytes, new: SecretBytes) {
        if let terminal = try terminal() {
            let old = try terminal.knownPassword("Old password for \(vault): ") { (old) throws(Failure) in
                try onVault(vault) { () throws(VaultError) in
                    try Vault.opens(vault, password: keyFiles.combined(old), stretcher: stretcher)
                }
            }
            guard let old else { throw failure(.noSpaceOpens, vault: vault) }
            return (keyFiles.combined(old), keyFiles.combinedNew(try terminal.newPassword("New password: ")))
        }
        let lines = try PasswordLines(source)
        let old = try lines.required("the old password")
        let new = try lines.required("the new password")
        try lines.finish()
        return (keyFiles.combined(old), keyFiles.combinedNew(new))
    }

    /// The password of a new space, and, as they were typed, those of all spaces that must survive.
    func toAdd(_ vault: String) throws(Failure) -> (new: SecretBytes, surviving: [SecretBytes]) {
        if let terminal = try terminal() {
            let (new, surviving) = try terminal.addition(vault) { (password) throws(Failure) in
                try onVault(vault) { () throws(VaultError) in
                    try Vault.opens(
                        vault, password: password, keyFiles: keyFiles.given, stretcher: stretcher)
                }
            }
            return (keyFiles.combinedNew(new), surviving)
        }
        let lines = try PasswordLines(source)
        let new = try lines.required("the new password")
        var surviving: [SecretBytes] = []
        while let password = try lines.next() {
            if surviving.count == Self.survivorsMax {
                throw Failure(.usage, "space add", "more passwords than a vault has spaces: give each once")
            }
            surviving.append(password)
        }
        try lines.finish()
        return (keyFiles.combinedNew(new), surviving)
    }
}

extension Terminal {
    fileprivate func existingPassword(_ prompt: String) throws(Failure) -> SecretBytes {
        guard let password = try askSecret(prompt), password.count > 0 else {
            throw emptyPassword("password")
        }
        return password
    }

    /// A password that opens a space. Wrong ones can be typed anew; nil after as many as there are attempts.
    fileprivate func knownPassword(
        _ prompt: String, _ opens: (SecretBytes) throws(Failure) -> Bool
    ) throws(Failure) -> SecretBytes? {
        for attempt in 1...Passwords.attemptsMax {
            let password = try existingPassword(prompt)
            if try opens(password) { return password }
            if attempt < Passwords.attemptsMax { tell(Passwords.refusal + Passwords.hint) }
        }
        return nil
    }

    fileprivate func newPassword(_ prompt: String) throws(Failure) -> SecretBytes {
        for attempt in 1...Passwords.attemptsMax {
            guard let password = try askSecret(prompt) else { break }
            if password.count == 0 {
                if attempt < Passwords.attemptsMax { tell("An empty password is not accepted.") }
                continue
            }
            guard let repeated = try askSecret("Again: ") else { break }
            if password == repeated { return password }
            if attempt < Passwords.attemptsMax { tell("The two differ. Once more:") }
        }
        throw Failure(.failed, "password", "the same password was not typed twice: try again")
    }

    /// - Parameter opens: whether a password opens a space.
    fileprivate func addition(
        _ vault: String, _ opens: (SecretBytes) throws(Failure) -> Bool
    ) throws(Failure) -> (new: SecretBytes, surviving: [SecretBytes]) {
        let new = try newPassword("New password for \(vault): ")
        tell(
            """
            The vault cannot know which of its other spaces are in use. Type the password of each space that \
            must survive, then an empty one: a space whose password is missing may be lost.
            """)
        var surviving: [SecretBytes] = []
        while surviving.count < Passwords.survivorsMax,
            let password = try askSecret("Password of a space to keep (none: Enter): "), password.count > 0
        {
            if try opens(password) {
                surviving.append(password)
            } else {
                tell("No space opens with this password, so it keeps none: once more.")
            }
        }
        if surviving.isEmpty {
            try confirm("No space is kept: any may be overwritten, with all its photos.", vault)
        }
        return (new, surviving)
    }
}
