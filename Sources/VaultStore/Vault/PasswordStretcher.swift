import Glibc
import LinuxIO
public import VaultCrypto

/// Stretches passwords, possibly in another process, because stretching leaves traces in the process's memory.
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
    /// Throws `kdfMemory` if the machine has less memory than stretching takes, so that it would have to swap.
    func checkMachine() throws(VaultError) {
        let machineBytes = UInt64(LinuxIO.memoryBytes)
        if machineBytes > 0, memoryBytes > machineBytes { throw .kdfMemory(memoryBytes) }
    }
}
