import CShims
import DesktopTraces
import FileRequests
import FuseBridge
import Glibc
import HostFiles
import LinuxIO
import PhotoImaging
import PhotoLibrary
import Synchronization
import VaultCrypto
import VaultStore

/// Body of the process that serves a mount. Returns its exit status.
func runDaemon(_ commandLine: [String]) -> ExitStatus {
    // A command that gave up waiting closes its pipe: write(2) must then fail, and not end this process.
    signal(SIGPIPE, SIG_IGN)
    unblockSignals()
    // In a private session this process may mount; its children may not.
    _ = obscura_hand_on_nothing()
    if commandLine.first == Daemon.sessionWord { _ = obscura_signal_when_orphaned(SIGTERM) }
    let status = StatusPipe(commandLine.first == Daemon.foregroundWord ? nil : Daemon.statusDescriptor)
    defer { stopForInspection() }
    do throws(Failure) {
        try serve(Daemon(commandLine), status)
        return .done
    } catch {
        status.report(error)
        return error.status
    }
}

/// Mounts, and returns after the unmount, when everything is safe on disk.
private func serve(_ daemon: Daemon, _ status: StatusPipe) throws(Failure) {
    // Neither fusermount3 nor a worker may inherit these: that would keep the vault locked.
    for descriptor in [Daemon.keyDescriptor, Daemon.statusDescriptor, Daemon.lockDescriptor] {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }
    let key = try readKey(daemon.directory)
    let sweeps = DesktopSweeps(daemon)
    // Runs when the vault is free again and this process no longer holds a key.
    defer {
        let left = sweeps.finish()
        if left > 0 { logLine("\(daemon.directory): \(leftOutsideText(left))") }
    }
    // Resolved now: from mounting until `run`, nothing answers for the mount.
    let place = realPath(daemon.directory)
    let (library, session) = try openAndMount(daemon, key, at: place, status)
    let missing = MissingHelpers(daemon.words)
    let ofBridge = library.mountStatus
    library.mountStatus = { (ofBridge?() ?? []) + missing.names.map { ("missing", $0) } }
    // Until then signals are handled, and none ends the process.
    defer { withExtendedLifetime(session) {} }
    let mountGuard = MountGuard(place: place)
    defer { mountGuard?.end() }
    // However the mount ended, its data is made safe first; only then is the failure reported.
    var end: Failure?
    var reason: MountEnd?
    do throws(MountError) {
        reason = try session.run {
            library.startCoverTraffic()
            if daemon.words.handsOver {
                // The vault is given up when nothing refers to the session any more.
                library.share { [weak session] in session?.handOver() }
            } else {
                library.share(handOver: nil)
            }
            status.reportLive(notices(library, daemon, missing))
            // This thread handles signals and the end of the mount, so it must not do long work.
            library.startDeferredWork()
            sweeps.sweepOld(library)
            if daemon.words.endsBeforeSleep { startSleepWatcher(tellingTo: session.signalDescriptor) }
        }
    } catch {
        end = failure(error, directory: daemon.directory)
    }
    sweeps.sweepNew(library, DesktopSweeps.End(reason))
    defer { library.giveUpVault() }
    do throws(FileError) { try library.close(isPatient: true) } catch {
        let reason = library.writeStop.map { "\($0.reason): some changes are lost" }
        throw Failure(
            .failed, daemon.directory,
            reason
                ?? "some changes could not be written to the vault's disk: check it for free space and errors"
        )
    }
    if let end { throw end }
    if !status.isLive {
        throw Failure(.failed, daemon.directory, "unmounted before it was live: mount it again")
    }
}

/// Notices about a live mount for the user, one per line; nil if there are none.
private func notices(_ library: Library, _ daemon: Daemon, _ missing: MissingHelpers) -> String? {
    var lines: [String] = []
    let stop = library.writeStop
    let saysOlder = if case .olderState = stop { true } else { false }
    if library.isOlderState && !saysOlder { lines.append(olderStateLine(daemon)) }
    if let stop { lines.append(readOnlyLine(stop, daemon)) }
    if let text = Helper.missingText(missing.names) {
        lines.append("obscura: \(daemon.directory): missing beside the program: \(text)")
    }
    return lines.isEmpty ? nil : lines.joined(separator: "\n")
}

private func readOnlyLine(_ stop: WriteStop, _ daemon: Daemon) -> String {
    var advice = stop.advice(vault: daemon.vault, isMounted: true).map { ": \($0)" } ?? ""
    // A disk may be read-only on purpose.
    if stop == .io(.readOnlyFileSystem) { advice = "" }
    return "obscura: \(daemon.directory): mounted read-only: \(stop.reason)\(advice)"
}

private func olderStateLine(_ daemon: Daemon) -> String {
    "obscura: \(daemon.directory): the newest state of the space cannot be read: an older one is shown; unmount it and "
        + "run `obscura check \(daemon.vault)`"
}

private func takingOverLine(_ vault: String, milliseconds: Int64) -> String {
    "obscura: \(vault): taking over: waiting \((milliseconds + 999) / 1000) s for the other mount to stop writing"
}

