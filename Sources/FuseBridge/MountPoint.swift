internal import CFuse3
internal import Glibc
internal import LinuxIO

/// A mounted filesystem, found by its device number: its directory may have been moved, bound elsewhere or
/// hidden.
struct MountPoint: Sendable {
    /// "major:minor".
    let device: String

    /// The newest mount on `directory` of our kind.
    init?(at directory: String, subtype: String) {
        guard let entry = mountEntry(at: directory), entry.type == "fuse.\(subtype)" else { return nil }
        device = entry.device
    }

    /// Where it is mounted now, newest first.
    var directories: [String] {
        mountTable().filter { $0.device == device }.map(\.directory).reversed()
    }

    /// Unmounts it everywhere; false when it is in use or hidden under another mount (never with `lazily`,
    /// which takes it out of the tree at once and lets its users finish).
    @discardableResult
    func unmount(lazily: Bool) -> Bool {
        for directory in directories {
            guard mountEntry(at: directory)?.device == device, detach(directory, lazily: lazily) else {
                return false
            }
        }
        return true
    }

    /// Takes it out of the tree where it answers ENOTCONN, because its connection has been closed or severed.
    ///
    /// Only then: once a mount is gone its device number may already be that of the next one, on the same
    /// directory.
    func removeIfDead() {
        for directory in directories where isDeadMount(directory) { _ = detach(directory, lazily: true) }
    }

    /// Lets the kernel read further ahead than its 128 KiB, where we may (root). In pages of the mount's own
    /// device.
    func raiseReadAhead(kibibytes: Int) {
        let descriptor = open("/sys/class/bdi/\(device)/read_ahead_kb", O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        let text = "\(kibibytes)"
        _ = write(descriptor, text, text.utf8.count)
        close(descriptor)
    }
}

/// True where the process behind a mount has gone. Asked by statvfs(3): the kernel may answer stat(2) from
/// its cache.
func isDeadMount(_ directory: String) -> Bool {
    var status = statvfs()
    return statvfs(directory, &status) != 0 && errno == ENOTCONN
}

/// Unmounts what is on top at `directory`: by itself where it may (root, or in namespaces of its own), else through
/// fusermount3. False when it is still there.
func detach(_ directory: String, lazily: Bool) -> Bool {
    let flags = Int32(UMOUNT_NOFOLLOW) | (lazily ? Int32(MNT_DETACH) : 0)
    if umount2(directory, flags) == 0 { return true }
    if errno != EPERM || geteuid() == 0 { return false }
    return run(["fusermount3", "-u", "-q"] + (lazily ? ["-z"] : []) + ["--", directory]) == 0
}

/// Runs a program found in PATH and waits; its exit status, or nil when it could not be run.
private func run(_ words: [String]) -> Int32? {
    let copies = words.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    var process = pid_t()
    guard posix_spawnp(&process, words[0], nil, nil, copies + [nil], environ) == 0 else { return nil }
    var status: Int32 = 0
    while waitpid(process, &status, 0) == -1 {
        guard errno == EINTR else { return nil }
    }
    return status & 0x7f == 0 ? status >> 8 & 0xff : nil
}
