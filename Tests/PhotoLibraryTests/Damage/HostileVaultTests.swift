import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// Vaults made by somebody who knows the password and the format, and means harm: every structure is authentic and
/// has impossible values. All work on one ends, with an error or without; a crash would end the tests.
@Suite("Damage: rows by a hostile author", .serialized) struct HostileVaultTests {
    /// A vault with one of everything, and the means to restore it.
    private final class Target {
        let fixture: Fixture
        private let space: Int
        private let segments: [(file: SegmentFile, bytes: Data)]
        private let header: (path: String, bytes: Data)

        init() throws {
            let fixture = try Fixture(bytes: 16 << 20, trashDays: 30)
            self.fixture = fixture
            try fixture.mkdir("albums/Trip")
            try fixture.mkdir("albums/Trip/Day 2")
            for number in 0..<4 {
                try fixture.put("albums/Trip/p\(number).jpg", jpeg("2024-05-0\(number + 1)", more: number))
            }
            try fixture.put("albums/Trip/Day 2/copy.jpg", jpeg("2024-05-01", more: 0))
            try fixture.ln("moments/2024-05-02/p1.jpg", "albums/member.jpg")
            try fixture.put("albums/notes", noise(400_000))
            try fixture.ln("albums/notes", "albums/link")
            try fixture.put("albums/Trip/p0.jpg.xmp", xmp("2024-05-01"))
            _ = try fixture.library.makeSymbolicLink(
                3, "symlink", target: Array("notes".utf8), fixture.caller)
            try fixture.library.setExtendedAttribute(
                try fixture.ino("albums/notes"), name: Array("user.a".utf8), value: [1, 2, 3], policy: .any)
            try fixture.rm("moments/2024-05-03/p2.jpg")
            _ = try fixture.get("albums/Trip/.thumbs/p0.jpg")
            space = try #require(fixture.library.unlocked).index
            try fixture.close()
            segments = try (0..<Vault.info(fixture.vault.path).segmentsPerSpace).map { [fixture, space] in
                let file = try SegmentFile(fixture.vault.path, space: space, $0)
                return (file, try file.read())
            }
            let path = fixture.vault.path + "/obscura.vault"
            header = (path, try Data(contentsOf: URL(fileURLWithPath: path)))
        }

        /// Puts the vault back as it was made.
        func reset() throws {
            for segment in segments { try segment.file.write(segment.bytes) }
        }

        /// Makes the vault's lock free: a library that could not be closed in order may be kept by its open files.
        private func unlock() throws {
            try header.bytes.write(to: URL(fileURLWithPath: header.path), options: .atomic)
        }

        /// Lets `body` change the space, and publishes that.
        func forge(_ body: (Space) throws -> Void) throws {
            try unlock()
            let space = try fixture.vault.unlock().openSpace(readOnly: false)
            try body(space)
            try space.publish(space.freeze(), durable: true)
            try space.close()
        }

        /// Runs SQL on the catalogue, unless it refuses.
        func forge(sql: String) throws {
            try forge { space in
                let database = try Connection(
                    path: PageVFS.register(space), vfs: PageVFS.name, readOnly: false)
                for setting in ["locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "synchronous=OFF"] {
                    try database.execute("PRAGMA \(setting)")
                }
                try? database.execute(sql)
            }
        }

        /// Mounts, uses everything, unmounts, twice.
        func use() throws {
            for _ in 0..<2 {
                try unlock()
                do { try fixture.reopen(auditing: false) } catch { return }
                walk("", depth: 0)
                change()
                fixture.closeAnyhow()
            }
            check()
        }

        /// Checks, repairs and checks.
        private func check() {
            do {
                try unlock()
                let unlocked = try fixture.vault.unlock()
                let report = try SpaceCheck.run(unlocked)
                if !report.plan.mustSalvage { try SpaceRepair.run(unlocked, report.plan) }
                _ = try SpaceCheck.run(unlocked)
            } catch {
                // An error is expected.
            }
        }

