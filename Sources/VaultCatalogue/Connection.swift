import CSQLite
import FileRequests
public import VaultFormat

/// The reason for which a catalogue cannot be opened.
public enum CatalogueError: Error, Sendable, Equatable {
    /// A page cannot be read, or its contents are invalid.
    case damaged
    /// The database cannot grow.
    case noRoom
    /// Made by a later release, which is needed.
    case newer(NewerVersion)

    init(_ error: FileError) { self = error == .noRoom ? .noRoom : .damaged }
}

/// Runs a step of opening a catalogue.
func opening<R>(_ step: () throws(FileError) -> R) throws(CatalogueError) -> R {
    do throws(FileError) { return try step() } catch { throw CatalogueError(error) }
}

extension FileError {
    /// The error for a result code of SQLite: `damaged` but for a full database.
    init(code: Int32) {
        self = code & 0xFF == SQLITE_FULL ? .noRoom : .damaged
    }
}

/// One SQLite connection. Not thread-safe: `Catalogue` locks around it.
final class Connection {
    let handle: OpaquePointer
    let limit: WorkLimit

    /// Opens the database file `path` (":memory:" for none) through the VFS of that name.
    ///
    /// - Parameter pageCount: the present number of pages, which limits the work of a statement.
    init(
        path: String, vfs: String?, readOnly: Bool, pageCount: @escaping () -> UInt32 = { 0 }
    ) throws(FileError) {
        var opened: OpaquePointer?
        let flags =
            (readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            | SQLITE_OPEN_NOMUTEX
        let code = sqlite3_open_v2(path, &opened, flags, vfs)
        guard code == SQLITE_OK, let opened else {
            sqlite3_close(opened)
            throw FileError(code: code)
        }
        handle = opened
        limit = WorkLimit(handle, pageCount)
        sqlite3_extended_result_codes(handle, 1)
    }

    deinit {
        limit.end(handle)
        sqlite3_close_v2(handle)
    }

    /// Runs SQL that returns nothing.
    func execute(_ sql: String) throws(FileError) {
        limit.begin()
        defer { limit.end() }
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw FileError(code: code) }
    }

    /// A statement of this connection; errors in it are found when it is used.
    func prepare(_ sql: String) -> Statement { Statement(self, sql) }

    /// Reserves `count` bytes at each page's end for the store: SQLITE_FCNTL_RESERVE_BYTES, before the first write.
    func reserveBytes(_ count: Int32) throws(FileError) {
        var count = count
        let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
        guard code == SQLITE_OK else { throw FileError(code: code) }
    }

    /// sqlite3_total_changes64.
    var changeCount: Int64 { sqlite3_total_changes64(handle) }

    /// False after SQLite has rolled the long-lived transaction back by itself.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }
}

/// Whether a name is valid for a directory entry.
public func isEntryName(_ name: [UInt8]) -> Bool {
    (1...255).contains(name.count) && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
        && name != Array(".".utf8) && name != Array("..".utf8)
}

/// A statement, prepared when it is first used: a session uses few of the hundred that there are. Values bound as bytes
/// are copied, so nothing outlives the call.
///
/// Rows are untrusted: anyone who knows the password can write them. Invalid numbers and names are read as harmless
/// ones, and the query throws `damaged` once that row was read.
final class Statement {
    private let connection: Connection
    private let limit: WorkLimit
    private let sql: String
    /// Nil before the first use, or if it cannot be prepared.
    private var prepared: OpaquePointer?
    /// SQLite's code of the last attempt to prepare it.
    private var preparingCode = SQLITE_OK
    private var isRunning = false
    private var isPlausible = true
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    init(_ connection: Connection, _ sql: String) {
        self.connection = connection
        limit = connection.limit
        self.sql = sql
    }

    deinit { sqlite3_finalize(prepared) }

    /// Nil if it cannot be prepared: binding does nothing then, and `step` throws.
    @inline(__always)
    var handle: OpaquePointer? {
        if let prepared { return prepared }
        return prepare()
    }

