import CSodium
import VaultFormat

/// A key for XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha, libsodium's `xchacha20poly1305_ietf`).
///
/// Nonces are 24 bytes, tags 16. Ciphertext is as long as plaintext and may lie in the same memory.
public final class SealingKey: Sendable {
    private let bytes: SecretBytes

    public init(_ bytes: SecretBytes) {
        precondition(bytes.count == Geometry.keyBytes)
        self.bytes = bytes
    }

    /// Seals `plaintext` into `ciphertext` (as long, may be the same memory) and its tag into `tag`.
    public func seal(
        _ plaintext: UnsafeRawBufferPointer, into ciphertext: UnsafeMutableRawBufferPointer,
        tag: UnsafeMutableRawBufferPointer, nonce: UnsafeRawBufferPointer, associated: UnsafeRawBufferPointer
    ) {
        precondition(ciphertext.count == plaintext.count)
        precondition(tag.count == Geometry.tagBytes && nonce.count == Geometry.nonceBytes)
        crypto_aead_xchacha20poly1305_ietf_encrypt_detached(
            ciphertext.octets,
            tag.octets, nil,
            plaintext.octets, UInt64(plaintext.count),
            associated.octets, UInt64(associated.count), nil,
            nonce.octets, bytes.pointer)
    }

    /// Opens `ciphertext` into `plaintext` (as long, may be the same memory). False where the tag does not fit:
    /// then `plaintext` holds nothing of use and must not be served.
    public func open(
        _ ciphertext: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer,
        tag: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, associated: UnsafeRawBufferPointer
    ) -> Bool {
        precondition(ciphertext.count == plaintext.count)
        precondition(tag.count == Geometry.tagBytes && nonce.count == Geometry.nonceBytes)
        return crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
            plaintext.octets, nil,
            ciphertext.octets, UInt64(ciphertext.count),
            tag.octets,
            associated.octets, UInt64(associated.count),
            nonce.octets, bytes.pointer) == 0
    }
}