private func openAndMount(
    _ daemon: Daemon, _ key: SecretBytes, at place: String, _ status: StatusPipe
) throws(Failure) -> (Library, MountSession) {
    let vault = daemon.vault
    var options = daemon.words.libraryOptions(workerPath: programBeside(Helper.worker.rawValue))
    options.dataDirectories = thumbnailerDirectories()
    options.townFiles = InstalledTowns.files
    let library: Library
    do throws(VaultError) {
        let space = try UnlockedSpace.decodeInDaemon(
            vault, key, lockFD: Daemon.lockDescriptor, follows: daemon.words.readOnly)
        library = try Library.open(
            space, options: options,
            takingOver: daemon.words.takesOver
                ? { status.tell(takingOverLine(vault, milliseconds: $0)) } : nil)
    } catch {
        // `rw` was given explicitly.
        guard case .notWritable(let stop) = error else { throw failure(error, vault: vault) }
        throw Failure(.failed, vault, "cannot be written: \(stop.reason): mount it with -o ro")
    }
    do {
        var mountOptions = daemon.words.mountOptions
        mountOptions.readOnly = library.isReadOnly
        mountOptions.hostMayNotAnswer = Vault.hostTraits(of: vault).tellsWaiting
        let session = try MountSession.mount(library, at: place, options: mountOptions)
        return (library, session)
    } catch {
        // The user must hear of the mount's failure. Nothing was written that could be lost.
        try? library.close()
        throw failure(error, directory: daemon.directory)
    }
}

private func readKey(_ directory: String) throws(Failure) -> SecretBytes {
    try requireLockableMemory()
    guard let key = readToEnd(Daemon.keyDescriptor, countMax: 65_536) else {
        throw Failure(.usage, Daemon.backgroundWord, "not for users: obscura mount runs it")
    }
    close(Daemon.keyDescriptor)
    return key
}

/// Reads up to the end, in locked memory throughout. Nil on an error, and if there are `countMax` bytes or more.
func readToEnd(_ descriptor: Int32, countMax: Int) -> SecretBytes? {
    let buffer = SecretBytes(count: countMax)
    var length = 0
    let isRead = buffer.withUnsafeMutableBytes { bytes in
        while length < bytes.count {
            let count = read(descriptor, bytes.baseAddress.map { $0 + length }, bytes.count - length)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return count == 0 }
            length += count
        }
        return false
    }
    guard isRead else { return nil }
    return buffer.withUnsafeBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[0..<length])) }
}

/// The directories where thumbnailers are registered. For a user: the user's own and those that the environment names.
/// For root, whose environment may be another user's: those of the system.
private func thumbnailerDirectories() -> [String] {
    if geteuid() == 0 { return systemDataDirectories }
    func value(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    return dataDirectories(
        home: value("HOME"), dataHome: value("XDG_DATA_HOME"), dataDirectories: value("XDG_DATA_DIRS"))
}

/// The daemon's messages to the command that waits for it: any number of lines, each after a byte `line` and with a
/// newline; then one byte `live` and a notice for the user, if any; or an exit status, the subject, NUL and the reason.
final class StatusPipe: Sendable {
    static let live: UInt8 = 0
    static let line: UInt8 = 255

    /// Nil in the foreground, where errors go to standard error and success is silent.
    private let descriptor: Int32?
    private let isReported = Atomic<Bool>(false)

    init(_ descriptor: Int32?) { self.descriptor = descriptor }

    /// Whether the mount has been live.
    var isLive: Bool { isReported.load(ordering: .acquiring) }

    /// Shows the user a line before the mount is live.
    func tell(_ line: String) {
        guard let descriptor else { return note(line) }
        let message = [Self.line] + Array(printable(line).utf8) + [UInt8(ascii: "\n")]
        _ = write(descriptor, message, message.count)
    }

    /// Reports that the mount is live. Called on the thread of `MountSession.run`.
    ///
    /// If nobody waits any more (^C while mounting), ends the mount again.
    ///
    /// - Parameter line: a notice for the user, if any.
    func reportLive(_ line: String?) {
        isReported.store(true, ordering: .releasing)
        guard let descriptor else {
            if let line { note(line) }
            return
        }
        // An automount waits until the command has ended. Until then this thread may resolve no path of the mount.
        setsid()
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        if null >= 0 {
            dup2(null, STDERR_FILENO)
            close(null)
        }
        let message = [Self.live] + Array((line ?? "").utf8)
        let count = write(descriptor, message, message.count)
        close(descriptor)
        if count != message.count { kill(getpid(), SIGTERM) }
    }

    /// Reports why the process ends. Once the mount has been live, the report goes to the system's log.
    func report(_ failure: Failure) {
        guard let descriptor else { return note(failure.line) }
        if isLive {
            logLine("\(failure.what): \(failure.why)")
            return
        }
        let message =
            [UInt8(failure.status.rawValue)] + Array(failure.what.utf8) + [0] + Array(failure.why.utf8)
        _ = message.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    }
}

/// Writes a line to the system's log, when no command waits for one on a terminal.
func logLine(_ line: String) {
    openlog("obscura", LOG_PID, LOG_DAEMON)
    printable(line).withCString { text in
        withVaList([text]) { vsyslog(LOG_ERR, "%s", $0) }
    }
}
