internal import CFuse3
internal import Glibc

/// Lets its owner mount on a directory that nobody may write to: fusermount3 refuses one. The mode is put back as soon
/// as the mount covers the directory, so that no program writes into it while the vault is locked.
struct MountPointMode {
    private let descriptor: Int32
    private let mode: mode_t

    /// Nil if there is nothing to do: the user may write, or is root.
    init?(allowing path: String) {
        guard geteuid() != 0, access(path, W_OK) != 0 else { return nil }
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_uid == geteuid() else {
            if descriptor >= 0 { close(descriptor) }
            return nil
        }
        mode = status.st_mode & 0o7777
        _ = fchmod(descriptor, mode | 0o200)
    }

    /// Call it once, whether the mount succeeded or not.
    func restore() {
        _ = fchmod(descriptor, mode)
        close(descriptor)
    }
}
