public import FileRequests

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

private struct ThumbnailPendingStatements {
    let highest: Statement
    let below: Statement
    let store: Statement
    let delete: Statement
    let deleteAll: Statement
    let photos: Statement

    init(_ connection: Connection) {
        highest = connection.prepare(
            "SELECT first, end FROM thumbnail_pending ORDER BY first DESC LIMIT 1")
        below = connection.prepare(
            "SELECT first, end FROM thumbnail_pending WHERE first<=? ORDER BY first DESC LIMIT 1")
        store = connection.prepare("REPLACE INTO thumbnail_pending VALUES(?,?)")
        delete = connection.prepare("DELETE FROM thumbnail_pending WHERE first=?")
        deleteAll = connection.prepare("DELETE FROM thumbnail_pending")
        photos = connection.prepare(
            "SELECT ino, EXISTS(SELECT 1 FROM thumbnail WHERE thumbnail.ino=photo.ino) FROM photo "
                + "WHERE ino>=? AND ino<? ORDER BY ino DESC LIMIT ?")
    }
}

/// Photos that may lack a picture.
public final class PendingThumbnailTable {
    private let statements: ThumbnailPendingStatements

    init(_ connection: Connection) { statements = ThumbnailPendingStatements(connection) }

    /// The range of the highest numbers.
    public func highest() throws(FileError) -> InodeRange? {
        try statements.highest.one { InodeRange($0) }
    }

    /// Whether the number lies in a range.
    public func contains(_ ino: UInt64) throws(FileError) -> Bool {
        statements.below.bind(1, ino)
        return try statements.below.one { InodeRange($0).end > ino } ?? false
    }

    /// Inserts or replaces the row.
    public func store(_ stretch: InodeRange) throws(FileError) {
        statements.store.bind(1, stretch.first)
        statements.store.bind(2, stretch.end)
        try statements.store.run()
    }

    public func delete(from first: UInt64) throws(FileError) {
        statements.delete.bind(1, first)
        try statements.delete.run()
    }

    public func deleteAll() throws(FileError) { try statements.deleteAll.run() }

    /// Photos of a range, the highest numbers first, at most `limit`, and whether each has a row in `thumbnail`.
    public func photos(
        in stretch: InodeRange, limit: Int
    ) throws(FileError) -> [(ino: UInt64, hasPicture: Bool)] {
        statements.photos.bind(1, stretch.first)
        statements.photos.bind(2, stretch.end)
        statements.photos.bind(3, Int64(limit))
        return try statements.photos.all { ($0.count(0), $0.integer(1) != 0) }
    }
}
