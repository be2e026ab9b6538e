import FuseBridge
import Glibc
import LinuxIO

extension MountEntry {
    /// Whether this program mounted it, even with another `subtype=`.
    var isObscura: Bool { type == "fuse.obscura" || (type.hasPrefix("fuse.") && source == "obscura") }
}

/// Unmounts the mount at `directory`.
///
/// Root asks the kernel; other users ask fusermount3, which may unmount the mounts of its caller.
///
/// - Parameter lazily: even if it is dead or busy; its open files stay open.
func takeMountAway(_ directory: String, lazily: Bool) throws(Failure) {
    if geteuid() == 0 {
        let flags = Int32(UMOUNT_NOFOLLOW) | (lazily ? Int32(MNT_DETACH) : 0)
        guard umount2(directory, flags) != 0 else { return }
        throw unmountFailure(directory, isBusy: errno == EBUSY, reason: "\(Errno.last)")
    }
    let words = ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", directory]
    let end: ProcessEnd
    let complaint: String
    do {
        (end, complaint) = try runQuietly(words)
    } catch {
        throw error == .noEntry
            ? failure(.noHelper, directory: directory) : Failure(words[0], "running it", error)
    }
    if end == .exited(0) { return }
    let reason = complaint.split(separator: "\n").last.map(String.init) ?? "fusermount3 failed"
    throw unmountFailure(directory, isBusy: complaint.contains(Errno(EBUSY).description), reason: reason)
}

private func unmountFailure(_ directory: String, isBusy: Bool, reason: String) -> Failure {
    isBusy
        ? Failure(.failed, directory, "a program is using it: close its files and leave the directory first")
        : Failure(.failed, directory, "unmounting it: \(reason)")
}
