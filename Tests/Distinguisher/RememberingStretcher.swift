import Synchronization
import VaultCrypto
import VaultStore

/// Derives each password of a vault once: that costs the most time of a session, and is the same whichever spaces are
/// in use. The cost of answers with the derivation is measured without this.
final class RememberingStretcher: PasswordStretcher {
    private struct Known {
        var password: SecretBytes
        var salt: [UInt8]
        var key: SecretBytes
    }
    private let known = Mutex<[Known]>([])

    func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        let found = known.withLock { $0.first { $0.password == password && $0.salt == salt } }
        if let found { return found.key }
        let key = try LocalStretcher().stretch(password, salt: salt, parameters: parameters)
        known.withLock { $0.append(Known(password: password, salt: salt, key: key)) }
        return key
    }
}
