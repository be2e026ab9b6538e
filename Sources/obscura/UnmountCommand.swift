import CShims
import Glibc
import LinuxIO
import VaultStore

/// Time after which the user is told the reason of a delay.
let patienceMilliseconds: Int32 = 3000

/// Ends the mount and returns when its process is gone: everything is on disk and the vault is free.
func runUnmount(_ arguments: Arguments) throws(Failure) {
    let directory = arguments.operands[0]
    let place = realPath(directory)
    guard let entry = mountEntry(at: place) else {
        if Vault.isVault(directory) {
            throw Failure(.failed, directory, "this is the vault: name the directory where it is mounted")
        }
        throw Failure(.failed, directory, "nothing is mounted here: findmnt -t fuse.obscura lists mounts")
    }
    guard entry.isObscura else {
        throw Failure(.failed, directory, "the mount here is not obscura's (\(entry.type)): use umount")
    }
    try freeHangingMount(place)
    let isSwept = runningDaemon(of: place)?.daemon.words.sweeps ?? false
    let daemon = findDaemon(of: place)
    defer { if let daemon { close(daemon) } }
    let connection = entry.fuseConnection.map { openWaiting(ofConnection: $0) } ?? -1
    defer { close(connection) }
    var changes: UnwrittenAnswer?
    if arguments.has(.discard) {
        changes = settle(place, named: directory, within: discardMilliseconds)
        if changes == nil || changes?.isAny == true {
            return try discard(place, named: directory, changes, daemon)
        }
    } else {
        try writeOut(place, named: directory)
    }
    // A mount that is bound at a second place too (mount --bind) lives on. Checked before the unmount: afterwards the
    // number may be another mount's at once.
    let isMountedElsewhere = mountTable().count { $0.device == entry.device } > 1
    do throws(Failure) { try takeMountAway(place, lazily: false) } catch {
        guard arguments.has(.discard) else { throw error }
        return try discard(place, named: directory, changes, daemon)
    }
    guard let daemon, !isMountedElsewhere else { return }
    waitForEnd(ofDaemon: daemon, connection, directory: directory)
    guard isSwept else { return }
    let left = TrashReturn(user: DesktopUser(geteuid()), directory: absolutePath(directory)).count()
    if left > 0 { note("obscura: \(directory): \(TrashReturn.leftLine(left))") }
}

/// Names the changes that cannot be written, while the mount is still there and nothing is lost.
private func writeOut(_ place: String, named directory: String) throws(Failure) {
    guard let changes = settle(place, named: directory, within: nil), changes.isAny else { return }
    // Only on a terminal, never where the paths might be kept.
    if isatty(STDOUT_FILENO) == 1 { for line in changes.lines { say(line) } }
    throw Failure(
        changes.isFull ? .noRoom : .failed, directory,
        "\(changes.summary): \(changes.reason): fix that and try again, or discard the changes with "
            + "obscura unmount --discard \(directory)")
}

/// - Parameter connection: from `openWaiting`. While the kernel has it, the mount lives on in another mount namespace,
///   where this command unmounts nothing: a signal ends it there.
private func waitForEnd(ofDaemon descriptor: Int32, _ connection: Int32, directory: String) {
    if hasEnded(descriptor, within: patienceMilliseconds) { return }
    let isCopied = isConnected(connection)
    note(
        "obscura: \(directory): unmounted; "
            + (isCopied
                ? "a container or sandbox has a copy of the mount, which ends as well"
                : "waiting until everything is written"))
    // Also sent if a copy cannot be ruled out: it does not end a daemon that is writing its last changes.
    _ = obscura_pidfd_send_signal(descriptor, SIGTERM)
    _ = hasEnded(descriptor, within: -1)
}

/// Whether a descriptor becomes readable within a time, as that of a process does when it ends; -1: no limit.
func hasEnded(_ descriptor: Int32, within milliseconds: Int32) -> Bool {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
        let count = poll(&wanted, 1, milliseconds)
        if count < 0, errno == EINTR { continue }
        return count != 0
    }
}
