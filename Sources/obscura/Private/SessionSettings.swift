import Glibc
import LinuxIO

/// The command of a private session, and its environment.
struct SessionSettings {
    private let mounts: SessionMounts
    /// As the user gave it; empty for a shell.
    private let command: [String]

    init(_ mounts: SessionMounts, command: [String]) {
        self.mounts = mounts
        self.command = command
    }

    /// Names of variables that would lead out of the session, or reveal it: the user's bus and session manager, and
    /// directories and files that programs write to.
    private static let dropped: Set = [
        "DBUS_SESSION_BUS_ADDRESS", "SESSION_MANAGER", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DESKTOP_DIR", "TMPDIR", "TMP", "TEMP", "HISTFILE", "OLDPWD",
        "PWD",
        "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "JOURNAL_STREAM", "NOTIFY_SOCKET", "HOME",
    ]

    var environment: [String] {
        let kept = currentEnvironment().filter { variable in
            !Self.dropped.contains(String(variable.prefix { $0 != "=" }))
        }
        let prompt = getenv("debian_chroot") == nil ? ["debian_chroot=private"] : []
        return kept + ["HOME=\(mounts.home)", "XDG_RUNTIME_DIR=\(mounts.runtime)", "PWD=\(mounts.photos)"]
            + prompt
    }

    /// The command, checked as it will be found inside.
    ///
    /// Call this when everything is hidden.
    func commandWords() throws(Failure) -> [String] {
        var words = command
        if words.isEmpty {
            let shell = getenv("SHELL").map { String(cString: $0) } ?? ""
            words = [shell.hasPrefix("/") && access(shell, X_OK) == 0 ? shell : "/bin/sh"]
        }
        guard isProgram(words[0]) else {
            throw Failure(
                .failed, words[0], "no such program here: the home directory is hidden in a private session")
        }
        return words
    }

    /// Whether execvp(3) will find it.
    private func isProgram(_ name: String) -> Bool {
        if name.contains("/") { return access(absoluteInside(name), X_OK) == 0 }
        return programInPath(name) != nil
    }

    /// The command starts in the directory of the photos.
    private func absoluteInside(_ path: String) -> String {
        path.hasPrefix("/") ? path : mounts.photos + "/" + path
    }
}
