/// A file that is needed beside a password. It is combined with the password before that is stretched, so nothing in a
/// vault tells whether there is one. See the format specification, *Primitives*.
public final class KeyFile: Sendable {
    private let key: SecretBytes

    /// - Parameter content: the file's bytes, all of which count.
    public init(_ content: SecretBytes) {
        let digest = SecretBytes(count: 32)
        digest.withUnsafeMutableBytes { out in content.withUnsafeBytes { hash([$0], into: out) } }
        key = deriveKey(digest, purpose: "obscura 1 key file")
    }

    /// What is stretched in the password's place: 32 bytes.
    public func combined(with password: SecretBytes) -> SecretBytes {
        let result = SecretBytes(count: 32)
        result.withUnsafeMutableBytes { out in
            password.withUnsafeBytes { hash([$0], key: key, into: out) }
        }
        return result
    }
}
