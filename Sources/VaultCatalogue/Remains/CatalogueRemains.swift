public import VaultStore

/// What can still be read of a catalogue of which pages are lost: its rows, in a catalogue in memory, and which rows
/// may be missing there.
///
/// Indexes are those of the rows that were found. Rows of pictures are left out, which are made anew, and what can be
/// counted.
public final class CatalogueRemains {
    /// A table whose rows are kept.
    public enum Table: String, CaseIterable, Sendable {
        case inode, dentry, extent, symlink, xattr, photo, copy, trash, identity, unrecorded, orphan, dead
        case counter
        case classificationPending = "classification_pending"
        case trashName = "trash_name"
    }

    /// The rows; nobody else uses it.
    public let catalogue: Catalogue
    /// Pages of the catalogue, and those of them that are known to be lost.
    public let pageCount: Int
    public private(set) var lostPages = 0
    private var lost: [Table: [ClosedRange<Int64>]] = [:]

    /// Pages of the catalogue in memory: with a larger one the records have to do.
    private static let pagesMax = (384 << 20) / Catalogue.pageBytes

    /// Reads all that can be read; nil where that is no row of a file.
    public init?(_ storage: any PageStorage) {
        pageCount = Int(storage.pageCount)
        guard pageCount > 0,
            let catalogue = try? Catalogue(path: ":memory:", pageCount: { UInt32(Self.pagesMax) })
        else { return nil }
        self.catalogue = catalogue
        let isFilled = try? catalogue.locked { tables throws(CatalogueError) in
            try tables.connection.execute("PRAGMA max_page_count=\(Self.pagesMax)")
            try fill(tables.connection, storage)
            return try tables.connection.prepare("SELECT 1 FROM inode LIMIT 1").one { _ in true } ?? false
        }
        guard isFilled == true else { return nil }
    }

    /// Whether rows may be missing whose first column is this number.
    public func mayLack(_ table: Table, _ number: UInt64) -> Bool {
        lost[table]?.contains { $0.contains(Int64(clamping: number)) } ?? false
    }

    /// Whether no row of a table is missing.
    public func isWhole(_ table: Table) -> Bool { lost[table]?.isEmpty ?? true }

    // MARK: Filling

    private func fill(_ connection: Connection, _ storage: any PageStorage) throws(CatalogueError) {
        var reader = TreeReader(storage)
        let roots = try Self.roots(connection, &reader)
        var fillers: [Table: RowFiller] = [:]
        for table in Table.allCases { fillers[table] = try RowFiller(connection, table) }
        for (name, root) in roots.sorted(by: { $0.value < $1.value }) {
            let table = Table(rawValue: name)
            guard let table, let filler = fillers[table] else {
                // An index, or pictures: known to be in use, and no more.
                _ = reader.read(root, isTable: nil) { _ in }
                continue
            }
            lost[table] = reader.read(root, isTable: filler.isTable) { filler.add($0) }
        }
        lostPages = reader.lostPages
        if lostPages > 0 { addStrays(reader.strays(), fillers) }
        for filler in fillers.values { try filler.check() }
    }

    /// Where each table and index begins: by the schema, or else as SQLite makes these in an empty database.
    private static func roots(
        _ connection: Connection, _ reader: inout TreeReader
    ) throws(CatalogueError) -> [String: UInt32] {
        var roots: [String: UInt32] = [:]
        let made = try connection.prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
        for (name, root) in try made.all({ ($0.bytes(0), $0.integer(1)) }) {
            roots[String(decoding: name, as: UTF8.self)] = UInt32(clamping: root)
        }
        _ = reader.read(1, isTable: true) { row in
            guard row.count == 5, case .text(let name) = row[1], case .integer(let root) = row[3] else {
                return
            }
            let known = String(decoding: name, as: UTF8.self)
            if roots[known] != nil { roots[known] = UInt32(clamping: root) }
        }
        return roots
    }

    /// Pages below one that is lost say of which table they are by what their rows hold, and by where these are
    /// missing.
    private func addStrays(
        _ strays: [(isTable: Bool, rows: [[StoredValue]])], _ fillers: [Table: RowFiller]
    ) {
        for stray in strays {
            let suited = fillers.filter { table, filler in
                filler.isTable == stray.isTable
                    && stray.rows.allSatisfy { row in
                        guard filler.suits(row), case .integer(let key) = row[0] else { return false }
                        return lost[table]?.contains { $0.contains(key) } ?? false
                    }
            }
            guard suited.count == 1, let filler = suited.values.first else { continue }
            for row in stray.rows { filler.add(row) }
        }
    }
}

/// Puts rows of one table into another database of the same schema.
private final class RowFiller {
    /// Whether the rows have numbers of their own; else they are ordered by their first columns.
    let isTable: Bool
    private let columns: [(isInteger: Bool, mayBeNull: Bool)]
    private let insert: Statement
    private var failure: CatalogueError?

    init(_ connection: Connection, _ table: CatalogueRemains.Table) throws(CatalogueError) {
        let name = table.rawValue
        let query = try connection.prepare(
            "SELECT type='INTEGER', \"notnull\"=0 AND pk=0 FROM pragma_table_info('\(name)')")
        columns = try query.all { ($0.integer(0) != 0, $0.integer(1) != 0) }
        let kind = try connection.prepare("SELECT wr=0 FROM pragma_table_list('\(name)')")
        isTable = try kind.one { $0.integer(0) != 0 } ?? false
        let places = columns.map { _ in "?" }.joined(separator: ",")
        // There is one row of counters from the beginning.
        let verb = table == .counter ? "REPLACE" : "INSERT OR IGNORE"
        insert = try connection.prepare("\(verb) INTO \(name) VALUES(\(places))")
    }

    /// Whether a row may be one of this table.
    func suits(_ row: [StoredValue]) -> Bool {
        row.count == columns.count
            && zip(row, columns).allSatisfy { value, column in
                switch value {
                case .null: column.mayBeNull
                case .integer: column.isInteger
                case .blob: !column.isInteger
                case .text: false
                }
            }
    }

    /// Adds a row, if it is one.
    func add(_ row: [StoredValue]) {
        guard failure == nil, suits(row) else { return }
        for (index, value) in row.enumerated() {
            switch value {
            case .integer(let number): insert.bind(Int32(index + 1), number)
            case .blob(let bytes): insert.bind(Int32(index + 1), bytes)
            case .null, .text: insert.bind(Int32(index + 1), nil)
            }
        }
        do throws(CatalogueError) { try insert.run() } catch {
            // One that the table refuses is none; without room nothing more can be added.
            if error == .noRoom { failure = error }
        }
    }

    /// Throws where not all rows found room.
    func check() throws(CatalogueError) {
        if let failure { throw failure }
    }
}