        private func walk(_ path: String, depth: Int) {
            guard depth < 6 else { return }
            let library = fixture.library
            for entry in ((try? fixture.list(path)) ?? []).prefix(40) {
                let place = path.isEmpty ? entry.name.description : "\(path)/\(entry.name)"
                guard let found = try? fixture.stat(place) else { continue }
                for name in (try? library.listExtendedAttributes(found.ino)) ?? [] {
                    _ = try? library.getExtendedAttribute(found.ino, name: name)
                }
                for name in ["captured", "camera", "latitude"] { _ = try? fixture.own(name, place) }
                _ = try? library.readLink(found.ino)
                if found.isDirectory {
                    for name in [
                        ".thumbs", ".thumbs/stack.jpg", ".thumbs/sheet.jpg", ".sh_thumbnails/normal",
                    ] {
                        _ = try? fixture.stat("\(place)/\(name)")
                        _ = try? fixture.ls("\(place)/\(name)")
                    }
                    walk(place, depth: depth + 1)
                } else if let handle = try? fixture.open(place, O_RDONLY) {
                    for offset in [0, 131_000, found.size / 2, found.size &- 10, UInt64(Int64.max) - 5] {
                        _ = try? fixture.read(handle, 5000, at: offset)
                    }
                    library.release(handle)
                    _ = try? fixture.get("\(path)/.thumbs/\(entry.name)")
                    _ = try? fixture.get("\(path)/.thumbs/64/\(entry.name)")
                }
            }
            _ = library.statistics()
            _ = try? library.walk.photoCount()
        }

        private func change() {
            _ = try? fixture.put("albums/Trip/new.jpg", jpeg("2024-05-01", more: 9))
            _ = try? fixture.put("albums/Trip/equal.jpg", jpeg("2024-05-02", more: 1))
            for place in ["albums/notes", "albums/Trip/p0.jpg", "moments/2024-05-02/p1.jpg"] {
                guard let handle = try? fixture.open(place) else { continue }
                _ = try? fixture.write(handle, [1, 2, 3], at: 200_000)
                _ = try? fixture.write(handle, [1, 2, 3], at: (try? fixture.stat(place).size) ?? 0)
                _ = try? fixture.close(handle)
                _ = try? fixture.truncate(place, 1000)
                _ = try? fixture.utimes(place, modified: 5)
            }
            _ = try? fixture.mv("albums/Trip", "albums/Other")
            _ = try? fixture.mv("albums/Other/Day 2", "albums/Day")
            _ = try? fixture.mv("moments/2024-05-01", "moments/2023-05-01")
            _ = try? fixture.mv("albums/link", "albums/notes2")
            let trash = (try? fixture.ls(".Trash-0/files")) ?? []
            for name in trash { _ = try? fixture.mv(".Trash-0/files/\(name)", "albums/back \(name)") }
            for place in [
                "albums/Day", "albums/Other", "moments/2023-05-01", "moments/2024-05-02", ".Trash-0",
            ] {
                remove(place, depth: 0)
            }
        }

        /// As `rm -rf`, which the kernel keeps from going round in directories that lie in each other.
        private func remove(_ path: String, depth: Int) {
            guard depth < 4 else { return }
            for entry in ((try? fixture.list(path)) ?? []).prefix(40) {
                let place = "\(path)/\(entry.name)"
                if (try? fixture.rm(place)) == nil { remove(place, depth: depth + 1) }
            }
            try? fixture.rmdir(path)
        }
    }

    /// Values that a row should not hold.
    private static let numbers = [
        "0", "1", "-1", "7", "4294967296", "9007199254740993", "4611686018427387903", "9223372036854775807",
        "-9223372036854775808",
    ]
    private static let blobs = [
        "x''", "x'2f'", "x'2e2e'", "x'612f62'", "x'6100'", "zeroblob(300)", "zeroblob(70000)",
        "zeroblob(140000)", "x'ff'", "x'2e746875'",
    ]

    /// Every column of every table, with each of the values, in all rows and in one: as SQL.
    private static func changes() throws -> [String] {
        let memory = try Connection(path: ":memory:", vfs: nil, readOnly: false)
        try Schema.current.prepare(memory, .writing)
        let tables = try memory.prepare("SELECT name FROM sqlite_schema WHERE type='table'").all {
            String(decoding: $0.bytes(0), as: UTF8.self)
        }
        var changes: [String] = []
        for table in tables {
            let columns = try memory.prepare("SELECT name, type FROM pragma_table_info('\(table)')").all {
                (String(decoding: $0.bytes(0), as: UTF8.self), String(decoding: $0.bytes(1), as: UTF8.self))
            }
            changes.append("DELETE FROM \(table)")
            let first = columns[0].0
            changes.append("DELETE FROM \(table) WHERE \(first) % 2 = 0")
            for (column, type) in columns {
                for value in type == "BLOB" ? blobs : numbers + ["(SELECT max(\(column)) FROM \(table))"] {
                    changes.append("UPDATE OR REPLACE \(table) SET \(column) = \(value)")
                    for remainder in 0..<3 {
                        changes.append(
                            "UPDATE OR REPLACE \(table) SET \(column) = \(value) WHERE \(first) % 3 = \(remainder)"
                        )
                    }
                }
            }
        }
        return changes
    }

