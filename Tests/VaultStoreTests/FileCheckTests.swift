import Foundation
import TestSupport
import Testing

@testable import VaultStore

/// Faults of a vault's files that show without a password.
@Suite("Damage: files of a vault") struct FileCheckTests {
    let directory = TemporaryDirectory()

    private func path(_ vault: String, _ number: Int) -> String {
        "\(vault)/segments/" + SegmentLayout.name(number)
    }

    private func found(_ vault: String) throws -> [String] {
        try Vault.checkFiles(vault).map { "\($0.file): \($0.cause)" }
    }

    @Test func `a missing or shortened file of all spaces is found`() throws {
        let vault = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        #expect(try found(vault) == [])
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: vault + "/spaces"))
        for size in [5, 12 << 20, 32 << 20 + 1] as [UInt64] {
            try file.truncate(atOffset: size)
            #expect(
                try found(vault) == [
                    "spaces: does not end on a segment boundary: it was truncated, or growing the vault was interrupted"
                ])
        }
        try FileManager.default.removeItem(atPath: vault + "/spaces")
        #expect(try found(vault) == ["spaces: missing"])
    }

    @Test func `missing and shortened segments of one space are found`() throws {
        let vault = try makeVault(directory)
        #expect(try found(vault) == [])
        // Other files beside the segments are ignored.
        try Data().write(to: URL(fileURLWithPath: vault + "/segments/7.seg"))
        try Data().write(to: URL(fileURLWithPath: path(vault, 99_999_999)))
        #expect(try found(vault) == [])
        #expect(truncate(path(vault, 1), 17 << 20) == 0)
        #expect(try found(vault) == ["segments/000001.seg: is longer than a segment"])
        #expect(truncate(path(vault, 1), 16 << 20) == 0)
        try FileManager.default.removeItem(atPath: path(vault, 0))
        #expect(try found(vault) == ["segments: 000000.seg is missing"])
        try FileManager.default.removeItem(atPath: vault + "/segments")
        #expect(try found(vault) == ["segments: missing"])
    }

    @Test func `a missing or damaged header is found`() throws {
        let vault = try makeVault(directory)
        for (offset, copy) in [(UInt64(100), "A"), (65_536 + 100, "B")] {
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: vault + "/obscura.vault"))
            try file.seek(toOffset: offset)
            let byte = try #require(try file.read(upToCount: 1))
            try file.seek(toOffset: offset)
            try file.write(contentsOf: byte.map { $0 ^ 1 })
            #expect(try found(vault) == ["obscura.vault: copy \(copy) is damaged; the other is intact"])
            try file.seek(toOffset: offset)
            try file.write(contentsOf: byte)
        }
    }

    @Test func `a repair ends the file of all spaces with whole segments`() throws {
        let vault = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        let unlocked = try patiently { try Vault.unlock(vault, password: secret("one"), readOnly: true) }
        #expect(truncate(vault + "/spaces", 20 << 20) == 0)
        try unlocked.repairFiles()
        #expect(try found(vault) == [])
        #expect(try Vault.info(vault).segmentsPerSpace == 3)
        try unlocked.repairFiles(segmentCount: 5)
        #expect(try Vault.info(vault).segmentsPerSpace == 5)
    }
}
