import COpenSSL

/// SHA-256 (FIPS 180-4) of bytes that come in pieces; OpenSSL's. For one thread at a time.
public final class SHA256 {
    private let context = EVP_MD_CTX_new()

    public init() {
        // Fails only without memory.
        precondition(
            context != nil && EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1, "SHA-256 is not to be had")
    }

    deinit { EVP_MD_CTX_free(context) }

    public func update(_ bytes: UnsafeRawBufferPointer) {
        precondition(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1)
    }

    /// The 32 bytes of the digest. The object is ready for other bytes then.
    public func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        precondition(EVP_DigestFinal_ex(context, &digest, nil) == 1)
        precondition(EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1)
        return digest
    }
}
