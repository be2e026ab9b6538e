public import FileRequests

/// Table `symlink`: the targets of symbolic links.
public final class LinkTable {
    private let find: Statement
    private let insert: Statement
    private let remove: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT target FROM symlink WHERE ino=?")
        insert = connection.prepare("INSERT INTO symlink VALUES(?,?)")
        remove = connection.prepare("DELETE FROM symlink WHERE ino=?")
    }

    public func target(_ ino: UInt64) throws(FileError) -> [UInt8]? {
        find.bind(1, ino)
        return try find.one { $0.bytes(0) }
    }

    public func store(_ ino: UInt64, _ target: [UInt8]) throws(FileError) {
        insert.bind(1, ino)
        insert.bind(2, target)
        try insert.run()
    }

    public func delete(_ ino: UInt64) throws(FileError) {
        remove.bind(1, ino)
        try remove.run()
    }
}
