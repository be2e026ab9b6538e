import CShims
import Glibc
import LinuxIO

/// What a private session does not show of the machine, and what it shows in its place.
///
/// Empty directories in memory lie over the places where programs leave traces. What file managers need to start is
/// bound into them from the real ones, read-only; the vault as it is.
struct Hiding {
    /// Real paths.
    let home: String
    let vault: String
    /// XDG_RUNTIME_DIR inside.
    let runtime: String

    var photos: String { home + "/Photos" }

    /// Where any program may write, beside the home directory, with the mode each has. Those that are missing stay so.
    private static let directories: [(path: String, mode: String)] = [
        ("/tmp", "1777"), ("/var/tmp", "1777"), ("/dev/shm", "1777"), ("/run/user", "0755"),
        // The journal's sockets: what a program logs inside goes nowhere.
        ("/run/systemd/journal", "0755"),
    ]

    /// Below the home directory, with what file managers show themselves by: read-only.
    private static let kept = [
        ".config/gtk-2.0", ".config/gtk-3.0", ".config/gtk-4.0", ".config/fontconfig", ".config/dconf",
        ".config/xfce4", ".config/Thunar", ".config/pcmanfm", ".config/libfm", ".config/kdeglobals",
        ".config/kdedefaults", ".config/dolphinrc", ".config/mimeapps.list", ".gtkrc-2.0", ".themes",
        ".icons",
        ".fonts", ".local/share/themes", ".local/share/icons", ".local/share/fonts", ".local/share/mime",
        ".local/share/applications", ".Xauthority",
    ]

    /// Something that lies at `path` inside too, though what is around it is hidden.
    private struct Kept {
        var path: String
        /// Opened with O_PATH before it was hidden.
        var descriptor: Int32
        var isDirectory: Bool
        var isReadOnly: Bool
    }

    init(home: String, vault: String) throws(Failure) {
        if isInside(home, vault) {
            throw Failure(
                .usage, vault, "the home directory is inside it: a session cannot hide one without the other")
        }
        self.home = home
        self.vault = vault
        let users = "/run/user"
        runtime = access(users, F_OK) == 0 ? "\(users)/\(geteuid())" : "/tmp/.runtime-\(geteuid())"
    }

    /// Hides and shows, in the mount namespace of this process, which must be its own.
    func hide() throws(Failure) {
        let hidden = Self.directories.filter { access($0.path, F_OK) == 0 } + [(home, "0700")]
        let kept = keep(below: hidden.map(\.path))
        defer { for item in kept { close(item.descriptor) } }
        for (path, mode) in hidden {
            // The home directory may lie below one that is hidden by now.
            try makeDirectories(path)
            try cover(path, mode: mode)
        }
        try makeDirectories(runtime)
        guard chmod(runtime, 0o700) == 0 else { throw Failure(runtime, "making it private", .last) }
        for item in kept { try show(item) }
        try silenceLog()
        try makeDirectories(photos)
    }

    /// Opens what is to be shown of what lies below `hidden`.
    private func keep(below hidden: [String]) -> [Kept] {
        let program = "/" + realPath("/proc/self/exe").split(separator: "/").dropLast().joined(separator: "/")
        var paths = Self.kept.map { home + "/" + $0 } + ["/tmp/.X11-unix", program]
        paths += [waylandSocket, variable("XAUTHORITY")].compactMap(\.self)
        return ([vault] + paths).enumerated().compactMap { index, path in
            guard hidden.contains(where: { isInside(path, $0) && path != $0 }) else { return nil }
            let descriptor = obscura_openat(AT_FDCWD, path, obscura_path_only | O_CLOEXEC, 0)
            var status = stat()
            guard descriptor >= 0, fstat(descriptor, &status) == 0 else { return nil }
            return Kept(
                path: path, descriptor: descriptor, isDirectory: status.isDirectory, isReadOnly: index > 0)
        }
    }

    /// The compositor's socket; nil where there is none.
    private var waylandSocket: String? {
        guard let name = variable("WAYLAND_DISPLAY") else { return nil }
        if name.hasPrefix("/") { return name }
        return variable("XDG_RUNTIME_DIR").map { $0 + "/" + name }
    }

    private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// mkdir(2) for each directory of a path that is missing, for this user alone.
    private func makeDirectories(_ path: String) throws(Failure) {
        var parent = ""
        for name in path.split(separator: "/") {
            parent += "/" + name
            if mkdir(parent, 0o700) != 0, errno != EEXIST, access(parent, F_OK) != 0 {
                throw Failure(parent, "making the directory", .last)
            }
        }
    }

    /// An empty directory in memory; where that is permitted (root, Linux 6.4) in memory that is never swapped out.
    private func cover(_ path: String, mode: String) throws(Failure) {
        let flags = UInt(MS_NOSUID | MS_NODEV)
        if mount("tmpfs", path, "tmpfs", flags, "mode=\(mode),noswap") == 0 { return }
        guard mount("tmpfs", path, "tmpfs", flags, "mode=\(mode)") == 0 else {
            throw Failure(path, "hiding it", .last)
        }
    }

    private func show(_ item: Kept) throws(Failure) {
        if item.isDirectory {
            try makeDirectories(item.path)
        } else {
            try makeDirectories(
                String(item.path.prefix(upTo: item.path.lastIndex(of: "/") ?? item.path.startIndex)))
            let file = open(item.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
            if file < 0 { throw Failure(item.path, "making it", .last) }
            close(file)
        }
        let source = "/proc/self/fd/\(item.descriptor)"
        guard mount(source, item.path, nil, UInt(MS_BIND | MS_REC), nil) == 0 else {
            throw Failure(item.path, "showing it in the session", .last)
        }
        if item.isReadOnly { try makeReadOnly(item.path) }
    }

    private func makeReadOnly(_ path: String) throws(Failure) {
        // Flags that the mount has already may not be taken away. statvfs(3) gives those of mount(2) their values.
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { throw Failure(path, "looking at it", .last) }
        let restrictions = UInt(MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
        let flags = UInt(MS_BIND | MS_REMOUNT | MS_RDONLY) | UInt(status.f_flag) & restrictions
        guard mount(nil, path, nil, flags, nil) == 0 else {
            throw Failure(path, "making it read-only", .last)
        }
    }

    /// Where the system's log is a socket of its own, and not a link into the journal, nobody listens inside.
    private func silenceLog() throws(Failure) {
        var status = stat()
        guard lstat("/dev/log", &status) == 0, status.type == mode_t(S_IFSOCK) else { return }
        guard mount("/dev/null", "/dev/log", nil, UInt(MS_BIND), nil) == 0 else {
            throw Failure("/dev/log", "hiding it", .last)
        }
    }
}
