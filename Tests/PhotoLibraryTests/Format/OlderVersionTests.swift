import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import CatalogueRows
@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// Libraries with a catalogue of an older version, or of a later one.
@Suite("Format: libraries of other versions") struct OlderVersionTests {
    private static let release = Release(major: 1, minor: 3)

    private static var options: LibraryOptions {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.settleMilliseconds = 1 << 40
        return options
    }

    private func filled(spaces: Int = 2, bytes: UInt64 = 32 << 20) throws -> Fixture {
        let fixture = try Fixture(bytes: bytes, trashDays: 30, spaces: spaces)
        try fixture.mkdir("albums/Trip")
        for number in 0..<5 {
            let photo = jpeg("2024-05-0\(number + 1)", more: number)
            let rest = noise(150_000 * (number % 2), seed: number)
            try fixture.put("albums/Trip/p\(number).jpg", photo + rest)
        }
        try fixture.put("albums/notes", noise(300_000))
        try fixture.library.setExtendedAttribute(
            try fixture.ino("albums/notes"), name: Array("user.a".utf8), value: [1, 2, 3], policy: .any)
        try fixture.rm("moments/2024-05-03/p2.jpg")
        // In place, which leaves a snapshot.
        try edit(fixture)
        // The day without photos is not listed any more.
        try fixture.remount()
        return fixture
    }

    /// The function ends with its handle: an open one keeps the vault locked.
    private func edit(_ fixture: Fixture) throws {
        let handle = try fixture.open("albums/Trip/p1.jpg")
        try fixture.write(handle, [9, 9], at: 140_000)
        try fixture.close(handle)
    }

