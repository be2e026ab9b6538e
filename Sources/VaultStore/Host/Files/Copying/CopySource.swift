import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// The source vault of a backup, mounted or not, without a password.
///
/// A pass begins with `begin` and ends with `isUnchanged`, which returns whether everything read in between belongs to
/// the state whose heads `begin` returned. See the article on backups for why.
final class CopySource {
    let vault: VaultFiles
    let header: Header
    /// The byte by which mounts detect this pass; nil without one.
    private var heldByte: UInt64?

    private static let attemptsMax = 100
    private static let pauseMicroseconds: UInt32 = 10_000

    init(_ path: String, calls: any FileSystemCalls) throws(VaultError) {
        (vault, header) = try Vault.openFiles(path, calls: calls, mayRepair: false)
    }

    deinit { letGo() }

    private func heads() throws(VaultError) -> RootSnapshot {
        try RootSnapshot(vault, header.layout)
    }

    private func letGo() {
        if let heldByte { try? ByteLock.letGo(vault.header, heldByte) }
        heldByte = nil
    }

    /// Begins a pass: asks a mount to keep everything that the newest durable root refers to, and returns the heads.
    func begin() throws(VaultError) -> RootSnapshot {
        letGo()
        for _ in 0..<Self.attemptsMax {
            let before = try heads()
            guard hold() else { break }
            // With a root in between, the mount might have noticed this pass before that root and keep too little.
            let now = try heads()
            if now == before { return now }
            letGo()
            usleep(Self.pauseMicroseconds)
        }
        return try heads()
    }

    /// Holds a byte; returns false if another backup is running, or the host has no such locks.
    private func hold() -> Bool {
        let byte = CopyLocks.copies.lowerBound + UInt64(randomNumber(below: .max))
        do throws(Errno) {
            guard try ByteLock.firstHeld(vault.header, in: CopyLocks.copies) == nil else { return false }
            try ByteLock.hold(vault.header, byte)
            heldByte = byte
            if try ByteLock.firstHeld(vault.header, in: CopyLocks.copies) == nil { return true }
        } catch {
            // Without the byte, two durable roots invalidate the pass.
        }
        letGo()
        return false
    }

    /// Whether nothing that the state of `heads` refers to can have been reused since.
    func isUnchanged(since heads: RootSnapshot) throws(VaultError) -> Bool {
        // Checked before the roots are read again: a mount releases its byte before it reuses anything.
        let isKept = isKept
        let now = try self.heads()
        guard now.header == heads.header else { return false }
        return isKept || now.durableRoots(since: heads) < 2
    }

    /// Whether a mount on this machine keeps what this pass needs.
    var isKept: Bool {
        guard heldByte != nil else { return false }
        let keeping = CopyLocks.keeping..<CopyLocks.keeping + 1
        return (try? ByteLock.firstHeld(vault.header, in: keeping)) ?? nil != nil
    }

    /// The vault's segments.
    func segments() throws(VaultError) -> FoundSegments { try vault.segments(header.layout) }

    func open(_ place: SegmentPlace) throws(VaultError) -> OpenSegment {
        let path = header.layout.path(place)
        do throws(Errno) {
            let file = try vault.calls.openRegular(vault.directory, path, flags: O_RDONLY, mode: 0)
            return OpenSegment(descriptor: file, calls: vault.calls)
        } catch { throw .system(error, "cannot open \(path)") }
    }
}
