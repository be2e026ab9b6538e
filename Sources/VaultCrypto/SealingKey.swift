import COpenSSL
import CSodium
import Synchronization
import VaultFormat

/// A key for XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, the same bytes as libsodium's `xchacha20poly1305_ietf`).
///
/// Nonces are 24 bytes, tags 16. Ciphertext is as long as plaintext and may lie in the same memory. The subkey of a
/// nonce is libsodium's HChaCha20; ChaCha20-Poly1305 under it is OpenSSL's, which is 2.5 times as fast as libsodium's.
public final class SealingKey: Sendable {
    private let bytes: SecretBytes

    public init(_ bytes: SecretBytes) {
        precondition(bytes.count == Geometry.keyBytes)
        Sodium.prepare()
        self.bytes = bytes
    }

    /// Seals `plaintext` into `ciphertext` (as long, may be the same memory) and its tag into `tag`.
    public func seal(
        _ plaintext: UnsafeRawBufferPointer, into ciphertext: UnsafeMutableRawBufferPointer,
        tag: UnsafeMutableRawBufferPointer, nonce: UnsafeRawBufferPointer, associated: UnsafeRawBufferPointer
    ) {
        precondition(ciphertext.count == plaintext.count)
        precondition(tag.count == Geometry.tagBytes && nonce.count == Geometry.nonceBytes)
        let isSealed = withContext(nonce, isSealing: true) { context in
            var length: Int32 = 0
            return EVP_EncryptUpdate(context, nil, &length, associated.octets, Int32(associated.count)) == 1
                && EVP_EncryptUpdate(
                    context, ciphertext.octets, &length, plaintext.octets, Int32(plaintext.count)) == 1
                && EVP_EncryptFinal_ex(context, tag.octets, &length) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_GET_TAG, Int32(Geometry.tagBytes), tag.baseAddress) == 1
        }
        // Bad input cannot make it fail. Continuing with unsealed bytes would leak them.
        precondition(isSealed, "ChaCha20-Poly1305 is not to be had")
    }

    /// Opens `ciphertext` into `plaintext` (as long, may be the same memory). Returns false if the tag does not match:
    /// then `plaintext` is zeros and must not be served.
    public func open(
        _ ciphertext: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer,
        tag: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, associated: UnsafeRawBufferPointer
    ) -> Bool {
        precondition(ciphertext.count == plaintext.count)
        precondition(tag.count == Geometry.tagBytes && nonce.count == Geometry.nonceBytes)
        let isOpen = withContext(nonce, isSealing: false) { context in
            var length: Int32 = 0
            return EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_SET_TAG, Int32(Geometry.tagBytes),
                UnsafeMutableRawPointer(mutating: tag.baseAddress)) == 1
                && EVP_DecryptUpdate(context, nil, &length, associated.octets, Int32(associated.count)) == 1
                && EVP_DecryptUpdate(
                    context, plaintext.octets, &length, ciphertext.octets, Int32(ciphertext.count)) == 1
                && EVP_DecryptFinal_ex(context, plaintext.octets, &length) == 1
        }
        if !isOpen { plaintext.zero() }
        return isOpen
    }

    /// HChaCha20 of the key and the first 16 bytes of `nonce`: the key of this one message, 32 bytes.
    @inline(__always)
    func makeSubkey(_ nonce: UnsafeRawBufferPointer, into subkey: UnsafeMutableRawBufferPointer) {
        crypto_core_hchacha20(subkey.octets, nonce.octets, bytes.pointer, nil)
    }

    /// Calls `body` with a context initialized for one message under the nonce's subkey.
    @inline(__always)
    private func withContext(
        _ nonce: UnsafeRawBufferPointer, isSealing: Bool, _ body: (OpaquePointer) -> Bool
    ) -> Bool {
        let context = CipherContexts.shared.take()
        defer { CipherContexts.shared.give(context) }
        return withUnsafeTemporaryAllocation(byteCount: Geometry.keyBytes + 12, alignment: 16) { scratch in
            let subkey = scratch.slice(0, Geometry.keyBytes)
            let shortNonce = scratch.slice(Geometry.keyBytes, 12)
            defer { wipe(scratch) }
            makeSubkey(nonce, into: subkey)
            shortNonce.slice(0, 4).zero()
            shortNonce.slice(4, 8).copyMemory(from: nonce.slice(16, 8))
            let isReady = EVP_CipherInit_ex(
                context, nil, nil, UnsafePointer(subkey.octets), UnsafePointer(shortNonce.octets),
                isSealing ? 1 : 0)
            return isReady == 1 && body(context)
        }
    }
}

/// A pool of OpenSSL's contexts.
///
/// They lie in ordinary memory, so they get only the subkey of a single message, never a key. When a context is
/// returned, zeros replace the subkey: a memory dump between two messages contains none.
///
/// Unchecked Sendable: `lock` guards the list; a taken context belongs to its taker alone.
private final class CipherContexts: @unchecked Sendable {
    static let shared = CipherContexts()

    private let lock = Mutex<[Box]>([])

    private struct Box: @unchecked Sendable { let context: OpaquePointer }

    func take() -> OpaquePointer {
        if let kept = lock.withLock({ $0.popLast() }) { return kept.context }
        guard let context = EVP_CIPHER_CTX_new(),
            EVP_CipherInit_ex(context, EVP_chacha20_poly1305(), nil, nil, nil, 1) == 1
        else { preconditionFailure("OpenSSL has no ChaCha20-Poly1305") }
        return context
    }

    func give(_ context: OpaquePointer) {
        // Resetting the context would wipe the key too, but the next message would have to look the cipher up again.
        let isForgotten = EVP_CipherInit_ex(context, nil, nil, Self.noKey, nil, 1) == 1
        precondition(isForgotten, "a context keeps its key")
        lock.withLock { $0.append(Box(context: context)) }
    }

    private static let noKey = [UInt8](repeating: 0, count: Geometry.keyBytes)
}
