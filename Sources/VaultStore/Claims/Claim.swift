import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// A record in the space by which a writing mount excludes others, where the host's locks do not reach. See the format
/// specification, *Claims*.
struct Claim: Sendable, Equatable {
    /// Random number of one mount.
    var owner: [UInt8]
    /// Keyed hash of the computer's identity, the same in every boot.
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
        // A computer without an identity counts as another one in every mount.
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

    /// The fate of the mount that made `other`, as far as this process can know.
    func fate(of other: Claim, _ host: ClaimHost) -> ClaimFate {
        if other.owner == owner { return .own }
        // A boot id belongs to one running kernel.
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

/// Whether the mount of a claim may still write.
enum ClaimFate: Sendable {
    /// This mount.
    case own
    /// Its process, or its computer's boot, has ended.
    case dead
    /// A running process of this computer.
    case here
    /// A process of this computer that is about to end.
    case ending
    /// Another computer, or a container of this one whose processes are not visible.
    case elsewhere
}

/// The system as claims see it: identity of computer and process, other processes, and the clock; real or a test's.
struct ClaimHost: Sendable {
    var times = ClaimTimes()
    /// Whether spaces are claimed at all; false in tests of operation without claims.
    var claims = true
    /// Identity of this computer, the same in every boot; nil if it has none.
    var machine: [UInt8]?
    var process: ProcessIdentity
    var life: @Sendable (ProcessIdentity) -> ProcessLife
    /// A clock in milliseconds that includes the time suspended.
    var now: @Sendable () -> Int64
    /// Waits for this many milliseconds of that clock.
    var sleep: @Sendable (Int64) -> Void

    /// This computer and process.
    static let linux = ClaimHost(
        times: ClaimTimes(debugging: debugWords), claims: debugWords != "off", machine: machineBytes,
        process: .current, life: { $0.life },
        now: { BootClock.milliseconds }, sleep: { BootClock.wait(milliseconds: $0) })

    /// In debug builds: other times, or `off`, for tests with real processes.
    private static let debugWords: String? = {
        #if DEBUG
            getenv("OBSCURA_CLAIM_TIMES").map { String(cString: $0) }
        #else
            nil
        #endif
    }()

    /// machine-id(5) and hostname(5); nil without the first. Computers with copies of one disk have the same machine
    /// id, but often different names.
    private static let machineBytes = machineBytes(
        id: contents(ofFile: "/etc/machine-id") ?? contents(ofFile: "/var/lib/dbus/machine-id"),
        name: contents(ofFile: "/etc/hostname"))

    /// Made of the contents of these files; nil for a missing one.
    static func machineBytes(id: [UInt8]?, name: [UInt8]?) -> [UInt8]? {
        guard let id, id.count >= 32 else { return nil }
        return id.prefix(32) + [0] + (name ?? [])
    }
}

/// Times of the protocol, in milliseconds. All mounts that write to a space must use the same.
struct ClaimTimes: Sendable, Equatable {
    /// How long a mount may write after a look, which reads its claim.
    var look: Int64 = 5000
    /// The wait of a takeover: by then all writers have looked, and the writes begun before that have ended.
    var takeOver: Int64 = 7000
    /// A mount that needs longer than this to claim a free space waits as for a takeover.
    var race: Int64 = 500

    /// Interval of looks while a mount writes.
    var lookAgain: Int64 { look * 4 / 5 }
    /// Interval of looks after no write for `idle`.
    static let lookIdle: Int64 = 60_000
    static let idle: Int64 = 600_000

    init() {}

    /// Other times than usual, for debugging, in milliseconds: `LOOK,TAKEOVER,RACE`.
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
