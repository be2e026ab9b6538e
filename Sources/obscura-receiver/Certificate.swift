internal import CGnuTLS
internal import Glibc
internal import ReceiveProtocol

/// A key and a self-signed certificate for it, made when the server starts and gone when it ends.
struct Certificate {
    /// PEM, as C strings.
    private(set) var key: [CChar] = []
    private(set) var certificate: [CChar] = []
    /// SHA-256 of the certificate as it is sent (DER): browsers show the same.
    private(set) var fingerprint: [UInt8] = []

    private static let daySeconds = 86_400
    private static let validDays = 30

    /// - Parameter address: of the listening socket, in network byte order: 4 bytes or 16.
    /// Nil if GnuTLS fails.
    init?(for address: [UInt8]) {
        var key: gnutls_x509_privkey_t?
        var certificate: gnutls_x509_crt_t?
        guard gnutls_x509_privkey_init(&key) >= 0, let key else { return nil }
        defer { gnutls_x509_privkey_deinit(key) }
        guard gnutls_x509_crt_init(&certificate) >= 0, let certificate else { return nil }
        defer { gnutls_x509_crt_deinit(certificate) }
        guard gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, shim_p256_bits(), 0) >= 0,
            Self.fill(certificate, key, address),
            gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0) >= 0
        else { return nil }
        var digest = [UInt8](repeating: 0, count: PacketLimits.digestBytes)
        var count = digest.count
        guard gnutls_x509_crt_get_fingerprint(certificate, GNUTLS_DIG_SHA256, &digest, &count) >= 0,
            let keyText = pem({ gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, $0) }),
            let text = pem({ gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, $0) })
        else { return nil }
        (self.key, self.certificate, fingerprint) = (keyText, text, digest)
    }

    private static func fill(
        _ certificate: gnutls_x509_crt_t, _ key: gnutls_x509_privkey_t, _ address: [UInt8]
    ) -> Bool {
        let now = time(nil)
        // A phone's clock may be behind.
        let begin = now - daySeconds
        var serial = [UInt8](repeating: 0, count: 16)
        guard fillRandom(&serial) else { return false }
        serial[0] &= 0x7F
        let name = Array("Obscura".utf8)
        return gnutls_x509_crt_set_version(certificate, 3) >= 0
            && gnutls_x509_crt_set_key(certificate, key) >= 0
            && gnutls_x509_crt_set_serial(certificate, serial, serial.count) >= 0
            && gnutls_x509_crt_set_activation_time(certificate, begin) >= 0
            && gnutls_x509_crt_set_expiration_time(certificate, now + validDays * daySeconds) >= 0
            && gnutls_x509_crt_set_dn_by_oid(
                certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name, UInt32(name.count)) >= 0
            && gnutls_x509_crt_set_basic_constraints(certificate, 0, -1) >= 0
            && gnutls_x509_crt_set_key_usage(certificate, UInt32(GNUTLS_KEY_DIGITAL_SIGNATURE)) >= 0
            && gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0) >= 0
            && gnutls_x509_crt_set_subject_alt_name(
                certificate, GNUTLS_SAN_IPADDRESS, address, UInt32(address.count),
                UInt32(GNUTLS_FSAN_SET)) >= 0
    }
}

/// A text that GnuTLS allocates, as a C string.
private func pem(_ export: (UnsafeMutablePointer<gnutls_datum_t>) -> Int32) -> [CChar]? {
    var datum = gnutls_datum_t()
    guard export(&datum) >= 0 else { return nil }
    defer { free(datum.data) }
    return UnsafeBufferPointer(start: datum.data, count: Int(datum.size)).map { CChar(bitPattern: $0) } + [0]
}

/// Returns false if there is no randomness.
func fillRandom(_ bytes: inout [UInt8]) -> Bool {
    bytes.withUnsafeMutableBytes { gnutls_rnd(GNUTLS_RND_KEY, $0.baseAddress, $0.count) >= 0 }
}
