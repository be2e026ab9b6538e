public import CatalogueRows
public import FileRequests
import LinuxIO

extension InodeRow {
    init(_ row: Statement, from column: Int32 = 0) {
        self.init(
            ino: row.count(column), mode: UInt32(row.integer(column + 1, in: 0...0o177777)),
            uid: UInt32(truncatingIfNeeded: row.integer(column + 2)),
            gid: UInt32(truncatingIfNeeded: row.integer(column + 3)), now: Self.time(row, column + 17))
        rdev = row.unsigned(column + 4)
        nlink = UInt32(row.integer(column + 5, in: 0...Int64(Int32.max)))
        size = UInt64(row.integer(column + 6, in: 0...Int64.max))
        allocated = row.count(column + 7)
        content = row.count(column + 8)
        revision = row.count(column + 9)
        parent = row.count(column + 10)
        day = row.integer(column + 11, in: Self.days)
        flags = InodeFlags(rawValue: row.integer(column + 12))
        accessed = Self.time(row, column + 13)
        modified = Self.time(row, column + 15)
    }

    private static func time(_ row: Statement, _ column: Int32) -> Timestamp {
        Timestamp(
            seconds: row.integer(column), nanoseconds: UInt32(row.integer(column + 1, in: 0...999_999_999)))
    }

    fileprivate static let names = [
        "ino", "mode", "uid", "gid", "rdev", "nlink", "size", "allocated", "content", "version",
        "parent", "day", "flags", "atime", "atime_ns", "mtime", "mtime_ns", "ctime", "ctime_ns",
    ]

    /// In the order in which a row is read; with the table's name, as other tables have columns of such names.
    static let columns = names.map { "inode." + $0 }.joined(separator: ", ")
}

private struct InodeStatements {
    let find: Statement
    let store: Statement
    let delete: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT \(InodeRow.columns) FROM inode WHERE ino=?")
        store = connection.prepare(
            "REPLACE INTO inode(\(InodeRow.names.joined(separator: ", "))) "
                + "VALUES(\(InodeRow.names.map { _ in "?" }.joined(separator: ",")))")
        delete = connection.prepare("DELETE FROM inode WHERE ino=?")
    }
}

/// Table `inode`.
public final class InodeTable {
    private let connection: Connection
    private let statements: InodeStatements

    init(_ connection: Connection) {
        (self.connection, statements) = (connection, InodeStatements(connection))
    }

    public func row(_ ino: UInt64) throws(FileError) -> InodeRow? {
        statements.find.bind(1, ino)
        return try statements.find.one { InodeRow($0) }
    }

    /// Inserts or replaces the row.
    public func store(_ row: InodeRow) throws(FileError) {
        let store = statements.store
        store.bind(1, row.ino)
        store.bind(2, Int64(row.mode))
        store.bind(3, Int64(row.uid))
        store.bind(4, Int64(row.gid))
        store.bind(5, row.rdev)
        store.bind(6, Int64(row.nlink))
        store.bind(7, row.size)
        store.bind(8, row.allocated)
        store.bind(9, row.content)
        store.bind(10, row.revision)
        store.bind(11, row.parent)
        store.bind(12, row.day)
        store.bind(13, row.flags.rawValue)
        store.bind(14, row.accessed.seconds)
        store.bind(15, Int64(row.accessed.nanoseconds))
        store.bind(16, row.modified.seconds)
        store.bind(17, Int64(row.modified.nanoseconds))
        store.bind(18, row.changed.seconds)
        store.bind(19, Int64(row.changed.nanoseconds))
        try store.run()
    }

    public func delete(_ ino: UInt64) throws(FileError) {
        statements.delete.bind(1, ino)
        try statements.delete.run()
    }

    /// The inodes with contents that have extents which begin in a range of sectors. Reads all inodes: contents have no
    /// index.
    public func numbers(withExtentsIn sectors: Range<UInt64>) throws(FileError) -> [UInt64] {
        let query = connection.prepare(
            "SELECT ino FROM inode "
                + "WHERE content IN (SELECT content FROM extent WHERE sector>=? AND sector<?)")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all { $0.unsigned(0) }
    }
}
