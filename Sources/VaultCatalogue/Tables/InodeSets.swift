public import FileRequests

/// Table `orphan`: inodes without a name that are still in use.
public final class OrphanTable {
    private let insert: Statement
    private let delete: Statement
    private let list: Statement

    init(_ connection: Connection) {
        insert = connection.prepare("INSERT OR IGNORE INTO orphan VALUES(?)")
        delete = connection.prepare("DELETE FROM orphan WHERE ino=?")
        list = connection.prepare("SELECT ino FROM orphan WHERE ino>? ORDER BY ino LIMIT ?")
    }

    public func add(_ ino: UInt64) throws(FileError) {
        insert.bind(1, ino)
        try insert.run()
    }

    public func remove(_ ino: UInt64) throws(FileError) {
        delete.bind(1, ino)
        try delete.run()
    }

    /// At most `limit` orphans with numbers above `last`.
    public func numbers(after last: UInt64, limit: Int) throws(FileError) -> [UInt64] {
        list.bind(1, last)
        list.bind(2, Int64(limit))
        return try list.all { $0.count(0, above: last) }
    }
}

/// Table `classification_pending`: files and directories that the next session classifies.
public final class PendingClassificationTable {
    private let insert: Statement
    private let delete: Statement
    private let list: Statement

    init(_ connection: Connection) {
        insert = connection.prepare("INSERT OR IGNORE INTO classification_pending VALUES(?)")
        delete = connection.prepare("DELETE FROM classification_pending WHERE ino=?")
        list = connection.prepare("SELECT ino FROM classification_pending")
    }

    public func add(_ ino: UInt64) throws(FileError) {
        insert.bind(1, ino)
        try insert.run()
    }

    public func remove(_ ino: UInt64) throws(FileError) {
        delete.bind(1, ino)
        try delete.run()
    }

    public func numbers() throws(FileError) -> [UInt64] {
        try list.all { $0.count(0) }
    }
}
