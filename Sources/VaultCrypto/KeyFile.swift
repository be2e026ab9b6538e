/// A file that is required in addition to a password. It is combined with the password before stretching, so a vault
/// does not reveal whether it has one. See the format specification, *Primitives*.
public final class KeyFile: Sendable {
    private let key: SecretBytes

    /// - Parameter content: all bytes of the file.
    public init(_ content: SecretBytes) {
        let digest = SecretBytes(count: 32)
        digest.withUnsafeMutableBytes { out in content.withUnsafeBytes { hash([$0], into: out) } }
        key = deriveKey(digest, purpose: "obscura 1 key file")
    }

    /// Returns the 32 bytes that are stretched instead of the password.
    public func combined(with password: SecretBytes) -> SecretBytes {
        let result = SecretBytes(count: 32)
        result.withUnsafeMutableBytes { out in
            password.withUnsafeBytes { hash([$0], key: key, into: out) }
        }
        return result
    }
}
