import VaultCrypto
import VaultStore

/// Gets the passwords that a command needs: from lines if a source was given, else from the terminal.
struct Passwords {
    /// How often a new password may be mistyped or left empty before the command gives up.
    static let attemptsMax = 3
    /// More can never survive: a vault has at most 8 spaces.
    static let survivorsMax = 8

    let source: PasswordSource
    /// Every password returned here is already combined with its key file, except the survivors of `toAdd`.
    let keyFiles: KeyFiles

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
        guard let terminal = Terminal() else { throw Failure(.usage, "password", hint) }
        return terminal
    }

    /// The password of a space.
    func toOpen(_ vault: String) throws(Failure) -> SecretBytes {
        if let terminal = try terminal() {
            return keyFiles.combined(try terminal.existingPassword("Password for \(vault): "))
        }
        let lines = try PasswordLines(source)
        let password = try lines.required("the password")
        try lines.finish()
        return keyFiles.combined(password)
    }

    /// Opens the vault with the password of a space. On a terminal a wrong one can be typed anew, `attemptsMax` times
    /// in all.
    func opening<Opened>(
        _ vault: String, _ body: (SecretBytes) throws(VaultError) -> Opened
    ) throws(Failure) -> Opened {
        var refused: Failure?
        var attempt = 0
        while true {
            attempt += 1
            do throws(Failure) {
                let password = try toOpen(vault)
                return try onVault(vault) { () throws(VaultError) in try body(password) }
            } catch {
                // Nothing typed after a wrong password ends the dialogue.
                if let refused, error.status == .usage { throw refused }
                guard error.status == .noSpaceOpens, attempt < Self.attemptsMax, let terminal = try terminal()
                else { throw error }
                terminal.tell("No space opens with this password: is Caps Lock on?")
                refused = error
            }
        }
    }

    /// A new password, asked for twice.
    func toCreate(_ vault: String) throws(Failure) -> SecretBytes {
        if let terminal = try terminal() {
            return keyFiles.combinedNew(try terminal.newPassword("New password for \(vault): "))
        }
        let lines = try PasswordLines(source)
        let password = try lines.required("the new password")
        try lines.finish()
        return keyFiles.combinedNew(password)
    }

    func toChange(_ vault: String) throws(Failure) -> (old: SecretBytes, new: SecretBytes) {
        if let terminal = try terminal() {
            let old = try terminal.knownPassword("Old password for \(vault): ") { (old) throws(Failure) in
                try onVault(vault) { () throws(VaultError) in
                    try Vault.opens(vault, password: keyFiles.combined(old), stretcher: ChildStretcher())
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
                        vault, password: password, keyFiles: keyFiles.given, stretcher: ChildStretcher())
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
            if attempt < Passwords.attemptsMax { tell("No space opens with this password: is Caps Lock on?") }
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