    @inline(never)
    private func prepare() -> OpaquePointer? {
        preparingCode = sqlite3_prepare_v3(
            connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        return prepared
    }

    @inline(__always)
    func bind(_ index: Int32, _ value: Int64) { sqlite3_bind_int64(handle, index, value) }

    @inline(__always)
    func bind(_ index: Int32, _ value: UInt64) {
        sqlite3_bind_int64(handle, index, Int64(bitPattern: value))
    }

    func bind(_ index: Int32, _ bytes: [UInt8]) {
        // A NULL pointer would bind NULL rather than no bytes.
        if bytes.isEmpty {
            sqlite3_bind_zeroblob(handle, index, 0)
        } else {
            sqlite3_bind_blob(handle, index, bytes, Int32(bytes.count), Self.copied)
        }
    }

    func bind(_ index: Int32, _ bytes: [UInt8]?) {
        if let bytes { bind(index, bytes) } else { sqlite3_bind_null(handle, index) }
    }

    /// True while there is a row.
    private func step() throws(FileError) -> Bool {
        guard let handle else { throw FileError(code: preparingCode) }
        if !isRunning { limit.begin() }
        isRunning = true
        let code = sqlite3_step(handle)
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE { return false }
        reset()
        throw FileError(code: code)
    }

    private func reset() {
        sqlite3_reset(handle)
        if isRunning { limit.end() }
        isRunning = false
    }

    /// Runs a statement that returns no rows.
    func run() throws(FileError) {
        guard let handle else { throw FileError(code: preparingCode) }
        limit.begin()
        let code = sqlite3_step(handle)
        sqlite3_reset(handle)
        limit.end()
        guard code == SQLITE_DONE else { throw FileError(code: code) }
    }

    /// Runs a query for at most one row.
    func one<R>(_ row: (Statement) -> R) throws(FileError) -> R? {
        guard try step() else {
            reset()
            return nil
        }
        defer { reset() }
        return try judged(row)
    }

    /// Runs a query and returns its rows.
    func all<R>(_ row: (Statement) -> R) throws(FileError) -> [R] {
        var rows: [R] = []
        defer { reset() }
        while try step() { rows.append(try judged(row)) }
        return rows
    }

    /// Runs a query until `row` returns false or the rows end.
    func each(_ row: (Statement) -> Bool) throws(FileError) {
        defer { reset() }
        while try step() {
            if try !judged(row) { break }
        }
    }

    private func judged<R>(_ row: (Statement) -> R) throws(FileError) -> R {
        let result = row(self)
        if isPlausible { return result }
        isPlausible = true
        throw .damaged
    }

    @inline(__always)
    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    @inline(__always)
    func unsigned(_ column: Int32) -> UInt64 { UInt64(bitPattern: sqlite3_column_int64(handle, column)) }

    /// A number that must lie in `range`; if it does not, the row is damaged, and the nearest number in `range` is
    /// returned.
    @inline(__always)
    func integer(_ column: Int32, in range: ClosedRange<Int64>) -> Int64 {
        let value = integer(column)
        if range.contains(value) { return value }
        isPlausible = false
        return value < range.lowerBound ? range.lowerBound : range.upperBound
    }

    /// An ID, or a count of bytes: limited so that sums do not overflow.
    @inline(__always)
    func count(_ column: Int32) -> UInt64 { UInt64(integer(column, in: 0...Self.countMax)) }

    /// Requires that a row comes after the last one in the query's order; otherwise it is damaged. A caller that
    /// continues after such a row would never come to an end.
    @inline(__always)
    func require(_ isBehind: Bool) {
        if !isBehind { isPlausible = false }
    }

    /// An ID that must be above the last one; see `require`.
    @inline(__always)
    func count(_ column: Int32, above last: UInt64) -> UInt64 {
        let value = count(column)
        require(value > last)
        return value
    }

    /// As `count`, for numbers of any size.
    @inline(__always)
    func unsigned(_ column: Int32, above last: UInt64) -> UInt64 {
        let value = unsigned(column)
        require(value > last)
        return value
    }

    /// Higher IDs are those of virtual inodes, and no vault has so many bytes.
    private static let countMax: Int64 = 1 << 62 - 1

    /// A valid entry name; if it is invalid, the row is damaged, and `?` is returned.
    func name(_ column: Int32) -> [UInt8] {
        let name = bytes(column)
        let isOne = isEntryName(name)
        if !isOne { isPlausible = false }
        return isOne ? name : [UInt8(ascii: "?")]
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func bytes(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }
}
