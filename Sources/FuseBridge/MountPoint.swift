internal import CFuse3
internal import Glibc
internal import LinuxIO

/// A mounted filesystem, identified by its device number: its directory may have been moved, bind-mounted elsewhere or
/// covered.
struct MountPoint: Sendable {
    /// "major:minor".
    let device: String
    /// Its number in fusectl; nil if it has none.
    let connection: Int?

    /// The topmost mount on `directory`. Nil unless its type is `fuse.` followed by `subtype`.
    init?(at directory: String, subtype: String) {
        guard let entry = mountEntry(at: directory), entry.type == "fuse.\(subtype)" else { return nil }
        device = entry.device
        connection = entry.fuseConnection
    }

    /// The directories where it is mounted now, newest first.
    var directories: [String] {
        mountTable().filter { $0.device == device }.map(\.directory).reversed()
    }

    /// Unmounts it everywhere. Returns false if it is in use or covered by another mount. With `lazily` use does not
    /// matter: the mount leaves the tree at once, and its users may finish.
    @discardableResult
    func unmount(lazily: Bool) -> Bool {
        for directory in directories {
            guard mountEntry(at: directory)?.device == device, detach(directory, lazily: lazily) else {
                return false
            }
        }
        return true
    }

    /// Unmounts it wherever it answers ENOTCONN, because its connection was closed or aborted.
    ///
    /// Only there: once a mount is gone, the next mount on the same directory may already have its device number.
    func removeIfDead() {
        for directory in directories where isDeadMount(directory) { _ = detach(directory, lazily: true) }
    }

    /// Sets the read-ahead of the mount's own device, 128 KiB by default. Does nothing unless permitted (root).
    func raiseReadAhead(kibibytes: Int) {
        let descriptor = open("/sys/class/bdi/\(device)/read_ahead_kb", O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        let text = "\(kibibytes)"
        _ = write(descriptor, text, text.utf8.count)
        close(descriptor)
    }
}

/// Whether the process behind a mount is gone. Uses statvfs(3), because the kernel may answer stat(2) from its cache.
func isDeadMount(_ directory: String) -> Bool {
    if isAutomountPoint(directory) { return false }
    var status = statvfs()
    // ECONNABORTED: the connection has ended during this call.
    return directory.withPath({ statvfs($0, &status) }) != 0 && (errno == ENOTCONN || errno == ECONNABORTED)
}

/// Unmounts the topmost mount at `directory`: directly where permitted (root, or in namespaces of its own), else
/// through fusermount3. Returns false if it is still there.
func detach(_ directory: String, lazily: Bool) -> Bool {
    let flags = Int32(UMOUNT_NOFOLLOW) | (lazily ? Int32(MNT_DETACH) : 0)
    if umount2(directory, flags) == 0 { return true }
    if errno != EPERM || geteuid() == 0 { return false }
    return run(["fusermount3", "-u", "-q"] + (lazily ? ["-z"] : []) + ["--", directory]) == 0
}

/// Runs a program found in PATH and waits. Returns its exit status, or nil if it could not be run or a signal ended it.
private func run(_ words: [String]) -> Int32? {
    let copies = words.map { word in word.withPath { strdup($0) } }
    defer { for copy in copies { free(copy) } }
    var process = pid_t()
    guard posix_spawnp(&process, words[0], nil, nil, copies + [nil], environ) == 0 else { return nil }
    var status: Int32 = 0
    while waitpid(process, &status, 0) == -1 {
        guard errno == EINTR else { return nil }
    }
    return status & 0x7f == 0 ? status >> 8 & 0xff : nil
}
