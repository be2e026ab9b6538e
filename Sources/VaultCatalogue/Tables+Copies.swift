/// Copies: inodes that stand for another inode's photo, and contents that several inodes have.
struct CopyStatements {
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

extension Tables {
    /// The photo that an inode stands for; nil if it is no copy.
    public func photo(ofCopy ino: UInt64) throws(CatalogueError) -> UInt64? {
        copies.photo.bind(1, ino)
        return try copies.photo.one { $0.count(0) }
    }

    public func storeCopy(_ ino: UInt64, of photo: UInt64) throws(CatalogueError) {
        copies.store.bind(1, ino)
        copies.store.bind(2, photo)
        try copies.store.run()
    }

    public func deleteCopy(_ ino: UInt64) throws(CatalogueError) {
        copies.delete.bind(1, ino)
        try copies.delete.run()
    }

    /// The copies of a photo, oldest first.
    public func copies(of photo: UInt64) throws(CatalogueError) -> [UInt64] {
        copies.list.bind(1, photo)
        return try copies.list.all { $0.count(0) }
    }

    /// Makes all copies of one photo copies of another.
    public func moveCopies(of photo: UInt64, to other: UInt64) throws(CatalogueError) {
        copies.move.bind(1, photo)
        copies.move.bind(2, other)
        try copies.move.run()
    }

    /// How many inodes have this content.
    public func users(of content: UInt64) throws(CatalogueError) -> Int64 {
        copies.users.bind(1, content)
        return try copies.users.one { $0.integer(0, in: 1...1 << 32) } ?? 1
    }

    /// Notes how many inodes have this content.
    public func store(users: Int64, of content: UInt64) throws(CatalogueError) {
        if users > 1 {
            copies.storeUsers.bind(1, content)
            copies.storeUsers.bind(2, users)
            try copies.storeUsers.run()
        } else {
            copies.deleteUsers.bind(1, content)
            try copies.deleteUsers.run()
        }
    }
}
