import LinuxIO
public import VaultCrypto
public import VaultFormat

/// A space whose key was unsealed, with the vault's lock held. It is opened here or passed on to the daemon, so that
/// the daemon never sees the password or the KDF's memory.
public final class UnlockedSpace: Sendable {
    /// The vault's path, as given to `unlock`.
    public let path: String
    let vault: any VaultHost
    let key: SecretBytes
    let index: Int
    public let spaceCount: Int
    let segmentBytes: UInt64
    var layout: SegmentLayout { SegmentLayout(spaceCount: spaceCount, segmentBytes: segmentBytes) }
    private let host: ClaimHost
    /// Whether another mount may write meanwhile: the space is only read, in its newest durable state. What that state
    /// refers to is overwritten after two more durable roots, and does not open then.
    public let follows: Bool
    /// For a session that may write. Nil in a vault of one space.
    public let cover: CoverTraffic?

    init(
        path: String, vault: any VaultHost, key: SecretBytes, index: Int, spaceCount: Int,
        segmentBytes: UInt64, host: ClaimHost = .linux, follows: Bool = false
    ) {
        self.follows = follows
        self.path = path
        self.vault = vault
        self.key = key
        self.index = index
        self.spaceCount = spaceCount
        self.segmentBytes = segmentBytes
        self.host = host
        cover = vault.cover(
            SegmentLayout(spaceCount: spaceCount, segmentBytes: segmentBytes), isRunning: false)
    }

    deinit { dropPageCache() }

    /// Drops the vault's spaces from the page cache; does nothing in a vault of one space.
    public func dropPageCache() { vault.dropPageCache(layout, ofKilled: false) }

    /// Passes the vault's lock on to the daemon, which inherits the descriptor that this returns, if there is any.
    public func passLockOn() -> Int32? { vault.passLockOn() }

    /// Throws `notWritable` if the host allows only reading the vault.
    public func requireWritableHeader() throws(VaultError) { try vault.requireWritableHeader() }

    private static let encodedBytes = 8 + 8 + 8 + Geometry.keyBytes

