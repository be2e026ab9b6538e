/// A row of table `photo`; see `Schema`.
public struct PhotoRow: Sendable, Equatable {
    public var ino: UInt64
    /// The day it is shown under, YYYYMMDD.
    public var day: Int64
    /// Whether the user chose the day, so that it is not read anew.
    public var isPinned: Bool
    /// The wall clock when it was taken, as seconds since 1970 on that clock.
    public var captured: Int64
    public var capturedNanoseconds: Int64
    /// Where `captured` came from: a `DateSource`'s raw value.
    public var source: [UInt8]
    /// A `MediaType`'s raw value.
    public var media: Int64
    public var width: Int64
    public var height: Int64
    /// EXIF orientation, 1–8.
    public var orientation: Int64
    /// Whether its only date is its mtime, which it follows.
    public var isUndated: Bool
    /// The name it had in its day before it was renamed as an editor's backup.
    public var former: [UInt8]?
    /// Of the bytes; see `fingerprint(of:)` of the library.
    public var fingerprint: UInt64

    public init(ino: UInt64, day: Int64) {
        self.ino = ino
        self.day = day
        (isPinned, isUndated, former) = (false, false, nil)
        (captured, capturedNanoseconds, source) = (0, 0, [])
        (media, width, height, orientation) = (0, 0, 0, 1)
        fingerprint = 0
    }

    private static let times: ClosedRange<Int64> = -(1 << 61)...1 << 61
    private static let lengths: ClosedRange<Int64> = 0...1 << 32
    private static let orientations: ClosedRange<Int64> = 1...8

    /// Whether its numbers are valid in the table.
    public var isPlausible: Bool {
        dayNumbers.contains(day) && Self.times.contains(captured)
            && (0...999_999_999).contains(capturedNanoseconds) && Self.lengths.contains(width)
            && Self.lengths.contains(height) && Self.orientations.contains(orientation)
    }

    init(_ row: Statement) {
        ino = row.count(0)
        day = row.integer(1, in: dayNumbers)
        isPinned = row.integer(2) != 0
        captured = row.integer(3, in: Self.times)
        capturedNanoseconds = row.integer(4, in: 0...999_999_999)
        source = row.bytes(5)
        media = row.integer(6)
        width = row.integer(7, in: Self.lengths)
        height = row.integer(8, in: Self.lengths)
        orientation = row.integer(9, in: Self.orientations)
        isUndated = row.integer(10) != 0
        former = row.isNull(11) ? nil : row.name(11)
        fingerprint = row.unsigned(12)
    }
}

struct PhotoStatements {
    let find: Statement
    let store: Statement
    let delete: Statement
    let count: Statement
    let alike: Statement
    let redate: Statement

    init(_ connection: Connection) throws(CatalogueError) {
        find = try connection.prepare("SELECT * FROM photo WHERE ino=?")
        store = try connection.prepare("REPLACE INTO photo VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)")
        delete = try connection.prepare("DELETE FROM photo WHERE ino=?")
        count = try connection.prepare("SELECT count(*) FROM photo WHERE ino > 0")
        alike = try connection.prepare("SELECT ino FROM photo WHERE fingerprint=? ORDER BY ino LIMIT ?")
        redate = try connection.prepare(
            "UPDATE photo SET day=?2, pinned=1, captured=?3 + ((captured % 86400) + 86400) % 86400, "
                + "source=?4 WHERE ino IN (SELECT ino FROM dentry WHERE parent=?1)")
    }
}

extension Tables {
    public func photo(_ ino: UInt64) throws(CatalogueError) -> PhotoRow? {
        photos.find.bind(1, ino)
        return try photos.find.one { PhotoRow($0) }
    }

    /// Inserts or replaces the row.
    public func store(_ row: PhotoRow) throws(CatalogueError) {
        let store = photos.store
        store.bind(1, row.ino)
        store.bind(2, row.day)
        store.bind(3, row.isPinned ? 1 : 0 as Int64)
        store.bind(4, row.captured)
        store.bind(5, row.capturedNanoseconds)
        store.bind(6, row.source)
        store.bind(7, row.media)
        store.bind(8, row.width)
        store.bind(9, row.height)
        store.bind(10, row.orientation)
        store.bind(11, row.isUndated ? 1 : 0 as Int64)
        store.bind(12, row.former)
        store.bind(13, row.fingerprint)
        try store.run()
    }

    public func deletePhoto(_ ino: UInt64) throws(CatalogueError) {
        photos.delete.bind(1, ino)
        try photos.delete.run()
    }

    /// Pins all photos of a directory to a day that begins `midnight` seconds after 1970 on its own clock;
    /// their times of day stay.
    public func redatePhotos(
        in parent: UInt64, to day: Int64, midnight: Int64, source: [UInt8]
    ) throws(CatalogueError) {
        photos.redate.bind(1, parent)
        photos.redate.bind(2, day)
        photos.redate.bind(3, midnight)
        photos.redate.bind(4, source)
        try photos.redate.run()
    }

    /// How many photos there are. Walks an index: for `status`, not for requests.
    public func photoCount() throws(CatalogueError) -> Int64 {
        try photos.count.one { $0.integer(0) } ?? 0
    }

    /// Photos of that fingerprint, the oldest first, at most `limit`.
    public func photos(fingerprint: UInt64, limit: Int) throws(CatalogueError) -> [UInt64] {
        photos.alike.bind(1, fingerprint)
        photos.alike.bind(2, Int64(limit))
        return try photos.alike.all { $0.count(0) }
    }
}
