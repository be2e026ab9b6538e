import Glibc
import LinuxIO
public import VaultCrypto

/// Where passwords are stretched, which leaves traces of them in the memory of the process that does it.
public protocol PasswordStretcher: Sendable {
    /// One run of Argon2id: 32 bytes.
    ///
    /// - Parameter salt: 16 bytes.
    func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes
}

/// Stretches in this process.
public struct LocalStretcher: PasswordStretcher {
    public init() {}

    public func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        let key = salt.withUnsafeBytes {
            VaultCrypto.stretch(password: password, salt: $0, parameters: parameters, count: 32)
        }
        guard let key else { throw .kdfMemory(parameters.memoryBytes) }
        return key
    }
}

extension KDFParameters {
    /// Refuses what this machine can only do by swapping.
    func checkMachine() throws(VaultError) {
        let bytes =
            UInt64(max(0, sysconf(Int32(_SC_PHYS_PAGES)))) * UInt64(max(0, sysconf(Int32(_SC_PAGESIZE))))
        // 0: the kernel does not tell.
        if bytes > 0, memoryBytes > bytes { throw .kdfMemory(memoryBytes) }
    }
}
