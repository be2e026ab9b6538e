import Testing
import VaultCrypto
import VaultFormat

@Suite("Format: ciphers and keys") struct CryptoTests {
    func hex(_ text: String) -> [UInt8] {
        let digits = Array(text.utf8.filter { $0 != 32 && $0 != 10 })
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16) ?? 0
        }
    }

    /// The vector of draft-irtf-cfrg-xchacha-03, appendix A.3.
    @Test func `seals as the standard says`() {
        let key = hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f")
        let nonce = hex("404142434445464748494a4b4c4d4e4f5051525354555657")
        let associated = hex("50515253c0c1c2c3c4c5c6c7")
        let text =
            "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
            + "sunscreen would be it."
        let expected = hex(
            """
            bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3
            a82f4eda7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2b
            c369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52e
            """)
        var bytes = Array(text.utf8)
        var tag = [UInt8](repeating: 0, count: 16)
        let sealing = SealingKey(key.withUnsafeBytes { SecretBytes(copying: $0) })
        func seal() {
            bytes.withUnsafeMutableBytes { bytes in
                tag.withUnsafeMutableBytes { tag in
                    nonce.withUnsafeBytes { nonce in
                        associated.withUnsafeBytes {
                            sealing.seal(
                                UnsafeRawBufferPointer(bytes), into: bytes, tag: tag, nonce: nonce,
                                associated: $0)
                        }
                    }
                }
            }
        }
        func open(_ associated: [UInt8]) -> Bool {
            bytes.withUnsafeMutableBytes { bytes in
                tag.withUnsafeBytes { tag in
                    nonce.withUnsafeBytes { nonce in
                        associated.withUnsafeBytes {
                            sealing.open(
                                UnsafeRawBufferPointer(bytes), into: bytes, tag: tag, nonce: nonce,
                                associated: $0)
                        }
                    }
                }
            }
        }
        seal()
        #expect(bytes == expected)
        #expect(tag == hex("c0875924c1c7987947deafd8780acf49"))
        #expect(!open([1]))
        bytes = expected
        #expect(open(associated))
        #expect(bytes == Array(text.utf8))
    }

    @Test func `secrets compare and derive`() {
        let a = SecretBytes.random(count: 32)
        let b = a.withUnsafeBytes { SecretBytes(copying: $0) }
        #expect(a == b)
        #expect(deriveKey(a, purpose: "x") == deriveKey(b, purpose: "x"))
        #expect(!(deriveKey(a, purpose: "x") == deriveKey(b, purpose: "y")))
        #expect(!(a == SecretBytes(count: 31)))
    }

    @Test func `stretching depends on everything`() throws {
        let quick = KDFParameters(memoryBytes: 8 << 20, passes: 1)
        let password = SecretBytes.random(count: 5)
        let salt = [UInt8](repeating: 1, count: 16)
        let first = try #require(
            salt.withUnsafeBytes { stretch(password: password, salt: $0, parameters: quick, count: 32) })
        let again = try #require(
            salt.withUnsafeBytes { stretch(password: password, salt: $0, parameters: quick, count: 32) })
        let other = KDFParameters(memoryBytes: 9 << 20, passes: 1)
        let third = try #require(
            salt.withUnsafeBytes { stretch(password: password, salt: $0, parameters: other, count: 32) })
        #expect(first == again)
        #expect(!(first == third))
    }

    /// The vector is Python's hashlib.
    @Test func `a key file is combined as the format says`() {
        func secret(_ text: String) -> SecretBytes {
            Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        }
        let combined = KeyFile(secret("any file at all\n")).combined(with: secret("one"))
        #expect(
            combined.withUnsafeBytes { Array($0) }
                == hex("3625953c4ac9c757b44cbeea27ff6051997814c86a997cbe1ec4cd32678e4923"))
        #expect(KeyFile(secret("any file at all")).combined(with: secret("one")) != combined)
    }

    @Test func `the random stream never repeats`() {
        let stream = RandomStream()
        var seen: Set<[UInt8]> = []
        for _ in 0..<100 {
            var bytes = [UInt8](repeating: 0, count: 64)
            bytes.withUnsafeMutableBytes { stream.fill($0) }
            #expect(seen.insert(bytes).inserted)
        }
    }
}
