import Glibc
import LinuxIO
public import VaultCrypto
import VaultFormat

/// Properties of a vault that are visible without a password.
public struct VaultInfo: Sendable, Equatable {
    public var formatVersion: Int
    public var spaceCount: Int
    public var segmentBytes: UInt64
    public var segmentsPerSpace: Int
    /// Capacity of each space; in a vault that grows, of its present segments.
    public var bytesPerSpace: UInt64
    public var bytesOnDisk: UInt64
    public var kdf: KDFParameters
    /// Whether the vault has one space, which grows with its photos.
    public var grows: Bool
}

/// Properties of a vault's files that anybody can read.
extension Vault {
    /// Whether the segments of a vault are there, and no header.
    public static func lacksHeader(_ path: String) -> Bool {
        (try? hostPlace(path))?.lacksHeader ?? false
    }

    /// Whether `path` may be a vault, valid or not: false only if it is no directory or has no header file.
    public static func isVault(_ path: String) -> Bool {
        do throws(VaultError) { return try answersAsVault(path) } catch { return true }
    }

    /// As `isVault`. Throws the error of a cluster that does not answer: asked again, it would take as long again.
    public static func answersAsVault(_ path: String) throws(VaultError) -> Bool {
        do throws(VaultError) {
            _ = try hostPlace(path).open()
        } catch {
            if case .notAVault = error { return false }
            if case .system(Errno(ETIMEDOUT), _) = error { throw error }
        }
        return true
    }

    /// Reads the vault's properties from the header and the segment files.
    public static func info(_ path: String) throws(VaultError) -> VaultInfo {
        let (vault, header) = try open(path, calls: LinuxCalls.shared, mayRepair: false)
        let layout = header.layout
        let count = try vault.segmentCount(layout)
        return VaultInfo(
            formatVersion: Int(formatVersion), spaceCount: header.spaceCount,
            segmentBytes: header.segmentBytes, segmentsPerSpace: count,
            bytesPerSpace: UInt64(count) * header.segmentBytes, bytesOnDisk: try vault.storedBytes(layout),
            kdf: header.kdf,
            grows: !layout.isShared)
    }

    /// Throws if the host of a path cannot be reached; does nothing for files.
    public static func requireReachable(_ path: String) throws(VaultError) {
        try hostPlace(path).requireReachable()
    }

    /// Opens a vault and its header, without a lock.
    static func open(
        _ path: String, calls: any FileSystemCalls, mayRepair: Bool
    ) throws(VaultError) -> (any VaultHost, Header) {
        let vault = try hostPlace(path, calls).open()
        return (vault, try readHeader(vault, mayRepair: mayRepair))
    }
}