    /// Encodes the message for the daemon's pipe: space, count, segment size, key.
    public func encodeForDaemon() -> SecretBytes {
        let bytes = SecretBytes(count: Self.encodedBytes)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.setNumber(UInt64(index), 0)
            bytes.setNumber(UInt64(spaceCount), 8)
            bytes.setNumber(segmentBytes, 16)
            key.withUnsafeBytes { bytes.slice(24, Geometry.keyBytes).copyMemory(from: $0) }
        }
        return bytes
    }

    /// Decodes the message of `encodeForDaemon`. Takes ownership of `lockFD`.
    ///
    /// - Parameter follows: as given to `Vault.unlock`.
    public static func decodeInDaemon(
        _ path: String, _ bytes: SecretBytes, lockFD: Int32, follows: Bool
    ) throws(VaultError) -> UnlockedSpace {
        guard bytes.count == encodedBytes else {
            throw .damaged("the key was not handed to the daemon completely")
        }
        let vault = try hostPlace(path).adopt(lock: lockFD, follows: follows)
        return bytes.withUnsafeBytes { bytes in
            UnlockedSpace(
                path: path, vault: vault, key: SecretBytes(copying: bytes.slice(24, Geometry.keyBytes)),
                index: Int(bytes.number(0, as: UInt64.self)),
                spaceCount: Int(bytes.number(8, as: UInt64.self)),
                segmentBytes: bytes.number(16), follows: follows && vault.shared != nil)
        }
    }

    /// Opens the space in its newest state. For writing it throws `claimed` if another computer has claimed the space,
    /// `inUse` if another process of this computer has.
    ///
    /// - Parameters:
    ///   - readOnly: if false, throws `notWritable` unless the space can be written.
    ///   - takingOver: if given, the space is taken over from another mount that has claimed it; called before with the
    ///     milliseconds that this takes.
    public func openSpace(
        readOnly: Bool, limits: Limits = .ofProcess, takingOver: ((Int64) -> Void)? = nil
    ) throws(VaultError) -> Space {
        try openSpace(readOnly ? .reading : .writing, limits: limits, takingOver: takingOver)
    }

    /// Throws if another mount has claimed the space.
    func begin(
        _ claim: ClaimKeeper?, takingOver: ((Int64) -> Void)? = nil
    ) throws(VaultError) {
        do throws(ClaimRefusal) { try claim?.begin(takingOver: takingOver) } catch {
            switch error {
            case .inUse: throw .inUse
            case .claimed: throw .claimed
            case .store(let error):
                throw VaultError(error, doing: "cannot tell whether another computer uses the space")
            }
        }
    }

    /// Whether another mount has claimed the space for writing; false if the claim cannot be read.
    public var isClaimedByOthers: Bool {
        guard let (_, _, options) = try? parts(readOnly: false) else { return false }
        do throws(ClaimRefusal) { try options.claim?.begin(takingOver: nil) } catch {
            if case .store = error { return false }
            return true
        }
        return false
    }

    func disk(readOnly: Bool, limits: Limits = .ofProcess) throws(VaultError) -> SpaceDisk {
        let host = try vault.segments(
            of: index, layout, cover: readOnly ? nil : cover, openMax: limits.openSegments)
        return SpaceDisk(host, layout)
    }

    /// The arguments for opening the space.
    func parts(
        readOnly: Bool, limits: Limits = .ofProcess
    ) throws(VaultError) -> (SpaceDisk, SpaceKeys, SpaceOptions) {
        let disk = try disk(readOnly: readOnly, limits: limits)
        let keys = SpaceKeys(key)
        var options = SpaceOptions(
            isReadOnly: readOnly, grows: !layout.isShared,
            // The next soft state takes the place of a soft one at once.
            bootHash: Self.bootHash(keys.boot, follows ? nil : vault.memoryMark()),
            segmentCount: try vault.segmentCount(layout),
            segmentCountNow: { [vault, layout] in try? vault.segmentCount(layout) }, limits: limits)
        if !readOnly {
            options.copies = vault.holdForBackups()
            options.claim = try claimKeeper(keys, bootHash: options.bootHash)
        }
        return (disk, keys, options)
    }

    /// The generation of the newest durable root. Reads all roots.
    public func newestDurable() throws(VaultError) -> UInt64 {
        let roots = RootStore.read(try disk(readOnly: true), PageCodec(key: SpaceKeys(key).page))
        if roots.found.isEmpty, let error = roots.error {
            throw VaultError(error, doing: "cannot read its roots")
        }
        return roots.found.filter(\.root.isDurable).map(\.root.generation).max() ?? 0
    }

    private func claimKeeper(_ keys: SpaceKeys, bootHash: [UInt8]) throws(VaultError) -> ClaimKeeper? {
        guard host.claims, !vault.excludesOthers else { return nil }
        let slot = ClaimSlot(try vault.segments(of: index, layout, cover: cover), PageCodec(key: keys.page))
        var host = host
        // Without a boot id it is unknown which mounts of this computer have ended.
        if vault.memoryMark() == nil { host.machine = nil }
        return ClaimKeeper(slot, host: host, key: keys.claim, bootHash: bootHash)
    }

    /// A mark of this space for a file outside the vault, 32 bytes. Without the space's password it looks random.
    ///
    /// - Parameter salt: random bytes, stored with the mark: the same for the same mark.
    public func mark(_ salt: [UInt8]) -> [UInt8] {
        var mark = [UInt8](repeating: 0, count: 32)
        salt.withUnsafeBytes { salt in
            mark.withUnsafeMutableBytes {
                hash([salt], key: deriveKey(key, purpose: "obscura 1 export"), into: $0)
            }
        }
        return mark
    }

    /// Destroys the space's key, in both copies of the header. The contents can then be opened only with an older copy
    /// of the header. The space must not be open.
    public func destroy() throws(VaultError) {
        var header = try Header.read(from: vault, mayRepair: true)
        header.clearKeySlot(index)
        try Vault.change(header, of: vault)
    }

    /// Called at the end of a session: makes its traces on the host the same as every other's. Does nothing in a vault
    /// of one space.
    public func blurTraces() { vault.blurTraces(layout) }

    /// Called when a session begins that may write.
    public func blurBeginning() { vault.blurBeginning(layout) }

    /// Keyed hash of `VaultHost.memoryMark`: a soft root is valid only while that memory is there.
    static func bootHash(_ key: SecretBytes, _ mark: [UInt8]?) -> [UInt8] {
        var id = [UInt8](repeating: 0, count: 64)
        // Without a mark a soft root must not be valid in any later mount.
        if let mark { id = mark } else { id.withUnsafeMutableBytes { fillRandom($0) } }
        var out = [UInt8](repeating: 0, count: RootLayout.bootHashBytes)
        out.withUnsafeMutableBytes { out in id.withUnsafeBytes { hash([$0], key: key, into: out) } }
        return out
    }
}
