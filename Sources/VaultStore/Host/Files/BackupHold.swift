import LinuxIO
import Synchronization

/// Bytes of `obscura.vault`, far beyond its end, whose locks let a running backup and a mount detect each other.
enum CopyLocks {
    /// Held by a mount that keeps the sectors and slots that backups need.
    static let keeping: UInt64 = 1 << 32
    /// A backup holds one of these, another one in every pass.
    static let copies: Range<UInt64> = (1 << 32) + 1..<1 << 33
}

/// A mount's side of the agreement with running backups of its vault: see the article on backups.
///
/// While it holds the byte `keeping`, it reuses nothing that the backup it sees may need. Otherwise a backup starts
/// again after two durable roots.
final class BackupHold: Sendable {
    private struct State {
        var isKeeping = false
        /// The last backup found, by its byte.
        var copy: UInt64?
        /// A backup for which nothing is kept: it started before this mount, or room ran out.
        var refused: UInt64?
    }

    private let vault: VaultFiles
    private let state: Mutex<State>

    init(_ vault: VaultFiles) {
        self.vault = vault
        state = Mutex(State(refused: Self.copy(of: vault)))
        state.withLock { if $0.refused == nil { keep(&$0) } }
    }

    private static func copy(of vault: VaultFiles) -> UInt64? {
        // Without such locks on the host, no backup relies on them.
        (try? ByteLock.firstHeld(vault.header, in: CopyLocks.copies)) ?? nil
    }

    private func keep(_ state: inout State) {
        if state.isKeeping { return }
        do throws(Errno) {
            try ByteLock.hold(vault.header, CopyLocks.keeping)
            state.isKeeping = true
        } catch {
            // The backup does not see the byte held, so it does not rely on it.
        }
    }

    /// Whether a backup is reading the vault. It may have read a soft root just before.
    var isBackupRunning: Bool { Self.copy(of: vault) != nil }

    /// The backup that room must be kept for; nil for none. Called after a durable root was written, before anything
    /// that it freed is reused.
    func copyToKeepFor() -> UInt64? {
        state.withLock { state in
            state.copy = Self.copy(of: vault)
            if let copy = state.copy, copy == state.refused { return nil }
            state.refused = nil
            keep(&state)
            return state.copy
        }
    }

    /// Stops keeping room for the present backup, which detects that. Called before anything is reused.
    func giveUp() {
        state.withLock { state in
            state.copy = Self.copy(of: vault)
            guard let copy = state.copy, state.isKeeping else { return }
            state.refused = copy
            // The backup also sees `refused`; the lock only tells it earlier.
            try? ByteLock.letGo(vault.header, CopyLocks.keeping)
            state.isKeeping = false
        }
    }
}
