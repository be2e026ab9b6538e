public import FileRequests

/// A table of inode numbers alone.
public final class InodeSetTable {
    private let insert: Statement
    private let delete: Statement
    private let list: Statement

    init(_ connection: Connection, _ table: String) {
        insert = connection.prepare("INSERT OR IGNORE INTO \(table) VALUES(?)")
        delete = connection.prepare("DELETE FROM \(table) WHERE ino=?")
        list = connection.prepare("SELECT ino FROM \(table) WHERE ino>? ORDER BY ino LIMIT ?")
    }

    public func add(_ ino: UInt64) throws(FileError) {
        insert.bind(1, ino)
        try insert.run()
    }

    public func remove(_ ino: UInt64) throws(FileError) {
        delete.bind(1, ino)
        try delete.run()
    }

    /// The numbers above `last`, in order, at most `limit`.
    public func numbers(after last: UInt64 = 0, limit: Int = .max) throws(FileError) -> [UInt64] {
        list.bind(1, last)
        list.bind(2, Int64(limit))
        return try list.all { $0.count(0, above: last) }
    }
}
