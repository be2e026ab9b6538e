import CShims
import DesktopTraces
import Glibc
import HostFiles
import LinuxIO
import VaultStore

/// Time after which the user is told the reason of a delay.
let patienceMilliseconds: Int32 = 3000

/// Ends the mount and returns when its process is gone: everything is on disk and the vault is free.
func runUnmount(_ arguments: Arguments) throws(Failure) {
    let directory = arguments.operands[0]
    let place = realPath(directory)
    guard let entry = mountEntry(at: place) else { return try unmountByVault(arguments, place) }
    guard entry.isObscura else {
        throw Failure(.failed, directory, "the mount here is not obscura's (\(entry.type)): use umount")
    }
    try freeHangingMount(place)
    let server = runningDaemon(of: place) ?? runningDaemon(serving: entry)
    let daemon = server?.open()
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
    // Others are looked for before the unmount: afterwards the number may be another mount's at once.
    let holders = lastingHolders(of: entry)
    if arguments.has(.end) {
        try endEverywhere(entry, named: directory, daemon)
        return sayEnded(directory, holders)
    }
    // A mount that is bound at a second place (mount --bind) is only taken away from there.
    let isBound = server.map { $0.place != place } ?? true
    if !isBound && !holders.isEmpty { throw heldFailure(directory, holders) }
    do throws(Failure) { try takeMountAway(place, lazily: false) } catch {
        guard arguments.has(.discard) else { throw error }
        return try discard(place, named: directory, changes, daemon)
    }
    if isBound, !holders.isEmpty {
        return note("obscura: \(directory): unmounted here; the space stays open: \(holdersText(holders))")
    }
    guard let server, let daemon else { return }
    try waitForEnd(of: server, daemon, connection, directory: directory)
    noteLeftTraces(server, directory)
}

/// Ends the mount of a vault, or one that is gone from its directory: the operand is either.
private func unmountByVault(_ arguments: Arguments, _ place: String) throws(Failure) {
    let directory = arguments.operands[0]
    let servers = runningDaemons().filter {
        $0.daemon.vault == place || ($0.place == place && !$0.isMounted)
    }
    guard let server = servers.first, let daemon = server.open() else {
        if Vault.isVault(directory) {
            throw Failure(.failed, directory, "this is a vault, and it is not mounted: nothing to end")
        }
        throw Failure(.failed, directory, "nothing is mounted here: findmnt -t fuse.obscura lists mounts")
    }
    defer { close(daemon) }
    if server.isMounted {
        guard arguments.has(.end) else {
            throw Failure(
                .failed, directory,
                "this is the vault: name the directory where it is mounted (\(server.daemon.directory))")
        }
        return try runUnmount(arguments.replacing(operand: server.daemon.directory))
    }
    guard let lost = LostMount(server) else {
        // Its process is writing the last changes.
        return try waitForEnd(of: server, daemon, -1, directory: directory)
    }
    guard arguments.has(.end) else { throw lost.failure(.failed, directory, operand: directory) }
    if arguments.has(.discard) { return try discard(place, named: directory, nil, daemon) }
    try syncThrough(lost.holders, named: directory)
    try end(daemon, connection: lost.connection, named: directory)
    sayEnded(directory, lost.holders)
}

private func sayEnded(_ directory: String, _ holders: [MountHolder]) {
    if !holders.isEmpty { say("\(directory): unmounted; it was held by \(holdersText(holders))") }
}

/// How many traces of a mount an earlier unmount left in trashes outside.
private func noteLeftTraces(_ server: RunningDaemon, _ directory: String) {
    guard server.daemon.words.sweeps else { return }
    let left = filesLeftOutside(
        by: DesktopUser(geteuid()), directory: absolutePath(directory), vault: server.daemon.vault)
    if left > 0 { note("obscura: \(directory): \(leftOutsideText(left))") }
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

/// Makes everything durable through a mount that is left: fsync(2) of any directory does so. The process does it once
/// more at its end; here an error is still told in time.
private func syncThrough(_ holders: [MountHolder], named directory: String) throws(Failure) {
    for path in holders.compactMap(\.path) {
        guard let error = syncDirectory(path) else { continue }
        // A mount of another user's namespace cannot be entered.
        if error == .accessDenied || error == .noEntry || error == Errno(EPERM) { continue }
        throw Failure(
            error.meansNoRoom ? .noRoom : .failed, directory,
            "some changes are not written: \(error): fix that and try again, or discard the changes with "
                + "obscura unmount --end --discard \(directory)")
    }
}

/// A child process asks, because nothing ends a process that waits.
private func syncDirectory(_ path: String) -> Errno? {
    let process = path.withCString { path -> pid_t in
        let process = shim_fork()
        if process != 0 { return process }
        _ = obscura_end_with_parent()
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        _exit(descriptor >= 0 && fsync(descriptor) == 0 ? 0 : errno)
    }
    guard process > 0, case .exited(let code) = waitForEnd(of: process), code != 0 else { return nil }
    return Errno(code)
}

/// Cuts a mount off in every namespace, after a last durable commit by its process.
private func endEverywhere(
    _ entry: MountEntry, named directory: String, _ daemon: Int32?
) throws(Failure) {
    guard let daemon else {
        // Hidden processes (hidepid): the kernel cuts it off, and the process commits then.
        let abort = entry.fuseConnection.map { openAbort(ofConnection: $0) } ?? -1
        guard abort >= 0, write(abort, "1", 1) == 1 else {
            throw Failure(.failed, directory, "its process cannot be seen: run this as root")
        }
        close(abort)
        return try takeMountAway(realPath(directory), lazily: true)
    }
    try end(daemon, connection: entry.fuseConnection, named: directory)
}

/// Asks the process of a mount to end, which unmounts it, closes the connection and commits.
private func end(_ daemon: Int32, connection: Int?, named directory: String) throws(Failure) {
    guard obscura_pidfd_send_signal(daemon, SIGTERM) == 0 || errno == ESRCH else {
        throw Failure(directory, "ending its process", .last)
    }
    if hasEnded(daemon, within: 2 * patienceMilliseconds) { return }
    note("obscura: \(directory): waiting until everything is written")
    _ = hasEnded(daemon, within: -1)
}

/// - Parameter connection: from `openWaiting`.
private func waitForEnd(
    of server: RunningDaemon, _ descriptor: Int32, _ connection: Int32, directory: String
) throws(Failure) {
    // Without others the kernel closes the connection before the unmount returns.
    for patience in [isConnected(connection) ? 0 : patienceMilliseconds, patienceMilliseconds] {
        if hasEnded(descriptor, within: patience) { return }
        if let lost = LostMount(server) { throw lost.failure(.failed, directory, operand: directory) }
    }
    note("obscura: \(directory): unmounted; waiting until everything is written")
    _ = hasEnded(descriptor, within: -1)
}
