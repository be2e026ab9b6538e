import FileRequests
import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCrypto
import VaultFormat

@testable import CatalogueRows
@testable import VaultCatalogue
@testable import VaultStore

/// Pages in memory that count what is written to them.
private final class MemoryPages: PageStorage, @unchecked Sendable {
    private(set) var pages: [[UInt8]] = []
    private(set) var changes = 0

    var pageCount: UInt32 { UInt32(pages.count) }

    func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        bytes.copyBytes(from: pages[Int(index)])
    }

    func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {
        changes += 1
        while pages.count <= Int(index) { pages.append([UInt8](repeating: 0, count: Geometry.pageBytes)) }
        pages[Int(index)] = Array(bytes)
    }

    func truncatePages(to count: UInt32) {
        changes += 1
        pages = Array(pages.prefix(Int(count)))
    }
}

/// Opens the database without looking at what is in it.
private func database(_ pages: any PageStorage) throws -> Connection {
    let database = try Connection(path: PageVFS.register(pages), vfs: PageVFS.name, readOnly: false)
    for setting in ["locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "synchronous=OFF"] {
        try database.execute("PRAGMA \(setting)")
    }
    return database
}

/// A catalogue of an older version, as it was then.
struct OlderCatalogue: Sendable, CustomTestStringConvertible {
    var version: Int
    /// SQL that takes away what later versions have.
    var without: [String] = []

    static let all = [
        OlderCatalogue(version: 1),
        OlderCatalogue(version: 1, without: ["DROP INDEX extent_sector", "DROP INDEX identity_sector"]),
        OlderCatalogue(version: 1, without: ["DROP INDEX identity_sector"]),
        OlderCatalogue(version: 2),
        OlderCatalogue(version: 2, without: ["DROP INDEX extent_sector", "DROP INDEX identity_sector"]),
        OlderCatalogue(version: 3), OlderCatalogue(version: 4),
    ]

    var testDescription: String { "version \(version) \(without.joined(separator: ", "))" }

    /// Makes one of the newest version one of this version.
    func apply(_ storage: any PageStorage) throws {
        let database = try database(storage)
        for statement in without { try database.execute(statement) }
        if version < 4 { try database.execute("DROP TABLE likeness") }
        if version < 5 { try database.execute("DROP TABLE position") }
        try database.execute("PRAGMA user_version = \(version)")
        try database.execute("PRAGMA application_id = 0")
    }
}

@Suite("Format: older catalogues") struct MigrationTests {
    private static let names = (0..<2000).map { Array("name \($0)".utf8) }

    private static func fill(_ tables: Tables) throws(FileError) {
        for (number, name) in names.enumerated() {
            let id = UInt64(number + 100)
            try tables.dentries.insert(DentryRow(parent: 3, id: id, name: name, ino: id))
            let run = ExtentRun(offset: 0, length: 5, sector: id, generation: 1, epoch: 2)
            try tables.extents.insert(run, of: id)
            var photo = PhotoRow(ino: id, day: 20_240_501)
            photo.rating = Int64(number % 6)
            try tables.photos.store(photo)
        }
    }

    private func filled() throws -> MemoryPages {
        let pages = MemoryPages()
        let catalogue = try Catalogue(storage: pages)
        try catalogue.commitTransaction(before: Self.fill, freeze: {})
        return pages
    }

    private func expectFilled(_ catalogue: Catalogue, location: SourceLocation = #_sourceLocation) throws {
        try catalogue.locked { (tables: Tables) throws in
            for (number, name) in Self.names.enumerated() where number % 97 == 0 {
                let id = UInt64(number + 100)
                #expect(try tables.dentries.entry(3, name)?.ino == id, sourceLocation: location)
                #expect(try tables.extents.runs(of: id).map(\.sector) == [id], sourceLocation: location)
                #expect(try tables.extents.isAnyNamed(id..<id + 1), sourceLocation: location)
            }
            #expect(try tables.checks.integrityErrors().isEmpty, sourceLocation: location)
        }
    }

    private func version(_ pages: any PageStorage) throws -> Int {
        try Schema.version(of: database(pages))
    }

    // MARK: Versions of before

    @Test(arguments: OlderCatalogue.all)
    func `an older catalogue is read as it is, and brought up to date for writing`(
        older: OlderCatalogue
    ) throws {
        let pages = try filled()
        try older.apply(pages)
        let (before, changes) = (pages.pages, pages.changes)
        let read = try Catalogue(storage: pages, readOnly: true)
        #expect(!read.isUpdated)
        try expectFilled(read)
        #expect(pages.pages == before && pages.changes == changes)

        let written = try Catalogue(storage: pages)
        #expect(written.isUpdated)
        try expectFilled(written)
        #expect(try version(pages) == Schema.current.version)
        for readOnly in [true, false] {
            let again = try Catalogue(storage: pages, readOnly: readOnly)
            #expect(!again.isUpdated)
            try expectFilled(again)
        }
    }

