import COpenSSL

/// The message digest of RFC 1321, which names the files of a freedesktop repository; OpenSSL's. No security depends on
/// it.
public func md5(_ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 16)
    precondition(EVP_Digest(message, message.count, &digest, nil, MD5.algorithm.pointer, nil) == 1)
    return digest
}

/// Unchecked Sendable: OpenSSL's algorithms do not change.
private struct MD5: @unchecked Sendable {
    let pointer: OpaquePointer

    /// From a library context of its own with the default provider: where the system's configuration enforces FIPS
    /// mode, the usual one refuses MD5, and file managers would see no pictures.
    static let algorithm: MD5 = {
        let context = OSSL_LIB_CTX_new()
        guard OSSL_PROVIDER_load(context, "default") != nil, let found = EVP_MD_fetch(context, "MD5", nil)
        else {
            preconditionFailure("MD5 is not to be had")
        }
        return MD5(pointer: found)
    }()
}
