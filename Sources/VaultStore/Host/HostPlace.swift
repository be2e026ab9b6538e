import ClusterIO
import LinuxIO
import VaultCrypto
import VaultFormat

/// The place that a vault's path names, whether or not a vault is there. Every kind of host has its own.
protocol HostPlace: Sendable {
    static var traits: HostTraits { get }

    /// Throws `notAVault` for a path that no vault of this kind of host can have.
    init(_ path: String, _ calls: any FileSystemCalls) throws(VaultError)

    // MARK: Opening

    /// Opens the vault there. Throws `notAVault` if there is none.
    func open() throws(VaultError) -> any VaultHost

    /// As `open`, of a vault whose header may be missing: then an empty one is made. Returns also whether it was.
    func openForRestoring() throws(VaultError) -> (vault: any VaultHost, isMade: Bool)

    /// As `open`, for a backup into a vault: begins one with an empty header if there is none.
    func openForCopy() throws(VaultError) -> any VaultHost

    /// As `open`, in the daemon, with the descriptor of `VaultHost.passLockOn`.
    ///
    /// - Parameter follows: see `Vault.unlock`.
    func adopt(lock: Int32, follows: Bool) throws(VaultError) -> any VaultHost

    // MARK: A place without a vault, or with one that is not opened

    /// Throws if the place cannot be reached. Asked before anything else where that can take long.
    func requireReachable() throws(VaultError)

    /// Whether segments of a vault are there, and no header.
    var lacksHeader: Bool { get }

    /// Drops what a killed session left in this computer's page cache.
    func dropTraces()

    // MARK: Creating

    /// Refuses the place as `create` would, whatever the vault: makes its directory and removes it again.
    func requireFree() throws(VaultError)

    /// Bytes of the host in all; nil if it does not tell.
    func totalBytes() throws(VaultError) -> UInt64?

    /// Throws `noRoom` or `fileTooLarge` if the host surely cannot take a new vault's spaces of so many bytes together.
    func requireRoom(forNew bytes: UInt64) throws(VaultError)

    /// Bytes to propose for all spaces together; 0 if the host does not tell.
    var proposedBytes: UInt64 { get }

    /// The name of the store there if it keeps old versions of overwritten data.
    var storeKeepingVersions: String? { get }

    /// Creates a vault; see `Vault.create`. If this throws, what it created is removed again.
    ///
    /// - Parameter segments: how many each space gets now; 0 with one space.
    func create(
        _ header: Header, segments: Int, password: SecretBytes, stretcher: any PasswordStretcher,
        coverBytes: UInt64?, progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError)
}

/// Facts about a kind of host that change what a program does or says.
public struct HostTraits: Sendable, Equatable {
    /// Whether a vault is objects with names, which no other program makes, and not files in a directory.
    public var hasObjects: Bool
    /// Whether the host keeps with each part of a vault when it was last written, for its operators to see.
    public var showsTimesOfWrites: Bool
    /// Whether a mount that only reads has no lock, so that another one can write meanwhile.
    public var letsReadersFollow: Bool
    /// Whether requests wait for servers that are away, and `ClusterWait` tells for how long.
    public var tellsWaiting: Bool
}

/// The kind of host that a path names. The only function that knows which host belongs to a path.
private func hostKind(_ path: String) -> any HostPlace.Type {
    isClusterPath(path) ? ClusterAddress.self : FilesPlace.self
}

/// The place that a path names.
func hostPlace(
    _ path: String, _ calls: any FileSystemCalls = LinuxCalls.shared
) throws(VaultError) -> any HostPlace {
    try hostKind(path).init(path, calls)
}

extension Vault {
    /// Ends this process: exit(3), or _exit(2) where connections to a cluster may be ending on other threads.
    public static func endProcess(_ status: Int32) -> Never { RestingConnections.shared.endProcess(status) }

    /// Facts about the host of a path, where a vault need not be.
    public static func hostTraits(of path: String) -> HostTraits { hostKind(path).traits }
}
