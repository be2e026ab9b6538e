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
        Vault.blurTraces(vault, header.layout)
    }

    private static func judge(_ vault: VaultDirectory, _ header: Header) throws(VaultError) -> Present {
        try checkSegments(vault, header)
        do throws(VaultError) {
            let own = try Header.read(vault.header, calls: vault.calls, mayRepair: false)
            guard own.clearBytes == header.clearBytes else {
                throw .foreignHeader("it belongs to another vault")
            }
            return own.bytes == header.bytes ? .same : .other
        } catch {
            if error == .headerDamaged { return .none }
            throw error
        }
    }

    /// Whether the vault has segments for the spaces that the header speaks of, of its size. Some may be missing or
    /// damaged.
    private static func checkSegments(_ vault: VaultDirectory, _ header: Header) throws(VaultError) {
        let layout = header.layout
        if layout.isShared { return try checkSpaces(vault, layout) }
        if vault.fileBytes(SegmentLayout.sharedName) != nil {
            throw .foreignHeader("it describes one space, the vault has several")
        }
        let listing = try vault.listing(layout)
        for number in listing.numbers + listing.distant {
            // Each is as long as what was written to it.
            let bytes = vault.fileBytes(layout.path(SegmentPlace(space: 0, number: number))) ?? 0
            guard bytes <= header.segmentBytes else {
                throw .foreignHeader("it describes smaller segments than the vault has")
            }
        }
    }

    private static func checkSpaces(_ vault: VaultDirectory, _ layout: SegmentLayout) throws(VaultError) {
        guard let size = vault.fileBytes(SegmentLayout.sharedName) else {
            throw .foreignHeader("it describes \(layout.spaceCount) spaces, the vault has one")
        }
        guard size >= layout.rowBytes else {
            throw .foreignHeader("it describes larger segments than the vault has, or more spaces")
        }
        guard size % layout.rowBytes == 0 else {
            throw .foreignHeader(
                "it describes other spaces than the vault has (or growing the vault was interrupted: then truncate "
                    + "\(SegmentLayout.sharedName) to \(size / layout.rowBytes * layout.rowBytes) bytes)")
        }
    }
}
