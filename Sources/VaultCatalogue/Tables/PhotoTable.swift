public import CatalogueRows
public import FileRequests

extension PhotoRow {
    init(_ row: Statement) {
        self.init(ino: row.count(0), day: row.integer(1, in: InodeRow.days))
        isPinned = row.integer(2) != 0
        captured = row.integer(3, in: Self.times)
        capturedNanoseconds = row.integer(4, in: 0...999_999_999)
        source = row.bytes(5)
        media = row.integer(6)
        width = row.integer(7, in: Self.lengths)
        height = row.integer(8, in: Self.lengths)
        orientation = row.integer(9, in: Self.orientations)
        isDatedByMtime = row.integer(10) != 0
        former = row.isNull(11) ? nil : row.name(11)
        fingerprint = row.unsigned(12)
        camera = row.isNull(13) ? nil : row.name(13)
        kind = row.integer(14, in: Self.kinds)
        rating = row.integer(15, in: Self.ratings)
        arrived = row.count(16)
        group = row.isNull(18) ? nil : row.bytes(18)
    }
}

private struct PhotoStatements {
    let find: Statement
    let store: Statement
    let delete: Statement
    let shownCount: Statement
    let alike: Statement
    let redate: Statement
    let ofGroup: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT * FROM photo WHERE ino=?")
        let columns = [
            "ino", "day", "pinned", "captured", "captured_ns", "source", "media", "width", "height",
            "orientation", "undated", "former", "fingerprint", "camera", "kind", "rating", "group_id",
        ]
        let changes = columns.dropFirst().map { "\($0)=excluded.\($0)" }.joined(separator: ", ")
        let values = columns.map { _ in "?" }.joined(separator: ",")
        store = connection.prepare(
            "INSERT INTO photo(\(columns.joined(separator: ", ")), arrived, name) "
                + "VALUES(\(values), CASE ?18 WHEN 0 THEN ?1 ELSE ?18 END, NULL) ON CONFLICT(ino) DO UPDATE SET "
                + "\(changes), arrived=CASE ?18 WHEN 0 THEN arrived ELSE ?18 END")
        delete = connection.prepare("DELETE FROM photo WHERE ino=?")
        // The index has a tenth of the table's pages, nearly in order. The range makes it a search, whose steps are
        // limited; SQLite counts a whole table in one.
        shownCount = connection.prepare(
            "SELECT count(*) FROM photo INDEXED BY photo_arrived WHERE name IS NOT NULL AND arrived >= 0")
        alike = connection.prepare("SELECT ino FROM photo WHERE fingerprint=? ORDER BY ino LIMIT ?")
        ofGroup = connection.prepare("SELECT ino FROM photo WHERE group_id=? ORDER BY ino LIMIT ?")
        redate = connection.prepare(
            "UPDATE photo SET day=?2, pinned=1, captured=?3 + ((captured % 86400) + 86400) % 86400, "
                + "source=?4 WHERE ino IN (SELECT ino FROM dentry WHERE parent=?1)")
    }
}

/// Table `photo`.
public final class PhotoTable {
    private let statements: PhotoStatements

    init(_ connection: Connection) { statements = PhotoStatements(connection) }

    public func row(_ ino: UInt64) throws(FileError) -> PhotoRow? {
        statements.find.bind(1, ino)
        return try statements.find.one { PhotoRow($0) }
    }

    /// Inserts or replaces the row, except its name in views. A row that does not know when its photo arrived leaves
    /// that as it is.
    public func store(_ row: PhotoRow) throws(FileError) {
        let store = statements.store
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
        store.bind(11, row.isDatedByMtime ? 1 : 0 as Int64)
        store.bind(12, row.former)
        store.bind(13, row.fingerprint)
        store.bind(14, row.camera)
        store.bind(15, row.kind)
        store.bind(16, row.rating)
        store.bind(17, row.group)
        store.bind(18, row.arrived)
        try store.run()
    }

    public func delete(_ ino: UInt64) throws(FileError) {
        statements.delete.bind(1, ino)
        try statements.delete.run()
    }

    /// Pins all photos of a directory to a day that begins `midnight` seconds after 1970 on its own clock;
    /// their times of day stay.
    public func redate(
        in parent: UInt64, to day: Int64, midnight: Int64, source: [UInt8]
    ) throws(FileError) {
        statements.redate.bind(1, parent)
        statements.redate.bind(2, day)
        statements.redate.bind(3, midnight)
        statements.redate.bind(4, source)
        try statements.redate.run()
    }

    /// How many photos are in views: all that are not in the trash, once their names there are settled. Walks an index:
    /// for `status`, not for requests.
    public func shownCount() throws(FileError) -> Int64 {
        try statements.shownCount.one { $0.integer(0) } ?? 0
    }

    /// Photos with that identifier of a Live Photo or a burst, the oldest first, at most `limit`. Also those in the
    /// trash.
    public func numbers(group: [UInt8], limit: Int) throws(FileError) -> [UInt64] {
        statements.ofGroup.bind(1, group)
        statements.ofGroup.bind(2, Int64(limit))
        return try statements.ofGroup.all { $0.count(0) }
    }

    /// Photos of that fingerprint, the oldest first, at most `limit`.
    public func numbers(fingerprint: UInt64, limit: Int) throws(FileError) -> [UInt64] {
        statements.alike.bind(1, fingerprint)
        statements.alike.bind(2, Int64(limit))
        return try statements.alike.all { $0.count(0) }
    }
}
