public import FileRequests

/// The next IDs, and totals. One row, written with each transaction that changes one of them.
public struct Counters: Sendable, Equatable {
    public var ino: UInt64
    public var content: UInt64
    public var dentry: UInt64
    /// Photos with this inode number or a higher one may lack a standard picture.
    public var pictured: UInt64
    /// Bytes of all photos.
    public var photoBytes: UInt64 = 0
    /// Bytes that kept pictures of photos take in the space.
    public var pictureBytes: UInt64 = 0

    public init(ino: UInt64, content: UInt64, dentry: UInt64, pictured: UInt64) {
        self.ino = ino
        self.content = content
        self.dentry = dentry
        self.pictured = pictured
    }

    fileprivate init(_ row: Statement) {
        self.init(
            ino: row.count(0), content: row.count(1), dentry: row.count(2), pictured: row.count(3)
        )
        // Wrong totals are harmless, and a repair counts them again.
        photoBytes = UInt64(clamping: row.integer(4))
        pictureBytes = UInt64(clamping: row.integer(5))
    }
}

/// Table `counter`.
public final class CounterTable {
    private let find: Statement
    private let update: Statement

    init(_ connection: Connection) {
        find = connection.prepare(
            "SELECT ino, content, dentry, pictured, photo_bytes, picture_bytes FROM counter WHERE id=1")
        update = connection.prepare(
            "UPDATE counter SET ino=?, content=?, dentry=?, pictured=?, photo_bytes=?, picture_bytes=? "
                + "WHERE id=1")
    }

    public func current() throws(FileError) -> Counters {
        guard let found = try find.one({ Counters($0) }) else { throw .damaged }
        return found
    }

    public func store(_ counters: Counters) throws(FileError) {
        update.bind(1, counters.ino)
        update.bind(2, counters.content)
        update.bind(3, counters.dentry)
        update.bind(4, counters.pictured)
        update.bind(5, counters.photoBytes)
        update.bind(6, counters.pictureBytes)
        try update.run()
    }
}
