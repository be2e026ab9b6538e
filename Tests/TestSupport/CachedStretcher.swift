import Synchronization
public import VaultCrypto
public import VaultStore

/// Stretches in this process, each password with each salt once: tests open copies of one vault again and again.
public struct CachedStretcher: PasswordStretcher {
    private struct Question: Hashable {
        let password: [UInt8]
        let salt: [UInt8]
        let memoryBytes: UInt64
        let passes: UInt32
    }

    private static let answers = Mutex<[Question: SecretBytes]>([:])

    public init() {}

    public func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        let question = Question(
            password: password.withUnsafeBytes { Array($0) }, salt: salt,
            memoryBytes: parameters.memoryBytes, passes: parameters.passes)
        if let known = Self.answers.withLock({ $0[question] }) { return known }
        let answer = try LocalStretcher().stretch(password, salt: salt, parameters: parameters)
        Self.answers.withLock { $0[question] = answer }
        return answer
    }
}
