import Glibc

/// The name of this computer, gethostname(2); empty if unknown.
package func hostName() -> [UInt8] {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return [] }
    return name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
}

/// Distinguishes a process from every other that ran or will run under the same kernel.
public struct ProcessIdentity: Sendable, Hashable {
    /// Inode number of its pid namespace, pid_namespaces(7); 0 if unknown.
    public var namespace: UInt64
    /// Its process ID in that namespace; 0 if unknown.
    public var id: UInt32
    /// Its start time in clock ticks since boot: field 22 of /proc/PID/stat, proc(5).
    public var start: UInt64

    public init(namespace: UInt64, id: UInt32, start: UInt64) {
        self.namespace = namespace
        self.id = id
        self.start = start
    }

    /// This process.
    public static let current: ProcessIdentity = {
        let line = ProcessLine(path: "/proc/self/stat")
        return ProcessIdentity(
            namespace: currentNamespace, id: UInt32(bitPattern: getpid()), start: line?.start ?? 0)
    }()

    private static var currentNamespace: UInt64 {
        var status = stat()
        return stat("/proc/self/ns/pid", &status) == 0 ? UInt64(status.st_ino) : 0
    }
}

/// The state of a process, as far as it is known.
public enum ProcessLife: Sendable, Hashable {
    case running
    /// It was killed or has returned; some of its threads may still be in a system call.
    case ending
    case ended
    /// It belongs to a pid namespace that this process cannot see into.
    case unknown
}

extension ProcessIdentity {
    /// PROC_PID_INIT_INO of the kernel: the initial namespace, which sees all processes.
    private static let firstNamespace: UInt64 = 0xEFFF_FFFC

    /// The state of this process under the running kernel.
    public var life: ProcessLife {
        let own = Self.current
        guard namespace != 0, own.namespace != 0, let number = pid_t(exactly: id), number > 0 else {
            return .unknown
        }
        if namespace == own.namespace { return life(of: number) }
        return own.namespace == Self.firstNamespace ? lifeBelow() : .unknown
    }

    /// The state of the process with this ID here, if it is still the same process.
    private func life(of number: pid_t) -> ProcessLife {
        // /proc may hide other users' processes (hidepid); kill(2) does not.
        if kill(number, 0) != 0, errno == ESRCH { return .ended }
        guard let line = ProcessLine(path: "/proc/\(number)/stat") else { return .running }
        return line.start == start ? line.life : .ended
    }

    /// The state of a process in a namespace below this one: /proc has all its processes, under other IDs.
    private func lifeBelow() -> ProcessLife {
        // If other users' processes are hidden, not finding one proves nothing.
        guard contents(ofFile: "/proc/1/stat") != nil, let names = Self.processes() else { return .unknown }
        for name in names {
            guard let number = pid_t(name), let line = ProcessLine(path: "/proc/\(number)/stat"),
                line.start == start, Self.innermostNumber(of: number) == id
            else { continue }
            return line.life
        }
        return .ended
    }

    /// The names in /proc; nil where it cannot be read.
    private static func processes() -> [String]? {
        let calls = LinuxCalls.shared
        guard let proc = try? calls.open(AT_FDCWD, "/proc", flags: O_RDONLY | O_DIRECTORY, mode: 0) else {
            return nil
        }
        defer { calls.close(proc) }
        return try? calls.list(proc)
    }

    /// The ID of a process in its own namespace: the last of `NSpid` in /proc/PID/status.
    private static func innermostNumber(of number: pid_t) -> UInt32? {
        guard let bytes = contents(ofFile: "/proc/\(number)/status") else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let line = lines.first { $0.hasPrefix("NSpid:") }
        return line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).last.flatMap { UInt32($0) }
    }
}

/// Fields of /proc/PID/stat, proc(5).
struct ProcessLine: Equatable {
    var state: Character
    /// PF_ flags of the kernel.
    var flags: UInt64
    var threads: UInt64
    var start: UInt64

    /// PF_EXITING.
    private static let exiting: UInt64 = 4

    init?(path: String) {
        guard let bytes = contents(ofFile: path) else { return nil }
        self.init(String(decoding: bytes, as: UTF8.self))
    }

    /// The name in parentheses may contain anything, even parentheses. Only words follow the last one.
    init?(_ text: String) {
        guard let end = text.lastIndex(of: ")") else { return nil }
        // From field 3 on.
        let fields = text[end...].dropFirst().split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard fields.count > 19, let state = fields[0].first, let flags = UInt64(fields[6]),
            let threads = UInt64(fields[17]), let start = UInt64(fields[19])
        else { return nil }
        self.state = state
        self.flags = flags
        self.threads = threads
        self.start = start
    }

    var life: ProcessLife {
        // A main thread that has ended waits for the others.
        if state == "Z" || state == "X" { return threads > 1 ? .ending : .ended }
        return flags & Self.exiting != 0 ? .ending : .running
    }
}
