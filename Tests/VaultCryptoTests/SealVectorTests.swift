import TestSupport
import Testing
import VaultCrypto
import VaultFormat

/// `SealingKey` comes to the verdicts of Tests/Vectors/seal.txt.
@Suite("Format: vectors of the cipher") struct SealVectorTests {
    /// A vector, with the results of `SealingKey`.
    private struct Case {
        let key: SealingKey
        let nonce: [UInt8]
        let associated: [UInt8]
        let ciphertext: [UInt8]
        let tag: [UInt8]

        init(_ vector: Vector) throws {
            key = SealingKey(
                try #require(vector.input("key")).withUnsafeBytes { SecretBytes(copying: $0) })
            nonce = try #require(vector.input("nonce"))
            associated = try #require(vector.input("associated"))
            try #require(nonce.count == Geometry.nonceBytes && vector.bytes.count >= Geometry.tagBytes)
            ciphertext = Array(vector.bytes.dropLast(Geometry.tagBytes))
            tag = Array(vector.bytes.suffix(Geometry.tagBytes))
        }

        private func withInputs<R>(
            _ body: (_ nonce: UnsafeRawBufferPointer, _ associated: UnsafeRawBufferPointer) -> R
        ) -> R {
            nonce.withUnsafeBytes { nonce in associated.withUnsafeBytes { body(nonce, $0) } }
        }

        /// Opens it in the memory in which it lies, so many bytes behind where memory is aligned.
        func openInPlace(shift: Int) -> (isOpen: Bool, plaintext: [UInt8]) {
            var bytes = [UInt8](repeating: 0xA5, count: shift) + ciphertext
            let isOpen = withInputs { nonce, associated in
                bytes.withUnsafeMutableBytes { bytes in
                    let part = UnsafeMutableRawBufferPointer(rebasing: bytes[shift...])
                    return tag.withUnsafeBytes { tag in
                        key.open(
                            UnsafeRawBufferPointer(part), into: part, tag: tag, nonce: nonce,
                            associated: associated)
                    }
                }
            }
            return (isOpen, Array(bytes[shift...]))
        }

        func open() -> (isOpen: Bool, plaintext: [UInt8]) {
            var plaintext = [UInt8](repeating: 0xA5, count: ciphertext.count)
            let isOpen = withInputs { nonce, associated in
                plaintext.withUnsafeMutableBytes { plaintext in
                    ciphertext.withUnsafeBytes { ciphertext in
                        tag.withUnsafeBytes { tag in
                            key.open(
                                ciphertext, into: plaintext, tag: tag, nonce: nonce, associated: associated)
                        }
                    }
                }
            }
            return (isOpen, plaintext)
        }

        func seal(_ plaintext: [UInt8]) -> [UInt8] {
            var sealed = [UInt8](repeating: 0xA5, count: plaintext.count)
            var tag = [UInt8](repeating: 0xA5, count: Geometry.tagBytes)
            withInputs { nonce, associated in
                sealed.withUnsafeMutableBytes { sealed in
                    plaintext.withUnsafeBytes { plaintext in
                        tag.withUnsafeMutableBytes { tag in
                            key.seal(plaintext, into: sealed, tag: tag, nonce: nonce, associated: associated)
                        }
                    }
                }
            }
            return sealed + tag
        }
    }

    @Test func `there are vectors of both verdicts`() {
        let verdicts = Vector.all("seal").map(\.verdict)
        #expect(verdicts.count { $0 == "valid" } > 200)
        #expect(verdicts.count { $0 == "damaged" } > 80)
        #expect(verdicts.allSatisfy { $0 == "valid" || $0 == "damaged" })
    }

    @Test func `messages open or not, and are sealed, as the vectors say`() throws {
        for vector in Vector.all("seal") {
            let found = try Case(vector)
            let isValid = vector.verdict == "valid"
            let expected =
                isValid
                ? Vector.bytes(try #require(vector.expected("plaintext")))
                : [UInt8](repeating: 0, count: found.ciphertext.count)
            for (isOpen, plaintext) in [
                found.open(), found.openInPlace(shift: 0), found.openInPlace(shift: 3),
            ] {
                #expect(isOpen == isValid, "\(vector)")
                #expect(plaintext == expected, "\(vector)")
            }
            if isValid { #expect(found.seal(expected) == vector.bytes, "\(vector)") }
        }
    }
}
