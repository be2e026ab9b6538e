import CShims
import Glibc
import HostFiles
import LinuxIO

/// The mounts that hide parts of the machine from a private session, and show other things in their place.
///
/// Empty directories in memory cover the places where programs leave traces. The files that file managers need to start
/// are bound into them from the real ones, read-only; the vault is bound as it is.
struct SessionMounts {
    /// Resolved paths.
    let home: String
    let vault: String
    /// XDG_RUNTIME_DIR in the session.
    let runtime: String

    var photos: String { home + "/Photos" }

    /// Directories, besides the home directory, that any program may write to, with their modes. Missing ones stay
    /// missing.
    private static let directories: [(path: String, mode: String)] = [
        ("/tmp", "1777"), ("/var/tmp", "1777"), ("/dev/shm", "1777"), ("/run/user", "0755"),
        // The journal's sockets: messages that a program logs inside go nowhere.
        ("/run/systemd/journal", "0755"),
    ]

    /// Below the home directory: the settings of file managers' appearance, shown read-only.
    private static let kept = [
        ".config/gtk-2.0", ".config/gtk-3.0", ".config/gtk-4.0", ".config/fontconfig", ".config/dconf",
        ".config/xfce4", ".config/Thunar", ".config/pcmanfm", ".config/libfm", ".config/kdeglobals",
        ".config/kdedefaults", ".config/dolphinrc", ".config/mimeapps.list", ".gtkrc-2.0", ".themes",
        ".icons",
        ".fonts", ".local/share/themes", ".local/share/icons", ".local/share/fonts", ".local/share/mime",
        ".local/share/applications", ".Xauthority",
    ]

    /// A file or directory that is at `path` in the session too, though its surroundings are hidden.
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
    func make() throws(Failure) {
        let hidden = Self.directories.filter { access($0.path, F_OK) == 0 } + [(home, "0700")]
        let kept = keep(below: hidden.map(\.path))
        defer { for item in kept { close(item.descriptor) } }
        for (path, mode) in hidden {
            // The home directory may lie below a directory that is hidden by now.
            try makeDirectories(path)
            try cover(path, mode: mode)
        }
        try makeDirectories(runtime)
        guard chmod(runtime, 0o700) == 0 else { throw Failure(runtime, "making it private", .last) }
        for item in kept { try show(item) }
        try silenceLog()
        try makeDirectories(photos)
    }

    /// Opens the paths below `hidden` that are to be shown.
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

    /// The compositor's socket; nil if there is none.
    private var waylandSocket: String? {
        guard let name = variable("WAYLAND_DISPLAY") else { return nil }
        if name.hasPrefix("/") { return name }
        return variable("XDG_RUNTIME_DIR").map { $0 + "/" + name }
    }

    private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Makes each missing directory of a path, for this user only.
    private func makeDirectories(_ path: String) throws(Failure) {
        var parent = ""
        for name in path.split(separator: "/") {
            parent += "/" + name
            if mkdir(parent, 0o700) != 0, errno != EEXIST, access(parent, F_OK) != 0 {
                throw Failure(parent, "making the directory", .last)
            }
        }
    }

    /// Covers a directory by an empty one in memory. Where that is permitted (root, Linux 6.4) the memory is never
    /// swapped out.
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
        // Flags that the mount already has may not be removed. statvfs(3) reports them with the values of mount(2).
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { throw Failure(path, "looking at it", .last) }
        let restrictions = UInt(MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
        let flags = UInt(MS_BIND | MS_REMOUNT | MS_RDONLY) | UInt(status.f_flag) & restrictions
        guard mount(nil, path, nil, flags, nil) == 0 else {
            throw Failure(path, "making it read-only", .last)
        }
    }

    /// Covers the system log's socket if it is not a link into the journal: nobody listens inside.
    private func silenceLog() throws(Failure) {
        var status = stat()
        guard lstat("/dev/log", &status) == 0, status.type == mode_t(S_IFSOCK) else { return }
        guard mount("/dev/null", "/dev/log", nil, UInt(MS_BIND), nil) == 0 else {
            throw Failure("/dev/log", "hiding it", .last)
        }
    }
}
