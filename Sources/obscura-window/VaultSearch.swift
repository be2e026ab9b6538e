import CAdwaita
import Glibc
import LinuxIO

/// A search for vaults in the home directory and on removable disks.
///
/// It follows no symbolic link and enters no mount below the places where it begins, so that it never waits for a
/// server, and asks nothing of a mount of Obscura. Hidden directories are left out.
struct VaultSearch {
    /// The file that makes a directory a vault.
    static let header = "obscura.vault"
    /// Levels below the home directory, and below the top of a removable disk.
    private static let (homeDepth, diskDepth) = (3, 2)
    /// Bounds the time that it takes.
    private static let directoriesMax = 20_000

    private let mounts = mountTable()
    private lazy var mountPoints = Set(mounts.map(\.directory))
    private var directoriesLeft = Self.directoriesMax
    private var found: [String] = []

    /// Searches in a thread of its own; calls `done` from the main loop.
    ///
    /// - Parameter known: directories to look into as well.
    static func start(_ known: [String], _ done: @escaping ([String]) -> Void) {
        let thread = g_thread_new(
            "search",
            { data in
                let (known, done) = Box<([String], ([String]) -> Void)>.last(data)
                var search = VaultSearch()
                search.run(known)
                let found = search.found
                soon { done(found) }
                return nil
            }, Box((known, done)).retained)
        g_thread_unref(thread)
    }

    private mutating func run(_ known: [String]) {
        for path in known { search(path, 0) }
        search(String(cString: g_get_home_dir()), Self.homeDepth)
        let user = String(cString: g_get_user_name())
        for mount in mounts where mount.type != "fuse.obscura" {
            let top = mount.directory.split(separator: "/").dropLast().joined(separator: "/")
            if ["media", "media/" + user, "run/media/" + user].contains(top) {
                search(mount.directory, Self.diskDepth)
            }
        }
    }

    private mutating func search(_ path: String, _ depth: Int) {
        guard directoriesLeft > 0 else { return }
        // Of what is no directory this says so, and opens nothing.
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        directoriesLeft -= 1
        var status = stat()
        let isThere = fstatat(descriptor, Self.header, &status, AT_SYMLINK_NOFOLLOW) == 0
        if isThere, status.st_mode & S_IFMT == S_IFREG { return found.append(path) }
        guard depth > 0, let names = try? LinuxCalls.shared.list(descriptor) else { return }
        for name in names where !name.hasPrefix(".") && !mountPoints.contains(path + "/" + name) {
            search(path + "/" + name, depth - 1)
        }
    }
}

/// The path without links, but for its last name: asking a mount for that one may wait. `path` itself if there is none.
func resolvedPath(_ path: String) -> String {
    let parts = path.split(separator: "/")
    let folder = "/" + parts.dropLast().joined(separator: "/")
    guard let last = parts.last, let parent = taking(realpath(folder, nil)) else { return path }
    return (parent == "/" ? "" : parent) + "/" + last
}
