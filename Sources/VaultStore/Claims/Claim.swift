import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// By which a mount that writes to a space says so in the space itself, where locks of the host do not reach. See the
/// format specification, *Claims*.
struct Claim: Sendable, Equatable {
    /// Random, of one mount.
    var owner: [UInt8]
    /// Keyed hash of what tells this computer from others, whatever it runs.
    var machine: [UInt8]
    /// Keyed hash of its boot id.
    var boot: [UInt8]
    var process: ProcessIdentity

    func encode(into bytes: UnsafeMutableRawBufferPointer) {
        bytes.zero()
        bytes.slice(ClaimLayout.ownerOffset, ClaimLayout.ownerBytes).copyBytes(from: owner)
        bytes.slice(ClaimLayout.machineOffset, ClaimLayout.markBytes).copyBytes(from: machine)
        bytes.slice(ClaimLayout.bootOffset, ClaimLayout.markBytes).copyBytes(from: boot)
        bytes.setNumber(process.namespace, ClaimLayout.namespaceOffset)
        bytes.setNumber(process.start, ClaimLayout.startOffset)
        bytes.setNumber(process.id, ClaimLayout.processOffset)
    }

    init(decoding bytes: UnsafeRawBufferPointer) {
        owner = Array(bytes.slice(ClaimLayout.ownerOffset, ClaimLayout.ownerBytes))
        machine = Array(bytes.slice(ClaimLayout.machineOffset, ClaimLayout.markBytes))
        boot = Array(bytes.slice(ClaimLayout.bootOffset, ClaimLayout.markBytes))
        process = ProcessIdentity(
            namespace: bytes.number(ClaimLayout.namespaceOffset),
            id: bytes.number(ClaimLayout.processOffset), start: bytes.number(ClaimLayout.startOffset))
    }

    /// A claim of this process with a new owner.
    ///
    /// - Parameter bootHash: as in soft roots.
    init(of host: ClaimHost, key: SecretBytes, bootHash: [UInt8]) {
        owner = Self.random(ClaimLayout.ownerBytes)
        // A computer that cannot be told from others is another in every mount.
        machine = host.machine.map { Self.mark($0, key) } ?? Self.random(ClaimLayout.markBytes)
        boot = bootHash
        process = host.process
    }

    private static func mark(_ bytes: [UInt8], _ key: SecretBytes) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: ClaimLayout.markBytes)
        out.withUnsafeMutableBytes { out in bytes.withUnsafeBytes { hash([$0], key: key, into: out) } }
        return out
    }

    private static func random(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { fillRandom($0) }
        return bytes
    }

    /// What has become of the mount that made `other`, as far as this one's process can know.
    func fate(of other: Claim, _ host: ClaimHost) -> ClaimFate {
        if other.owner == owner { return .own }
        // Only one kernel at a time has a boot id.
        if other.boot == boot {
            if other.process == process { return ClaimOwners.isAlive(other.owner) ? .here : .dead }
            switch host.life(other.process) {
            case .running: return .here
            case .ending: return .ending
            case .ended: return .dead
            case .unknown: return .elsewhere
            }
        }
        return other.machine == machine ? .dead : .elsewhere
    }
}

/// Whether who made a claim may still write.
enum ClaimFate: Sendable {
    /// This mount.
    case own
    /// Its process, or its computer's boot, has ended.
    case dead
    /// A process of this computer, which runs.
    case here
    /// A process of this computer, which is about to end.
    case ending
    /// Another computer, or a container of this one that cannot be seen into.
    case elsewhere
}

/// What a process finds out of itself and others, and the clock, for claims: real, or a test's.
struct ClaimHost: Sendable {
    var times = ClaimTimes()
    /// Whether spaces are claimed at all: false shows what happens without.
    var claims = true
    /// What tells this computer from others, whatever it runs; nil where nothing does.
    var machine: [UInt8]?
    var process: ProcessIdentity
    var life: @Sendable (ProcessIdentity) -> ProcessLife
    /// A clock in milliseconds that goes on while the computer is suspended.
    var now: @Sendable () -> Int64
    /// Waits so many milliseconds of that clock.
    var sleep: @Sendable (Int64) -> Void

    /// This computer and process.
    static let linux = ClaimHost(
        times: ClaimTimes(debugging: debugWords), claims: debugWords != "off", machine: machineBytes,
        process: .current, life: { $0.life },
        now: { BootClock.milliseconds }, sleep: { BootClock.wait(milliseconds: $0) })

    /// Of debug builds alone: other times, or `off`, for tests with real processes.
    private static let debugWords: String? = {
        #if DEBUG
            getenv("OBSCURA_CLAIM_TIMES").map { String(cString: $0) }
        #else
            nil
        #endif
    }()

    /// machine-id(5) and hostname(5); nil without the first. Computers with a copy of one disk have the same machine
    /// id, and often other names.
    private static let machineBytes = machineBytes(
        id: contents(ofFile: "/etc/machine-id") ?? contents(ofFile: "/var/lib/dbus/machine-id"),
        name: contents(ofFile: "/etc/hostname"))

    /// Of the contents of these files; nil of a file that is not there.
    static func machineBytes(id: [UInt8]?, name: [UInt8]?) -> [UInt8]? {
        guard let id, id.count >= 32 else { return nil }
        return id.prefix(32) + [0] + (name ?? [])
    }
}

/// How long what takes, in milliseconds. All that write to a space must agree in these.
struct ClaimTimes: Sendable, Equatable {
    /// After a look at its claim a mount may write for so long.
    var look: Int64 = 5000
    /// Who takes a space over waits so long: all writers have looked by then, and what they had begun to write before
    /// that has ended.
    var takeOver: Int64 = 7000
    /// Who finds a space free, and needs longer than this to claim it, waits as who takes over.
    var race: Int64 = 500

    /// When a mount that writes looks though nobody asks.
    var lookAgain: Int64 { look * 4 / 5 }
    /// When one looks that has not written for `idle`.
    static let lookIdle: Int64 = 60_000
    static let idle: Int64 = 600_000

    init() {}

    /// Other times than usual, in milliseconds: `LOOK,TAKEOVER,RACE`.
    fileprivate init(debugging words: String?) {
        let numbers = (words ?? "").split(separator: ",").compactMap { Int64($0) }
        if numbers.count == 3 { (look, takeOver, race) = (numbers[0], numbers[1], numbers[2]) }
    }
}

/// Owners of the claims that mounts of this process hold or may hold.
enum ClaimOwners {
    private static let lock = Lock()
    nonisolated(unsafe) private static var owners: Set<[UInt8]> = []

    static func insert(_ owner: [UInt8]) { _ = lock.withLock { owners.insert(owner) } }
    static func remove(_ owner: [UInt8]) { _ = lock.withLock { owners.remove(owner) } }
    static func isAlive(_ owner: [UInt8]) -> Bool { lock.withLock { owners.contains(owner) } }
}
