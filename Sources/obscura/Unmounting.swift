import FuseBridge
import Glibc
import HostFiles
import LinuxIO

/// How often a busy mount is tried, and the pause between: a program that looked at it, or has just ended, lets go of
/// it within a moment.
private let busyAttempts = 20
private let busyPauseMicroseconds: UInt32 = 50_000

/// Unmounts the mount at `directory`.
///
/// Root asks the kernel; other users ask fusermount3, which may unmount the mounts of its caller.
///
/// - Parameter lazily: even if it is dead or busy; its open files stay open.
func takeMountAway(_ directory: String, lazily: Bool) throws(Failure) {
    for attempt in 1...busyAttempts {
        guard let refusal = try geteuid() == 0 ? askKernel(directory, lazily) : askHelper(directory, lazily)
        else { return }
        if !refusal.isBusy { throw Failure(.failed, directory, "unmounting it: \(refusal.reason)") }
        if let inner = mountTable().first(where: { $0.directory.hasPrefix(directory + "/") }) {
            throw Failure(.failed, directory, "another mount is inside: unmount \(inner.directory) first")
        }
        if attempt < busyAttempts { usleep(busyPauseMicroseconds) }
    }
    let program = program(using: directory) ?? "a program"
    throw Failure(
        .failed, directory, "\(program) is using it: close its files and leave the directory first")
}

private struct UnmountRefusal {
    var isBusy: Bool
    var reason: String
}

/// Nil: it is unmounted.
private func askKernel(_ directory: String, _ lazily: Bool) -> UnmountRefusal? {
    let flags = Int32(UMOUNT_NOFOLLOW) | (lazily ? Int32(MNT_DETACH) : 0)
    guard umount2(directory, flags) != 0 else { return nil }
    return UnmountRefusal(isBusy: errno == EBUSY, reason: "\(Errno.last)")
}

/// Nil: it is unmounted.
private func askHelper(_ directory: String, _ lazily: Bool) throws(Failure) -> UnmountRefusal? {
    let words = ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", directory]
    let end: ProcessEnd
    let complaint: String
    do {
        (end, complaint) = try runQuietly(words)
    } catch {
        throw error == .noEntry
            ? failure(.noHelper, directory: directory) : Failure(words[0], "running it", error)
    }
    if end == .exited(0) { return nil }
    let reason = complaint.split(separator: "\n").last.map(String.init) ?? "fusermount3 failed"
    return UnmountRefusal(isBusy: complaint.contains(Errno(EBUSY).description), reason: reason)
}

/// The name and number of a program that has its working directory or an open file in a mount; nil if this user may see
/// none. The links of /proc are only read: following one would ask the mount.
private func program(using place: String) -> String? {
    let (directory, below) = (pathBytes(place), pathBytes(place + "/"))
    func isInside(_ link: HostPath) -> Bool {
        guard let target = try? link.linkTarget() else { return false }
        return target == directory || target.starts(with: below)
    }
    let user = processes().first { process in
        let files = HostPath("/proc/\(process)/fd")
        return process != getpid()
            && (isInside(HostPath("/proc/\(process)/cwd"))
                || (try? files.list())?.contains { isInside(files.appending($0)) } == true)
    }
    return user.map { processText($0) }
}