    @Test func `pictures of an older catalogue are to be hashed`() throws {
        let pages = try filled()
        try OlderCatalogue(version: 3, without: ["INSERT INTO thumbnail_pending VALUES(100, 101)"]).apply(
            pages)
        let catalogue = try Catalogue(storage: pages)
        try catalogue.locked { (tables: Tables) throws in
            #expect(try tables.counters.current().pictured == 16)
            #expect(try tables.pendingThumbnails.highest() == nil)
            #expect(try tables.likenesses.likeness(of: 100) == nil)
        }
    }

    @Test func `positions of an older catalogue are to be read, and its hashes stay`() throws {
        let pages = try filled()
        let hashed = "INSERT INTO likeness VALUES(1, x'\(String(repeating: "00", count: 511))07')"
        try OlderCatalogue(version: 4, without: ["INSERT INTO thumbnail_pending VALUES(100, 101)", hashed])
            .apply(pages)
        let catalogue = try Catalogue(storage: pages)
        try catalogue.locked { (tables: Tables) throws in
            #expect(try tables.counters.current().pictured == 16)
            #expect(try tables.pendingThumbnails.highest() == nil)
            #expect(try tables.likenesses.likeness(of: 127) == .hash(7 << 56))
            #expect(try tables.positions.position(of: 100) == nil)
        }
    }

    @Test func `an up-to-date catalogue is not written when it is opened`() throws {
        let pages = try filled()
        let changes = pages.changes
        #expect(try version(pages) == Schema.current.version)
        #expect(try !Catalogue(storage: pages).isUpdated)
        #expect(pages.changes == changes)
    }

