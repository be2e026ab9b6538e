import CShims
import Glibc
import HostFiles
import LinuxIO

/// Something that keeps a FUSE mount alive when it is gone from its directory.
enum MountHolder: Equatable {
    /// A mount of the same files elsewhere in this mount namespace: the directory.
    case directory(String)
    /// A mount in the namespace of a container or sandbox: one of its processes, and the directory there.
    case namespace(process: pid_t, name: String, directory: String)
    /// A program with an open file or directory.
    case program(name: String)

    var text: String {
        switch self {
        case .directory(let directory): "the mount at \(directory)"
        case .namespace(_, let name, _): "\(name) in another mount namespace"
        case .program(let name): name
        }
    }

    /// A path by which its mount can be reached; nil for a program.
    var path: String? {
        switch self {
        case .directory(let directory): directory
        case .namespace(let process, _, let directory): "/proc/\(process)/root\(directory)"
        case .program: nil
        }
    }
}

/// At most so many holders are named.
private let namedMax = 4

/// `the mount at B, sleep (process 12) in another mount namespace and 2 others`.
func holdersText(_ holders: [MountHolder]) -> String {
    var words = holders.prefix(namedMax).map(\.text)
    if holders.count > namedMax { words.append("\(holders.count - namedMax) more") }
    guard words.count > 1, let last = words.popLast() else { return words.first ?? "" }
    return words.joined(separator: ", ") + " and " + last
}

/// The mounts of a filesystem in all mount namespaces that this user can see; programs are looked for only if there are
/// none.
///
/// - Parameters:
///   - device: as in `MountEntry`.
///   - entry: a mount that is about to be unmounted. It is left out, with those that go at the same time.
func mountHolders(ofDevice device: String, besides entry: MountEntry? = nil) -> [MountHolder] {
    let own = mountTable()
    func holding(_ table: [MountEntry]) -> [MountEntry] {
        table.filter { other in
            guard other.device == device, other.isObscura, other.id != entry?.id else { return false }
            return entry.map { !other.mayFollow($0, in: table, own) } ?? true
        }
    }
    var holders = holding(own).map { MountHolder.directory($0.directory) }
    var known = Set(own.map(\.id))
    for process in processes() {
        guard let first = firstMountID(of: process), !known.contains(first) else { continue }
        let table = mountTable(of: process)
        known.formUnion(table.map(\.id))
        guard let mount = holding(table).first else { continue }
        holders.append(
            .namespace(process: process, name: processText(process), directory: mount.directory))
    }
    if holders.isEmpty, entry == nil, let program = program(usingDevice: device) {
        holders.append(.program(name: program))
    }
    return holders
}

/// As `mountHolders`, without namespaces that go within a second: a sandbox that is just being made has copies of all
/// mounts for a moment.
func lastingHolders(of entry: MountEntry) -> [MountHolder] {
    for _ in 0..<20 {
        let holders = mountHolders(ofDevice: entry.device, besides: entry)
        let isElsewhere = holders.contains { if case .namespace = $0 { true } else { false } }
        if !isElsewhere { return holders }
        usleep(50_000)
    }
    return mountHolders(ofDevice: entry.device, besides: entry)
}

/// The name and number of a program that has its working directory or an open file in a filesystem; nil if this user
/// may see none.
private func program(usingDevice device: String) -> String? {
    func isInside(_ link: HostPath) -> Bool {
        var (major, minor): (UInt32, UInt32) = (0, 0)
        return link.withCString { obscura_device($0, &major, &minor) } == 0 && "\(major):\(minor)" == device
    }
    return processes().first { process in
        let files = HostPath("/proc/\(process)/fd")
        return process != getpid()
            && (isInside(HostPath("/proc/\(process)/cwd"))
                || (try? files.list())?.contains { isInside(files.appending($0)) } == true)
    }.map { processText($0) }
}

/// A mount that is gone from its directory, while something keeps its process and its keys alive.
struct LostMount {
    var server: RunningDaemon
    var connection: Int
    var holders: [MountHolder]

    /// Nil if the mount is at its directory, or has ended and its process is writing the last changes.
    init?(_ server: RunningDaemon) {
        guard !server.isMounted, let connection = server.connection else { return nil }
        self.server = server
        self.connection = connection
        holders = mountHolders(ofDevice: "0:\(connection)")
        if !holders.isEmpty { return }
        let waiting = openWaiting(ofConnection: connection)
        defer { if waiting >= 0 { close(waiting) } }
        guard isConnected(waiting) else { return nil }
    }

    /// Where it was mounted, a resolved path.
    var directory: String { server.place }

    private var holdersShown: String {
        holders.isEmpty ? "something that this user cannot see" : holdersText(holders)
    }

    /// `unmounted from D, but held by the mount at B`.
    var text: String { "unmounted from \(server.daemon.directory), but held by \(holdersShown)" }

    /// - Parameter operand: names the mount to `obscura unmount`.
    func failure(_ status: ExitStatus, _ what: String, operand: String) -> Failure {
        Failure(
            status, what,
            (status == .inUse ? "the vault is in use: it is " : "") + text
                + ": end that first, or cut it off with obscura unmount --end \(operand)")
    }
}

/// The lost mounts of this mount namespace.
func lostMounts() -> [LostMount] { runningDaemons().compactMap { LostMount($0) } }

/// The lost mount of a vault.
func lostMount(ofVault vault: String) -> LostMount? {
    let place = realPath(vault)
    return runningDaemons().lazy.filter { $0.daemon.vault == place }.compactMap { LostMount($0) }.first
}

/// The message about a mount that would live on after an unmount.
func heldFailure(_ directory: String, _ holders: [MountHolder]) -> Failure {
    Failure(
        .failed, directory,
        "still mounted, because it is held by \(holdersText(holders)): end that first, or cut it off with "
            + "obscura unmount --end \(directory)")
}
