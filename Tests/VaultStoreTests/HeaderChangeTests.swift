import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCrypto
import VaultFormat
import VaultStore

/// Somebody who knows the format changes the header, and makes its checksum right again.
@Suite("Damage: the header, changed") struct HeaderChangeTests {
    private let directory = TemporaryDirectory()

    /// Lets `change` work on both copies of the header and writes right checksums.
    private func forge(_ path: String, _ change: (inout [UInt8]) -> Void) throws {
        let file = URL(fileURLWithPath: path + "/obscura.vault")
        var whole = Array(try Data(contentsOf: file))
        for offset in HeaderLayout.copyOffsets.map(Int.init) {
            var copy = Array(whole[offset..<offset + HeaderLayout.copyBytes])
            change(&copy)
            copy.withUnsafeMutableBytes { bytes in
                hash(
                    [UnsafeRawBufferPointer(rebasing: bytes[..<HeaderLayout.checksumOffset])],
                    into: UnsafeMutableRawBufferPointer(rebasing: bytes[HeaderLayout.checksumOffset...]))
            }
            whole.replaceSubrange(offset..<offset + copy.count, with: copy)
        }
        try Data(whole).write(to: file)
    }

    private func opening(_ path: String, _ password: String) -> VaultError? {
        do {
            _ = try patiently { try Vault.unlock(path, password: secret(password), readOnly: true) }
            return nil
        } catch { return error as? VaultError }
    }

    @Test func `exchanged slots open for nobody`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        try patiently { try Vault.addSpace(path, new: secret("two"), surviving: [secret("one")]) }
        let (first, second) = (HeaderLayout.keySlotOffset(0), HeaderLayout.keySlotOffset(1))
        func exchange() throws {
            try forge(path) { copy in
                for byte in 0..<HeaderLayout.keySlotBytes { copy.swapAt(first + byte, second + byte) }
            }
        }
        try exchange()
        #expect(opening(path, "one") == .noSpaceOpens)
        #expect(opening(path, "two") == .noSpaceOpens)
        try exchange()
        #expect(opening(path, "one") == nil)
        #expect(opening(path, "two") == nil)
    }

    /// Every clear byte is associated data of every slot, so that none can be changed without the password failing;
    /// values out of range are refused before any memory is taken.
    @Test func `no clear field can be changed`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        for offset in 0..<HeaderLayout.clearBytes {
            try forge(path) { $0[offset] ^= 1 }
            let error = opening(path, "one")
            let versions = [0, 257].map {
                VaultError.newer(NewerVersion(.header, version: $0, release: .unknown))
            }
            #expect(
                ([.noSpaceOpens, .headerDamaged] + versions).contains(error),
                "byte \(offset): \(String(describing: error))")
            try forge(path) { $0[offset] ^= 1 }
        }
        #expect(opening(path, "one") == nil)
        try forge(path) { copy in
            copy.withUnsafeMutableBytes { $0.setNumber(UInt64(1) << 40, HeaderLayout.kdfMemoryOffset) }
        }
        #expect(opening(path, "one") == .headerDamaged)
    }
}