    @Test(arguments: [
        "CREATE TRIGGER t AFTER UPDATE ON inode BEGIN DELETE FROM photo; END", "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more(a)", "DROP TABLE orphan", "DROP INDEX dentry_name",
        "DROP INDEX extent_sector; CREATE INDEX extent_sector ON extent(length, sector)",
    ])
    func `an older catalogue that was none is damaged, and stays as it is`(sql: String) throws {
        let pages = try filled()
        try OlderCatalogue(version: 1, without: [sql]).apply(pages)
        let before = pages.pages
        for readOnly in [true, false] {
            #expect(throws: CatalogueError.damaged) {
                _ = try Catalogue(storage: pages, readOnly: readOnly)
            }
            #expect(pages.pages == before)
        }
    }

    @Test func `steps follow each other`() {
        let versions = Schema.current.migrations.map(\.version)
        #expect(versions == Array(2..<2 + versions.count))
        for step in Schema.current.migrations { #expect(step.release != .unknown) }
    }

    // MARK: A version to come

    /// As a later release would add a column with an index, and fill it from others.
    private static func next(
        transform: @escaping @Sendable (Connection) throws(FileError) -> Void = {
            (connection: Connection) throws(FileError) in
            try connection.execute("UPDATE photo SET stars = 2 * rating")
        }
    ) -> Schema {
        var next = Schema.current
        let index = "CREATE INDEX photo_stars ON photo(stars, ino) WHERE stars > 0"
        next.statements = next.statements.replacingOccurrences(
            of: "group_id BLOB) STRICT;",
            with: "group_id BLOB, stars INTEGER NOT NULL DEFAULT 0) STRICT;\n\(index);")
        next.migrations.append(
            Migration(
                version: next.version + 1, release: Release(major: 1, minor: 3),
                statements: ["ALTER TABLE photo ADD COLUMN stars INTEGER NOT NULL DEFAULT 0", index],
                transform: transform))
        return next
    }

    private func stars(_ catalogue: Catalogue) throws -> Int64? {
        try catalogue.locked { tables throws(FileError) in
            try tables.connection.prepare("SELECT sum(stars) FROM photo").one { $0.integer(0) }
        }
    }

    private static let sum = Int64((0..<2000).reduce(0) { $0 + 2 * ($1 % 6) })

    @Test(arguments: OlderCatalogue.all + [OlderCatalogue(version: Schema.current.version)])
    func `a reader sees a new column of an older catalogue, and writes nothing`(older: OlderCatalogue) throws
    {
        let pages = try filled()
        try older.apply(pages)
        let (before, changes) = (pages.pages, pages.changes)
        let read = try Catalogue(storage: pages, readOnly: true, Self.next())
        try expectFilled(read)
        #expect(try stars(read) == Self.sum)
        #expect(throws: FileError.self) {
            try read.locked { tables throws(FileError) in try tables.orphans.add(5) }
        }
        #expect(pages.pages == before && pages.changes == changes && !read.isUpdated)

        let written = try Catalogue(storage: pages, readOnly: false, Self.next())
        #expect(written.isUpdated)
        try expectFilled(written)
        #expect(try stars(written) == Self.sum)
        #expect(try version(pages) == Self.next().version)
        #expect(try !Catalogue(storage: pages, readOnly: false, Self.next()).isUpdated)
    }

    @Test func `a later catalogue is refused by its number and its release`() throws {
        let pages = try filled()
        _ = try Catalogue(storage: pages, readOnly: false, Self.next())
        let before = pages.pages
        let newer = NewerVersion(
            .catalogue, version: Self.next().version, release: Release(major: 1, minor: 3))
        for readOnly in [true, false] {
            #expect(throws: CatalogueError.newer(newer)) {
                _ = try Catalogue(storage: pages, readOnly: readOnly)
            }
        }
        #expect(pages.pages == before)
    }

    @Test func `a step that fails changes nothing`() throws {
        let pages = try filled()
        let before = pages.pages
        let next = Self.next { (connection: Connection) throws(FileError) in
            try connection.execute("UPDATE photo SET stars = 1; DELETE FROM dentry")
            throw FileError.noRoom
        }
        for readOnly in [true, false] {
            #expect(throws: CatalogueError.noRoom) {
                _ = try Catalogue(storage: pages, readOnly: readOnly, next)
            }
        }
        #expect(pages.pages == before)
        try expectFilled(Catalogue(storage: pages))
    }

    // MARK: In a space

    private func publish(
        _ space: Space, _ catalogue: Catalogue,
        _ change: (Tables) throws(FileError) -> Void = { (_: Tables) throws(FileError) in }
    ) throws {
        let frozen = try catalogue.commitTransaction(before: change, freeze: { space.freeze() })
        try space.publish(frozen, durable: true)
    }

    private func storedVersion(_ vault: TestVault) throws -> Int {
        let space = try vault.unlock(readOnly: true).openSpace(readOnly: true)
        try expectFilled(Catalogue(storage: space, readOnly: true))
        return try Schema.version(of: database(space))
    }

    /// Makes a space with a catalogue of version 1.
    private func makeOlder(_ vault: TestVault) throws {
        let space = try vault.unlock().openSpace(readOnly: false)
        try publish(space, Catalogue(storage: space), Self.fill)
        try OlderCatalogue(version: 1, without: ["DROP INDEX extent_sector"]).apply(space)
        try space.publish(space.freeze(), durable: true)
        try space.close()
    }

    /// Opens the catalogue for writing, and publishes that; the write or sync of that number fails.
    ///
    /// - Returns: false if there are not so many.
    private func update(_ vault: TestVault, failing number: Int) throws -> Bool {
        defer { vault.calls.failOnce(after: nil) }
        let space = try vault.unlock().openSpace(readOnly: false)
        vault.calls.failOnce(after: number)
        let catalogue = try Catalogue(storage: space)
        #expect(catalogue.isUpdated)
        try? publish(space, catalogue)
        return !vault.calls.isFailureDue
    }

    /// Whatever write or sync fails, the space has its old catalogue or its new one.
    @Test func `a failure leaves the old catalogue or the new one`() throws {
        let vault = try TestVault(spaces: 1)
        try makeOlder(vault)
        #expect(try storedVersion(vault) == 1)
        let whole = vault.path + "-whole"
        try FileManager.default.copyItem(atPath: vault.path, toPath: whole)
        var found: [Int] = []
        for number in 1... {
            for name in ["segments", "obscura.vault"] {
                try FileManager.default.removeItem(atPath: vault.path + "/" + name)
                try FileManager.default.copyItem(atPath: whole + "/" + name, toPath: vault.path + "/" + name)
            }
            let failed = try update(vault, failing: number)
            found.append(try storedVersion(vault))
            if !failed { break }
        }
        #expect(found.count > 5 && Set(found) == [1, Schema.current.version], "\(found)")
        #expect(found.last == Schema.current.version)
    }

    @Test func `an end before the first commit leaves the old catalogue`() throws {
        let vault = try TestVault(spaces: 1)
        try makeOlder(vault)
        do {
            let space = try vault.unlock().openSpace(readOnly: false)
            #expect(try Catalogue(storage: space, readOnly: false, Self.next()).isUpdated)
        }
        #expect(try storedVersion(vault) == 1)
    }
}
