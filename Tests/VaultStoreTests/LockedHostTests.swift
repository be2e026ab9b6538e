import LinuxIO
import TestSupport
import Testing
import VaultStore

/// A file server whose locks keep others from reading as well, while another computer has the vault: SMB.
private final class LockedHost: ForwardingCalls {
    private let refused: @Sendable (SystemCall) -> Bool

    init(_ refused: @escaping @Sendable (SystemCall) -> Bool) { self.refused = refused }

    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        if refused(call) { throw .accessDenied }
    }
}

@Suite("Exit codes: file servers that refuse what is locked") struct LockedHostTests {
    private let directory = TemporaryDirectory()

    @Test func `a refused lock says that the vault is in use`() throws {
        let host = LockedHost {
            if case .lock = $0 { true } else { false }
        }
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        #expect(throws: VaultError.inUse) {
            _ = try Vault.unlock(path, password: secret("one"), calls: host)
        }
        #expect(throws: VaultError.inUse) {
            try Vault.grow(path, bytesPerSpace: 20 << 20, calls: host) { _, _ in }
        }
        #expect(Vault.isInUse(path, calls: host))
    }

    @Test func `a header that cannot be read for a lock is not damaged`() throws {
        let path = try makeVault(directory)
        let host = LockedHost {
            if case .read = $0 { true } else { false }
        }
        #expect(throws: VaultError.inUse) { _ = try Vault.checkFiles(path, calls: host) }
        #expect(throws: VaultError.inUse) { _ = try Vault.headerImage(path, calls: host) }
    }
}
