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

/// A photo or a copy of one in a directory; see `Tables.newestPhotos`.
public struct PlacedPhoto: Sendable, Equatable {
    public var name: [UInt8]
    /// The inode that has the name.
    public var ino: UInt64
    /// The photo that it is or stands for.
    public var photo: UInt64
}

struct ThumbnailStatements {
    let list: Statement
    let store: Statement
    let delete: Statement
    let newest: Statement
    let owners: Statement

    init(_ connection: Connection) {
        list = connection.prepare("SELECT * FROM thumbnail WHERE ino=?")
        store = connection.prepare("REPLACE INTO thumbnail VALUES(?,?,?,?,?,?,?,?)")
        delete = connection.prepare("DELETE FROM thumbnail WHERE ino=?")
        owners = connection.prepare(
            "SELECT DISTINCT ino FROM thumbnail WHERE ino>? ORDER BY ino LIMIT ?")
        newest = connection.prepare(
            "SELECT placed.name, placed.ino, photo.ino FROM "
                + "(SELECT id, name, ino FROM dentry WHERE parent=?1 ORDER BY id DESC LIMIT ?2) AS placed "
                + "LEFT JOIN copy ON copy.ino=placed.ino "
                + "JOIN photo ON photo.ino=coalesce(copy.photo, placed.ino) "
                + "ORDER BY photo.captured DESC, photo.captured_ns DESC, placed.id DESC LIMIT ?3")
    }
}

extension Tables {
    /// Every kind of thumbnail kept of a photo.
    public func thumbnails(of ino: UInt64) throws(CatalogueError) -> [ThumbnailRow] {
        thumbnails.list.bind(1, ino)
        return try thumbnails.list.all { ThumbnailRow($0) }
    }

    /// Inserts or replaces the row.
    public func store(_ row: ThumbnailRow) throws(CatalogueError) {
        let store = thumbnails.store
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
    public func thumbnailCount() throws(CatalogueError) -> Int64 {
        try connection.prepare("SELECT count(*) FROM thumbnail WHERE length > 0").one { $0.integer(0) } ?? 0
    }

    public func deleteThumbnails(of ino: UInt64) throws(CatalogueError) {
        thumbnails.delete.bind(1, ino)
        try thumbnails.delete.run()
    }

    /// Photos that have rows here and numbers above `ino`, in order; at most `limit`.
    public func photosWithThumbnails(after ino: UInt64, limit: Int) throws(CatalogueError) -> [UInt64] {
        thumbnails.owners.bind(1, ino)
        thumbnails.owners.bind(2, Int64(limit))
        return try thumbnails.owners.all { $0.count(0, above: ino) }
    }

    /// The photos of a directory that were taken last, the newest first, at most `limit`. Only the `among` names that
    /// were added to the directory last are examined.
    public func newestPhotos(
        in parent: UInt64, among: Int, limit: Int
    ) throws(CatalogueError) -> [PlacedPhoto] {
        thumbnails.newest.bind(1, parent)
        thumbnails.newest.bind(2, Int64(among))
        thumbnails.newest.bind(3, Int64(limit))
        return try thumbnails.newest.all {
            PlacedPhoto(name: $0.name(0), ino: $0.count(1), photo: $0.count(2))
        }
    }
}
