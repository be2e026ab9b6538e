public import FileRequests

/// Copies: inodes that stand for another inode's photo, and contents that several inodes have.
private struct CopyStatements {
    let photo: Statement
    let store: Statement
    let delete: Statement
    let list: Statement
    let move: Statement
    let users: Statement
    let storeUsers: Statement
    let deleteUsers: Statement

    init(_ connection: Connection) {
        photo = connection.prepare("SELECT photo FROM copy WHERE ino=?")
        store = connection.prepare("REPLACE INTO copy VALUES(?,?)")
        delete = connection.prepare("DELETE FROM copy WHERE ino=?")
        list = connection.prepare("SELECT ino FROM copy WHERE photo=? ORDER BY ino")
        move = connection.prepare("UPDATE copy SET photo=?2 WHERE photo=?1")
        users = connection.prepare("SELECT users FROM share WHERE content=?")
        storeUsers = connection.prepare("REPLACE INTO share VALUES(?,?)")
        deleteUsers = connection.prepare("DELETE FROM share WHERE content=?")
    }
}

/// Tables `copy` and `share`.
public final class CopyTable {
    private let statements: CopyStatements

    init(_ connection: Connection) { statements = CopyStatements(connection) }

    /// The photo that an inode stands for; nil if it is no copy.
    public func photo(ofCopy ino: UInt64) throws(FileError) -> UInt64? {
        statements.photo.bind(1, ino)
        return try statements.photo.one { $0.count(0) }
    }

    public func store(_ ino: UInt64, of photo: UInt64) throws(FileError) {
        statements.store.bind(1, ino)
        statements.store.bind(2, photo)
        try statements.store.run()
    }

    public func delete(_ ino: UInt64) throws(FileError) {
        statements.delete.bind(1, ino)
        try statements.delete.run()
    }

    /// The copies of a photo, oldest first.
    public func numbers(of photo: UInt64) throws(FileError) -> [UInt64] {
        statements.list.bind(1, photo)
        return try statements.list.all { $0.count(0) }
    }

    /// Makes all copies of one photo copies of another.
    public func move(of photo: UInt64, to other: UInt64) throws(FileError) {
        statements.move.bind(1, photo)
        statements.move.bind(2, other)
        try statements.move.run()
    }

    /// How many inodes have this content.
    public func users(of content: UInt64) throws(FileError) -> Int64 {
        statements.users.bind(1, content)
        return try statements.users.one { $0.integer(0, in: 1...1 << 32) } ?? 1
    }

    /// Notes how many inodes have this content.
    public func store(users: Int64, of content: UInt64) throws(FileError) {
        if users > 1 {
            statements.storeUsers.bind(1, content)
            statements.storeUsers.bind(2, users)
            try statements.storeUsers.run()
        } else {
            statements.deleteUsers.bind(1, content)
            try statements.deleteUsers.run()
        }
    }
}