    /// With `OBSCURA_HOSTILE`, as `scripts/fuzz vault` sets it, all of them from that number on, with the one at work
    /// on standard error; else some.
    private static let first = ProcessInfo.processInfo.environment["OBSCURA_HOSTILE"].flatMap { Int($0) }

    private func tell(_ text: String) {
        if Self.first != nil { FileHandle.standardError.write(Data("hostile: \(text)\n".utf8)) }
    }

    @Test func `rows of invalid values`() throws {
        let seed: UInt64 = 1
        var generator = RandomSource(seed)
        let all = try Self.changes()
        let chosen =
            Self.first.map { Array(all.dropFirst($0)) } ?? Array(all.shuffled(using: &generator).prefix(20))
        let target = try Target()
        for (number, change) in chosen.enumerated() {
            tell("\(number + (Self.first ?? 0)) of \(all.count): \(change)")
            try target.reset()
            try target.forge(sql: change)
            try target.use()
        }
        #expect(all.count > 1000, "seed \(seed)")
    }

    /// Where every directory is said to lie in the same one, no way up ends.
    @Test func `directories in each other`() throws {
        let target = try Target()
        for change in [
            "(SELECT max(parent) FROM inode)", "ino", "(SELECT max(ino) FROM inode WHERE mode & 16384)",
        ] {
            try target.reset()
            try target.forge(sql: "UPDATE inode SET parent = \(change)")
            try target.use()
        }
    }

    /// Runs of one file over each other, out of order, or longer than any segment.
    @Test func `runs that no file has`() throws {
        let target = try Target()
        for change in [
            "offset = 0, sector = sector", "offset = 131072 * (content % 3)", "length = 400000",
            "length = 1 << 60",
            "offset = (1 << 62) - 5", "sector = 8191", "sector = sector + 1",
            "length = 131072, offset = 65536",
        ] {
            try target.reset()
            try target.forge(sql: "UPDATE OR REPLACE extent SET \(change)")
            try target.use()
            try target.reset()
            try target.forge(
                sql:
                    "INSERT OR REPLACE INTO extent SELECT content, offset + 131072, 300000, sector, 1, 1 FROM extent;"
                    + "UPDATE OR REPLACE extent SET \(change) WHERE content % 2 = 0")
            try target.use()
        }
    }

    /// The sum of their sizes is more than 63 bits hold. None can be larger.
    @Test func `photos of an exbibyte`() throws {
        let fixture = try Fixture()
        for number in 1...9 {
            let path = "albums/p\(number).jpg"
            try fixture.put(path, jpeg("2024-05-0\(number)", more: number))
            try fixture.truncate(path, Geometry.fileBytesMax)
            expectError(.fileTooBig) { try fixture.truncate(path, Geometry.fileBytesMax + 1) }
        }
        #expect(try fixture.ls("moments").count == 9)
        try fixture.close()
        try fixture.reopen()
        try fixture.rm("moments/2024-05-01/p1.jpg")
        try fixture.close()
        #expect(try SpaceCheck.run(fixture.vault.unlock()).findings == [])
    }

    @Test func `a schema that is not ours`() throws {
        let target = try Target()
        for sql in [
            "CREATE TRIGGER t AFTER UPDATE ON inode BEGIN DELETE FROM photo; END", "DROP TABLE photo",
            "CREATE TABLE more(a)", "DROP INDEX dentry_name", "PRAGMA user_version = 9",
            "CREATE VIEW v AS SELECT 1",
        ] {
            try target.reset()
            try target.forge(sql: sql)
            #expect(throws: CatalogueError.self, "\(sql)") { try target.fixture.reopen(auditing: false) }
        }
        try target.reset()
        try target.fixture.reopen()
        try target.fixture.close()
    }
}
