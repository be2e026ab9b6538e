public import FileRequests

/// Table `xattr`: extended attributes of users.
public final class AttributeTable {
    private let find: Statement
    private let listNames: Statement
    private let list: Statement
    private let replace: Statement
    private let remove: Statement
    private let removeAll: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT value FROM xattr WHERE ino=? AND name=?")
        listNames = connection.prepare("SELECT name FROM xattr WHERE ino=? ORDER BY name")
        list = connection.prepare("SELECT name, value FROM xattr WHERE ino=? ORDER BY name")
        replace = connection.prepare("REPLACE INTO xattr VALUES(?,?,?)")
        remove = connection.prepare("DELETE FROM xattr WHERE ino=? AND name=?")
        removeAll = connection.prepare("DELETE FROM xattr WHERE ino=?")
    }

    public func value(_ ino: UInt64, _ name: [UInt8]) throws(FileError) -> [UInt8]? {
        find.bind(1, ino)
        find.bind(2, name)
        return try find.one { $0.bytes(0) }
    }

    public func names(_ ino: UInt64) throws(FileError) -> [[UInt8]] {
        listNames.bind(1, ino)
        return try listNames.all { $0.bytes(0) }
    }

    public func all(
        _ ino: UInt64
    ) throws(FileError) -> [(name: [UInt8], value: [UInt8])] {
        list.bind(1, ino)
        return try list.all { ($0.bytes(0), $0.bytes(1)) }
    }

    public func store(
        _ ino: UInt64, _ name: [UInt8], _ value: [UInt8]
    ) throws(FileError) {
        replace.bind(1, ino)
        replace.bind(2, name)
        replace.bind(3, value)
        try replace.run()
    }

    public func delete(_ ino: UInt64, _ name: [UInt8]) throws(FileError) {
        remove.bind(1, ino)
        remove.bind(2, name)
        try remove.run()
    }

    public func deleteAll(_ ino: UInt64) throws(FileError) {
        removeAll.bind(1, ino)
        try removeAll.run()
    }
}
