import Glibc
public import LinuxIO
import VaultFormat

/// Backup copies of the header.
extension Vault {
    /// Bytes of a vault's `obscura.vault`.
    public static let headerFileBytes = Int(HeaderLayout.fileBytes)

    /// Returns a replacement for `obscura.vault`: its valid copy twice, surrounded by random bytes. Works on a mounted
    /// vault.
    public static func headerImage(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [UInt8] {
        try open(path, calls: calls, mayRepair: false).1.image()
    }
}

/// A header about to be restored into its vault: validated, with the vault's lock held.
///
/// Without a password it is unknown which of two headers opens more spaces. So the two are never merged.
public final class HeaderRestoration {
    /// The vault's present header, compared with the one to restore.
    public enum Present: Sendable {
        /// Identical: there is nothing to do.
        case same
        /// Another header of this vault: spaces that only it opens will be lost.
        case other
        /// No valid header.
        case none
    }

    public let present: Present
    private let vault: any VaultHost
    private let header: Header
    /// Whether the header's file was created only to be locked: then it is removed unless the header is written.
    private var removesFile: Bool

    /// Validates the bytes of an `obscura.vault` and whether they belong to the vault at `path`. Changes nothing.
    ///
    /// `headerDamaged` and `unsupportedVersion` are about the given bytes.
    public init(
        _ path: String, image: [UInt8], calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) {
        let place = try hostPlace(path, calls)
        do throws(VaultError) { header = try Header.read(image: image) } catch {
            place.dropTraces()
            throw error
        }
        (vault, removesFile) = try place.openForRestoring()
        do throws(VaultError) {
            try vault.lock()
            present = try HeaderRestoration.judge(vault, header)
        } catch {
            if removesFile { try? vault.removeHeader() }
            throw error
        }
    }

    deinit { if removesFile { try? vault.removeHeader() } }

    /// Writes copy A, syncs, writes copy B, syncs, like every change of the header.
    public func write() throws(VaultError) {
        do throws(Errno) {
            removesFile = false
            let file = try vault.open(.header, .writing)
            let size = try file.size()
            if size < HeaderLayout.fileBytes {
                // Only behind the present end: the bytes before it may hold a valid copy, which must stay until the
                // other is whole.
                try file.write(Array(header.image()[Int(size)...]), at: size)
                try file.sync()
            }
        } catch { throw error.meansNoRoom ? .noRoom : .system(error, "cannot write the header") }
        try header.write(to: vault)
        do throws(Errno) { try vault.syncNames() } catch {
            throw .system(error, "cannot write the vault")
        }
        vault.blurTraces(header.layout)
    }

    private static func judge(_ vault: any VaultHost, _ header: Header) throws(VaultError) -> Present {
        try vault.requireFitting(header)
        do throws(VaultError) {
            let own = try Header.read(from: vault, mayRepair: false)
            guard own.clearBytes == header.clearBytes else {
                throw .foreignHeader(
                    "it belongs to another vault than the header in place: if that one was put there by mistake, "
                        + "move obscura.vault out of the vault and restore again")
            }
            return own.bytes == header.bytes ? .same : .other
        } catch {
            if error == .headerDamaged { return .none }
            throw error
        }
    }
}
