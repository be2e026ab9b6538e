import Glibc
import TestSupport
import Testing
import VaultFormat

@testable import VaultCrypto

/// Sealing, opening and deriving leave nothing in memory that is not locked.
@Suite("Secrets: keys after use") struct KeyMemoryTests {
    private func message(_ sealing: SealingKey, _ nonce: SecretBytes, byteCount: Int) {
        var bytes = [UInt8](repeating: 7, count: byteCount)
        var tag = [UInt8](repeating: 0, count: Geometry.tagBytes)
        bytes.withUnsafeMutableBytes { bytes in
            tag.withUnsafeMutableBytes { tag in
                nonce.withUnsafeBytes { nonce in
                    let none = UnsafeRawBufferPointer(start: nil, count: 0)
                    sealing.seal(
                        UnsafeRawBufferPointer(bytes), into: bytes, tag: tag, nonce: nonce, associated: none)
                    let isOpen = sealing.open(
                        UnsafeRawBufferPointer(bytes), into: bytes, tag: UnsafeRawBufferPointer(tag),
                        nonce: nonce, associated: none)
                    #expect(isOpen)
                }
            }
        }
    }

    @Test func `no key and no subkey stays behind`() throws {
        let key = SecretBytes.random(count: Geometry.keyBytes)
        let derived = deriveKey(key, purpose: "test")
        let sealing = SealingKey(derived)
        var secrets = [("key", key), ("derived key", derived)]
        for byteCount in [1, 100, 4096, Geometry.chunkBytes] {
            let nonce = SecretBytes.random(count: Geometry.nonceBytes)
            message(sealing, nonce, byteCount: byteCount)
            let subkey = SecretBytes(count: Geometry.keyBytes)
            subkey.withUnsafeMutableBytes { subkey in
                nonce.withUnsafeBytes { sealing.makeSubkey($0, into: subkey) }
            }
            secrets.append(("subkey of \(byteCount) bytes", subkey))
        }
        let memory = try #require(ProcessMemory(of: getpid()))
        defer { memory.close() }
        let findings = memory.find(secrets)
        #expect(findings.filter { !$0.mapping.isLocked }.map(\.description) == [])
        #expect(Set(findings.map(\.secret)) == Set(secrets.map(\.0)))
    }
}
