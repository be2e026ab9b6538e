import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultFormat
import VaultStore

/// Headers kept elsewhere and put back.
@Suite("Commands: header export and restore") struct HeaderCopyTests {
    private let directory = TemporaryDirectory()
    private let calls = TracedCalls()

    private func make(_ name: String, spaces: Int = 2, bytes: UInt64? = 16 << 20) throws -> String {
        let path = directory.path + "/" + name
        try Vault.create(
            at: path, spaces: spaces, bytesPerSpace: spaces == 1 ? nil : bytes, kdf: quickKDF,
            password: secret("one"), calls: calls, coverBytes: 0
        ) { _, _ in }
        return path
    }

    private func verdict(_ body: () throws -> Void) -> VaultError? {
        do {
            try body()
            return nil
        } catch { return error as? VaultError }
    }

    private func header(_ path: String) -> URL { URL(fileURLWithPath: path + "/obscura.vault") }

    private func opens(_ path: String, _ password: String) -> VaultError? {
        verdict { try patiently { _ = try Vault.unlock(path, password: secret(password)) } }
    }

    private func restore(_ path: String, _ image: [UInt8]) throws -> HeaderRestoration.Present {
        let restoration = try patiently { try HeaderRestoration(path, image: image, calls: calls) }
        try restoration.write()
        return restoration.present
    }

    @Test func `a copy of the header brings back the passwords of its time`() throws {
        let path = try make("vault")
        let image = try Vault.headerImage(path)
        #expect(image.count == 131_072 && image[0..<4096] == image[65_536..<69_632])
        #expect(try restore(path, image) == .same)
        try patiently {
            try Vault.changePassword(path, old: secret("one"), new: secret("uno"), calls: calls)
        }
        try patiently {
            try Vault.addSpace(path, new: secret("two"), surviving: [secret("uno")], calls: calls)
        }
        try calls.trace(path + "/obscura.vault")
        #expect(try restore(path, image) == .other)
        #expect(
            calls.events == [
                .write(offset: 0, bytes: 4096), .sync, .write(offset: 65_536, bytes: 4096), .sync,
            ])
        #expect(opens(path, "one") == nil)
        #expect(opens(path, "uno") == .noSpaceOpens && opens(path, "two") == .noSpaceOpens)
    }

    @Test(arguments: [0, 100, 5000, 100_000, 131_072]) func `a header comes back with anything that is left`(
        byteCount: Int
    ) throws {
        let path = try make("vault")
        let image = try Vault.headerImage(path)
        try Data(count: byteCount).write(to: header(path))
        #expect(opens(path, "one") == .headerDamaged)
        #expect(try restore(path, image) == .none)
        #expect(try Data(contentsOf: header(path)).count == 131_072)
        #expect(opens(path, "one") == nil)
        try FileManager.default.removeItem(at: header(path))
        #expect(opens(path, "one") == .notAVault(path))
        #expect(try restore(path, image) == .none)
        #expect(opens(path, "one") == nil)
        // A copy that cp made of the file is one as well, and either half of it.
        var half = Array(try Data(contentsOf: header(path)))
        half[100] ^= 1
        #expect(try restore(path, half) == .same)
    }

    /// The valid copy in a file that was cut behind it is not touched before the other is whole.
    @Test func `a killed restoring leaves a header`() throws {
        let path = try make("vault")
        let image = try Vault.headerImage(path)
        try Vault.changePassword(path, old: secret("one"), new: secret("uno"), calls: calls)
        let cut = try Data(contentsOf: header(path)).prefix(50_000)
        var ended = false
        var changes = 0
        while !ended {
            try cut.write(to: header(path))
            calls.die(after: changes)
            ended = verdict { _ = try restore(path, image) } == nil
            calls.revive()
            #expect(opens(path, "uno") == nil || opens(path, "one") == nil, "after \(changes) changes")
            changes += 1
        }
        #expect(changes > 6)
        #expect(opens(path, "one") == nil)
    }

    @Test func `the header of another vault is refused, and nothing is touched`() throws {
        let path = try make("vault")
        func refusal(_ image: [UInt8], _ place: String) -> String? {
            if case .foreignHeader(let reason) = verdict({ _ = try restore(place, image) }) { return reason }
            return nil
        }
        let others = try [
            make("same shape"), make("more", spaces: 3), make("larger", bytes: 64 << 20),
            make("growing", spaces: 1),
        ]
        let before = try Data(contentsOf: header(path))
        for other in others {
            #expect(refusal(try Vault.headerImage(other), path) != nil, "\(other)")
            #expect(try Data(contentsOf: header(path)) == before)
        }
        // Without a header there is nothing left that tells vaults of one shape apart.
        let own = try Vault.headerImage(path)
        try FileManager.default.removeItem(at: header(path))
        for other in [others[1], others[3]] {
            #expect(refusal(try Vault.headerImage(other), path) != nil, "\(other)")
            #expect(!FileManager.default.fileExists(atPath: header(path).path))
        }
        #expect(refusal(own, others[3])?.contains("the vault has one") == true)
        #expect(try restore(path, own) == .none)
        let empty = directory.path + "/empty"
        try FileManager.default.createDirectory(atPath: empty, withIntermediateDirectories: false)
        #expect(verdict { _ = try restore(empty, own) } == .notAVault(empty))
        #expect(try FileManager.default.contentsOfDirectory(atPath: empty).isEmpty)
        #expect(verdict { _ = try restore(path, Array(own.prefix(4000))) } == .headerDamaged)
        #expect(verdict { _ = try restore(path, []) } == .headerDamaged)
    }

    @Test func `the header of an open vault is not touched`() throws {
        let path = try make("vault")
        let image = try Vault.headerImage(path)
        let space = try patiently { try Vault.unlock(path, password: secret("one")) }
        #expect(try Vault.headerImage(path).count == 131_072)
        #expect(verdict { _ = try restore(path, image) } == .inUse)
        withExtendedLifetime(space) {}
    }
}
