import LinuxIO
import Synchronization

/// The bytes of `obscura.vault`, far beyond its end, by whose locks a copy being made and a mount know of each other.
enum CopyLocks {
    /// Held by a mount that keeps what copies need.
    static let keeping: UInt64 = 1 << 32
    /// A copy holds one of these, another in every pass.
    static let copies: Range<UInt64> = (1 << 32) + 1..<1 << 33
}

/// A mount's side of the agreement with copies that are being made of its vault: see the article on backups.
///
/// While it holds the byte `keeping`, nothing is used again that the copy it sees might need. Without that a copy
/// that has seen two durable roots pass begins anew.
final class BackupHold: Sendable {
    private struct State {
        var isKeeping = false
        /// The copy that was found last.
        var copy: UInt64?
        /// A copy for which nothing is kept: it was there before this mount, or room ran out.
        var refused: UInt64?
    }

    private let vault: VaultDirectory
    private let state: Mutex<State>

    init(_ vault: VaultDirectory) {
        self.vault = vault
        state = Mutex(State(refused: Self.copy(of: vault)))
        state.withLock { if $0.refused == nil { keep(&$0) } }
    }

    private static func copy(of vault: VaultDirectory) -> UInt64? {
        // Where the host has no such locks, there is no copy that relies on them.
        (try? ByteLock.firstHeld(vault.header, in: CopyLocks.copies)) ?? nil
    }

    private func keep(_ state: inout State) {
        if state.isKeeping { return }
        do throws(Errno) {
            try ByteLock.hold(vault.header, CopyLocks.keeping)
            state.isKeeping = true
        } catch {
            // The copy sees no promise, and relies on none.
        }
    }

    /// The copy that room must be kept for, nil for none. To be asked when a durable root has been written, and before
    /// anything is used again that it made free.
    func copyToKeepFor() -> UInt64? {
        state.withLock { state in
            state.copy = Self.copy(of: vault)
            if let copy = state.copy, copy == state.refused { return nil }
            state.refused = nil
            keep(&state)
            return state.copy
        }
    }

    /// Keeps nothing for the copy that there is now, which learns of it. To be called before anything is used again.
    func giveUp() {
        state.withLock { state in
            state.copy = Self.copy(of: vault)
            guard let copy = state.copy, state.isKeeping else { return }
            state.refused = copy
            try? ByteLock.letGo(vault.header, CopyLocks.keeping)
            state.isKeeping = false
        }
    }
}
