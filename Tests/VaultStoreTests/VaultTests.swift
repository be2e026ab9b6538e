import Foundation
import Glibc
import LinuxIO
import TestSupport
import Testing
import VaultFormat
import VaultStore

@Suite("Passwords: vaults and their spaces") struct VaultTests {
    let directory = TemporaryDirectory()

    func outcome(_ body: () throws -> Void) -> VaultError? {
        do {
            try body()
            return nil
        } catch { return error as? VaultError }
    }

    @Test func `two passwords open two spaces, a third none`() throws {
        let path = try makeVault(directory, spaces: 3, bytes: 16 << 20)
        try patiently { try Vault.addSpace(path, new: secret("two"), surviving: [secret("one")]) }
        do {
            let first = try openSpace(path)
            first.stage(0, 1)
            try first.commit(durable: true)
            try first.close()
        }
        do {
            let second = try openSpace(path, password: "two")
            #expect(second.pageCount == 0)
            second.stage(0, 2)
            try second.commit(durable: true)
            try second.close()
        }
        #expect(try openSpace(path).page(0) == 1)
        #expect(try openSpace(path, password: "two").page(0) == 2)
        #expect(outcome { _ = try openSpace(path, password: "three") } == .noSpaceOpens)
        #expect(outcome { try Vault.addSpace(path, new: secret("two"), surviving: []) } == .passwordTaken)
    }

    @Test func `passwords are changed, and spaces destroyed`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        try patiently { try Vault.changePassword(path, old: secret("one"), new: secret("uno")) }
        #expect(outcome { _ = try openSpace(path) } == .noSpaceOpens)
        _ = try openSpace(path, password: "uno")
        try patiently { try Vault.removeSpace(path, password: secret("uno")) }
        #expect(outcome { _ = try openSpace(path, password: "uno") } == .noSpaceOpens)
        try patiently { try Vault.addSpace(path, new: secret("a"), surviving: []) }
        try Vault.addSpace(path, new: secret("b"), surviving: [secret("a")])
        #expect(
            outcome { try Vault.addSpace(path, new: secret("c"), surviving: [secret("a"), secret("b")]) }
                == .noUnusedSpace)
    }

    @Test func `one mount at a time`() throws {
        let path = try makeVault(directory)
        let space = try patiently { try Vault.unlock(path, password: secret("one")) }
        #expect(outcome { _ = try Vault.unlock(path, password: secret("one")) } == .inUse)
        withExtendedLifetime(space) {}
    }

    @Test func `any copy of the header serves and repairs the other`() throws {
        let path = try makeVault(directory)
        let header = path + "/obscura.vault"
        let whole = try Data(contentsOf: URL(fileURLWithPath: header))
        #expect(whole.count == 131_072)
        #expect(whole[0..<4096] == whole[65_536..<69_632])
        for offset in [10, 70, 4080, 65_536 + 10, 65_536 + 70] {
            var damaged = whole
            damaged[offset] ^= 1
            try damaged.write(to: URL(fileURLWithPath: header))
            _ = try openSpace(path)
            #expect(try Data(contentsOf: URL(fileURLWithPath: header)) == whole)
        }
        var damaged = whole
        damaged[100] ^= 1
        damaged[65_636] ^= 1
        try damaged.write(to: URL(fileURLWithPath: header))
        #expect(outcome { _ = try openSpace(path) } == .headerDamaged)
        #expect(outcome { _ = try openSpace(path, password: "wrong") } == .headerDamaged)
    }

    @Test func `every segment is full and alike`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 20 << 20)
        let info = try Vault.info(path)
        #expect(info.segmentsPerSpace == 5 && info.segmentBytes == 4 << 20 && !info.grows)
        try Vault.grow(path, bytesPerSpace: 24 << 20) { _, _ in }
        for space in 0..<2 {
            for number in 0..<6 {
                let bytes = try SegmentFile(path, space: space, number).read()
                #expect(bytes.count == 4 << 20)
                var counts = [Int](repeating: 0, count: 256)
                for byte in bytes { counts[Int(byte)] += 1 }
                let expected = Double(bytes.count) / 256
                let chiSquare = counts.reduce(0) {
                    $0 + (Double($1) - expected) * (Double($1) - expected) / expected
                }
                #expect(chiSquare < 400)
            }
        }
    }

    @Test func `an interrupted grow is completed by the next mount or grow`() throws {
        let path = try makeVault(directory, spaces: 3, bytes: 16 << 20)
        let file = path + "/spaces"
        let row = off_t(3 * 4 << 20)
        #expect(truncate(file, 4 * row + 1000) == 0)
        #expect(try Vault.info(path).segmentsPerSpace == 4)
        _ = try openSpace(path)
        let info = try Vault.info(path)
        #expect(info.segmentsPerSpace == 5)
        #expect(info.bytesOnDisk == 131_072 + 15 * 4 << 20)
        #expect(truncate(file, 6 * row - 1) == 0)
        try Vault.grow(path, bytesPerSpace: 28 << 20) { _, _ in }
        #expect(try Vault.info(path).segmentsPerSpace == 7)
        // The same command again is done at once.
        try Vault.grow(path, bytesPerSpace: 28 << 20) { _, _ in }
        #expect(try Vault.info(path).segmentsPerSpace == 7)
        #expect(throws: VaultError.self) { try Vault.grow(path, bytesPerSpace: 24 << 20) { _, _ in } }
    }

    @Test(arguments: [1, 3]) func `a create that is ended anywhere leaves nothing`(spaces: Int) throws {
        let root = URL(fileURLWithPath: directory.path)
        for isThere in [false, true] {
            let path = directory.path + "/ended"
            if isThere { #expect(mkdir(path, 0o755) == 0) }
            var calls = 0
            var endAt = 0
            while true {
                calls = 0
                let outcome = outcome {
                    try Vault.create(
                        at: path, spaces: spaces, bytesPerSpace: spaces == 1 ? nil : 16 << 20, kdf: quickKDF,
                        password: secret("x"), coverBytes: 0
                    ) { (_, _) throws(VaultError) in
                        calls += 1
                        if calls > endAt { throw .interrupted }
                    }
                }
                if outcome == nil { break }
                #expect(outcome == .interrupted)
                let left = try FileManager.default.subpathsOfDirectory(atPath: root.path)
                #expect(left == (isThere ? ["ended"] : []))
                // Early, in the middle, and each of the last steps.
                endAt = endAt == 0 && spaces > 1 ? 45 : endAt + 1
            }
            #expect(calls == endAt)
            try FileManager.default.removeItem(atPath: path)
        }
    }

    @Test func `create refuses a directory that is there, and leaves nothing behind`() throws {
        let path = directory.path + "/full"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try Data([1]).write(to: URL(fileURLWithPath: path + "/photo.jpg"))
        #expect(
            outcome {
                try Vault.create(
                    at: path, spaces: 1, bytesPerSpace: nil, kdf: quickKDF, password: secret("x")
                ) { _, _ in }
            } == .notEmpty(path))
        #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["photo.jpg"])
        let huge = directory.path + "/huge"
        #expect(
            outcome {
                try Vault.create(
                    at: huge, spaces: 2, bytesPerSpace: 1 << 50, kdf: quickKDF, password: secret("x")
                ) { _, _ in }
            } == .noRoom)
        #expect(!FileManager.default.fileExists(atPath: huge))
        #expect(outcome { _ = try Vault.info(huge) } == .notAVault(huge))
    }
}
