import Glibc
public import LinuxIO
import VaultFormat

/// Copies of the header, kept elsewhere against its loss.
extension Vault {
    /// Bytes of a vault's `obscura.vault`.
    public static let headerFileBytes = Int(HeaderLayout.fileBytes)

    /// What can take the place of `obscura.vault`: its valid copy twice, in random bytes. Works on a mounted vault.
    public static func headerImage(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [UInt8] {
        try open(path, calls: calls, mayRepair: false).1.image()
    }
}

/// A header that is about to be put back into its vault: judged, and with the vault's lock held.
///
/// Without a password nobody can tell which of two headers opens more. So the two are never mixed.
public final class HeaderRestoration {
    /// What the vault has in the header's place.
    public enum Present: Sendable {
        /// The very same: nothing is to be done.
        case same
        /// Another header of this vault: what only it opens will be lost.
        case other
        /// Nothing that opens anything.
        case none
    }

    public let present: Present
    private let vault: VaultDirectory
    private let header: Header
    /// A file that was made only to be locked is removed again, unless the header is written.
    private var removesFile: Bool

    /// Judges the bytes of an `obscura.vault` and whether they belong to the vault at `path`. Changes nothing.
    ///
    /// Throws `headerDamaged` and `unsupportedVersion` of the bytes alone.
    public init(
        _ path: String, image: [UInt8], calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) {
        header = try Header.read(image: image)
        (vault, removesFile) = try VaultDirectory.openForRestoring(path, calls: calls)
        do throws(VaultError) {
            try vault.lockHeader()
            present = try HeaderRestoration.judge(vault, header)
        } catch {
            if removesFile { try? calls.unlink(vault.directory, VaultDirectory.headerName) }
            throw error
        }
    }

    deinit { if removesFile { try? vault.calls.unlink(vault.directory, VaultDirectory.headerName) } }

    /// Writes copy A, syncs, writes copy B, syncs, as every change of the header.
    public func write() throws(VaultError) {
        let calls = vault.calls
        do throws(Errno) {
            removesFile = false
            let size = try calls.status(vault.header).size
            if size < HeaderLayout.fileBytes {
                // Behind what is there: that may hold a valid copy until the other is whole.
                try calls.writeFully(vault.header, Array(header.image()[Int(size)...]), at: size)
                try calls.sync(vault.header)
            }
        } catch { throw error.meansNoRoom ? .noRoom : .system(error, "cannot write the header") }
        try header.write(vault.header, calls: calls)
        do throws(Errno) { try calls.sync(vault.directory) } catch {
            throw .system(error, "cannot write the vault")
        }
        Vault.levelTimes(vault, header)
    }

    private static func judge(_ vault: VaultDirectory, _ header: Header) throws(VaultError) -> Present {
        try checkSegments(vault, header)
        do throws(VaultError) {
            let own = try Header.read(vault.header, calls: vault.calls, mayRepair: false)
            guard own.clearBytes == header.clearBytes else {
                throw .foreignHeader("it is that of another vault")
            }
            return own.bytes == header.bytes ? .same : .other
        } catch {
            if error == .headerDamaged { return .none }
            throw error
        }
    }

    /// Whether the vault has the spaces that the header speaks of, and segments of its size. Some may be missing or
    /// damaged.
    private static func checkSegments(_ vault: VaultDirectory, _ header: Header) throws(VaultError) {
        let names = Set(try list(vault, VaultDirectory.spacesName).filter { Int($0) != nil })
        guard names == Set((0..<header.spaceCount).map(String.init)) else {
            throw .foreignHeader("it speaks of \(header.spaceCount) spaces, the vault has \(names.count)")
        }
        var hasWhole = false
        for space in 0..<header.spaceCount {
            for name in try list(vault, "\(VaultDirectory.spacesName)/\(space)") {
                guard let number = SegmentFiles.number(name),
                    let bytes = vault.segmentBytes(space: space, number: number)
                else { continue }
                guard bytes <= header.segmentBytes else {
                    throw .foreignHeader("it speaks of smaller segments than the vault has")
                }
                hasWhole = hasWhole || bytes == header.segmentBytes
            }
        }
        // In a vault that grows each is as long as what was written to it.
        guard hasWhole || header.spaceCount == 1 else {
            throw .foreignHeader("it speaks of larger segments than the vault has")
        }
    }

    private static func list(_ vault: VaultDirectory, _ path: String) throws(VaultError) -> [String] {
        do throws(Errno) {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
            let descriptor = try vault.calls.open(vault.directory, path, flags: flags, mode: 0)
            defer { vault.calls.close(descriptor) }
            return try vault.calls.list(descriptor)
        } catch { throw .system(error, "cannot look into the vault") }
    }
}
