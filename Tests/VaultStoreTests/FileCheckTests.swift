import Foundation
import Testing

@testable import VaultStore

/// What can be seen to be wrong with a vault's files without a password.
@Suite struct FileCheckTests {
    let directory = TemporaryDirectory()

    private func path(_ vault: String, _ space: Int, _ number: Int) -> String {
        "\(vault)/spaces/\(space)/" + SegmentFiles.name(number)
    }

    private func found(_ vault: String) throws -> [String] {
        try Vault.checkFiles(vault).map { "\($0.file): \($0.cause)" }
    }

    @Test func segmentsOfSeveralSpaces() throws {
        let vault = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        #expect(try found(vault) == [])
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path(vault, 1, 2)))
        try file.truncate(atOffset: 5)
        #expect(
            try found(vault) == [
                "spaces/1/000002.seg: is too short: it was cut, or growing the vault was interrupted"
            ])
        try file.truncate(atOffset: 5 << 20)
        #expect(try found(vault) == ["spaces/1/000002.seg: is longer than a segment"])
        try FileManager.default.removeItem(atPath: path(vault, 1, 2))
        #expect(
            try found(vault) == [
                "spaces/1/000002.seg: is missing: it was lost, or growing the vault was interrupted"
            ])
        try FileManager.default.removeItem(atPath: path(vault, 0, 2))
        #expect(try found(vault) == ["spaces: 000002.seg is missing"])
        // What lies there beside the segments is nobody's business.
        try Data().write(to: URL(fileURLWithPath: vault + "/spaces/0/7.seg"))
        #expect(try found(vault).count == 1)
        try Data().write(to: URL(fileURLWithPath: path(vault, 0, 99_999_999)))
        #expect(try found(vault).count == 1)
    }

    @Test func segmentsOfOneSpace() throws {
        let vault = try makeVault(directory)
        #expect(try found(vault) == [])
        try FileManager.default.removeItem(atPath: path(vault, 0, 0))
        #expect(try found(vault) == ["spaces: 000000.seg is missing"])
    }

    @Test func theHeader() throws {
        let vault = try makeVault(directory)
        for (offset, copy) in [(UInt64(100), "A"), (65_536 + 100, "B")] {
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: vault + "/obscura.vault"))
            try file.seek(toOffset: offset)
            let byte = try #require(try file.read(upToCount: 1))
            try file.seek(toOffset: offset)
            try file.write(contentsOf: byte.map { $0 ^ 1 })
            #expect(try found(vault) == ["obscura.vault: copy \(copy) is damaged; the other serves"])
            try file.seek(toOffset: offset)
            try file.write(contentsOf: byte)
        }
    }

    @Test func aRepairMakesALostSegmentAnew() throws {
        let vault = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        let unlocked = try Vault.unlock(vault, password: secret("one"), readOnly: true)
        try FileManager.default.removeItem(atPath: path(vault, 0, 1))
        try FileManager.default.removeItem(atPath: path(vault, 1, 3))
        try unlocked.repairFiles()
        #expect(try found(vault) == [])
    }
}
