import LibraryFixtures
import LinuxIO
import TestSupport
import VaultFormat

@testable import VaultCatalogue
@testable import VaultStore

/// Changes rows of a space's catalogue at random: numbers, names, whole rows, with their indexes or behind their backs;
/// and the bits of its sectors. `edits` has its changes.
struct RowEditor {
    private let space: Space
    private var random: RandomSource
    private(set) var edits: [String] = []

    private struct Table {
        var name: String
        /// Name and whether it is a number.
        var columns: [(name: String, isNumber: Bool)]
        var keys: [String]
    }
    private let tables: [Table]

    init(_ space: Space, _ random: RandomSource) throws {
        (self.space, self.random) = (space, random)
        let memory = try Connection(path: ":memory:", vfs: nil, readOnly: false)
        try Schema.current.prepare(memory, .writing)
        let names = try memory.prepare("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name").all
        {
            String(decoding: $0.bytes(0), as: UTF8.self)
        }
        tables = try names.map { name in
            let columns = try memory.prepare("SELECT name, type, pk FROM pragma_table_info('\(name)')").all {
                (
                    String(decoding: $0.bytes(0), as: UTF8.self), $0.bytes(1) == Array("INTEGER".utf8),
                    $0.integer(2)
                )
            }
            return Table(
                name: name, columns: columns.map { ($0.0, $0.1) },
                keys: columns.filter { $0.2 > 0 }.map(\.0))
        }
    }

    /// Makes so many changes, and publishes them.
    mutating func run(_ count: Int) throws {
        var left = count
        while left > 0 {
            let kind = Int.random(in: 0..<20, using: &random)
            // A change that earlier ones have made impossible is left out.
            do {
                switch kind {
                case 0: editBits()
                case 1: try editPage()
                case 2, 3: try withoutIndexes { editor, database in try editor.editRow(database) }
                default: try withDatabase { editor, database in try editor.editRow(database) }
                }
            } catch { edits.append("refused: \(error)") }
            left -= 1
        }
        try space.publish(space.freeze(), durable: true)
        try space.close()
    }

    // MARK: Rows

