import CatalogueRows
import FileRequests
import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCatalogue
import VaultCrypto
import VaultStore

/// SQLite in the pages of a real space.
@Suite("Crashes: the catalogue in a space") struct CatalogueOnSpaceTests {
    let path: String

    init() throws {
        path = "/tmp/obscura-test-" + UUID().uuidString
        try Vault.create(
            at: path, spaces: 2, bytesPerSpace: 32 << 20, kdf: .init(memoryBytes: 8 << 20, passes: 1),
            password: Self.password, coverBytes: 0
        ) { _, _ in }
    }

    static var password: SecretBytes { Array("one".utf8).withUnsafeBytes { SecretBytes(copying: $0) } }

    func open() throws -> (Space, Catalogue) {
        let space = try patiently {
            try Vault.unlock(path, password: Self.password).openSpace(readOnly: false)
        }
        return (space, try Catalogue(storage: space))
    }

    func commit(_ space: Space, _ catalogue: Catalogue, durable: Bool) throws {
        let frozen = try catalogue.commitTransaction(
            before: { (_: Tables) throws(FileError) in }, freeze: { space.freeze() })
        try space.publish(frozen, durable: durable)
    }

    @Test func `names come back, and uncommitted ones do not`() throws {
        defer { try? FileManager.default.removeItem(atPath: path) }
        for round in 0..<5 {
            let (space, catalogue) = try open()
            for other in 0..<round {
                let found = try catalogue.locked { (tables: Tables) throws(FileError) in
                    try tables.dentries.entry(3, Array("name-\(other)-1999".utf8))
                }
                #expect(found?.ino == UInt64(other * 10_000 + 1999 + 100))
                let lost = try catalogue.locked { (tables: Tables) throws(FileError) in
                    try tables.dentries.entry(3, Array("lost-\(other)".utf8))
                }
                #expect(lost == nil)
            }
            for number in 0..<2000 {
                try catalogue.locked { (tables: Tables) throws(FileError) in
                    try tables.dentries.insert(
                        DentryRow(
                            parent: 3, id: UInt64(round * 10_000 + number + 100),
                            name: Array("name-\(round)-\(number)".utf8),
                            ino: UInt64(round * 10_000 + number + 100)))
                }
                if number % 500 == 0 { try commit(space, catalogue, durable: number % 1000 == 0) }
            }
            try commit(space, catalogue, durable: round % 2 == 0)
            try catalogue.locked { (tables: Tables) throws(FileError) in
                try tables.dentries.insert(
                    DentryRow(parent: 3, id: 9_000_000, name: Array("lost-\(round)".utf8), ino: 9))
            }
        }
    }
}
