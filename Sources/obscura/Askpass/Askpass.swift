import Glibc
import LinuxIO
import VaultCrypto

/// A program that asks the user for a password in a window, for use without a terminal.
enum Askpass: Equatable {
    /// Takes the prompt as its argument and prints the password, as ssh(1) documents for SSH_ASKPASS.
    case program(String, variable: String)
    case pinentry(String)
    case zenity(String)
    case kdialog(String)

    /// Pinentries with windows first: each shows itself on a terminal where it has no display, and there is none.
    private static let pinentries = [
        "pinentry-gnome3", "pinentry-qt", "pinentry-gtk-2", "pinentry-x11", "pinentry",
    ]
    private static let variable = "OBSCURA_ASKPASS"
    /// ssh asks with it as well, and so only where a window can be shown.
    private static let desktopVariable = "SSH_ASKPASS"

    /// The programs to try, in order.
    static func all() -> [Askpass] {
        completeEnvironment()
        if let path = setting(variable) { return [.program(path, variable: variable)] }
        guard isDisplayThere() else { return [] }
        if let path = setting(desktopVariable) { return [.program(path, variable: desktopVariable)] }
        return pinentries.compactMap { programInPath($0).map(Askpass.pinentry) }
            + [programInPath("zenity").map(Askpass.zenity), programInPath("kdialog").map(Askpass.kdialog)]
            .compactMap { $0 }
    }

    /// - Parameter error: a sentence that says why the password is asked for again.
    /// - Returns: nil if the program cannot show itself.
    func ask(_ prompt: String, error: String?) throws(Failure) -> SecretBytes? {
        let text = [error, prompt].compactMap { $0 }.joined(separator: "\n")
        switch self {
        case .program(let path, let variable): return try printed([path, text], name: "\(variable) \(path)")
        case .pinentry(let path): return try Pinentry(path)?.ask(prompt, error: error)
        case .zenity(let path):
            // An underline marks the letter of a shortcut.
            let label = text.split(separator: "_", omittingEmptySubsequences: false).joined(separator: "__")
            let words = ["--entry", "--hide-text", "--title=Obscura", "--text=\(label)"]
            return try printed([path] + words, name: "zenity")
        case .kdialog(let path):
            return try printed([path, "--title", "Obscura", "--password", text], name: "kdialog")
        }
    }

    private func printed(_ words: [String], name: String) throws(Failure) -> SecretBytes {
        let lines = try PasswordLines(.program(words, option: name))
        let cancelled = Askpass.cancelled(name)
        let password: SecretBytes?
        do { password = try lines.next() } catch {
            // kdialog prints an empty line when it is cancelled.
            try lines.finish(orThrow: cancelled)
            throw error
        }
        try lines.finish(orThrow: cancelled)
        guard let password else { throw cancelled }
        return password
    }

    static func cancelled(_ name: String) -> Failure {
        Failure(.failed, name, "no password was given: nothing was done")
    }

    // MARK: The desktop

    private static func setting(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// mount(8) takes both out of the environment of a user, and windows need them.
    private static func completeEnvironment() {
        if setting("PATH") == nil { setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1) }
        if setting("HOME") == nil, let entry = getpwuid(getuid()) { setenv("HOME", entry.pointee.pw_dir, 1) }
    }

    /// Whether a display server accepts connections.
    private static func isDisplayThere() -> Bool {
        if let name = setting("WAYLAND_DISPLAY") {
            let directory = name.hasPrefix("/") ? "" : (setting("XDG_RUNTIME_DIR") ?? "") + "/"
            if connects(to: directory + name) { return true }
        }
        guard let display = setting("DISPLAY"), let colon = display.lastIndex(of: ":") else { return false }
        // Another computer's is reached over a network, as through ssh -X.
        guard ["", "unix"].contains(display[..<colon]) else { return true }
        let number = display[display.index(after: colon)...].prefix { $0 != "." }
        let path = "/tmp/.X11-unix/X\(number)"
        return connects(to: path) || connects(to: "\0" + path)
    }

    /// - Parameter path: of a Unix socket; one with a leading NUL byte has no file.
    private static func connects(to path: String) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = MemoryLayout.offset(of: \sockaddr_un.sun_path).map { $0 + bytes.count } ?? 0
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(length)) == 0
            }
        }
    }
}