    /// Runs SQL on the catalogue of a closed library, and publishes it.
    private func change(_ fixture: Fixture, _ sql: [String]) throws {
        let space = try fixture.vault.unlock().openSpace(readOnly: false)
        let database = try Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: false)
        for setting in ["locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "synchronous=OFF"] {
            try database.execute("PRAGMA \(setting)")
        }
        for statement in sql { try database.execute(statement) }
        try space.publish(space.freeze(), durable: true)
        try space.close()
    }

    private func version(_ fixture: Fixture) throws -> Int {
        let space = try fixture.vault.unlock(readOnly: true).openSpace(readOnly: true)
        return try Schema.version(
            of: Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: true))
    }

    private func check(_ fixture: Fixture) throws -> [String] {
        try SpaceCheck.run(fixture.vault.unlock(readOnly: true)).findings.map(\.text)
    }

    /// The bytes of all files of a vault.
    private func contents(_ path: String) throws -> [String: Data] {
        var found: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            found[name] = FileManager.default.contents(atPath: path + "/" + name) ?? Data()
        }
        return found
    }

    private static let older: [[String]] = [
        ["PRAGMA user_version = 1", "DROP TABLE likeness", "DROP TABLE position"],
        [
            "PRAGMA user_version = 2", "DROP TABLE likeness", "DROP TABLE position",
            "DROP INDEX extent_sector",
        ],
        ["PRAGMA user_version = 3", "DROP TABLE likeness", "DROP TABLE position"],
        ["PRAGMA user_version = 4", "DROP TABLE position"],
        [
            "PRAGMA user_version = 1", "DROP TABLE likeness", "DROP TABLE position",
            "DROP INDEX extent_sector",
            "DROP INDEX identity_sector",
        ],
    ]

    @Test(arguments: older, [1, 2])
    func `an older catalogue shows what it showed, then and later`(sql: [String], spaces: Int) throws {
        let fixture = try filled(spaces: spaces)
        let tree = try fixture.snapshot()
        try fixture.close()
        try change(fixture, sql + ["PRAGMA application_id = 0"])
        let (before, old) = (try contents(fixture.vault.path), try version(fixture))
        #expect(try check(fixture) == [])
        try fixture.reopen(auditing: false) { $0.readOnly = true }
        try fixture.expectTree(tree, "reading")
        try fixture.close()
        #expect(try contents(fixture.vault.path) == before)

        // Killed before anything was committed.
        try fixture.reopen(auditing: false)
        fixture.library.abandonUnsaved()
        fixture.closeAnyhow()
        #expect(try [old, Schema.current.version].contains(version(fixture)))
        try fixture.reopen()
        try fixture.expectTree(tree, "writing")
        try fixture.put("albums/new.jpg", jpeg("2023-01-01", more: 77))
        let changed = try fixture.snapshot()
        try fixture.close()
        #expect(try version(fixture) == Schema.current.version)
        #expect(try check(fixture) == [])
        try fixture.reopen()
        try fixture.expectTree(changed, "again")
        try fixture.close()
    }

    @Test func `a later catalogue is refused, and no repair touches it`() throws {
        let fixture = try filled()
        try fixture.close()
        try change(fixture, ["PRAGMA user_version = 9", "PRAGMA application_id = \(1 << 16 | 3)"])
        let before = try contents(fixture.vault.path)
        let newer = VaultError.newer(NewerVersion(.catalogue, version: 9, release: Self.release))
        for readOnly in [true, false] {
            var options = Self.options
            options.readOnly = readOnly
            #expect(throws: newer) {
                _ = try Library.open(fixture.vault.unlock(readOnly: readOnly), options: options)
            }
        }
        #expect(throws: newer) { _ = try check(fixture) }
        #expect(try contents(fixture.vault.path) == before)
        try change(fixture, ["PRAGMA user_version = \(Schema.current.version)"])
        #expect(try check(fixture) == [])
        try fixture.reopen()
        try fixture.close()
    }

    /// A rebuilding would lose what only that record tells.
    @Test func `a salvage refuses later records`() throws {
        let fixture = try filled()
        try fixture.close()
        do {
            let space = try fixture.vault.unlock().openSpace(readOnly: false)
            var record = [UInt8](repeating: 0xEE, count: 100)
            record[0] = 2
            record.withUnsafeMutableBytes { Self.release.encode(into: $0.slice(4, Release.storedBytes)) }
            let runs = try record.withUnsafeBytes {
                try space.write(role: .identity, content: 77, offset: 0, $0, near: nil)
            }
            space.adopt(runs)
            try space.publish(space.freeze(), durable: true)
            try space.close()
        }
        let newer = VaultError.newer(NewerVersion(.record, version: 2, release: Self.release))
        #expect(throws: newer) {
            _ = try Salvage.survey(fixture.vault.unlock(), options: Self.options) { _, _ in }
        }
    }

    @Test func `a space that only a later release may change is shown, checked, and not repaired`() throws {
        let fixture = try filled()
        let tree = try fixture.snapshot()
        try fixture.close()
        do {
            let space = try fixture.vault.unlock().openSpace(readOnly: false)
            var root = space.commits.newest
            (root.format.writing, root.format.release) = (1, Self.release)
            root.generation += 1
            try space.parts.roots.write(root)
        }
        let before = try contents(fixture.vault.path)
        let stop = WriteStop.newer(NewerVersion(.writingFeatures, version: 1, release: Self.release))
        #expect(throws: VaultError.notWritable(stop)) {
            _ = try Library.open(fixture.vault.unlock(), options: Self.options)
        }
        #expect(try check(fixture) == [])
        #expect(throws: VaultError.newer(NewerVersion(.writingFeatures, version: 1, release: Self.release))) {
            let unlocked = try fixture.vault.unlock()
            try SpaceRepair.run(unlocked, SpaceCheck.run(unlocked).plan)
        }
        var options = Self.options
        options.allowsReadOnly = true
        do {
            let library = try Library.open(fixture.vault.unlock(readOnly: true), options: options)
            #expect(library.session.space.isReadOnly && library.session.space.writeStop == stop)
            try library.close()
        }
        try fixture.reopen(auditing: false) { $0.readOnly = true }
        try fixture.expectTree(tree)
        try fixture.close()
        #expect(try contents(fixture.vault.path) == before)
    }

    /// The indexes that a step adds take room that a full space may not have.
    @Test func `an older catalogue in a full space is shown read-only`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        try fixture.mkdir("albums/Trip")
        for number in 0..<1500 { try fixture.put("albums/Trip/\(number)", [1]) }
        let tree = try fixture.snapshot()
        try fixture.close()
        try change(
            fixture,
            [
                "PRAGMA user_version = 1", "DROP TABLE likeness", "DROP TABLE position",
                "DROP INDEX extent_sector",
                "DROP INDEX identity_sector", "VACUUM",
            ])
        // Each session gives back what the one before replaced.
        for _ in 0..<4 {
            // Pages that nothing refers to, behind the database's end.
            let space = try fixture.vault.unlock().openSpace(readOnly: false)
            var page = space.pageCount
            let bytes = noise(Geometry.pageBytes, seed: 1)
            while space.ledger.makesRoom(for: .removal, pages: 1) {
                bytes.withUnsafeBytes { space.stagePage(page, $0) }
                page += 1
            }
            try space.publish(space.freeze(), durable: true)
            try space.close()
        }
        let old = try version(fixture)
        #expect(throws: VaultError.notWritable(.noRoomToUpdate)) {
            _ = try Library.open(fixture.vault.unlock(), options: Self.options)
        }
        var options = Self.options
        options.allowsReadOnly = true
        do {
            let library = try Library.open(fixture.vault.unlock(), options: options)
            #expect(
                library.session.space.isReadOnly
                    && library.session.space.writeStop == WriteStop.noRoomToUpdate)
            try library.close()
        }
        try fixture.reopen(auditing: false) { $0.readOnly = true }
        try fixture.expectTree(tree)
        try fixture.close()
        #expect(try version(fixture) == old)
    }
}
