import Synchronization
public import VaultCrypto
public import VaultStore

/// Stretches each password of a vault once, which costs the most time of a short session. The cost of answers with the
/// derivation is measured without this.
public final class RememberingStretcher: PasswordStretcher {
    /// For tests that open copies of one vault again and again.
    public static let shared = RememberingStretcher()

    private struct Known {
        var password: SecretBytes
        var salt: [UInt8]
        var parameters: KDFParameters
        var key: SecretBytes
    }
    private let known = Mutex<[Known]>([])

    public init() {}

    public func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        let found = known.withLock {
            $0.first { $0.salt == salt && $0.parameters == parameters && $0.password == password }
        }
        if let found { return found.key }
        let key = try LocalStretcher().stretch(password, salt: salt, parameters: parameters)
        known.withLock {
            $0.append(Known(password: password, salt: salt, parameters: parameters, key: key))
        }
        return key
    }
}
