import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// The source vault of a backup, mounted or not, without a password.
///
/// A pass begins with `begin` and ends with `isUnchanged`, which returns whether everything read in between belongs to
/// the state whose heads `begin` returned. See the article on backups for why.
final class CopySource {
    let vault: any VaultHost
    let header: Header
    /// Whether another client has the vault meanwhile; false where that is told by bytes.
    private let isMountedElsewhere: Bool
    /// The byte by which mounts detect this pass; nil without one.
    private var heldByte: UInt64?

    private static let attemptsMax = 100
    private static let pauseMicroseconds: UInt32 = 10_000

    /// On a host without `copyLocks` the vault is locked, unless a mount has it. `held` is it, if it is locked already.
    init(_ path: String, held: (any VaultHost)?, calls: any FileSystemCalls) throws(VaultError) {
        if let held, held.copyLocks == nil {
            (vault, isMountedElsewhere) = (held, false)
        } else {
            vault = try hostPlace(path, calls).open()
            isMountedElsewhere = vault.copyLocks == nil ? try !Self.lock(vault) : false
        }
        header = try Vault.readHeader(vault, mayRepair: false)
    }

    deinit { letGo() }

    /// Returns false if another client has the vault.
    private static func lock(_ vault: any VaultHost) throws(VaultError) -> Bool {
        do throws(VaultError) {
            try vault.lock()
            return true
        } catch {
            guard error == .inUse else { throw error }
            return false
        }
    }

    private func heads() throws(VaultError) -> RootSnapshot {
        try RootSnapshot(vault, header.layout)
    }

    private var file: Int32? { vault.copyLocks }

    private func letGo() {
        if let heldByte, let file { try? ByteLock.letGo(file, heldByte) }
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
        guard let file else { return false }
        let byte = CopyLocks.copies.lowerBound + UInt64(randomNumber(below: .max))
        do throws(Errno) {
            guard try ByteLock.firstHeld(file, in: CopyLocks.copies) == nil else { return false }
            try ByteLock.hold(file, byte)
            heldByte = byte
            if try ByteLock.firstHeld(file, in: CopyLocks.copies) == nil { return true }
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
        guard heldByte != nil, let file else { return false }
        let keeping = CopyLocks.keeping..<CopyLocks.keeping + 1
        return (try? ByteLock.firstHeld(file, in: keeping)) ?? nil != nil
    }

    /// Whether a mount is known that may be writing what its next root will lead to.
    var isMounted: Bool { isKept || isMountedElsewhere }

    /// The vault's segments.
    func segments() throws(VaultError) -> FoundSegments { try vault.segments(header.layout) }

    func open(_ place: SegmentPlace) throws(VaultError) -> any PartBytes {
        do throws(Errno) { return try vault.open(.segment(place, header.layout), .reading) } catch {
            throw .system(error, "cannot open \(vault.name(of: place, header.layout))")
        }
    }
}
