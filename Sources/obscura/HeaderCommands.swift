import Glibc
import LinuxIO
import VaultStore

func runHeaderExport(_ arguments: Arguments) throws(Failure) {
    let (vault, path) = (arguments.operands[0], arguments.operands[1])
    try requireVault(vault)
    if isInside(realPath(path), realPath(vault)) {
        throw Failure(.usage, path, "it is in the vault, and would be lost with it: name a file elsewhere")
    }
    let image = try onVault(vault) { () throws(VaultError) in try Vault.headerImage(vault) }
    try writeNewFile(path, image)
    say(
        "\(path): the header of \(vault): with it, today's passwords open their spaces even after they are "
            + "changed or removed")
}

func runHeaderRestore(_ arguments: Arguments) throws(Failure) {
    let (vault, path) = (arguments.operands[0], arguments.operands[1])
    let image = try readImage(path)
    let restoration = try judge(image, path, vault)
    switch restoration.present {
    case .same: return say("\(vault): it already has the header of \(path): nothing to do")
    case .other:
        try confirm(
            """
            The passwords of when \(path) was made will open again. Those set since will not, and a space added \
            since is lost with all its photos.
            """, vault)
    case .none:
        try confirm(
            "The vault has no intact header. The passwords of when \(path) was made will open it again.",
            vault)
    }
    try onVault(vault) { () throws(VaultError) in try restoration.write() }
    say(
        "\(vault): the header of \(path) is restored: the passwords of its time open again, those set since do not"
    )
    if restoration.present == .none {
        say(
            "\(vault): whether it is the header of this vault shows when a password opens a space: if none does, move "
                + "obscura.vault out of the vault and restore another")
    }
}

private func judge(_ image: [UInt8], _ path: String, _ vault: String) throws(Failure) -> HeaderRestoration {
    do throws(VaultError) { return try HeaderRestoration(vault, image: image) } catch {
        if error == .headerDamaged {
            throw Failure(
                .damaged, path, "not an intact header: name a file that obscura header export wrote")
        }
        throw failure(error, vault: vault)
    }
}

/// Asks only on a terminal, as cryptsetup(8) does: a command with other input needs no confirmation.
private func confirm(_ sentences: String, _ vault: String) throws(Failure) {
    guard isatty(STDIN_FILENO) == 1, let terminal = Terminal() else { return }
    try terminal.confirm(sentences, vault)
}

extension Terminal {
    /// Continues only after the typed word.
    func confirm(_ sentences: String, _ vault: String, word: String = "yes") throws(Failure) {
        tell(sentences)
        guard try ask("Type \(word) to go on: ") == word else {
            throw Failure(.failed, vault, "nothing was changed: only \(word) goes on")
        }
    }
}

/// Creates a file for its owner only, safe on disk when this returns. Throws if it exists already or cannot be written;
/// then no new file is left.
private func writeNewFile(_ path: String, _ bytes: [UInt8]) throws(Failure) {
    let calls = LinuxCalls.shared
    do throws(Errno) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
        let descriptor = try calls.open(AT_FDCWD, path, flags: flags, mode: 0o600)
        defer { calls.close(descriptor) }
        do throws(Errno) {
            try calls.writeFully(descriptor, bytes, at: 0)
            try calls.sync(descriptor)
            try syncParent(of: path)
        } catch {
            unlink(path)
            throw error
        }
    } catch {
        if error == .exists {
            throw Failure(.failed, path, "the file exists and is not overwritten: name another")
        }
        throw Failure(path, "writing the header", error)
    }
}

private func syncParent(of path: String) throws(Errno) {
    let parts = realPath(path).split(separator: "/").dropLast()
    let calls = LinuxCalls.shared
    let descriptor = try calls.open(
        AT_FDCWD, "/" + parts.joined(separator: "/"), flags: O_RDONLY | O_DIRECTORY, mode: 0)
    defer { calls.close(descriptor) }
    try calls.sync(descriptor)
}

/// At most as many bytes of a file as a header has.
private func readImage(_ path: String) throws(Failure) -> [UInt8] {
    let calls = LinuxCalls.shared
    do throws(Errno) {
        let descriptor = try calls.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0)
        defer { calls.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: Vault.headerFileBytes)
        let count = try calls.readFully(descriptor, at: 0, into: &bytes)
        return Array(bytes[..<count])
    } catch { throw Failure(path, "reading the header", error) }
}