    private mutating func withDatabase(
        _ body: (inout RowEditor, Connection) throws -> Void
    ) throws {
        let database = try Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: false)
        for setting in [
            "locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "synchronous=OFF", "temp_store=MEMORY",
        ] {
            try database.execute("PRAGMA \(setting)")
        }
        try body(&self, database)
    }

    /// Changes meanwhile do not reach the indexes.
    private mutating func withoutIndexes(
        _ body: (inout RowEditor, Connection) throws -> Void
    ) throws {
        edits.append("without indexes:")
        try withDatabase { editor, database in
            let indexes = try database.prepare(
                "SELECT name, tbl_name, rootpage, sql FROM sqlite_schema WHERE type='index' AND sql IS NOT NULL"
            ).all { row in
                (0..<4).map {
                    $0 == 2 ? "\(row.integer($0))" : "'\(String(decoding: row.bytes($0), as: UTF8.self))'"
                }
            }
            try database.execute("PRAGMA writable_schema=ON")
            try database.execute("DELETE FROM sqlite_schema WHERE type='index' AND sql IS NOT NULL")
            try database.execute("PRAGMA writable_schema=RESET")
            try body(&editor, database)
            try database.execute("PRAGMA writable_schema=ON")
            for index in indexes {
                try database.execute(
                    "INSERT INTO sqlite_schema VALUES('index', \(index[0]), \(index[1]), \(index[2]), \(index[3]))"
                )
            }
            try database.execute("PRAGMA writable_schema=RESET")
        }
    }

    /// Changes one row, or many, unless SQLite refuses.
    private mutating func editRow(_ database: Connection) throws {
        guard let table = try tableWithRows(database), let row = try randomRow(database, table) else {
            return
        }
        let statement: String
        switch Int.random(in: 0..<24, using: &random) {
        case 0: statement = "DELETE FROM \(table.name) WHERE \(row)"
        case 1:
            // The same again under another key.
            let changed = table.keys.randomElement(using: &random) ?? table.columns[0].name
            let values = try table.columns.map { column in
                column.name == changed ? try value(of: column.name, table, database) : column.name
            }
            statement =
                "INSERT OR REPLACE INTO \(table.name) SELECT \(values.joined(separator: ", ")) "
                + "FROM \(table.name) WHERE \(row)"
        case 2:
            let column = table.columns.randomElement(using: &random) ?? table.columns[0]
            statement =
                "UPDATE OR REPLACE \(table.name) SET \(column.name) = "
                + "\(try value(of: column.name, table, database)) WHERE \(table.columns[0].name) % 2 = 0"
        case 3:
            let other = try randomRow(database, table) ?? row
            let column = table.columns.randomElement(using: &random)?.name ?? table.columns[0].name
            statement =
                "UPDATE OR REPLACE \(table.name) SET \(column) = "
                + "(SELECT \(column) FROM \(table.name) WHERE \(other)) WHERE \(row)"
        default:
            let column = table.columns.randomElement(using: &random)?.name ?? table.columns[0].name
            statement =
                "UPDATE OR REPLACE \(table.name) SET \(column) = \(try value(of: column, table, database)) "
                + "WHERE \(row)"
        }
        edits.append(statement)
        try? database.execute(statement)
    }

    /// A table, those that matter more often than the others.
    private mutating func tableWithRows(_ database: Connection) throws -> Table? {
        let weights = ["inode": 4, "dentry": 4, "extent": 5, "photo": 2, "identity": 2, "trash_name": 2]
        let choices = tables.flatMap { table in [Table](repeating: table, count: weights[table.name] ?? 1) }
        return choices.randomElement(using: &random)
    }

    /// The condition that a row alone fulfils.
    private mutating func randomRow(_ database: Connection, _ table: Table) throws -> String? {
        let count = try database.prepare("SELECT count(*) FROM \(table.name)").one { Int($0.integer(0)) } ?? 0
        guard count > 0 else { return nil }
        let place = Int.random(in: 0..<count, using: &random)
        let keys = table.keys.map { "quote(\($0))" }.joined(separator: ", ")
        let found = try? database.prepare("SELECT \(keys) FROM \(table.name) LIMIT 1 OFFSET \(place)").one {
            row in
            table.keys.indices.map { String(decoding: row.bytes(Int32($0)), as: UTF8.self) }
        }
        guard let values = found ?? nil else { return nil }
        return zip(table.keys, values).map { "\($0) = \($1)" }.joined(separator: " AND ")
    }

    private static let numbers: [Int64] = [
        0, 1, -1, 2, 3, 7, 15, 16, 255, 256, 511, 65_536, 131_071, 131_072, 131_073, 1 << 31, 1 << 32,
        1 << 40,
        1 << 53 + 1, 1 << 60, 1 << 61, 1 << 62 - 1, 1 << 62, Int64.max, Int64.max - 1, Int64.min,
        Int64.min + 1, -512,
        16_877, 33_188, 41_471, 20_240_501, 99_999_999,
    ]
    private static let texts = [
        "x''", "x'2f'", "x'2e'", "x'2e2e'", "x'612f62'", "x'6100'", "zeroblob(256)", "zeroblob(300)",
        "zeroblob(70000)", "zeroblob(140000)", "x'ff'", "x'2e746875'", "CAST('p1.jpg' AS BLOB)",
        "CAST('2024-05-02' AS BLOB)", "CAST('albums' AS BLOB)", "CAST('user.b' AS BLOB)", "randomblob(255)",
        "CAST('.Trash-0' AS BLOB)",
    ]

    /// Something for a column, as SQL.
    private mutating func value(of column: String, _ table: Table, _ database: Connection) throws -> String {
        let isNumber = table.columns.first { $0.name == column }?.isNumber ?? true
        let place = Int.random(in: 0..<20, using: &random)
        let same = "(SELECT \(column) FROM \(table.name) ORDER BY \(column) LIMIT 1 OFFSET \(place))"
        guard isNumber else {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: return "coalesce(\(same), x'')"
            case 1: return "CAST(substr(\(column), 1, \(Int.random(in: 0..<8, using: &random))) AS BLOB)"
            // Not `randomblob`: it would be something else each time.
            default:
                let text = Self.texts.randomElement(using: &random) ?? "x''"
                return text == "randomblob(255)"
                    ? "CAST(replace(hex(zeroblob(127)), '0', 'x') || 'é' AS BLOB)" : text
            }
        }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return "\(column) + \(Int.random(in: -600...600, using: &random))"
        case 1: return "\(column) + 1"
        case 2: return "\(column) * 2"
        case 3: return "coalesce(\(same), 0)"
        case 4:
            // A number of another table.
            let other =
                [
                    "inode.ino", "extent.content", "extent.sector", "dentry.id", "extent.offset",
                    "identity.sector",
                ]
                .randomElement(using: &random) ?? "inode.ino"
            let parts = other.split(separator: ".")
            let place = Int.random(in: 0..<20, using: &random)
            return "coalesce((SELECT \(parts[1]) FROM \(parts[0]) LIMIT 1 OFFSET \(place)), 0)"
        case 5:
            return "\(Int64(truncatingIfNeeded: random.next() >> UInt64.random(in: 0..<60, using: &random)))"
        default: return "\(Self.numbers.randomElement(using: &random) ?? 0)"
        }
    }

    // MARK: Below SQL

    /// Changes bits and counts of a segment that something lies in, or lets a delta give back sectors in use.
    private mutating func editBits() {
        let segment = Int.random(in: 2..<max(3, space.segments.count), using: &random)
        let first = Int.random(in: 0..<space.sectors.perSegment - 600, using: &random)
        let count = Int.random(in: 1..<600, using: &random)
        let kind = Int.random(in: 0..<3, using: &random)
        edits.append("bits \(kind): segment \(segment), sectors \(first)+\(count)")
        space.parts.lock.withLock {
            let allocator = space.sectors.allocator
            guard segment < allocator.segmentCount, var row = try? allocator.usedRow(of: segment)
            else { return }
            // Where something is, more often than not.
            let start = random.next() % 2 == 0 ? 0 : first
            switch kind {
            case 0: for index in start..<start + count where row[index] { row.clear(index..<index + 1) }
            case 1: for index in start..<start + count where !row[index] { row.set(index..<index + 1) }
            default:
                let sector = UInt64(segment * space.sectors.perSegment + start)
                space.parts.freed.noteFreed(sector, count)
            }
            allocator.replace(segment, with: row)
            space.parts.next.noteChange()
        }
    }

    /// Changes a value of a row where it is stored, so that nothing else agrees with it.
    private mutating func editPage() throws {
        let index = UInt32.random(in: 1..<max(2, space.pageCount), using: &random)
        var page = [UInt8](repeating: 0, count: Geometry.pageBytes)
        guard index < space.pageCount else { return }
        try page.withUnsafeMutableBytes { try space.readPage(index, into: $0) }
        guard page[0] == 10 || page[0] == 13 else { return }
        let count = Int(page[3]) << 8 | Int(page[4])
        guard count > 0 else { return }
        let cell = Int.random(in: 0..<count, using: &random)
        let start = Int(page[8 + 2 * cell]) << 8 | Int(page[9 + 2 * cell])
        let usableBytes = Geometry.pageBytes - Catalogue.reservedBytesPerPage
        guard start > 8, start < usableBytes else { return }
        var rest = page[start..<usableBytes]
        // The payload's length, in tables the row's number, then the header, which begins with its own length.
        guard Self.variable(&rest) != nil, page[0] == 10 || Self.variable(&rest) != nil else { return }
        let header = rest.startIndex
        guard let length = Self.variable(&rest), length > 1, length < 200 else { return }
        // A type, or a byte of the values behind them.
        let place =
            random.next() % 3 == 0
            ? header + 1 + Int(random.next() % UInt64(length - 1))
            : header + Int(length) + Int(random.next() % 40)
        guard place < usableBytes else { return }
        let byte = UInt8(truncatingIfNeeded: random.next())
        edits.append("page \(index), cell \(cell), byte \(place): \(page[place]) becomes \(byte)")
        page[place] = byte
        page.withUnsafeBytes { space.stagePage(index, $0) }
    }

    /// SQLite's number of one to nine bytes (sqlite.org/fileformat2.html, *varint*), taken from the front of `bytes`.
    private static func variable(_ bytes: inout ArraySlice<UInt8>) -> Int64? {
        var value: UInt64 = 0
        for count in 1...9 {
            guard let byte = bytes.popFirst() else { return nil }
            if count == 9 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
            value = value << 7 | UInt64(byte & 0x7F)
            if byte & 0x80 == 0 { break }
        }
        return Int64(bitPattern: value)
    }
}
