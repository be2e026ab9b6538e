import Glibc
import LinuxIO
import VaultCrypto
import VaultStore

/// The user's keyring, by libsecret's secret-tool(1). Passwords go to and from it through pipes alone.
struct Keyring {
    private let program: String
    /// A resolved path, by which the password is found again.
    private let vault: String

    /// - Parameter creation: of a vault that is still to be made.
    init(_ vault: String, _ creation: CreateSettings?) throws(Failure) {
        let spaces =
            if let creation, !Vault.isVault(vault) { creation.spaces } else {
                try onVault(vault) { () throws(VaultError) in try Vault.info(vault) }.spaceCount
            }
        guard spaces == 1 else {
            throw Failure(
                .usage, Option.remember.spelling,
                "\(vault) has \(spaces) spaces: a password in the keyring would show that its space is in use, and "
                    + "open it: only a vault of one space (--spaces 1) can be remembered")
        }
        guard let program = programInPath("secret-tool") else {
            throw Failure(
                .failed, Option.remember.spelling,
                "secret-tool is not installed: apt install libsecret-tools, or mount without it")
        }
        self.program = program
        self.vault = realPath(vault)
    }

    private var attributes: [String] { ["application", "obscura", "vault", vault] }

    /// The kept password; nil if there is none, or no keyring.
    func password() -> SecretBytes? {
        guard
            let lines = try? PasswordLines(.program([program, "lookup"] + attributes, option: "secret-tool"))
        else { return nil }
        let password = try? lines.next()
        do { try lines.finish() } catch { return nil }
        return password
    }

    /// Keeps the password in place of the one before. Tells the user.
    func store(_ password: SecretBytes) {
        do throws(Failure) {
            try runStore(password)
            note(
                "obscura: \(vault): the password is in the keyring now: to forget it, run "
                    + "`secret-tool clear \(attributes.joined(separator: " "))`")
        } catch {
            note("obscura: \(vault): the password could not be kept in the keyring: \(error.why)")
        }
    }

    private func runStore(_ password: SecretBytes) throws(Failure) {
        let input = try pipeEnds(for: program)
        defer { close(input.read) }
        // A pipe holds the longest password without a reader. A newline would become part of it.
        let count = password.withUnsafeBytes { write(input.write, $0.baseAddress, $0.count) }
        close(input.write)
        guard count == password.count else { throw Failure(program, "handing over the password", .last) }
        let process: pid_t
        do {
            process = try spawn(
                [program, "store", "--label=Obscura: \(vault)"] + attributes,
                descriptors: [(input.read, STDIN_FILENO)])
        } catch { throw Failure(program, "running it", error) }
        guard waitForEnd(of: process) == .exited(0) else {
            throw Failure(.failed, program, "secret-tool failed: is a keyring running and unlocked?")
        }
    }
}
