import CShims
import Glibc
import HostFiles
import LinuxIO
import VaultStore

/// A process that serves a mount, and its parsed command line.
struct RunningDaemon {
    var process: pid_t
    var daemon: Daemon

    /// A descriptor of the process; nil if it has ended.
    func open() -> Int32? {
        let descriptor = obscura_pidfd_open(process)
        return descriptor >= 0 ? descriptor : nil
    }

    /// The number of its FUSE connection; nil if the kernel has closed it.
    var connection: Int? { servedConnection(of: process) }

    /// For how many seconds requests to its vault's cluster wait; nil if they do not.
    var waitingSeconds: Int? {
        guard Vault.hostTraits(of: daemon.vault).tellsWaiting else { return nil }
        let threads = (try? HostPath("/proc/\(process)/task").list()) ?? []
        return threads.lazy.compactMap { contents(ofFile: "/proc/\(process)/task/\($0)/comm") }
            .compactMap { ClusterWait.seconds(ofThread: String(decoding: $0.dropLast(), as: UTF8.self)) }
            .first
    }

    /// The resolved path of its directory. Nothing looks into that: an automount there may never answer.
    var place: String {
        let near = pathBelowResolved(daemon.directory)
        guard let connection else { return near }
        let entries = mountTable().filter { $0.isObscura && $0.fuseConnection == connection }
        // The directory may be a symbolic link; then its own mount answers.
        return entries.isEmpty || entries.contains { $0.directory == near }
            ? near : realPath(daemon.directory)
    }

    /// Whether its mount is at its directory, in this mount namespace.
    var isMounted: Bool {
        guard let entry = mountEntry(at: place), entry.isObscura else { return false }
        return connection.map { $0 == entry.fuseConnection } ?? true
    }
}

/// The process that serves the mount at `place`; nil if it is gone already.
func runningDaemon(of place: String) -> RunningDaemon? {
    let connection = mountEntry(at: place)?.fuseConnection
    let daemons = runningDaemons().filter { $0.place == place }
    // One whose mount is gone may have had the same directory.
    return daemons.first { $0.connection == connection } ?? daemons.first { $0.connection == nil }
}

/// The process that serves a mount, wherever it is mounted; nil if it cannot be seen.
func runningDaemon(serving entry: MountEntry) -> RunningDaemon? {
    entry.fuseConnection.flatMap { number in runningDaemons().first { $0.connection == number } }
}

/// The processes of this mount namespace that serve mounts.
func runningDaemons() -> [RunningDaemon] {
    let mounts = Set(mountTable().map(\.id))
    // A private session's daemon may serve the same path in another mount namespace.
    func isElsewhere(_ process: pid_t) -> Bool {
        firstMountID(of: process).map { !mounts.contains($0) } ?? false
    }
    return processes().compactMap { process in
        guard let bytes = contents(ofFile: "/proc/\(process)/cmdline") else { return nil }
        let words = bytes.split(separator: 0).map { pathText($0) }
        guard words.count == 6, Daemon.words.contains(words[1]), !isElsewhere(process),
            let daemon = try? Daemon(Array(words.dropFirst()))
        else { return nil }
        return RunningDaemon(process: process, daemon: daemon)
    }
}

/// The numbers of all processes that this user may see, ascending.
func processes() -> [pid_t] {
    ((try? HostPath("/proc").list()) ?? []).compactMap { pid_t("\($0)") }.sorted()
}

/// The name and number of a process, for messages.
func processText(_ process: pid_t) -> String {
    let name = contents(ofFile: "/proc/\(process)/comm") ?? []
    return "\(String(decoding: name, as: UTF8.self).dropLast()) (process \(process))"
}
