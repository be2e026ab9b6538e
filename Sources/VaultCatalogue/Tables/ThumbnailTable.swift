public import FileRequests

/// A row of table `thumbnail`; see `Schema`.
public struct ThumbnailRow: Sendable, Equatable {
    public var ino: UInt64
    /// Pixels across of the box it fits in, or fills.
    public var width: Int64
    /// Pixels down of that box.
    public var height: Int64
    /// Whether the picture is cropped to fill the box.
    public var isFilled: Bool
    /// 0: JPEG, 1: PNG.
    public var format: Int64
    public var content: UInt64
    /// Bytes, or -1 if the photo cannot be decoded.
    public var length: Int64
    /// The photo's revision that it was made from.
    public var revision: UInt64

    public init(
        ino: UInt64, width: Int64, height: Int64, isFilled: Bool, format: Int64, content: UInt64,
        length: Int64, revision: UInt64
    ) {
        self.ino = ino
        self.width = width
        self.height = height
        self.isFilled = isFilled
        self.format = format
        self.content = content
        self.length = length
        self.revision = revision
    }

    init(_ row: Statement) {
        ino = row.count(0)
        width = row.integer(1, in: 1...1 << 16)
        height = row.integer(2, in: 1...1 << 16)
        isFilled = row.integer(3) != 0
        format = row.integer(4)
        content = row.count(5)
        length = row.integer(6, in: -1...1 << 30)
        revision = row.count(7)
    }
}

private struct ThumbnailStatements {
    let list: Statement
    let store: Statement
    let delete: Statement
    let owners: Statement

    init(_ connection: Connection) {
        list = connection.prepare("SELECT * FROM thumbnail WHERE ino=?")
        store = connection.prepare("REPLACE INTO thumbnail VALUES(?,?,?,?,?,?,?,?)")
        delete = connection.prepare("DELETE FROM thumbnail WHERE ino=?")
        owners = connection.prepare(
            "SELECT DISTINCT ino FROM thumbnail WHERE ino>? ORDER BY ino LIMIT ?")
    }
}

/// Table `thumbnail`: the pictures that are kept of photos.
public final class ThumbnailTable {
    private let connection: Connection
    private let statements: ThumbnailStatements

    init(_ connection: Connection) {
        (self.connection, statements) = (connection, ThumbnailStatements(connection))
    }

    /// Every kind of thumbnail kept of a photo.
    public func rows(of ino: UInt64) throws(FileError) -> [ThumbnailRow] {
        statements.list.bind(1, ino)
        return try statements.list.all { ThumbnailRow($0) }
    }

    /// Inserts or replaces the row.
    public func store(_ row: ThumbnailRow) throws(FileError) {
        let store = statements.store
        store.bind(1, row.ino)
        store.bind(2, row.width)
        store.bind(3, row.height)
        store.bind(4, row.isFilled ? 1 : 0 as Int64)
        store.bind(5, row.format)
        store.bind(6, row.content)
        store.bind(7, row.length)
        store.bind(8, row.revision)
        try store.run()
    }

    /// How many are kept. Walks the table: for `status`, not for requests.
    public func count() throws(FileError) -> Int64 {
        try connection.prepare("SELECT count(*) FROM thumbnail WHERE length > 0").one { $0.integer(0) } ?? 0
    }

    public func delete(of ino: UInt64) throws(FileError) {
        statements.delete.bind(1, ino)
        try statements.delete.run()
    }

    /// Photos that have rows here and numbers above `ino`, in order; at most `limit`.
    public func photos(after ino: UInt64, limit: Int) throws(FileError) -> [UInt64] {
        statements.owners.bind(1, ino)
        statements.owners.bind(2, Int64(limit))
        return try statements.owners.all { $0.count(0, above: ino) }
    }
}
