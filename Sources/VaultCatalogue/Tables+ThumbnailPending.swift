/// A row of table `thumbnail_pending`; see `Schema`.
public struct InodeRange: Sendable, Equatable {
    public var first: UInt64
    /// Exclusive.
    public var end: UInt64

    public init(first: UInt64, end: UInt64) {
        (self.first, self.end) = (first, end)
    }

    init(_ row: Statement) { self.init(first: row.count(0), end: row.count(1)) }
}

struct ThumbnailPendingStatements {
    let highest: Statement
    let below: Statement
    let store: Statement
    let delete: Statement
    let photos: Statement

    init(_ connection: Connection) {
        highest = connection.prepare(
            "SELECT first, end FROM thumbnail_pending ORDER BY first DESC LIMIT 1")
        below = connection.prepare(
            "SELECT first, end FROM thumbnail_pending WHERE first<=? ORDER BY first DESC LIMIT 1")
        store = connection.prepare("REPLACE INTO thumbnail_pending VALUES(?,?)")
        delete = connection.prepare("DELETE FROM thumbnail_pending WHERE first=?")
        photos = connection.prepare(
            "SELECT ino, EXISTS(SELECT 1 FROM thumbnail WHERE thumbnail.ino=photo.ino) FROM photo "
                + "WHERE ino>=? AND ino<? ORDER BY ino DESC LIMIT ?")
    }
}

/// Photos that may lack a picture.
extension Tables {
    /// The range of the highest numbers.
    public func highestPendingRange() throws(CatalogueError) -> InodeRange? {
        try thumbnailPending.highest.one { InodeRange($0) }
    }

    /// Whether the number lies in a range.
    public func isInPendingRange(_ ino: UInt64) throws(CatalogueError) -> Bool {
        thumbnailPending.below.bind(1, ino)
        return try thumbnailPending.below.one { InodeRange($0).end > ino } ?? false
    }

    /// Inserts or replaces the row.
    public func store(_ stretch: InodeRange) throws(CatalogueError) {
        thumbnailPending.store.bind(1, stretch.first)
        thumbnailPending.store.bind(2, stretch.end)
        try thumbnailPending.store.run()
    }

    public func deleteRange(from first: UInt64) throws(CatalogueError) {
        thumbnailPending.delete.bind(1, first)
        try thumbnailPending.delete.run()
    }

    /// Photos of a range, the highest numbers first, at most `limit`, and whether each has a row in `thumbnail`.
    public func photos(
        in stretch: InodeRange, limit: Int
    ) throws(CatalogueError) -> [(ino: UInt64, hasPicture: Bool)] {
        thumbnailPending.photos.bind(1, stretch.first)
        thumbnailPending.photos.bind(2, stretch.end)
        thumbnailPending.photos.bind(3, Int64(limit))
        return try thumbnailPending.photos.all { ($0.count(0), $0.integer(1) != 0) }
    }
}
