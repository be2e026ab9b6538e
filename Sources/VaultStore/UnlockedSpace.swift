import Glibc
import LinuxIO
public import VaultCrypto
public import VaultFormat

/// A space whose password was right: the vault's lock and the space's key, to be opened here or handed on to the
/// daemon, so that password and KDF memory never get there.
public final class UnlockedSpace: Sendable {
    let path: String
    let vault: VaultDirectory
    let key: SecretBytes
    let index: Int
    public let spaceCount: Int
    let segmentBytes: UInt64

    init(
        path: String, vault: VaultDirectory, key: SecretBytes, index: Int, spaceCount: Int,
        segmentBytes: UInt64
    ) {
        self.path = path
        self.vault = vault
        self.key = key
        self.index = index
        self.spaceCount = spaceCount
        self.segmentBytes = segmentBytes
    }

    /// The locked descriptor of `obscura.vault`. The daemon inherits it: the lock is never let go in between.
    public var lockFD: Int32 { vault.header }

    private static let encodedBytes = 8 + 8 + 8 + Geometry.keyBytes

    /// What goes down a pipe to the daemon: space, count, segment size, key.
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

    /// The other end of `encodeForDaemon`. Takes `lockFD` over.
    public static func decodeInDaemon(
        _ path: String, _ bytes: SecretBytes, lockFD: Int32
    ) throws(VaultError) -> UnlockedSpace {
        guard bytes.count == encodedBytes else { throw .damaged("the hand-over to the daemon broke off") }
        let vault = try VaultDirectory.adopt(path, header: lockFD, calls: LinuxCalls.shared)
        return bytes.withUnsafeBytes { bytes in
            UnlockedSpace(
                path: path, vault: vault, key: SecretBytes(copying: bytes.slice(24, Geometry.keyBytes)),
                index: Int(bytes.number(0, as: UInt64.self)),
                spaceCount: Int(bytes.number(8, as: UInt64.self)),
                segmentBytes: bytes.number(16))
        }
    }

    /// Opens the space in its newest state.
    public func openSpace(
        readOnly: Bool, limits: Limits = .production
    ) throws(VaultError) -> Space {
        let (files, keys, options) = try parts(readOnly: readOnly, limits: limits)
        do throws(StoreError) {
            return try Space.open(files: files, keys: keys, options: options)
        } catch { throw VaultError(error, doing: "no state of the space can be read") }
    }

    /// What a space is opened with.
    func parts(
        readOnly: Bool, limits: Limits = .production
    ) throws(VaultError) -> (SegmentFiles, SpaceKeys, SpaceOptions) {
        let files = SegmentFiles(
            directory: try vault.openSpace(index), segmentBytes: segmentBytes, calls: vault.calls,
            openMax: limits.openSegments)
        let grows = spaceCount == 1
        let counter = SegmentCounter(
            vault: vault, spaces: 0..<spaceCount, segmentBytes: segmentBytes, isGrowing: grows)
        let keys = SpaceKeys(key)
        let options = SpaceOptions(
            isReadOnly: readOnly, grows: grows, bootHash: Self.bootHash(keys.boot, vault.calls),
            segmentCountNow: { counter.now() }, copies: readOnly ? nil : CopyKeeper(vault),
            limits: limits)
        return (files, keys, options)
    }

    /// Sets the times of all files of the vault alike; nothing in a vault of one space.
    public func levelTimes() {
        guard let header = try? Header.read(vault.header, calls: vault.calls, mayRepair: false) else {
            return
        }
        Vault.levelTimes(vault, header)
    }

    /// Keyed hash of the kernel's boot id: a soft root counts only in its own boot.
    static func bootHash(_ key: SecretBytes, _ calls: any FileSystemCalls) -> [UInt8] {
        var id = [UInt8](repeating: 0, count: 64)
        if let descriptor = try? calls.open(
            AT_FDCWD, "/proc/sys/kernel/random/boot_id", flags: O_RDONLY, mode: 0)
        {
            defer { calls.close(descriptor) }
            _ = try? calls.readFully(descriptor, at: 0, into: &id)
        } else {
            // Without a boot id no soft root is to count in a later mount.
            id.withUnsafeMutableBytes { fillRandom($0) }
        }
        var out = [UInt8](repeating: 0, count: RootLayout.bootHashBytes)
        out.withUnsafeMutableBytes { out in id.withUnsafeBytes { hash([$0], key: key, into: out) } }
        return out
    }
}
